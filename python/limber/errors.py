"""What limber raises. All are :class:`Error`; each is also the built-in exception that one would expect."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional


class Problem(NamedTuple):
    """One thing that is wrong with a scene."""

    pointer: str  #: JSON pointer, e.g. "/bodies/0/material/young"
    message: str  #: what was found, and what was expected
    file: str = ""  #: where it stands; empty for scenes that are no files
    line: int = 0  #: and on which line; 0: unknown

    @property
    def hint(self) -> str:
        """How to mend it, as far as the message says so."""
        return _hint(self.message)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return place + (f"{self.pointer}: " if self.pointer else "") + self.message


def _hint(message: str) -> str:
    found = re.search(r"(did you mean .*)|; (.+)$|(expected .*)", message, re.S)
    return next((g for g in found.groups() if g), "").strip() if found else ""


class Error(Exception):
    """The base of all errors of limber."""


class SceneError(Error, ValueError):
    """A scene, a mesh or a material that cannot be simulated.

    >>> import limber
    >>> try:
    ...     limber.Scene({"limber": 1, "bodies": [{"mesh": {"shape": "bar"}, "material": {"yuong": 1e5}}]})
    ... except limber.SceneError as error:
    ...     print(error.pointer, "|", error.hint)
    /bodies/0/material/yuong | did you mean "young"? [Pa]
    """

    problems: List[Problem]  #: everything that is wrong
    pointer: str  #: of the first problem; empty when it belongs to no place in the scene
    hint: str  #: how to mend the first problem, as far as is known

    def __init__(self, message: str = "", problems: Optional[List[Problem]] = None):
        if problems is None:
            problems = []
            for line in message.splitlines():
                found = re.match(r"(?:(?P<file>[^:]+?)(?::(?P<line>\d+))?: )?(?P<pointer>/[^\s:]*): (?P<text>.*)", line)
                problems.append(Problem(found["pointer"], found["text"], found["file"] or "", int(found["line"] or 0))
                                if found else Problem("", line))
        super().__init__(message or "\n".join(map(str, problems)))
        self.problems = problems
        self.pointer = problems[0].pointer if problems else ""
        self.hint = problems[0].hint if problems else ""


class SimulationError(Error, RuntimeError):
    """A step that failed. The simulation stands where it was before that step."""

    step: Optional[int]  #: steps done before the one that failed
    t: Optional[float]  #: and their time [s]
    cause: str  #: what happened
    place: str  #: where: "node 17", "element 3"; empty: not at one place
    hint: str  #: what to try

    def __init__(self, message: str = "", step: Optional[int] = None, t: Optional[float] = None,
                 cause: str = "", hint: str = ""):
        super().__init__(message)
        self.step, self.t, self.hint = step, t, hint
        self.cause = cause or message
        found = re.search(r"\b(node|element|joint|link|row) (\"[^\"]*\"|\d+)", self.cause)
        self.place = found.group(0) if found else ""


class FileError(Error, OSError):
    """A file or folder that cannot be read or written."""


class UsageError(Error, ValueError):
    """A call that does not fit: another shape, another thread, a folder that holds another run."""
