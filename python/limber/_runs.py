"""What runs have left behind: arrays, pages, plots."""

from __future__ import annotations

import csv
import html
import json
import os
import tempfile
import webbrowser
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from . import _limber
from .errors import UsageError


class Frame(NamedTuple):
    """One recorded moment."""

    t: float  #: [s]
    step: int
    x: np.ndarray  #: positions, (n, 3) [m], single precision
    node_fields: Dict[str, np.ndarray]
    element_fields: Dict[str, np.ndarray]
    topology: int  #: which of Run.topologies it belongs to


class Run:
    """A run folder as arrays.

    >>> import limber, tempfile
    >>> sim = limber.Simulation({"limber": 1, "name": "box", "time": {"end": 0.05},
    ...                          "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}}]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sim.record(folder.name + "/box"):
    ...     sim.run()
    >>> run = limber.load(folder.name + "/box")
    >>> run
    <limber.Run 'box': 11 frames, 11 rows, finished>
    >>> run.x.shape, run.columns["E_kin"].shape, run.columns["hash"][-1] == sim.hash
    ((11, 8, 3), (11,), True)
    """

    def __init__(self, folder: "os.PathLike[str] | str"):
        self.folder = os.fspath(folder)
        self._replay = _limber.Replay(self.folder)
        self.t: np.ndarray = self._replay.times()  #: of the frames [s]
        self.frame_steps: np.ndarray = self._replay.frame_steps()
        self.header: Dict[str, Any] = self._replay.header()
        self.manifest: Dict[str, Any] = {}  #: run.json
        path = os.path.join(self.folder, "run.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.manifest = json.load(file)
        self.columns: Dict[str, np.ndarray] = _columns(os.path.join(self.folder, "steps.csv"))  #: steps.csv

    @property
    def scene(self) -> Dict[str, Any]:
        """The resolved scene."""
        with open(os.path.join(self.folder, "scene.resolved.json"), encoding="utf-8") as file:
            return json.load(file)

    @property
    def steps(self) -> Any:
        """The columns of steps.csv, as a pandas.DataFrame where pandas is installed, else as a dict of arrays."""
        try:
            import pandas
        except ImportError:
            return self.columns
        return pandas.DataFrame(self.columns)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, frame: int) -> Frame:
        count = len(self)
        if not -count <= frame < count:
            raise IndexError(f"frame {frame} of {count}")
        f = self._replay.frame(frame % count)
        return Frame(f["t"], f["step"], f["x"], f["node_fields"], f["element_fields"], f["topology"])

    def __iter__(self) -> Iterator[Frame]:
        return (self[i] for i in range(len(self)))

    @property
    def x(self) -> np.ndarray:
        """Positions of all frames, (frames, n, 3) [m]; raises where the topology changes (then go frame by frame)."""
        return self._stack(lambda frame: frame.x, "x")

    def field(self, name: str) -> np.ndarray:
        """A field of all frames, (frames, n) or (frames, n, components); element fields likewise."""
        def pick(frame: Frame) -> np.ndarray:
            for fields in (frame.node_fields, frame.element_fields):
                if name in fields:
                    return fields[name]
            raise KeyError(f"{name!r}; there are {', '.join([*frame.node_fields, *frame.element_fields])}")
        return self._stack(pick, name)

    def _stack(self, pick: Any, name: str) -> np.ndarray:
        arrays = [pick(frame) for frame in self]
        if any(a.shape != arrays[0].shape for a in arrays):
            raise UsageError(f"the topology changes during the run: {name} has no one shape; go over the frames instead")
        return np.stack(arrays)

    @property
    def topologies(self) -> List[Dict[str, Any]]:
        """rest (n, 3), cells (m, 4), surface (k, 3), bodies, regions, constant fields; one for each change."""
        return [self._replay.topology(i) for i in range(self._replay.topologies())]

    @property
    def damage(self) -> str:
        """Empty, or what is wrong with the recording."""
        return self._replay.damage()

    def __repr__(self) -> str:
        rows = len(next(iter(self.columns.values()), ()))
        return (f"<limber.Run {self.header['scene']!r}: {len(self)} frames, {rows} rows, "
                f"{self.manifest.get('status', 'finished' if self._replay.finished() else 'unfinished')}>")

    def _repr_html_(self) -> str:
        return frame_html(_page(self.folder))


def load(folder: "os.PathLike[str] | str") -> Run:
    """Every frame and every column of a run folder as arrays."""
    return Run(folder)


def _columns(path: str) -> Dict[str, np.ndarray]:
    if not os.path.exists(path):
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file)]
    names, rows = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    out = {}
    for k, name in enumerate(names):
        cells = [row[k] for row in rows]
        if name in ("hash", "fallbacks"):
            out[name] = np.array(cells, dtype=object)
        else:
            numbers = np.array([float(c) if c else np.nan for c in cells])
            whole = name in ("step", "epoch", "dofs", "contacts", "iterations", "inverted", "analyses")
            out[name] = numbers.astype(int) if whole and np.all(np.isfinite(numbers)) else numbers
    return out


def _page(folder: "os.PathLike[str] | str") -> str:
    path = os.path.join(os.fspath(folder), "index.html")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(prefix="limber-page-") as scratch:
            path = os.path.join(scratch, "index.html")
            _limber.write_page(os.fspath(folder), path)
            with open(path, encoding="utf-8") as file:
                return file.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def frame_html(page: str, height: int = 560) -> str:
    """A page inside a notebook's cell: whole, in a frame of its own."""
    return (f'<iframe srcdoc="{html.escape(page, quote=True)}" width="100%" height="{height}" '
            'style="border: 0" allowfullscreen></iframe>')


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return "IPKernelApp" in getattr(get_ipython(), "config", {})


class _Shown:
    """Something that a notebook shows as a page."""

    def __init__(self, page: str):
        self._text = page

    def _repr_html_(self) -> str:
        return frame_html(self._text)


def show(folder: "os.PathLike[str] | str") -> Any:
    """The page of a run: in a notebook in the cell, elsewhere in the browser."""
    if _in_notebook():
        return _Shown(_page(folder))
    path = os.path.join(os.fspath(folder), "index.html")
    if not os.path.exists(path):
        _limber.write_page(os.fspath(folder), path)
    webbrowser.open("file://" + os.path.abspath(path))
    return None


class Distance(NamedTuple):
    """How far a run is from the first one, over time."""

    t: np.ndarray  #: [s]
    max: np.ndarray  #: over the nodes [m]
    rms: np.ndarray  #: [m]
    node: np.ndarray  #: where the largest is


class Comparison(NamedTuple):
    """Runs of the same mesh against the first of them."""

    distances: List[Distance]  #: one for each run after the first
    costs: List[Dict[str, Any]]  #: label, method, nodes, steps, dofs, ms_per_step, ms_p95 of each run
    page: str  #: HTML, whole

    def _repr_html_(self) -> str:
        return frame_html(self.page)


def compare(*folders: "os.PathLike[str] | str", labels: Optional[List[str]] = None,
            output: "os.PathLike[str] | str | None" = None) -> Comparison:
    """Runs side by side: distances from the first one, costs, and a page with all of them (also written to `output`).

    >>> import limber, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> for young in (1e5, 2e5):
    ...     sim = limber.Simulation({"limber": 1, "time": {"end": 0.05},
    ...                              "bodies": [{"mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [5, 2, 2]},
    ...                                          "material": {"young": young}}], "constraints": [{"nodes": {"set": "x0"}}]})
    ...     with sim.record(f"{folder.name}/{young:.0f}"):
    ...         sim.run()
    >>> both = limber.compare(folder.name + "/100000", folder.name + "/200000", labels=["soft", "stiff"])
    >>> bool(both.distances[0].max[0] == 0), bool(both.distances[0].max[-1] > 1e-4), [c["label"] for c in both.costs]
    (True, True, ['soft', 'stiff'])
    """
    if len(folders) < 2:
        raise UsageError("compare() takes two runs or more")
    names = labels or [os.path.basename(os.path.normpath(os.fspath(f))) for f in folders]
    with tempfile.TemporaryDirectory(prefix="limber-compare-") as scratch:
        path = os.fspath(output) if output else os.path.join(scratch, "compare.html")
        distances, costs = _limber.compare([os.fspath(f) for f in folders], names, path)
        with open(path, encoding="utf-8") as file:
            page = file.read()
    return Comparison([Distance(*d) for d in distances[1:]], costs, page)


def plot(folder: "os.PathLike[str] | str | Run", columns: Optional[List[str]] = None) -> Any:
    """Energies (or these columns) of a run over time, and the time that its steps took, as a matplotlib figure."""
    import matplotlib.pyplot as pyplot
    run = folder if isinstance(folder, Run) else load(folder)
    table = run.columns
    groups = [columns] if columns else [[c for c in ("E_kin", "E_el", "E_grav", "E_contact") if c in table], ["step_ms"]]
    figure, axes = pyplot.subplots(len(groups), 1, sharex=True, squeeze=False, figsize=(8, 2.6 * len(groups)),
                                   constrained_layout=True)
    for axis, names in zip(axes[:, 0], groups):
        for name in names:
            if name not in table:
                raise KeyError(f"{name!r}; there are {', '.join(table)}")
            known = np.isfinite(table[name].astype(float))
            axis.plot(table["t"][known], table[name][known], label=name)
        if not columns and "E_kin" in names:
            total = np.sum([table[n] for n in names], axis=0)
            known = np.isfinite(total)
            axis.plot(table["t"][known], total[known], "k:", label="total")
            axis.set_ylabel("energy [J]")
        axis.legend(loc="upper right", fontsize="small")
        axis.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("t [s]")
    figure.suptitle(f"{run.header['scene']} ({run.header['method']})")
    if _in_notebook():
        pyplot.close(figure)  # a cell would show it twice: as its result, and as a figure that is open
    return figure
