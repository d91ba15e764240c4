"""The parts by themselves, for methods of one's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from . import _limber
from ._mesh import Mesh, as_mesh
from .errors import UsageError

if TYPE_CHECKING:
    import scipy.sparse


def _sparse() -> Any:
    try:
        import scipy.sparse
    except ImportError as error:  # only this part needs it
        raise ImportError("this part of limber needs SciPy (Debian: python3-scipy)") from error
    return scipy.sparse


class Assembly(NamedTuple):
    """Of all elements at some positions, with f = -dE/dx and K = d2E/dx2."""

    energy: float  #: [J]
    force: np.ndarray  #: (n, 3), or (3n,) for positions of that shape [N]
    K: "scipy.sparse.csr_matrix"  #: (3n, 3n) [N/m]
    inverted: int  #: elements with det F <= 0


class Elements:
    """The elements of a mesh: energy, forces and stiffness at any positions.

    young, poisson and density are numbers, or arrays with one for each cell. Positions are (n, 3) or (3n,), node by node.

    >>> import numpy as np, limber
    >>> mesh = limber.Mesh.box(size=(1, 0.2, 0.2), nodes=(6, 2, 2))
    >>> elements = limber.Elements(mesh, young=1e5, poisson=0.3)
    >>> x = mesh.vertices * [1.01, 1, 1]                      # a strain of 1 %
    >>> energy, force, K, inverted = elements.assemble(x)
    >>> bool(np.isclose(energy, elements.energy(x))), force.shape, K.shape
    (True, (24, 3), (72, 72))
    >>> bool(abs(K - K.T).max() < 1e-9), float(round(elements.mass.sum(), 9))
    (True, 40.0)
    """

    def __init__(self, mesh: Any, *, model: str = "stable-neo-hookean", young: Any = 1e5, poisson: Any = 0.4,
                 density: Any = 1000.0, thickness: float = 0.01, kind: str = "auto",
                 fibre: Optional[Mapping[str, Any]] = None):
        of = as_mesh(mesh)
        if of is None:
            raise UsageError("expected a Mesh, a meshio.Mesh or (vertices, cells)")
        count = len(of.cells)

        def each(value: Any, name: str, shape: Tuple[int, ...] = ()) -> np.ndarray:
            try:
                return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=float), (count,) + shape))
            except ValueError:
                raise UsageError(f"{name} has the shape {np.shape(value)}, expected one for each of {count} cells") from None

        fibre = dict(fibre or {})
        self._core = _limber.Elements(
            of.vertices, of.cells, kind, model, each(young, "young"), each(poisson, "poisson"), each(density, "density"),
            thickness, fibre.get("model", "st-venant-kirchhoff") if fibre else "",
            each(fibre.get("stiffness", 0.0), "fibre stiffness"),
            each(fibre.get("direction", (1.0, 0.0, 0.0)), "fibre direction", (3,)))

    @classmethod
    def _wrap(cls, core: Any) -> "Elements":
        out = cls.__new__(cls)
        out._core = core
        return out

    def energy(self, x: Any, activation: Any = ()) -> float:
        """[J]"""
        return self._core.energy(x, activation)

    def force(self, x: Any, activation: Any = ()) -> np.ndarray:
        """-dE/dx [N], in the shape of x."""
        return self._core.force(x, activation)

    def stiffness(self, x: Any, activation: Any = (), projected: bool = True) -> "scipy.sparse.csr_matrix":
        """K = d2E/dx2 [N/m]; projected: every element's is made positive semi-definite."""
        return self.assemble(x, activation, projected).K

    def assemble(self, x: Any, activation: Any = (), projected: bool = True) -> Assembly:
        """Energy, force and K in one pass."""
        energy, force, rows, inverted = self._core.assemble(x, activation, "psd" if projected else "none")
        size = 3 * self.nodes
        return Assembly(energy, force, _sparse().csr_matrix(rows, shape=(size, size)), inverted)

    def stiffness_times(self, x: Any, v: Any, activation: Any = (), projected: bool = True) -> np.ndarray:
        """K v without K."""
        return self._core.stiffness_times(x, v, activation, "psd" if projected else "none")

    def deformation_gradients(self, x: Any) -> np.ndarray:
        """F of each element, (m, 3, 3)."""
        return self._core.deformation_gradients(x)

    def energy_densities(self, x: Any, activation: Any = ()) -> np.ndarray:
        """Of each element [J/m^3]."""
        return self._core.energy_densities(x, activation)

    @property
    def mass(self) -> np.ndarray:
        """Lumped mass of each node, (n,) [kg]."""
        return self._core.mass()

    @property
    def volume(self) -> np.ndarray:
        """Rest volume of each element, (m,) [m^3]."""
        return self._core.volume()

    @property
    def nodes(self) -> int:
        return self._core.nodes()

    def __len__(self) -> int:
        return self._core.count()


class Material:
    """An elastic energy at one deformation gradient.

    >>> import numpy as np, limber
    >>> rubber = limber.Material("stable-neo-hookean", young=1e5, poisson=0.45)
    >>> F = np.diag([1.1, 1.0, 1.0])
    >>> dF = np.array([[1e-6, 0, 0], [0, 0, 0], [0, 0, 0]])
    >>> slope = (rubber.psi(F + dF) - rubber.psi(F - dF)) / 2e-6
    >>> bool(np.isclose(slope, rubber.pk1(F)[0, 0], rtol=1e-6))
    True
    """

    def __init__(self, model: str = "stable-neo-hookean", *, young: float = 1e5, poisson: float = 0.4,
                 density: float = 1000.0, fibre: Optional[Mapping[str, Any]] = None):
        fibre = dict(fibre or {})
        self._core = _limber.Material(model, young, poisson, density,
                                      fibre.get("model", "st-venant-kirchhoff") if fibre else "",
                                      float(fibre.get("stiffness", 0.0)),
                                      np.asarray(fibre.get("direction", (1.0, 0.0, 0.0)), dtype=float))

    def psi(self, F: Any, activation: float = 0.0) -> float:
        """The energy density [J/m^3]."""
        return self._core.psi(F, activation)

    def pk1(self, F: Any, activation: float = 0.0) -> np.ndarray:
        """The first Piola-Kirchhoff stress dpsi/dF, (3, 3) [Pa]."""
        return self._core.pk1(F, activation)

    def dpk1(self, F: Any, activation: float = 0.0, projected: bool = False) -> np.ndarray:
        """d2psi/dF2 on the stacked columns of F, (9, 9) [Pa]; projected: negative eigenvalues set to zero."""
        return self._core.dpk1(F, activation, projected)


def _rows(matrix: Any) -> Any:
    matrix = _sparse().csr_matrix(matrix)
    if matrix.shape[0] != matrix.shape[1]:
        raise UsageError(f"the matrix has the shape {matrix.shape}, expected a symmetric one")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


class Cholesky:
    """The sparse Cholesky of a symmetric positive definite matrix: analysed once, factored as often as its numbers change.

    >>> import numpy as np, scipy.sparse as sp, limber
    >>> A = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(100, 100)).tocsr()
    >>> factor = limber.Cholesky(A)
    >>> b = np.ones(100)
    >>> bool(np.allclose(A @ factor.solve(b), b))
    True
    >>> factor.solve(np.eye(100)[:, :7]).shape                # many right-hand sides
    (100, 7)
    >>> bool(np.allclose(2 * A @ factor.factor(2 * A).solve(b), b))
    True

    Only the upper triangle is read. ordering: "auto", "amd" or "metis".
    """

    def __init__(self, A: Any, ordering: str = "auto"):
        rows = _rows(A)
        self._core = _limber.Cholesky(rows.indptr, rows.indices, ordering)
        self.shape = rows.shape
        self.factor(rows)

    def factor(self, A: Any) -> "Cholesky":
        """Factors another matrix with entries in the same places."""
        rows = _rows(A)
        self._core.factor(rows.indptr, rows.indices, rows.data)
        return self

    def solve(self, b: Any) -> np.ndarray:
        """A^-1 b, for one right-hand side (N,) or for k of them (N, k)."""
        return self._core.solve(b)

    @property
    def stats(self) -> Dict[str, Any]:
        """ordering, nnz (of the factor), flops, seconds (of the last factorisation), analyses, factorizations."""
        return self._core.stats()


class Condensation:
    """ConJac's condensation Jacobian of K for some dynamic nodes, from one factorisation.

    With d the degrees of freedom of the dynamic nodes, k those that are held and q all others:

    * :attr:`J` = [-K_qq^-1 K_qd; I; 0], (3n, r): the quasistatic motion of all for unit motions of the dynamic ones
    * :attr:`S` = J' K J, (r, r)
    * :attr:`dofs`: which degree of freedom each column moves
    * :meth:`solve`: K_qq^-1 b_q, zero on the others

    K: symmetric, (3n, 3n). dynamic: numbers of nodes. held: (n, 3) or (3n,), true where held.

    >>> import numpy as np, limber
    >>> mesh = limber.Mesh.box(size=(1, 0.2, 0.2), nodes=(6, 2, 2))
    >>> K = limber.Elements(mesh, young=1e5).stiffness(mesh.vertices)
    >>> held = np.zeros(mesh.vertices.shape, bool)
    >>> held[mesh.node_sets["x0"]] = True
    >>> c = limber.Condensation(K, dynamic=[23], held=held)
    >>> c.J.shape, c.dofs.tolist()
    ((72, 3), [69, 70, 71])
    >>> pulled = (c.J @ [0.1, 0, 0]).reshape(-1, 3)            # node 23 by 0.1 along x: all others follow
    >>> bool(np.allclose(pulled[23], [0.1, 0, 0])), bool(np.all(pulled[held.all(axis=1)] == 0))
    (True, True)
    """

    def __init__(self, K: Any, dynamic: Any, held: Any = None):
        rows = _rows(K)
        if held is None:
            held = np.zeros(rows.shape[0])
        self._core = _limber.Condensation(rows.indptr, rows.indices, rows.data, np.unique(np.asarray(dynamic, dtype=int)),
                                          np.asarray(held, dtype=float))
        self.J: np.ndarray = self._core.J()
        self.S: np.ndarray = self._core.S()
        self.dofs: np.ndarray = self._core.dofs()

    def solve(self, b: Any) -> np.ndarray:
        """K_qq^-1 b_q, in the shape of b ((n, 3) or (3n,))."""
        return self._core.solve(b)


class Modes(NamedTuple):
    """Vibrations, slowest first."""

    omega: np.ndarray  #: angular frequencies [rad/s]; those of free rigid motions are about 0
    vectors: np.ndarray  #: (3n, k), orthonormal with the masses


def eigenmodes(elements: Elements, count: int, x: Any, held: Any = None, tolerance: float = 1e-10) -> Modes:
    """The `count` slowest vibrations about the positions x: of a mesh at rest ``mesh.vertices``. held: (n, 3) or (3n,), true
    where held.

    >>> import numpy as np, limber
    >>> mesh = limber.Mesh.box(size=(1, 0.1, 0.1), nodes=(11, 3, 3))
    >>> modes = limber.eigenmodes(limber.Elements(mesh), 8, mesh.vertices)
    >>> bool(np.all(modes.omega[:6] < 1e-2 * modes.omega[6]))      # six rigid motions of a free body
    True
    """
    K = _rows(elements.stiffness(x))
    if held is None:
        held = np.zeros(K.shape[0])
    values, vectors = _limber.eigenmodes(K.indptr, K.indices, K.data, elements.mass, np.asarray(held, dtype=float), count,
                                         tolerance)
    return Modes(np.sqrt(np.maximum(values, 0.0)), vectors)


class Mechanism:
    """Links and joints, of a scene with ``links`` or ``robots``, or of a URDF file.

    >>> import numpy as np, limber
    >>> rod = limber.Mechanism({"limber": 1, "method": {"type": "joints"},
    ...     "links": [{"name": "rod", "mass": 3.0, "shapes": {"shape": "box", "size": [0.01, 0.01, 1.0]}}],
    ...     "joints": [{"name": "pivot", "child": "rod", "position": [0, 0, 0.5], "axis": [1, 0, 0]}]})
    >>> rod.links, [joint["type"] for joint in rod.joints], rod.q
    (['rod'], ['revolute'], array([0.]))
    >>> bool(np.isclose(rod.mass_matrix(rod.q)[0, 0], 1.0, rtol=1e-3))      # m l^2 / 3 about its end
    True

    base: of a URDF's root, "fixed" or "free".
    """

    def __init__(self, source: Any, *, folder: "os.PathLike[str] | str" = ".", base: str = "fixed"):
        from ._scene import Scene
        if isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(".urdf"):
            source = {"limber": 1, "method": {"type": "joints"},
                      "robots": [{"name": "robot", "file": os.path.abspath(os.fspath(source)), "base": base}]}
        self.scene = source if isinstance(source, Scene) else Scene(source, folder=folder)
        self._core = _limber.Mechanism(self.scene._core)

    @property
    def links(self) -> List[str]:
        return self._core.links()

    @property
    def mass(self) -> np.ndarray:
        """Of each link [kg]."""
        return self._core.link_mass()

    @property
    def joints(self) -> List[Dict[str, Any]]:
        """name, type, parent, child, and where the joint's numbers are in q and in v (slices)."""
        return self._core.joints()

    @property
    def notices(self) -> List[str]:
        return self._core.notices()

    @property
    def q(self) -> np.ndarray:
        """The initial position, loops closed."""
        return self._core.q()

    @property
    def v(self) -> np.ndarray:
        """The initial velocity."""
        return self._core.v()

    def poses(self, q: Any) -> np.ndarray:
        """Frames of the links in the world, (links, 4, 4)."""
        return self._core.poses(np.asarray(q, dtype=float))

    def jacobian(self, q: Any) -> np.ndarray:
        """Angular and linear velocity of each link's centre of mass per joint velocity, (6 links, velocities)."""
        return self._core.jacobian(np.asarray(q, dtype=float))

    def mass_matrix(self, q: Any) -> np.ndarray:
        """J' M J, (velocities, velocities)."""
        return self._core.mass_matrix(np.asarray(q, dtype=float))

    def acceleration(self, q: Any, v: Any, t: float = 0.0, gravity: Any = (0.0, -9.81, 0.0)) -> np.ndarray:
        """dv/dt without friction, loops and contacts."""
        return self._core.acceleration(np.asarray(q, dtype=float), np.asarray(v, dtype=float), t,
                                       np.asarray(gravity, dtype=float))

    def energy(self, q: Any, v: Any, gravity: Any = (0.0, -9.81, 0.0)) -> Tuple[float, float, float]:
        """Kinetic, gravitational and spring energy [J]."""
        return self._core.energy(np.asarray(q, dtype=float), np.asarray(v, dtype=float), np.asarray(gravity, dtype=float))

    def integrate(self, q: Any, v: Any, h: float) -> np.ndarray:
        """q moved by the velocity v during h [s]."""
        return self._core.integrate(np.asarray(q, dtype=float), np.asarray(v, dtype=float), h)


class Nearest(NamedTuple):
    """The nearest points of obstacles."""

    distance: np.ndarray  #: [m], negative inside
    point: np.ndarray  #: (k, 3) [m]
    normal: np.ndarray  #: (k, 3), unit, outward
    obstacle: np.ndarray  #: which one


class Obstacles:
    """Rigid things that bodies touch, given as in a scene.

    >>> import numpy as np, limber
    >>> things = limber.Obstacles([{"shape": "plane"}, {"shape": "sphere", "point": [0, 1, 0], "radius": 0.25}])
    >>> near = things.closest([[0, 0.5, 0], [2, 0.1, 0]])
    >>> near.distance.round(12).tolist(), near.obstacle.tolist()
    ([0.25, 0.1], [1, 0])
    """

    def __init__(self, obstacles: List[Mapping[str, Any]], *, folder: "os.PathLike[str] | str" = "."):
        from ._scene import Scene
        self.scene = Scene({"limber": 1, "bodies": [{"mesh": {"shape": "box"}}], "obstacles": list(obstacles)}, folder=folder)
        self._core = _limber.Obstacles(self.scene._core)

    @property
    def names(self) -> List[str]:
        return self._core.names()

    def closest(self, points: Any, t: float = 0.0) -> Nearest:
        """The nearest point of the nearest obstacle to each of `points`, (k, 3), at time t [s]."""
        return Nearest(*self._core.closest(np.asarray(points, dtype=float), t))


__all__ = ["Assembly", "Cholesky", "Condensation", "Elements", "Material", "Mechanism", "Mesh", "Modes", "Nearest",
           "Obstacles", "eigenmodes"]
