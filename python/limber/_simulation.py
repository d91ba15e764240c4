"""Simulations."""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
import tempfile
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from . import _limber
from ._mesh import as_ids
from ._parts import Elements
from ._scene import Scene, Source
from .errors import SimulationError, UsageError

_MOST_STEPS = 10**12


class Energies(NamedTuple):
    """Energies of a state [J]. Gravity is zero at the origin; contact is that of the penalty springs."""

    kinetic: float
    elastic: float
    gravity: float
    contact: float
    total: float


class Measures(NamedTuple):
    """Measured the same way for every method."""

    energies: Energies
    momentum: np.ndarray  #: (3,) [kg m/s]
    angular_momentum: np.ndarray  #: (3,), about the origin [kg m^2/s]
    center_of_mass: np.ndarray  #: (3,) [m]
    max_displacement: float  #: of a node from the rest shape [m]
    max_speed: float  #: [m/s]


class Report(NamedTuple):
    """What a method says about a step."""

    dofs: int  #: unknowns of the step's system
    iterations: int  #: linear solves or Newton iterations
    residual: float  #: force residual [N], where the method knows it
    contacts: int
    inverted: int  #: elements with det F <= 0 at the start of the step
    analyses: int  #: symbolic analyses so far in this epoch
    seconds: float  #: wall time of the step
    columns: Dict[str, float]  #: the method's own numbers, as in steps.csv
    energy: Dict[str, float]  #: energies that the method knows [J]
    fallbacks: Dict[str, int]  #: every deviation from the plain step
    warnings: List[str]
    phases: Dict[str, float]  #: seconds of each phase


class Fields(Mapping[str, np.ndarray]):
    """Numbers per node, element or link: what the scene's output asks for, and what the method has of its own.

    Looks like a dict of all of them; :attr:`node`, :attr:`element` and :attr:`link` have them apart."""

    def __init__(self, node: Dict[str, np.ndarray], element: Dict[str, np.ndarray], link: Dict[str, np.ndarray],
                 units: Dict[str, str]):
        self.node, self.element, self.link, self.units = node, element, link, units

    def __getitem__(self, name: str) -> np.ndarray:
        for group in (self.node, self.element, self.link):
            if name in group:
                return group[name]
        raise KeyError(f"{name!r}; there are {', '.join(map(repr, self))}")

    def __iter__(self) -> Iterator[str]:
        return iter({**self.node, **self.element, **self.link})

    def __len__(self) -> int:
        return len({**self.node, **self.element, **self.link})

    def __repr__(self) -> str:
        return "<limber.Fields: " + ", ".join(f"{name} {self[name].shape}" for name in self) + ">"


class Model(NamedTuple):
    """What is constant until the topology changes."""

    rest: np.ndarray  #: rest positions, (n, 3) [m]
    mass: np.ndarray  #: lumped mass of each node, (n,) [kg]
    cells: np.ndarray  #: nodes of each element, (m, 4); triangles have -1 in the last place
    young: np.ndarray  #: of each element [Pa]
    poisson: np.ndarray
    density: np.ndarray  #: [kg/m^3]
    node_sets: Dict[str, np.ndarray]  #: "body/set" -> numbers of nodes
    element_sets: Dict[str, np.ndarray]
    bodies: List[Tuple[str, int, int, str]]  #: name, first element, last element + 1, kind
    body_of_node: np.ndarray
    size: float  #: diagonal of the bounding box at rest [m]


class Simulation(_limber.Simulation):
    """A scene in motion.

    >>> import limber
    >>> sim = limber.Simulation({
    ...     "limber": 1, "time": {"step": 0.01, "end": 0.1},
    ...     "bodies": [{"mesh": {"shape": "bar", "size": [0.4, 0.1, 0.1], "nodes": [9, 3, 3]}}],
    ...     "constraints": [{"nodes": {"set": "x0"}}]})
    >>> sim.step()
    >>> sim.steps, sim.t, sim.x.shape, sim.report.dofs
    (1, 0.01, (81, 3), 216)
    >>> sim.run()
    >>> sim.done, round(sim.t, 6), len(sim.hash)
    (True, 0.1, 16)

    **Whose memory it is.** Arrays that a simulation gives away are snapshots that belong to Python: read-only, the same
    for ever, valid after the simulation is gone. :attr:`x` and :attr:`v` are copied once in each step in which somebody
    asks for them. Arrays that it is given are read at once and not kept.

    **Threads.** The interpreter's lock is released while a step is computed. One simulation is for one thread at a time: a
    second thread that calls into it meanwhile gets a :class:`UsageError`. Different simulations may run in different
    threads; their steps then take turns at the machine's cores. Results do not depend on the number of threads.

    scene: whatever :class:`Scene` takes. set: values to change, as in :class:`Scene`. threads: for all simulations of the
    process; 0: all cores. prepare: called with a text and a share from 0 to 1 while a method prepares itself.
    """

    scene: Scene

    def __init__(self, scene: Source, *, set: Optional[Mapping[str, Any]] = None, threads: Optional[int] = None,
                 prepare: Optional[Callable[[str, float], None]] = None):
        """Reads the scene, builds the model and prepares the method."""
        if threads is not None:
            _limber.set_threads(threads)
        self.scene = scene if isinstance(scene, Scene) and not set else Scene(scene, set=set)
        super().__init__(self.scene._core, _cache_folder(), prepare)
        self._recording_now: Optional[Recording] = None
        self._pages: Optional[tempfile.TemporaryDirectory[str]] = None

    # ---- stepping

    def step(self) -> None:
        """One step of :attr:`Scene.step` seconds; :attr:`report` tells about it. Raises :class:`SimulationError` when it
        fails; the state is then the one before it."""
        try:
            self._step()
        except SimulationError as error:
            self._failed(error)
            raise

    def run(self, until: Optional[float] = None, steps: Optional[int] = None, *, progress: bool = False,
            callback: Optional[Callable[["Simulation"], Any]] = None) -> None:
        """Steps until the time `until` [s], or for `steps` more steps, or to the end of the scene.

        callback: called with the simulation after each step; a true result ends the run. progress: a line on standard
        error, or in the notebook. Ctrl-C ends the run after the step that is being computed, with KeyboardInterrupt.

        >>> import limber
        >>> sim = limber.Simulation({"limber": 1, "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}}]})
        >>> heights = []
        >>> sim.run(until=0.05, callback=lambda sim: heights.append(sim.x[0, 1]))
        >>> len(heights), heights[0] > heights[-1]
        (10, True)
        """
        if until is not None and steps is not None:
            raise UsageError("run() takes `until` or `steps`, not both")
        target = self.total_steps
        if steps is not None:
            target = self.steps + steps
        elif until is not None:
            target = math.ceil(min(until / self.scene.step, _MOST_STEPS) - 1e-6)
        tick = _Progress(self, target) if progress else None
        each = functools.partial(callback, self) if callback else None
        try:
            self._run(target, each, tick)
        except SimulationError as error:
            self._failed(error)
            raise
        finally:
            if tick:
                tick.end()

    @property
    def done(self) -> bool:
        """Whether the end of the scene is reached."""
        return self.steps >= self.total_steps

    # ---- the state

    @property
    def x(self) -> np.ndarray:
        """Positions of the nodes, (n, 3) [m]: a snapshot, read-only. May be set between steps."""
        return self._x()

    @x.setter
    def x(self, value: Any) -> None:
        self._set_motion(value, None)

    @property
    def v(self) -> np.ndarray:
        """Velocities of the nodes, (n, 3) [m/s]: a snapshot, read-only. May be set between steps."""
        return self._v()

    @v.setter
    def v(self, value: Any) -> None:
        self._set_motion(None, value)

    def set_motion(self, x: Any, v: Any) -> None:
        """Other positions and velocities. What the method remembers of earlier steps is dropped with the old ones."""
        self._set_motion(x, v)

    @property
    def q(self) -> np.ndarray:
        """Positions of the joints, stacked; empty without links."""
        return self._q()

    @property
    def qdot(self) -> np.ndarray:
        """Velocities of the joints, stacked."""
        return self._qdot()

    @property
    def hash(self) -> str:
        """A fingerprint of the whole state: equal hashes mean equal bits."""
        return self._hash()

    @property
    def measures(self) -> Measures:
        """Energies, momenta, centre of mass, extremes."""
        m = self._measure()
        energies = Energies(*(m.pop(k) for k in Energies._fields))
        return Measures(energies, **m)

    @property
    def energies(self) -> Energies:
        """Kinetic, elastic, gravitational and contact energy [J], and their sum."""
        return self.measures.energies

    @property
    def report(self) -> Report:
        """Of the last step."""
        return Report(**self._report())

    @property
    def fields(self) -> Fields:
        """Fields of the present state: ``sim.fields["velocity"]``, ``sim.fields["liveliness"]``."""
        return Fields(*self._field_arrays())

    @property
    def model(self) -> Model:
        """Rest shape, masses, elements, sets; another one after a cut (see :attr:`epoch`)."""
        return Model(**self._model())

    @property
    def elements(self) -> Elements:
        """The elements of the model: energy, forces and K at any positions."""
        return Elements._wrap(self._elements())

    @property
    def notices(self) -> List[str]:
        """What has happened since the last time this was asked for (cuts, warnings), one line each."""
        return self._notices()

    @property
    def advice(self) -> List[str]:
        """Things about the scene that are allowed and probably not meant, one line each."""
        return self._hints()

    # ---- forces and held nodes of one's own

    @property
    def force(self) -> Optional[np.ndarray]:
        """Forces on the nodes beside those of the scene, (n, 3) [N], from the next step on; None: none. They stay until
        they are set again, and are no part of a checkpoint. A cut, after which nodes have other numbers, drops them."""
        return self._force()

    @force.setter
    def force(self, value: Any) -> None:
        self._set_force(value)

    def hold(self, nodes: Any, velocity: Any = (0.0, 0.0, 0.0), axes: str = "xyz") -> None:
        """Holds nodes (numbers, a mask, the name of a set) from the next step on, beside those that the scene holds; they
        move at `velocity`, (3,) or one for each of them [m/s].

        >>> import limber
        >>> sim = limber.Simulation({"limber": 1, "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}}]})
        >>> sim.hold("y1", velocity=(0.2, 0, 0))
        >>> sim.run(steps=10)                                  # of 0.005 s
        >>> sim.x[sim.model.node_sets["box/y1"], 0].round(6).tolist()
        [0.01, 0.11, 0.01, 0.11]
        >>> sim.release()
        """
        self._hold(self._nodes(nodes), np.asarray(velocity, dtype=float), axes)

    def release(self, nodes: Any = None) -> None:
        """Lets go of nodes that :meth:`hold` has taken; without an argument of all of them."""
        self._release(None if nodes is None else self._nodes(nodes))

    @property
    def held(self) -> np.ndarray:
        """Which degrees of freedom are held, (n, 3)."""
        return self._held()

    def _nodes(self, nodes: Any) -> np.ndarray:
        if isinstance(nodes, str):
            sets = self.model.node_sets
            found = [ids for name, ids in sets.items() if nodes in (name, name.partition("/")[2])]
            if len(found) != 1:
                raise UsageError(f"{len(found)} node sets are called {nodes!r}; there are {', '.join(sets)}")
            return found[0]
        return np.asarray(nodes) if np.asarray(nodes).dtype.kind in "iu" else as_ids(nodes, self.nodes)

    # ---- contact

    def touching(self) -> Dict[str, np.ndarray]:
        """Nodes that are inside an obstacle now: node, obstacle, point and normal of its surface, depth [m]."""
        return self._touching()

    def touching_next(self) -> Dict[str, np.ndarray]:
        """The same for nodes that are inside, or meet an obstacle during the next step at their present velocities."""
        return self._touching_next()

    def bodies_touching(self) -> Dict[str, np.ndarray]:
        """Nodes that are inside another body or another part of their own: node, face (its corners), weight (of the
        corners), normal, gap [m]."""
        return self._bodies_touching()

    # ---- files

    def save(self, path: "os.PathLike[str] | str") -> None:
        """Writes a checkpoint: the whole state, from which a simulation of the same scene goes on to the same bits.

        >>> import limber, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> sim = limber.Simulation({"limber": 1, "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}}]})
        >>> sim.run(steps=3)
        >>> sim.save(folder.name + "/three.lmc")
        >>> sim.run(steps=5)
        >>> again = limber.Simulation(sim.scene)
        >>> again.restore(folder.name + "/three.lmc")
        >>> again.run(steps=5)
        >>> again.hash == sim.hash
        True
        """
        self._save(os.fspath(path))

    def restore(self, path: "os.PathLike[str] | str") -> None:
        """Goes to the state of a checkpoint of the same scene, of :meth:`save` or of a run folder."""
        self._restore(os.fspath(path))

    def record(self, folder: "os.PathLike[str] | str", *, until: Optional[float] = None, overwrite: bool = False,
               resume: bool = False, checkpoint: "os.PathLike[str] | str | None" = None) -> "Recording":
        """Records every step from now on into a run folder, as ``limber run`` does: page, frames, steps.csv, checkpoints.

        Use it as ``with sim.record("out/bar"): sim.run()``. resume: goes on from the newest checkpoint of the folder (or
        from this `checkpoint`), overwrite: replaces whatever run is there."""
        target = self.total_steps if until is None else math.ceil(until / self.scene.step - 1e-6)
        inputs = self.scene._files.name if self.scene._files else ""
        notices = self._record(os.fspath(folder), overwrite, resume, os.fspath(checkpoint) if checkpoint else "", target,
                               self.scene.overrides, inputs)
        self._recording_now = Recording(self, os.fspath(folder), notices)
        return self._recording_now

    @property
    def recording(self) -> Optional["Recording"]:
        """What :meth:`record` returned, while it is open."""
        return self._recording_now if self._recording_now and self._recording_now.open else None

    def _failed(self, error: SimulationError) -> None:
        if self.recording:
            self.recording.finish("failed", str(error))

    # ---- notebook

    def __repr__(self) -> str:
        return (f"<limber.Simulation {self.scene.name!r}: {self.scene.method!r}, {self.nodes} nodes, step {self.steps}, "
                f"t = {self.t:.6g} s>")

    def _repr_html_(self) -> str:
        return self.page(embedded=True)

    def page(self, embedded: bool = False) -> str:
        """The page of the run so far, or of the present state where nothing is recorded, as HTML text that needs nothing
        else; embedded: in a frame, for notebooks."""
        from ._runs import frame_html
        if self._pages is None:
            self._pages = tempfile.TemporaryDirectory(prefix="limber-page-")
        target = os.path.join(self._pages.name, "index.html")
        if self.recording:
            self._checkpoint()
            _limber.write_page(self.recording.folder, target)
        else:
            still = os.path.join(self._pages.name, f"{time.monotonic_ns()}")
            self._still(still)
            target = os.path.join(still, "index.html")
        with open(target, encoding="utf-8") as file:
            text = file.read()
        return frame_html(text) if embedded else text


_open_recordings: "weakref.WeakSet[Recording]" = weakref.WeakSet()


class Recording:
    """A run folder that is being written. Leaving the ``with`` block, or :meth:`finish`, completes it."""

    def __init__(self, simulation: Simulation, folder: str, notices: List[str]):
        self._simulation = weakref.ref(simulation)
        self.folder = folder
        self.notices = notices  #: what a person should know: an older run was replaced, a checkpoint was damaged
        self.open = True
        _open_recordings.add(self)

    def finish(self, status: str = "finished", why: str = "") -> None:
        """Writes the last entries and the page. status: "finished", "interrupted" or "failed"."""
        simulation = self._simulation()
        if self.open and simulation is not None:
            self.open = False
            self.notices += simulation._finish(status, why, False)

    def __enter__(self) -> "Recording":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.finish("finished")
        elif issubclass(kind, SimulationError):
            self.finish("failed", str(error))
        else:
            self.finish("interrupted")

    def __repr__(self) -> str:
        return f"<limber.Recording {self.folder!r}, {'open' if self.open else 'complete'}>"


@atexit.register
def _finish_open_recordings() -> None:
    for recording in list(_open_recordings):
        recording.finish("interrupted")


class _Progress:
    """A line that shows how a run is getting on."""

    def __init__(self, simulation: Simulation, target: int):
        self.simulation, self.target = simulation, target
        self.begin, self.first = time.monotonic(), simulation.steps
        self.drawn = False
        self.last = -math.inf

    def __call__(self) -> None:
        now = time.monotonic()
        terminal = sys.stderr.isatty() or "ipykernel" in sys.modules
        if now - self.last < (0.2 if terminal else 5):
            return
        self.last = now
        done = self.simulation.steps - self.first
        left = (now - self.begin) * (self.target - self.simulation.steps) / max(1, done)
        text = (f"step {self.simulation.steps}/{self.target}  t {self.simulation.t:.4g} s  "
                f"{1e3 * (now - self.begin) / max(1, done):.1f} ms a step  {left:.0f} s left")
        sys.stderr.write(f"\r{text:<78}" if terminal else text + "\n")
        sys.stderr.flush()
        self.drawn = terminal

    def end(self) -> None:
        if self.drawn:
            sys.stderr.write("\r" + " " * 78 + "\r")
            sys.stderr.flush()


def _cache_folder() -> str:
    """Where methods keep what takes long to prepare: that of the command."""
    own = os.environ.get("LIMBER_CACHE")
    if own is not None:
        return own
    base = os.environ.get("XDG_CACHE_HOME") or (os.path.join(os.environ["HOME"], ".cache") if os.environ.get("HOME") else "")
    return os.path.join(base, "limber") if base else ""
