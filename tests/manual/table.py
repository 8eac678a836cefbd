"""The table of the manual's commands, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
FIELDS = frozenset(
    [
        "n",
        "section",
        "printed",
        "expected",
        "run",
        "ours",
        "code",
        "until",
        "before",
        "fails",
        "then",
        "open",
        "differs",
    ]
)


@dataclass(frozen=True)
class Command:
    """A command, what it prints, how it ends, and whether it is asked again until it does."""

    run: str
    ours: tuple[str, ...] = ()
    code: int = 0
    until: bool = False

    @classmethod
    def of(cls, value: Mapping[str, Any], otherwise: str = "") -> Command:
        """Read one; without a command of its own it is another one."""
        ours = (
            tuple(line.rstrip() for line in str(value.get("ours", "")).rstrip("\n").split("\n"))
            if "ours" in value
            else ()
        )
        return cls(str(value.get("run") or otherwise), ours, int(value.get("code", 0)), bool(value.get("until")))


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    n: int
    section: str
    printed: str
    expected: str
    command: Command
    before: tuple[str, ...] = ()
    fails: Command | None = None
    then: tuple[Command, ...] = field(default=())
    open: str = ""
    differs: str = ""

    @property
    def state(self) -> str:
        """Where it stands."""
        return "open" if self.open else "differs" if self.differs else "works"


def rows() -> Sequence[Row]:
    """Every row, in the order in which they are walked; raises ValueError for a field that does not exist."""
    parsed = []
    for value in yaml.safe_load((HERE / "rows.yaml").read_text()):
        unknown = set(value) - FIELDS
        if unknown:
            raise ValueError(f"row {value.get('n')} has unknown fields: {', '.join(sorted(unknown))}")
        printed = str(value["printed"]).rstrip("\n")
        parsed.append(
            Row(
                int(value["n"]), str(value["section"]), printed, str(value["expected"]), Command.of(value, printed),
                tuple(value.get("before", ())), Command.of(value["fails"], printed) if "fails" in value else None,
                tuple(Command.of(follow_up) for follow_up in value.get("then", ())), str(value.get("open", "")),
                str(value.get("differs", "")),
            )
        )  # fmt: skip
    return parsed
