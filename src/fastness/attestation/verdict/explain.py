"""Why a machine stands as it does, and what to do about it.

    explained = explain(machine, machine_standing(...), verdict)
    explained.answer, explained.why, explained.actions

The outcome is the machine's standing, as every surface tells it. The verdict holds every check; this chooses what a person needs
first: the outcome in a sentence, the checks that decided it, and commands that change it. Nothing is looked up that the objects
do not say, so the page and the command line tell the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from fastness.attestation.verdict import init_data
from fastness.attestation.verdict.dispute import OVER_BOOT, OVER_CHIP, told_disputes
from fastness.attestation.verdict.machine_standing import NEVER, PROOF_EXPIRED, MachineStanding, State, identity_notes
from fastness.disks.reports import EXCHANGED, NOT_OPENED, PHASE, RECORD_OLDER, ROLLED_BACK
from fastness.disks.told import told_volumes
from fastness.kinds.fastness_dev.verdict import Check, Verdict
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine

Object = Mapping[str, Any]
_USER_DATA: Final = ("user-data", init_data.USER_DATA)
_UPDATE: Final = "Update the machine to an approved image and reboot it."
_APPROVE: Final = "fastness image approve IMAGE@sha256:… --uki FILE    # if this image should be trusted"
_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "value-differs": (_UPDATE, _APPROVE),
    "value-of-another-image": (
        "Reinstall the machine with one image: its registers are those of several, which nobody approved together.",
        "Where an update leaves machines so for a while: fastness image approve … --variant NAME=MANIFEST",
    ),
    "value-not-published": (_APPROVE,),
    "value-missing": ("Quote all registers that the policy looks at; see the how-to on images.",),
    "policy-denied": ("fastness policy test DIR    # try the policy on the claims of this verdict",),
    "policy-exceeded": (
        "Correct the policy that the check names, or switch it off: it ran too long or took too much memory.",
        "kubectl get events --field-selector reason=PolicyExceeded -A",
    ),
    "tcb-behind": ("Update the platform's firmware; the check above names the component and the advisories.",),
    "tcb-no-level": ("Update the platform's firmware: it is older than anything its vendor still speaks of.",),
    "debug-allowed": ("Start the machine without debug mode: its owner can read its memory.",),
    "collateral-missing": ("Let the control plane reach the vendor's service, or import its documents.",),
    "endorsement-missing": ("Let the control plane reach the vendor's service, or import its certificates.",),
    "event-log-differs": ("Send the log of this boot: it does not lead to the registers that were signed.",),
    "crl-expired": ("Renew the vendor's documents: fastness doctor says where they come from.",),
    "collateral-expired": ("Renew the vendor's documents: fastness doctor says where they come from.",),
    "nonce-differs": (
        "Reboot the machine: it answers with evidence that was made for another challenge.",
        "If it was not the machine, somebody replays what it sent once: fastness audit show --what refusal",
    ),
    "key-differs": ("The machine has a new key. Let it enrol again with a fresh ticket.",),
    ROLLED_BACK: (
        "Find out who put an old copy of the disk back; a snapshot of the virtual machine that was restored is one, too.",
        "fastness machine disk accept NAME VOLUME --reason …    # if that was you",
        "Otherwise replace the node: what it was told since that copy is gone from its disk.",
    ),
    RECORD_OLDER: (
        "The control plane was brought back from a backup that is older than the last boot of this machine. The disk says of "
        "when it is: compare that with when the machine booted last.",
        "fastness machine disk accept NAME VOLUME --reason …    # if that is right, and then",
        "fastness machine disk rekey NAME VOLUME                # which ends all copies",
        "Otherwise replace the node: its host may have put back a copy of the time between.",
    ),
    EXCHANGED: (
        "Put the disk back that the machine made, or replace the node.",
        "fastness machine disk accept NAME VOLUME --reason …    # if the other disk is meant",
    ),
    NOT_OPENED: (
        "Boot the machine from its own disk: its key was copied elsewhere, or its agent left the disk closed.",
        "Otherwise replace the node.",
    ),
    PHASE: (
        "Use an image whose agent measures that the initrd is left: `fastness agent leave-initrd` before the root is entered.",
        "Until then root on this machine could have the key of its disk again.",
    ),
    "user-data-refused": ("Start the machine with the user-data of its pool and nothing else: fastness userdata POOL",),
    "init-data-differs": ("Start the machine with the init data that it sends, or send the one it was started with.",),
}


@dataclass(frozen=True, slots=True)
class Unproved:
    """Something that was refused in the name of a machine and left no verdict, because anybody may have sent it."""

    time: str
    code: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The outcome, the checks that decided it, and what to do."""

    machine: str
    node: str
    pool: str
    answer: str
    standing: MachineStanding
    why: tuple[Check, ...]
    others: tuple[Check, ...]
    actions: tuple[str, ...]
    verdict: str = ""
    last_attested: str = ""
    unproved: tuple[Unproved, ...] = ()
    disputes: tuple[str, ...] = ()
    user_data: str = ""
    """What the machine took from its host, as the verdict has it; empty where nothing was measured."""
    notes: tuple[str, ...] = ()
    disks: tuple[str, ...] = ()
    """A line for each encrypted volume, or why there is none."""

    @property
    def attested(self) -> bool:
        """Whether the machine proved what it booted."""
        return self.standing.proved

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON."""
        return {
            "machine": self.machine, "node": self.node, "pool": self.pool, "attested": self.attested, "answer": self.answer,
            "standing": str(self.standing.state), "reason": self.standing.reason, "simulated": self.standing.simulated,
            "verdict": self.verdict, "lastAttested": self.last_attested, "userData": self.user_data,
            "why": [_json(check) for check in self.why], "actions": list(self.actions),
            "unproved": [{"time": entry.time, "code": entry.code} for entry in self.unproved], "disputes": list(self.disputes),
            "notes": list(self.notes), "disks": list(self.disks),
        }  # fmt: skip


def unproved_of(machine: Object, entries: Iterable[Object]) -> list[Unproved]:
    """Among refusals on the record, those that left no verdict since the machine last stood well."""
    since = str((machine.get("status") or {}).get("lastAttested", ""))
    return [
        Unproved(str(entry["time"]), str((entry.get("detail") or {}).get("code", "")))
        for entry in entries
        # Without a verdict nothing was proved: anybody may have sent it in the machine's name, so it is shown apart and decides
        # nothing.
        if entry.get("what") == "refusal" and not entry.get("verdict") and str(entry["time"]) > since
    ]


def explain(
    machine: Object, standing: MachineStanding, verdict: Object | None, unproved: Sequence[Unproved] = ()
) -> Explanation:
    """Explain how a Machine stands by its last Verdict, and by what was refused in its name since; of each code the last."""
    machine_view = view(machine, Machine)
    judged = view(verdict, Verdict) if verdict is not None else None
    checks = judged.spec.checks if judged else ()
    # A warning decides where the policy refused for its sake: then the verdict has its code.
    reason = judged.spec.reason if judged else ""
    why = tuple(
        check
        for check in checks
        if check.code != "ok"
        and (check.result in ("Fail", "NotAssessed") or (check.result == "Warn" and check.code == reason))
    )
    answer, actions = _answer(machine_view, standing, judged)
    last = tuple({entry.code: entry for entry in unproved}.values())
    decided = standing.state in (State.REVOKED, State.WAITING)
    return Explanation(
        machine=machine_view.metadata.name,
        node=machine_view.status.node_name,
        pool=machine_view.status.pool,
        answer=_still(answer, machine_view, last) if standing.proved and last else answer,
        standing=standing,
        why=why,
        others=tuple(check for check in checks if check not in why),
        actions=(*(actions if decided else (*actions, *_advice([*why, *last]))), *_about_disputes(machine_view)),
        verdict=judged.metadata.name if judged else "",
        last_attested=machine_view.status.last_attested or "",
        unproved=last,
        disputes=told_disputes(machine_view),
        user_data="; ".join(_taken(check) for check in checks if check.name in _USER_DATA and check.result != "Fail"),
        notes=identity_notes(machine_view),
        disks=told_volumes(machine_view),
    )


def _answer(machine: Machine, standing: MachineStanding, verdict: Verdict | None) -> tuple[str, tuple[str, ...]]:
    name = machine.metadata.name
    match standing.state:
        case State.PROVED:
            by = f" ({verdict.spec.evidence.type})" if verdict is not None else ""
            return f"is attested{by}", ()
        case State.WAITING if standing.reason == CHIP_BARRED:
            return f"waits for approval: {standing.message}", (f"fastness machine approve {name}",)
        case State.WAITING if standing.reason != NEVER:
            return "waits for approval", (f"fastness machine approve {name}",)
        case State.WAITING:
            look = "Look at the machine's console: its agent says what it waits for."
            return "has enrolled and not attested yet", (look,)
        case State.REVOKED if standing.reason == "Quarantined":
            back = f"fastness machine release {name}    # to trust it again"
            return "is quarantined: nothing is released to it", (back,)
        case State.REVOKED:
            return "is revoked: a Distrust names it, another machine took its place, or somebody withdrew it", (
                "fastness distrust list    # ending the one that names it brings the machine back",
                "Otherwise let the machine enrol anew.",
            )
        case State.OVERRIDDEN:
            return f"is not attested: it was {standing.message}", (
                "fastness break-glass end    # machines then have to prove themselves again",
            )
        case State.STALE:
            return _stale(standing)
        case State.REFUSED:
            # Verdicts end, and not everybody may read them: the outcome stands on the Machine.
            code = verdict.spec.reason if verdict is not None else ""
            return f"is refused: {code or standing.reason}", ()
    assert_never(standing.state)


def _about_disputes(machine: Machine) -> tuple[str, ...]:
    """What to do about evidence in the machine's name that is not its own."""
    if not machine.status.disputes:
        return ()
    name = machine.metadata.name
    chips = [entry.shows for entry in machine.status.disputes if entry.over == OVER_CHIP]
    moved = f"fastness machine approve-chip {name} {chips[-1]} --reason …    # if the machine was moved there"
    theft = "Otherwise somebody else holds the machine's key: quarantine it, and let it enrol anew."
    copied = (
        "Somebody runs a copy of the machine, or put an old state of it back: quarantine it, and let it enrol anew."
    )
    return (
        *((moved, theft) if chips else ()),
        *((copied,) if any(entry.over == OVER_BOOT for entry in machine.status.disputes) else ()),
        f"fastness machine settle {name} --reason …    # when you have looked at it",
    )


def _stale(standing: MachineStanding) -> tuple[str, tuple[str, ...]]:
    """It proved something once, and that counts no more."""
    again = "Look whether the machine runs and reaches the broker: it proves itself again as soon as it can."
    if standing.reason == PROOF_EXPIRED:
        return "is no longer attested: its last proof is too old", (again,)
    return f"is not attested: {standing.message}", (again,)


def _still(answer: str, machine: Machine, refused: Sequence[Unproved]) -> str:
    """Attested, and yet not well: what it was attested by does not last, and what came after was refused."""
    until = f", until {machine.status.attested_until}" if machine.status.attested_until else ""
    codes = ", ".join(entry.code for entry in refused)
    return f"{answer.replace('is', 'is still', 1)} by its last proof{until}; newer evidence in its name is refused: {codes}"


def _advice(why: Sequence[Check | Unproved]) -> tuple[str, ...]:
    """What helps, most specific first; the policy's own refusal is only a consequence where a value differs."""
    codes = list(dict.fromkeys(check.code for check in why))
    if len(codes) > 1:
        codes = [code for code in codes if code != "policy-denied"]
    return tuple(dict.fromkeys(action for code in codes for action in _ACTIONS.get(code, ())))


def _taken(check: Check) -> str:
    doubt = "" if check.result == "Pass" else f", {check.code}"
    return f"{check.seen} ({check.source}{doubt})"


def _json(check: Check) -> dict[str, Any]:
    return {
        "name": check.name, "result": check.result, "code": check.code, "seen": check.seen, "expected": check.expected,
        "source": check.source, "hint": check.hint,
    }  # fmt: skip
