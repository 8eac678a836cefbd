"""Distrust: what is no longer trusted, whatever it proves, and whom that hits.

    against = [one for one in distrusts if one.live(now) and one.hits(about)]

A Distrust names exactly one target. Machine, key, endorsement key and tenant say *who*: such a machine is revoked until the
Distrust ends. Image, chip, chip generation and TCB level say *what was proved*: such a machine is refused while it proves that,
and comes back by proving something better (another image, newer firmware), without anybody's help; from a chip by moving to
another one, which takes an approval like any change of chip.

* What cannot be told hits: a TCB that should be reported and is not counts as below.
* A Distrust that has expired or is being deleted hits nobody; tokens of the epoch that it ended stay dead.
* A key is any key that vouches for the machine: the enrolled one, or the endorsement key of its TPM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastness.kinds.fastness_dev.distrust import TARGETS
from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.properties import (
    GENERATION,
    SNP_TCB,
    TCB,
    TDX_DATE,
    TDX_EVALUATION,
    TEE,
    images_in,
)

Object = Mapping[str, Any]
DISTRUSTED: Final = "Distrusted"
CODE: Final = "distrusted"
IDENTITIES: Final = frozenset({"machine", "key", "endorsementKey", "tenant"})


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a machine, as far as a Distrust may name it."""

    machine: str = ""
    keys: frozenset[str] = frozenset()
    tenant: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    endorsement: str = ""
    chip: str = ""


@dataclass(frozen=True, slots=True)
class Distrusted:
    """One Distrust object, reduced to what decides whom it hits."""

    name: str
    kind: str
    target: Any
    reason: str = ""
    expires: datetime | None = None
    bars: frozenset[str] = frozenset()

    def bars_newcomers(self, place: str) -> bool:
        """Whether new Machines on a chip or an endorsement key wait because of it."""
        return bool(place) and _bare(place) in self.bars

    @property
    def revokes(self) -> bool:
        """Whether it names somebody, and not something that can be put right by proving better."""
        return self.kind in IDENTITIES

    @property
    def line(self) -> str:
        """The target in one line."""
        return f"{self.kind} {_line(self.target)}"

    def live(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires

    def hits(self, about: About) -> bool:
        """Whether a machine is what it names."""
        properties, named = about.properties, self.target
        match self.kind:
            case "machine":
                # An empty name is nobody's: a token without a machine must not be hit, nor excused, by an empty target.
                return bool(about.machine) and about.machine == named
            # A thumbprint is written with and without its algorithm; a Distrust that misses for its spelling lets the machine go
            # on.
            case "key":
                return _bare(named) in {_bare(key) for key in about.keys if key}
            case "endorsementKey":
                return bool(about.endorsement) and _bare(about.endorsement) == _bare(named)
            case "chip":
                return bool(about.chip) and about.chip == named
            case "tenant":
                return bool(about.tenant) and about.tenant == named
            case "image":
                # By digest: the same image under another registry or tag is the same image.
                digest = str(named).rpartition("@")[2]
                return any(image.rpartition("@")[2] == digest for image in images_in(properties))
            case "chipGeneration":
                return properties.get(GENERATION, "").lower() == str(named).lower()
            # The only kind that is left is a level; the schema has no others (`read_distrust`).
            case _:
                return _below(properties, named)


def read_distrust(obj: Object) -> Distrusted | None:
    """A Distrust object; None for one that is being deleted or names no target that is known."""
    spec = obj.get("spec")
    if is_being_deleted(obj) or not isinstance(spec, dict):
        return None
    named = [kind for kind in TARGETS if spec.get(kind) is not None]
    # The schema says so too; an object that got past it with none would hit nobody, and one with two would hit by one of them.
    if len(named) != 1:
        return None
    places = spec.get("bars")
    bars = frozenset(_bare(str(place)) for place in places.values()) if isinstance(places, dict) else frozenset()
    return Distrusted(
        object_name(obj).name, named[0], spec[named[0]], str(spec.get("reason", "")), _moment(spec.get("expires")), bars
    )


def about_machine(
    machine: Machine, properties: Mapping[str, str] | None = None, tenant: str = "", chip: str = ""
) -> About:
    """What a Machine is; `properties` and `chip` are what it proves now instead of what it proved last."""
    endorsement = machine.status.endorsement.key if machine.status.endorsement else ""
    keys = frozenset({machine.status.key_thumbprint, endorsement} - {""})
    # What it proves now: otherwise a machine that came back with a fixed image would still be refused for the old one.
    proved = machine.status.properties if properties is None else properties
    return About(machine.metadata.uid, keys, tenant, proved, endorsement, chip or machine.status.chip)


def about_claims(claims: Object, endorsement: str = "") -> About:
    """What the claims of a token say of its machine."""
    # Our own signed token, and still read with care: it may be of an older version of this software.
    ours = claims.get("fastness")
    ours = ours if isinstance(ours, dict) else {}
    properties = ours.get("properties")
    return About(
        str(ours.get("machine", "")),
        frozenset({str(claims.get("sub", "")), endorsement} - {""}),
        str(ours.get("tenant", "")),
        properties if isinstance(properties, dict) else {},
    )


def against(distrusts: Iterable[Distrusted], about: About, now: datetime) -> list[Distrusted]:
    """The Distrusts that hit a machine now."""
    return [entry for entry in distrusts if entry.live(now) and entry.hits(about)]


def _below(properties: Mapping[str, str], levels: Any) -> bool:
    """Whether the platform has a security version below one of these, for its own kind of TEE."""
    tee = properties.get(TEE, "")
    level = levels.get(tee) if isinstance(levels, dict) else None
    if not isinstance(level, dict):
        return False
    if tee == "snp":
        # The first mutable code exists from Turin on: an older chip does not report it and is not below it.
        parts = [part for part in SNP_TCB if part in level and (part != "fmc" or f"{TCB}{part}" in properties)]
        return any(_number(properties.get(f"{TCB}{part}")) < int(level[part]) for part in parts)
    if tee == "tdx":
        evaluation, date = level.get("evaluationDataNumber"), _moment(level.get("tcbDate"))
        reached = _moment(properties.get(TDX_DATE))
        old = evaluation is not None and _number(properties.get(TDX_EVALUATION)) < int(evaluation)
        return old or (date is not None and (reached is None or reached < date))
    return False


def _number(text: str | None) -> int:
    # What is not reported is below everything: a platform that hides its version must not pass for a new one.
    return int(text) if text and text.isascii() and text.isdecimal() else -1


def _bare(key: str) -> str:
    return key.removeprefix("sha256:").lower()


def _line(target: Any) -> str:
    if not isinstance(target, dict):
        return str(target)
    parts = [f"{tee} {name} {value}" for tee, level in sorted(target.items()) for name, value in sorted(level.items())]
    return ", ".join(parts)


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
