"""Scenes from files, text and dicts; arrays in dicts become files and lists."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _limber
from ._mesh import Mesh, as_ids, as_mesh
from .errors import Problem, SceneError, UsageError

Source = Union[str, "os.PathLike[str]", Mapping[str, Any], "Scene"]


class Scene:
    """A scene, checked and complete.

    source: the name of a file, JSON text, or a dict. In a dict, where a scene file would have a file or a list, Python
    values may stand:

    ==================================  =============================================================================
    ``mesh`` (of a body or obstacle)    a :class:`Mesh`, a ``meshio.Mesh``, or ``(vertices, cells)``
    ``young``, ``poisson``, ``density``  one number per element
    ``direction`` of fibres             (m, 3): one vector per element
    ``nodes``, ``elements``, sets       numbers, a mask, or a function of the positions (n, 3) that gives a mask
    ``motion``                          (k, 4), (k, 7) or (k, 8): time, translation, rotation vector, scale; or
                                        :func:`keyframes`
    ``initial``                         (n, 3): positions in which the body begins
    ``velocity`` of a body,             (n, 3): one vector per node of the body, also where a force has fewer nodes
    ``acceleration`` and
    ``force_per_node`` of forces
    ``face_set`` of a cut               (k, 3): the corners of the faces to separate
    ``training`` of ``mixed``           (poses, n, 3): positions
    ==================================  =============================================================================

    set: values to change, by JSON pointer, as ``limber run --set`` does. folder: what file names in text and dicts are
    relative to (the working folder).

    >>> import limber
    >>> bar = limber.Mesh.box(size=(0.4, 0.1, 0.1), nodes=(9, 3, 3))
    >>> scene = limber.Scene({
    ...     "limber": 1,
    ...     "bodies": [{"mesh": bar, "material": {"young": 1e4 + 1e6 * bar.centers[:, 0]}}],
    ...     "constraints": [{"nodes": lambda x: x[:, 0] < 0.01}]})
    >>> scene.method, scene.step, scene.resolved["bodies"][0]["material"]["poisson"]
    ('vanilla', 0.005, 0.4)
    """

    def __init__(self, source: Source, *, set: Optional[Mapping[str, Any]] = None,
                 folder: "os.PathLike[str] | str" = "."):
        self._files: Optional[tempfile.TemporaryDirectory[str]] = None
        self._text: Optional[str] = None  # None: a file
        self._path: str
        self._named: bool
        self.overrides = [f"{pointer}={json.dumps(_plain(value))}" for pointer, value in (set or {}).items()]
        named = False
        if isinstance(source, Scene):
            self._files = source._files
            self._text, path = source._text, source._path
            named = source._named
            self.overrides = source.overrides + self.overrides
        elif isinstance(source, Mapping):
            self._text = json.dumps(_Builder(self, os.fspath(folder)).build(source), indent=1)
            path = os.path.join(os.fspath(folder), _file_name(source.get("name")))
        elif isinstance(source, str) and re.match(r"\s*[{/]\s*[\"/*}\n]|\s*\{", source):
            self._text = source
            path = os.path.join(os.fspath(folder), "scene.json")
        elif isinstance(source, (str, os.PathLike)):
            path, named = os.fspath(source), True
        else:
            raise UsageError(f"a scene is a file, JSON text or a dict, not {type(source).__name__}")
        self._path, self._named = path, named
        if self._text is None:
            core, problems = _limber.load_scene(path, self.overrides)
        else:
            core, problems = _limber.read_scene(self._text, path, self.overrides)
        if core is None:
            # Lines of a text that Python has made tell nobody anything.
            show = named or isinstance(source, str)
            raise SceneError("", [Problem(pointer, message, file if named else "", line if show else 0)
                                  for file, line, pointer, message in problems])
        self._core = core

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def file(self) -> str:
        """The scene file; for other scenes where it would be."""
        return self._core.file

    @property
    def method(self) -> str:
        return self._core.method

    @property
    def step(self) -> float:
        """The time step [s]."""
        return self._core.step

    @property
    def end(self) -> float:
        """The end time [s]."""
        return self._core.end

    @property
    def resolved(self) -> Dict[str, Any]:
        """The whole scene with all defaults, as a dict of its own."""
        return json.loads(self._core.resolved())

    @property
    def hash(self) -> str:
        """A fingerprint of all that decides the motion; a checkpoint goes on only with the same one."""
        return self._core.hash()

    def __repr__(self) -> str:
        return f"<limber.Scene {self.name!r}: method {self.method!r}, step {self.step:g} s, end {self.end:g} s>"

    def _folder(self) -> str:
        """Where arrays of this scene are kept as files: as long as the scene lives, and in every run of it."""
        if self._files is None:
            self._files = tempfile.TemporaryDirectory(prefix="limber-")
        return self._files.name


def keyframes(t: Any, translation: Any = None, rotation: Any = None, scale: Any = None) -> List[Dict[str, Any]]:
    """Keys of a motion from arrays: times (k,) [s], translations (k, 3) [m], rotation vectors (k, 3) [rad], scales (k,).

    >>> import limber
    >>> limber.keyframes([0, 1], translation=[[0, 0, 0], [0.1, 0, 0]])[1]
    {'t': 1.0, 'translation': [0.1, 0.0, 0.0]}
    """
    times = np.atleast_1d(np.asarray(t, dtype=float))
    parts = {}
    for name, value, shape in (("translation", translation, (3,)), ("rotation", rotation, (3,)), ("scale", scale, ())):
        if value is None:
            continue
        array = np.asarray(value, dtype=float)
        if array.shape != times.shape + shape:
            raise UsageError(f"{name} has the shape {array.shape}, expected {times.shape + shape}")
        parts[name] = array
    return [{"t": float(time), **{name: array[k].tolist() for name, array in parts.items()}}
            for k, time in enumerate(times)]


def _file_name(name: Any) -> str:
    return (re.sub(r"[^\w.-]", "_", name) if isinstance(name, str) and name else "scene") + ".json"


def _plain(value: Any) -> Any:
    """Plain Python for JSON: arrays as lists, NumPy's numbers as numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


_PER_ELEMENT = ("young", "poisson", "density", "stiffness")
_PER_NODE = re.compile(r"/bodies/\d+/velocity$|/forces/\d+/(acceleration|force_per_node)$")
_SELECTIONS = re.compile(r"/(constraints|forces|attachments)/\d+/nodes$|/bodies/\d+/(node_sets|element_sets)/[^/]+$|"
                         r"/bodies/\d+/regions/\d+/elements$|/method/dynamic(/\d+)?(/nodes)?$")


class _Builder:
    """Turns a dict with Python values in it into one that is JSON."""

    def __init__(self, scene: Scene, folder: str):
        self.scene, self.folder = scene, folder
        self.placed: Optional[List[Tuple[np.ndarray, np.ndarray]]] = None
        self.bodies: List[Mapping[str, Any]] = []

    def build(self, source: Mapping[str, Any]) -> Dict[str, Any]:
        self.bodies = list(source.get("bodies", []) or [])
        plain = self.walk(source, "", None)
        plain.setdefault("limber", 1)
        return plain

    def walk(self, value: Any, pointer: str, body: Optional[int]) -> Any:
        key = pointer.rpartition("/")[2]
        found = re.match(r"/bodies/(\d+)", pointer)
        if found:
            body = int(found.group(1))
        if key == "mesh":
            mesh = as_mesh(value)
            if mesh is not None:
                return self.mesh_file(mesh)
        if _SELECTIONS.search(pointer):
            if callable(value) or isinstance(value, np.ndarray):
                return self.selection(value, pointer, body)
            if isinstance(value, Mapping) and "body" in value:
                body = self.body_named(value["body"])
        if isinstance(value, np.ndarray) and value.ndim >= 1:
            if key in _PER_ELEMENT and "material" in pointer or key in _PER_ELEMENT and "/regions/" in pointer:
                return {"file": self.array_file(value, key)}
            if value.ndim == 2 and (key == "direction" or _PER_NODE.search(pointer)):
                return {"file": self.array_file(value, key)}
            if key == "face_set":
                return self.face_file(value, pointer)
            if key == "motion":
                return self.motion(value, pointer)
            if pointer == "/method/training":
                return self.array_file(value.reshape(len(value), -1), key)
            if key == "initial" and body is not None:
                mesh = as_mesh(self.bodies[body].get("mesh"))
                if mesh is None:
                    raise UsageError(f"{pointer}: initial positions as an array need a mesh of arrays")
                return self.mesh_file(Mesh(value, mesh.cells, check=False))
        if isinstance(value, Mapping):
            if "body" in value and re.match(r"/(constraints|forces|attachments)/\d+$", pointer):
                body = self.body_named(value["body"])
            return {str(k): self.walk(v, f"{pointer}/{k}", body) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.walk(v, f"{pointer}/{k}", body) for k, v in enumerate(value)]
        if callable(value):
            raise UsageError(f"{pointer}: a function may stand for a selection of nodes or elements only")
        return _plain(value)

    def body_named(self, name: Any) -> Optional[int]:
        for k, body in enumerate(self.bodies):
            if body.get("name") == name:
                return k
        return None

    def selection(self, value: Union[np.ndarray, Callable[[np.ndarray], Any]], pointer: str, body: Optional[int]) -> Any:
        of_elements = "/regions/" in pointer or "/element_sets/" in pointer
        if body is None and len(self.bodies) == 1:
            body = 0
        if callable(value) or value.dtype == bool:
            positions = self.positions(body, of_elements)
            chosen = value(positions) if callable(value) else value
            ids = as_ids(chosen, len(positions))
        else:
            ids = as_ids(value, 0)
        if len(ids) == 0:
            raise SceneError("", [Problem(pointer, "nothing is selected")])
        return {"ids": ids.tolist()}

    def positions(self, body: Optional[int], of_elements: bool) -> np.ndarray:
        """Of the nodes or elements of a body (of all bodies) at rest, where the scene puts them."""
        if self.placed is None:
            keys = ("name", "mesh", "refine", "fit", "scale", "rotation", "translation", "elements")
            bare = [{k: self.walk(b[k], f"/bodies/{i}/{k}", i) for k in keys if k in b} for i, b in enumerate(self.bodies)]
            text = json.dumps({"limber": 1, "bodies": bare})
            core, problems = _limber.read_scene(text, os.path.join(self.folder, "scene.json"), [])
            if core is None:
                raise SceneError("", [Problem(p, m) for _, _, p, m in problems])
            self.placed = _limber.placed_bodies(core)
        chosen = self.placed if body is None else [self.placed[body]]
        return np.concatenate([middle if of_elements else vertices for vertices, middle in chosen])

    def motion(self, keys: np.ndarray, pointer: str) -> Any:
        if keys.ndim != 2 or keys.shape[1] not in (4, 7, 8):
            raise UsageError(f"{pointer}: keys have the shape {keys.shape}, expected (k, 4), (k, 7) or (k, 8): time, "
                             "translation, rotation vector, scale")
        more = {}
        if keys.shape[1] >= 7:
            more["rotation"] = keys[:, 4:7]
        if keys.shape[1] == 8:
            more["scale"] = keys[:, 7]
        return keyframes(keys[:, 0], translation=keys[:, 1:4], **more)

    # Names tell what is in a file, so that equal scenes have equal names.
    def mesh_file(self, mesh: Mesh) -> str:
        digest = hashlib.sha256(mesh.vertices.tobytes() + np.ascontiguousarray(mesh.cells, dtype=np.int64).tobytes())
        for sets in (mesh.node_sets, mesh.element_sets):
            for name in sorted(sets):
                digest.update(name.encode() + np.asarray(sets[name], dtype=np.int64).tobytes())
        path = os.path.join(self.scene._folder(), f"mesh-{digest.hexdigest()[:12]}.msh")
        if not os.path.exists(path):
            mesh.write(path)
        return path

    def array_file(self, array: np.ndarray, key: str) -> str:
        values = np.ascontiguousarray(array, dtype=float)
        path = os.path.join(self.scene._folder(), f"{key}-{hashlib.sha256(values.tobytes()).hexdigest()[:12]}.npy")
        np.save(path, values)
        return path

    def face_file(self, faces: np.ndarray, pointer: str) -> str:
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
            raise UsageError(f"{pointer}: faces are an array of {faces.dtype} of the shape {faces.shape}, expected whole "
                             "numbers, (k, 3)")
        text = "".join(f"{a} {b} {c}\n" for a, b, c in faces.tolist())
        path = os.path.join(self.scene._folder(), f"face_set-{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
