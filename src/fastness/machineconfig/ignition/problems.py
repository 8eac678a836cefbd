"""What can be wrong with an Ignition config, said all at once.

A check never raises: it reports a `Problem` and goes on, so an administrator sees every mistake of a config in one go. The
border functions `parse` and `upgrade` turn a report with errors into one exception.

    FormatError
    └── IgnitionError           base; never raised itself
        ├── UnreadableConfig    not JSON, not an object, or beyond a limit
        ├── UnsupportedVersion  `invalid-version` (cannot be understood) or `unknown-version` (understood, not supported)
        └── InvalidConfig       `problems` holds everything that was found, warnings included

- Severities are those of Ignition's own report: with an error the machine refuses the config, with a warning it goes on.
- A field that the spec version does not know is a warning, because Ignition ignores it; `strict` makes it an error.
- `path` is a field path (`storage.files[3].path`), empty for the whole document.
- The number of problems kept is bounded; work on a hostile config stays in proportion to its size.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fastness.formats.errors import FormatError

Path = tuple["Path", str | int] | None
"""A field path as a linked list, so that walking costs nothing until somebody wants to read it."""

MAX_PROBLEMS: Final = 500


class Severity(StrEnum):
    """How bad a problem is, in Ignition's terms."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where, a stable code, and a sentence."""

    severity: Severity
    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Report:
    """Collects problems; of several errors at one path the first counts, for the others usually follow from it."""

    def __init__(self, strict: bool = False) -> None:
        self.problems: list[Problem] = []
        self._strict = strict
        self._wrong: set[str] = set()

    def error(self, path: Path, code: str, message: str) -> None:
        """Note something that makes a machine refuse the config."""
        self.refuse(render(path), code, message)

    def refuse(self, where: str, code: str, message: str) -> None:
        """The same for a path that is already readable."""
        if where not in self._wrong and len(self.problems) < MAX_PROBLEMS:
            self._wrong.add(where)
            self.problems.append(Problem(Severity.ERROR, where, code, message))
        elif not self._wrong:
            # The list is full of warnings: the verdict must not depend on how many there were.
            self._wrong.add(where)
            self.problems[-1] = Problem(Severity.ERROR, where, code, message)

    def warn(self, path: Path, code: str, message: str) -> None:
        """Note something that a machine lets pass but that somebody should look at."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(Severity.WARNING, render(path), code, message))

    def unknown(self, path: Path, message: str) -> None:
        """Note a field that the spec version does not have."""
        if self._strict:
            self.error(path, "unknown-field", message)
        else:
            self.warn(path, "unknown-field", message)

    @property
    def fatal(self) -> bool:
        """Whether any problem is an error."""
        return bool(self._wrong)


class IgnitionError(FormatError):
    """Something about an Ignition config; see the module for the tree."""


class UnreadableConfig(IgnitionError):
    """The bytes are not a JSON object, or beyond a limit."""


class UnsupportedVersion(IgnitionError):
    """The spec version is missing, malformed or not one of those supported."""


class InvalidConfig(IgnitionError):
    """The config was read but a machine would refuse it."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(
            errors[0].code, errors[0].message + more, errors[0].path, "correct the fields named in the report"
        )
        self.problems = problems


def render(path: Path) -> str:
    """The readable form of a linked path."""
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")
