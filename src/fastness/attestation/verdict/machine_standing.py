"""How a machine stands: the one answer that every surface gives.

    found = machine_standing(machine, now, interval, live_override(cluster, now))
    found.state        # Proved, Waiting, Refused, Overridden, Revoked or Stale
    found.word         # the same for a column: "Proved (simulated)", "Proved (host not proved)"

The page, the columns of kubectl, the command line, metrics, the counts of the ConfidentialCluster and the taints of nodes all ask
this function and nothing else, so none of them can be greener than another.

    revoked, or quarantined                              Revoked
    waits for approval, or never brought evidence        Waiting
    accepted by an override that counts now              Overridden    never Proved: nobody affirmed what it booted
    that override has ended                              Stale         until the machine proves itself
    its last appraisal failed                            Refused
    its last good proof grew old                         Stale
    moved to another pool, and not proved since          Stale
    affirmed, and young enough                           Proved

* Only Proved says that the machine proved what it booted. `simulated` goes with every state: it is no proof by hardware. A bare
  TPM proves nothing about the host around it, so a machine that stands by one is Proved with "host not proved" beside it, and
  with "trusted on first use" where nobody vouches for that TPM.
* The condition `Attested` is what the verifier said last; this adds the decisions of people, overrides and the time.
* Where the key lies goes with the machine, too. An attestation key never leaves its TPM. A guest key is a file, and as long as no
  attestation opens the disk that it lies on, whoever owns the host reads it. What the key is good for is bounded by the chip
  (`dispute`); that it can be read is said wherever the machine is shown: on the Machine (`status.identity`), in each verdict, on
  the command line and on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from fastness.attestation.policy.claims import proves_host
from fastness.attestation.verdict.breakglass import REASON as BREAK_GLASS
from fastness.attestation.verdict.breakglass import Override
from fastness.formats.patch import apply_merge_patch
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import Condition, rfc3339, view, with_condition
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, IDENTITIES, MOVED, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import Endorsement, KeyKind, key_kind

# One missed round may be a restart of the agent or of a door.
ROUNDS: Final = 2
IN_TPM, OPEN_DISK, ENCRYPTED_DISK = IDENTITIES
NOTE: Final = "identity on an open disk"
NEVER: Final = "NeverAttested"
PROOF_EXPIRED: Final = "ProofExpired"
OVERRIDE_ENDED: Final = "OverrideEnded"
AFFIRMED: Final = "Affirmed"
RECORDING: Final = "ApprovalBeingRecorded"
# Why `Attested` was taken from a machine whose evidence was good: the time, or people. When those no longer stand against it, its
# last proof counts again for as long as it is young.
TAKEN_AWAY: Final = frozenset({PROOF_EXPIRED, "Revoked", "Quarantined", "Superseded"})


class State(StrEnum):
    """The six ways in which a machine can stand; the table above says when each holds."""

    PROVED = "Proved"
    WAITING = "Waiting"
    REFUSED = "Refused"
    OVERRIDDEN = "Overridden"
    REVOKED = "Revoked"
    STALE = "Stale"


@dataclass(frozen=True, slots=True)
class MachineStanding:
    """How a machine stands and why. `since` is when a good proof ceased to be one, `until` when this state ends by itself."""

    state: State
    simulated: bool
    reason: str
    message: str = ""
    since: datetime | None = None
    until: datetime | None = None
    host_proved: bool = True
    first_use: bool = False

    @property
    def proved(self) -> bool:
        """Whether the machine proved what it booted."""
        return self.state is State.PROVED

    @property
    def asks(self) -> bool:
        """Whether the machine waits for a person to approve it."""
        return self.state is State.WAITING and self.reason not in (NEVER, RECORDING)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What somebody must know beside the state."""
        host = () if self.host_proved or not self.proved else (HOST_NOT_PROVED,)
        first = (FIRST_USE,) if self.first_use and self.proved else ()
        return (*(("simulated",) if self.simulated else ()), *host, *first)

    @property
    def word(self) -> str:
        """The state for a column, with what must be known beside it."""
        return f"{self.state} ({', '.join(self.caveats)})" if self.caveats else str(self.state)


HOST_NOT_PROVED: Final = "host not proved"
FIRST_USE: Final = "trusted on first use"
WORDS: Final = tuple(
    dict.fromkeys(
        MachineStanding(state, simulated, "", host_proved=host, first_use=first).word
        for state in State
        # Only a TPM is trusted on first use, and a TPM proves no host.
        for host, first in ((True, False), (False, False), (False, True))
        for simulated in (False, True)
    )
)


def machine_standing(
    machine: Machine, now: datetime, interval: timedelta, override: Override | None = None
) -> MachineStanding:
    """How a machine stands; `override` is the one that counts now, if any, and `interval` that of re-attestation."""

    def stands(
        state: State, reason: str, message: str, since: datetime | None = None, until: datetime | None = None
    ) -> MachineStanding:
        host, first = proves_host(machine.status.tee), machine.status.endorsed_by == Endorsement.FIRST_USE
        return MachineStanding(state, machine.status.simulated, reason, message, since, until, host, first)

    membership = membership_of(machine)
    attested, approved = _condition(machine, "Attested"), _condition(machine, "Approved")
    # People first: what they took away is not given back by evidence, an override or time.
    if membership is Membership.REVOKED:
        revoked = _condition(machine, "Revoked")
        return stands(State.REVOKED, "Revoked", revoked.message or "the machine is revoked", _moment(revoked))
    if membership is Membership.QUARANTINED:
        why = machine.spec.approval_reason or "the machine is in quarantine"
        return stands(State.REVOKED, "Quarantined", why, _moment(approved))
    if membership is Membership.PENDING:
        if machine.spec.approval == Membership.APPROVED and approved.reason != CHIP_BARRED:
            return stands(State.WAITING, RECORDING, "its approval is being recorded", _moment(approved))
        asks = approved.reason if approved.reason == CHIP_BARRED else "Pending"
        why = approved.message if asks == CHIP_BARRED else "the machine waits for approval"
        return stands(State.WAITING, asks, why, _moment(approved))
    # Before every good answer, so that a machine which was let in without proof never shows as Proved.
    if attested.reason == BREAK_GLASS:
        return stands(*_overridden(machine, now, override))
    # The verifier writes both together: the condition without the time of a proof is somebody else's.
    never = machine.status.last_attested is None and attested.status == "True"
    if never or (attested.reason in ("", NEVER) and attested.status != "True"):
        return stands(State.WAITING, NEVER, "the machine never passed an appraisal", _moment(attested))
    if attested.status != "True" and attested.reason == MOVED:
        return stands(State.STALE, MOVED, attested.message, _moment(attested))
    if attested.status != "True" and attested.reason not in TAKEN_AWAY:
        return stands(State.REFUSED, attested.reason, attested.message, _moment(attested))
    until = proof_ends(machine, interval)
    if until is None or now >= until:
        overdue = f"the last proof is from {machine.status.last_attested}: the machine missed {ROUNDS} rounds"
        return stands(State.STALE, PROOF_EXPIRED, overdue, until)
    return stands(State.PROVED, AFFIRMED, attested.message if attested.status == "True" else "", until=until)


def taken_away(conditions: Sequence[JsonObject], reason: str, message: str, now: datetime) -> list[JsonObject]:
    """The conditions of a machine that people took out: it is not Attested. One that was refused before stays refused."""
    held = any(entry.get("type") == "Attested" and entry.get("status") == "True" for entry in conditions)
    if not held:
        return list(conditions)
    return with_condition(conditions, kind="Attested", status="False", reason=reason, message=message[:1024], now=now)


def moved(machine: Machine, conditions: Sequence[JsonObject], pool: str, now: datetime) -> JsonObject:
    """The status of a machine that somebody moved to a pool: what it proved, and what it was given, was for another one."""
    status, was = machine.status, _condition(machine, "Attested")
    moved_conditions = list(conditions)
    if was.reason not in ("", NEVER):
        message = f"it was moved from pool {status.pool} and has to prove itself for pool {pool}"
        moved_conditions = with_condition(
            moved_conditions, kind="Attested", status="False", reason=MOVED, message=message, now=now
        )
    return {
        "pool": pool, "movedFrom": status.moved_from or status.pool, "conditions": moved_conditions, "epoch": status.epoch + 1,
        # What it has it may have again; where it was going it goes no longer.
        "currentConfig": status.desired_config or status.current_config or None, "desiredConfig": None,
        "currentOverlay": status.desired_overlay or status.current_overlay or None, "desiredOverlay": None,
        **({"attestedUntil": rfc3339(now)} if status.attested_until else {}),
    }  # fmt: skip


def standing_change(
    machine: Mapping[str, Any], status: Mapping[str, Any], now: datetime, interval: timedelta, override: Override | None
) -> JsonObject:
    """What a change of the status means for `standing` and `standingReason`; empty when the Machine shows that already."""
    before = machine.get("status") or {}
    # As the API will merge it: a property that this proof does not have any more is None in the patch.
    merged = apply_merge_patch(dict(before), dict(status))
    standing = machine_standing(view({**machine, "status": merged}, Machine), now, interval, override)
    present = (before.get("standing"), before.get("standingReason"))
    return (
        {}
        if present == (standing.word, standing.reason)
        else {"standing": standing.word, "standingReason": standing.reason}
    )


def proof_ends(machine: Machine, interval: timedelta) -> datetime | None:
    """When the last proof of a machine grows old: by the interval that it was told, else by that of now; None without one."""
    if machine.status.last_attested is None:
        return None
    # As it was told at its proof: a longer interval that is set later does not make an old proof young again.
    if machine.status.attested_until is not None:
        return datetime.fromisoformat(machine.status.attested_until)
    return datetime.fromisoformat(machine.status.last_attested) + interval * ROUNDS


def counted_states(standings: Iterable[MachineStanding]) -> dict[State, int]:
    """How many machines stand how; every state is there."""
    counts = dict.fromkeys(State, 0)
    for standing in standings:
        counts[standing.state] += 1
    return counts


def _overridden(
    machine: Machine, now: datetime, override: Override | None
) -> tuple[State, str, str, datetime | None, datetime | None]:
    """A machine whose last evidence an override accepted: by itself it proved nothing."""
    accepted = machine.status.overridden_until
    until = datetime.fromisoformat(accepted) if accepted else now
    # Asked each time and never remembered: taking the annotation away ends the standing of everybody who stood by it.
    if override is None or override.pool != machine.status.pool:
        ended = "the override that the machine was accepted by has ended, and it has proved nothing since"
        return State.STALE, OVERRIDE_ENDED, ended, _moment(_condition(machine, "Attested")), None
    # The override that counts now may be another one than the machine was let in by, and a shorter one.
    until = min(until, override.expires)
    if now >= until:
        missed = f"the machine was last accepted by an override, and missed {ROUNDS} rounds since"
        return State.STALE, PROOF_EXPIRED, missed, until, None
    return State.OVERRIDDEN, BREAK_GLASS, f"let in without proof by an override: {override.line}", None, until


def _condition(machine: Machine, kind: str) -> Condition:
    return next(
        (entry for entry in machine.status.conditions if entry.type == kind), Condition(type=kind, status="Unknown")
    )


def _moment(entry: Condition) -> datetime | None:
    return datetime.fromisoformat(entry.last_transition_time) if entry.last_transition_time else None


def identity_place(tee: str, *, opened: bool = False) -> str:
    """Where the key of a machine with this kind of evidence lies; `opened`: it reported a volume that its proof opened."""
    if key_kind(tee) is not KeyKind.GUEST:
        return IN_TPM
    return ENCRYPTED_DISK if opened else OPEN_DISK


def identity_notes(machine: Machine) -> tuple[str, ...]:
    """What must be said beside the machine about its key; empty for nothing."""
    place = machine.status.identity or (identity_place(machine.status.tee) if machine.status.tee else "")
    return (NOTE,) if place == OPEN_DISK else ()
