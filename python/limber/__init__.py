"""Limber: soft bodies that move with far fewer unknowns than their meshes have.

Simulate a scene, look at it, change it between steps:

>>> import limber
>>> sim = limber.Simulation({
...     "limber": 1,
...     "gravity": [0, 0, -9.81],
...     "time": {"step": 0.005, "end": 0.1},
...     "method": {"type": "conjac", "dynamic": [{"auto": 4}]},
...     "bodies": [{"mesh": {"shape": "bar", "size": [0.14, 0.04, 0.04], "nodes": [15, 5, 5]},
...                 "material": {"young": 2e4}}],
...     "constraints": [{"nodes": {"set": "x0"}}]})
>>> sim.run(until=0.05)
>>> sim
<limber.Simulation 'scene': 'conjac', 375 nodes, step 10, t = 0.05 s>
>>> sim.energies.elastic > 0, sim.fields["dynamic"].sum()
(True, 4.0)

* :class:`Simulation`: step, run, state, forces and held nodes, checkpoints, recording
* :class:`Scene`, :class:`Mesh`, :func:`keyframes`: what is simulated, from files, text, dicts and arrays
* :func:`load`, :func:`show`, :func:`compare`, :func:`plot`: what runs have left behind
* :class:`Elements`, :class:`Material`, :class:`Cholesky`, :class:`Condensation`, :func:`eigenmodes`,
  :class:`Mechanism`, :class:`Obstacles`: the parts, for methods of one's own
* :class:`Error` and its kinds: :class:`SceneError`, :class:`SimulationError`, :class:`FileError`, :class:`UsageError`

SI units throughout; f = -dE/dx, K = d2E/dx2. docs/python.md is a walk of ten minutes.
"""

from . import _limber
from ._mesh import Mesh
from ._parts import (Assembly, Cholesky, Condensation, Elements, Material, Mechanism, Modes, Nearest, Obstacles,
                     eigenmodes)
from ._runs import Comparison, Distance, Frame, Run, compare, load, plot, show
from ._scene import Scene, keyframes
from ._simulation import Energies, Fields, Measures, Model, Recording, Report, Simulation
from .errors import Error, FileError, Problem, SceneError, SimulationError, UsageError

__version__: str = _limber.version()


def threads() -> int:
    """Threads that simulations of this process use. Results do not depend on it."""
    return _limber.threads()


def set_threads(n: int) -> None:
    """Sets it; 0: all cores."""
    _limber.set_threads(n)


def methods() -> "dict[str, str]":
    """The methods that scenes may name, and what they are."""
    return _limber.methods()


__all__ = ["Assembly", "Cholesky", "Comparison", "Condensation", "Distance", "Elements", "Energies", "Error", "Fields",
           "FileError", "Frame", "Material", "Measures", "Mechanism", "Mesh", "Model", "Modes", "Nearest", "Obstacles",
           "Problem", "Recording", "Report", "Run", "Scene", "SceneError", "Simulation", "SimulationError", "UsageError",
           "compare", "eigenmodes", "keyframes", "load", "methods", "plot", "set_threads", "show", "threads"]
