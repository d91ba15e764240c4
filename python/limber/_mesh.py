"""Meshes as arrays."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Mapping, Optional

import numpy as np

from . import _limber
from .errors import SceneError, UsageError


class Mesh:
    """Tetrahedra, or triangles, with named sets of nodes and elements.

    >>> import numpy as np, limber
    >>> mesh = limber.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])
    >>> mesh
    <limber.Mesh: 4 nodes, 1 tetrahedra>
    >>> bar = limber.Mesh.box(size=(0.4, 0.1, 0.1), nodes=(9, 3, 3))
    >>> bar.vertices.shape, bar.cells.shape, sorted(bar.node_sets)
    ((81, 3), (192, 4), ['x0', 'x1', 'y0', 'y1', 'z0', 'z1'])

    vertices: (n, 3) numbers [m]. cells: (m, 4) numbers of nodes for tetrahedra, (m, 3) for triangles. Tetrahedra that are
    inside out are turned when a simulation is made of the mesh; what cannot be mended raises a SceneError here.
    """

    vertices: np.ndarray
    cells: np.ndarray
    node_sets: Dict[str, np.ndarray]
    element_sets: Dict[str, np.ndarray]
    element_fields: Dict[str, np.ndarray]

    def __init__(self, vertices: Any, cells: Any, node_sets: Optional[Mapping[str, Any]] = None,
                 element_sets: Optional[Mapping[str, Any]] = None, *, check: bool = True):
        self.vertices = np.ascontiguousarray(vertices, dtype=float)
        self.cells = np.ascontiguousarray(cells)
        if self.vertices.ndim != 2 or self.vertices.shape[1] != 3:
            raise UsageError(f"vertices has the shape {self.vertices.shape}, expected (n, 3)")
        if self.cells.ndim != 2 or self.cells.shape[1] not in (3, 4) or self.cells.dtype.kind not in "iu":
            raise UsageError(f"cells is an array of {self.cells.dtype} of the shape {self.cells.shape}, expected whole "
                             "numbers, (m, 4) for tetrahedra or (m, 3) for triangles")
        self.node_sets = {k: as_ids(v, len(self.vertices)) for k, v in (node_sets or {}).items()}
        self.element_sets = {k: as_ids(v, len(self.cells)) for k, v in (element_sets or {}).items()}
        self.element_fields = {}
        if check:
            wrong = [text for fatal, text in _limber.check_mesh(self.vertices, self.cells)
                     if fatal and "inside out" not in text and "clockwise" not in text and "inverted" not in text]
            if wrong:
                raise SceneError("\n".join(wrong))

    @classmethod
    def _of(cls, arrays: Dict[str, Any]) -> "Mesh":
        mesh = cls(arrays["vertices"], arrays["cells"], arrays["node_sets"], arrays["element_sets"], check=False)
        mesh.element_fields = arrays["element_fields"]
        return mesh

    @classmethod
    def read(cls, path: "os.PathLike[str] | str") -> "Mesh":
        """From a file: .msh, .mesh, .node/.ele, .vtu, .vtk, .obj, .ply, .stl, .off."""
        return cls._of(_limber.read_mesh(os.fspath(path)))

    def write(self, path: "os.PathLike[str] | str") -> None:
        """To a file: .msh, .vtu, .mesh and .node/.ele for tetrahedra; .msh, .vtu, .obj and .ply for triangles."""
        _limber.write_mesh(os.fspath(path), self.vertices, self.cells, dict(self.node_sets), dict(self.element_sets))

    @classmethod
    def from_meshio(cls, mesh: Any) -> "Mesh":
        """From a meshio.Mesh: its tetrahedra or, without any, its triangles. Quadratic cells count with their corners.
        Point and cell sets come along."""
        for name, corners in (("tetra", 4), ("triangle", 3)):
            blocks = [(i, b.data[:, :corners]) for i, b in enumerate(mesh.cells) if b.type.startswith(name)]
            if not blocks:
                continue
            cells = np.concatenate([data for _, data in blocks])
            vertices = np.asarray(mesh.points, dtype=float)
            if vertices.shape[1] == 2:
                vertices = np.c_[vertices, np.zeros(len(vertices))]
            used = np.unique(cells)
            number = np.full(len(vertices), -1)
            number[used] = np.arange(len(used))
            point_sets = {k: number[np.asarray(v)] for k, v in (getattr(mesh, "point_sets", None) or {}).items()}
            element_sets = {}
            for key, members in (getattr(mesh, "cell_sets", None) or {}).items():
                ids, first = [], 0
                for i, data in blocks:
                    if members[i] is not None:
                        ids.append(first + np.asarray(members[i], dtype=int))
                    first += len(data)
                element_sets[key] = np.concatenate(ids) if ids else np.zeros(0, int)
            return cls(vertices[used], number[cells], {k: v[v >= 0] for k, v in point_sets.items()}, element_sets)
        raise UsageError("the meshio mesh has neither tetrahedra nor triangles")

    @classmethod
    def box(cls, size: Iterable[float] = (1, 1, 1), nodes: Iterable[int] = (2, 2, 2)) -> "Mesh":
        """A box from the origin on, with `nodes` along each edge; node sets x0 to z1 are its sides."""
        return cls._of(_limber.make_box(list(map(float, size)), list(nodes)))

    @classmethod
    def rectangle(cls, size: Iterable[float] = (1, 1), nodes: Iterable[int] = (2, 2)) -> "Mesh":
        """A rectangle of triangles in the xy plane."""
        return cls._of(_limber.make_rectangle(list(map(float, size)), list(nodes)))

    @classmethod
    def sphere(cls, radius: float, edge: float) -> "Mesh":
        return cls._of(_limber.make_sphere(radius, edge))

    @classmethod
    def capsule(cls, radius: float, length: float, edge: float) -> "Mesh":
        return cls._of(_limber.make_capsule(radius, length, edge))

    @classmethod
    def cylinder(cls, radius: float, length: float, edge: float) -> "Mesh":
        return cls._of(_limber.make_cylinder(radius, length, edge))

    @classmethod
    def torus(cls, radius: float, tube_radius: float, edge: float) -> "Mesh":
        return cls._of(_limber.make_torus(radius, tube_radius, edge))

    @property
    def centers(self) -> np.ndarray:
        """The middle of each cell, (m, 3) [m]."""
        return self.vertices[self.cells].mean(axis=1)

    def __repr__(self) -> str:
        kind = "tetrahedra" if self.cells.shape[1] == 4 else "triangles"
        return f"<limber.Mesh: {len(self.vertices)} nodes, {len(self.cells)} {kind}>"


def as_ids(value: Any, count: int) -> np.ndarray:
    """Numbers of nodes or elements from numbers or from a mask."""
    ids = np.asarray(value)
    if ids.dtype == bool:
        if ids.shape != (count,):
            raise UsageError(f"a mask has the shape {ids.shape}, expected ({count},)")
        return np.flatnonzero(ids)
    if ids.size == 0:
        return np.zeros(0, dtype=int)
    if ids.dtype.kind not in "iu":
        raise UsageError(f"expected numbers of nodes or a mask, found {ids.dtype}")
    return np.unique(ids)


def as_mesh(value: Any) -> Optional[Mesh]:
    """A Mesh from whatever means one; None: it is something else (a file name, a shape)."""
    if isinstance(value, Mesh):
        return value
    if hasattr(value, "points") and hasattr(value, "cells"):
        return Mesh.from_meshio(value)
    if isinstance(value, tuple) and len(value) == 2:
        return Mesh(*value)
    return None


