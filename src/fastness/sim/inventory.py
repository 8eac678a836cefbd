"""Which virtual machines there are and what was done to them: one file, so that a restart goes on where the last run ended.

    STATE/simulator.json   {"profile", "next", "machines": [{"name", "number", "tee", "pool"?, "swtpm"?, "secret"?, "machine"?}],
                            "faults": [{"id", "kind", …}]}

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
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import Invalid
from fastness.sim.hardware import TEES, Tee

FILE: Final = "simulator.json"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
MAX_BYTES: Final = 16 * 1024 * 1024
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=8)


@dataclass(frozen=True, slots=True)
class Spec:
    """One machine: its name, the number that its chip follows from, its evidence, whether its TPM is a process, its pool.

    `secret` is what it boots with, if not the pool's managed user-data; `machine` the Machine object that it was made for.
    """

    name: str
    number: int
    tee: Tee
    swtpm: bool = False
    pool: str = names.WORKER
    secret: str = ""
    machine: str = ""

    @property
    def zone(self) -> str:
        """Where the machine stands; every third stands in the same zone."""
        return ZONES[self.number % len(ZONES)]

    @property
    def provider_id(self) -> str:
        """How the provider of virtual machines names it, on its Machine object and on its Node."""
        return f"virtual:///{self.zone}/{self.name}"

    @property
    def user_data(self) -> str:
        """The Secret that the machine boots with."""
        return self.secret or f"{self.pool}{names.USER_DATA_SUFFIX}"

    def to_json(self) -> JsonObject:
        """As the file has it."""
        return {
            "name": self.name, "number": self.number, "tee": self.tee, **({"swtpm": True} if self.swtpm else {}),
            **({"pool": self.pool} if self.pool != names.WORKER else {}),
            **({"secret": self.secret} if self.secret else {}), **({"machine": self.machine} if self.machine else {}),
        }  # fmt: skip

    @classmethod
    def of(cls, value: Any) -> Spec:
        """Read one; raises KeyError, TypeError, ValueError."""
        name, tee = str(value["name"]), value["tee"]
        if tee not in TEES or not name or "/" in name or name.startswith("."):
            raise ValueError(f"{value} is no machine")
        pool, secret, machine = (str(value.get(member) or "") for member in ("pool", "secret", "machine"))
        return cls(name, int(value["number"]), tee, bool(value.get("swtpm")), pool or names.WORKER, secret, machine)


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
class Inventory:
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

    def without(self, name: str) -> Inventory:
        """The inventory after a machine was thrown away, with what was done to it."""
        return replace(
            self,
            machines=tuple(entry for entry in self.machines if entry.name != name),
            faults=tuple(entry for entry in self.faults if entry.machine != name),
        )


def read_inventory(state: Path) -> Inventory | None:
    """What a state directory says; None for one that never had machines; raises Invalid."""
    path = state / FILE
    try:
        with path.open("rb") as file:
            value = json.decode(file.read(MAX_BYTES + 1), _LIMITS)
        machines = tuple(Spec.of(entry) for entry in value["machines"])
        faults = tuple(Done.of(entry) for entry in value["faults"])
        return Inventory(str(value["profile"]), int(value["next"]), machines, faults)
    except FileNotFoundError:
        return None
    except (OSError, JsonError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{path} cannot be read ({error}): restore it, or choose another state directory") from error


def write_inventory(state: Path, inventory: Inventory) -> None:
    """Keep it; raises OSError, TrustError."""
    write_private(state / FILE, SecretBytes(json.encode(inventory.to_json()) + b"\n"))
