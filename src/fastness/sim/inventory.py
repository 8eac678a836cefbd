"""Which virtual machines there are and what was done to them: one file, so that a restart goes on where the last run ended.

    STATE/simulator.json   {"profile", "next", "machines": [{"name", "number", "tee", "swtpm"?}], "faults": [{"id", "kind", …}]}

* A number is given once: a machine that is thrown away takes its chip with it.
* The file is replaced as a whole, so a crash leaves the old one or the new one.
* What cannot be read stops the start with a sentence; guessing would make other machines of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.key_files import write_private
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import Invalid
from fastness.sim.hardware import TEES, Tee

FILE: Final = "simulator.json"
MAX_BYTES: Final = 16 * 1024 * 1024
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=8)


@dataclass(frozen=True, slots=True)
class Spec:
    """One machine: its name, the number that its chip follows from, its kind of evidence, and whether its TPM is a process."""

    name: str
    number: int
    tee: Tee
    swtpm: bool = False

    def to_json(self) -> JsonObject:
        """As the file has it."""
        return {
            "name": self.name, "number": self.number, "tee": self.tee, **({"swtpm": True} if self.swtpm else {}),
        }  # fmt: skip

    @classmethod
    def of(cls, value: Any) -> Spec:
        """Read one; raises KeyError, TypeError, ValueError."""
        name, tee = str(value["name"]), value["tee"]
        if tee not in TEES or not name or "/" in name or name.startswith("."):
            raise ValueError(f"{value} is no machine")
        return cls(name, int(value["number"]), tee, bool(value.get("swtpm")))


@dataclass(frozen=True, slots=True)
class Done:
    """A fault that was done and not undone; `memory` is what undoing it needs."""

    id: str
    kind: str
    machine: str
    since: datetime
    memory: JsonObject = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """As the file has it."""
        return {
            "id": self.id, "kind": self.kind, "machine": self.machine, "since": rfc3339(self.since),
            "memory": self.memory,
        }  # fmt: skip

    @classmethod
    def of(cls, value: Any) -> Done:
        """Read one; raises KeyError, TypeError, ValueError."""
        since = datetime.fromisoformat(value["since"])
        return cls(str(value["id"]), str(value["kind"]), str(value["machine"]), since, dict(value["memory"]))


@dataclass(frozen=True, slots=True)
class Roster:
    """All of it."""

    profile: str = ""
    next: int = 0
    machines: tuple[Spec, ...] = ()
    faults: tuple[Done, ...] = ()

    def to_json(self) -> JsonObject:
        """As the file has it."""
        return {
            "profile": self.profile, "next": self.next, "machines": [entry.to_json() for entry in self.machines],
            "faults": [entry.to_json() for entry in self.faults],
        }  # fmt: skip

    def without(self, name: str) -> Roster:
        """The roster after a machine was thrown away, with what was done to it."""
        return replace(
            self,
            machines=tuple(entry for entry in self.machines if entry.name != name),
            faults=tuple(entry for entry in self.faults if entry.machine != name),
        )


def read_roster(state: Path) -> Roster | None:
    """What a state directory says; None for one that never had machines; raises Invalid."""
    path = state / FILE
    try:
        with path.open("rb") as file:
            value = json.decode(file.read(MAX_BYTES + 1), _LIMITS)
        machines = tuple(Spec.of(entry) for entry in value["machines"])
        faults = tuple(Done.of(entry) for entry in value["faults"])
        return Roster(str(value["profile"]), int(value["next"]), machines, faults)
    except FileNotFoundError:
        return None
    except (OSError, JsonError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{path} cannot be read ({error}): restore it, or choose another state directory") from error


def write_roster(state: Path, roster: Roster) -> None:
    """Keep it; raises OSError, TrustError."""
    write_private(state / FILE, SecretBytes(json.encode(roster.to_json()) + b"\n"))
