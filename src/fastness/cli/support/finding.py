"""A finding of `fastness doctor`: what was looked for, what is there, what it is good for, and how to get it.

A leaf, so that the checks of this machine, of a cluster and of its hosts need not know each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fastness.cli.output import table

_MARKS: Final = {"ok": "+", "missing": "!", "optional": "-"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for."""

    name: str
    state: Literal["ok", "missing", "optional"]
    found: str
    purpose: str
    fix: str = ""


def as_table(findings: Sequence[Finding]) -> str:
    """Findings for people, each with its way out."""
    rows = [["", "WHAT", "FOUND", "FOR"]]
    rows += [
        [_MARKS[entry.state], entry.name, entry.found, entry.purpose + (f"  ({entry.fix})" if entry.fix else "")]
        for entry in findings
    ]
    return table(rows)
