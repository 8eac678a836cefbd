"""Replaying an event log, and comparing the end with registers that hardware signed.

A log explains registers; it never vouches for itself. An event is verified when the register it extends is among the signed
ones and the replay ends in the signed value. All others stay in the list, marked unverified, and must not feed a decision.

* Every bank that the log has is replayed, as far as its hash exists here.
* EV_NO_ACTION extends nothing. One of them says from which locality the TPM was started, which is the first value of PCR 0.
* The data of an event is covered only where its digest is the hash of the data: `covers_data`.
* One register is the agent's: what it took from user-data (`protocol.user_data_event`) is shown as a check of its own. PCR 15 is
  shared with systemd, so a log that does not explain all of it is a finding and refuses nothing; the other registers refuse.
* Boot phases are extended behind what the log tells, in one register (`phases`): a log that ends in the value before them agrees.
* What a log of ordinary size says is remembered by its bytes; what is signed is compared each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from fastness.attestation.evidence.checks import Check, Findings, Question, Result
from fastness.attestation.evidence.phases import Phase, later_digests, phase_of, words_between
from fastness.crypto.silicon.registers import hash_of, replayable
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.eventlog.log import EV_NO_ACTION, EVENT_NAMES, EventLog, parse_log
from fastness.formats.evidence.tpm.algorithms import Hash
from fastness.protocol.user_data_event import Register, described

_LOCALITY: Final = b"StartupLocality\0"
# Registers of a dynamic launch begin with ones, so that zeros show that a launch took place (PC Client Platform TPM Profile).
_RESET_TO_ONES: Final = range(17, 23)
# Larger logs are replayed each time: the cache is bounded in entries, and a machine chooses the length of its log.
_REMEMBERED: Final = 64 * 1024
_NO_ACTION: Final = EVENT_NAMES[EV_NO_ACTION]
Registers = Mapping[int, bytes]


def replay(log: EventLog) -> dict[str, dict[int, bytes]]:
    """Bank to register to final value, for every bank whose hash exists here."""
    return {bank.name: _replay_bank(log, place, bank) for place, bank in enumerate(log.banks) if replayable(bank.name)}


def _replay_bank(log: EventLog, place: int, bank: Hash) -> dict[int, bytes]:
    values: dict[int, bytes] = {}
    hashed, zeros = hash_of(bank.name), bytes(bank.size)
    for event in log.events:
        if event.kind == EV_NO_ACTION:
            data = event.data
            # TCG_EfiStartupLocalityEvent (PC Client Platform Firmware Profile): a TPM that was started from locality 3 or 4 has
            # that number, and not zeros, in PCR 0.
            # Only ahead of the first extension: one in the middle of a log would undo what was measured before it.
            if data.startswith(_LOCALITY) and len(data) == len(_LOCALITY) + 1 and 0 not in values:
                values[0] = zeros[1:] + data[-1:]
            continue
        register = event.register
        values[register] = hashed(values.get(register, zeros) + event.values[place]).digest()
    return values


class _Replayed:
    """What a log says of one bank: where each register ends, and its events as claims show them."""

    __slots__ = ("_confirmed", "_events", "ends", "left_initrd", "runtime")

    def __init__(
        self, ends: dict[int, bytes], events: list[dict[str, Any]], runtime: tuple[str, ...], *, left_initrd: bool
    ) -> None:
        self.ends = ends
        self.runtime = runtime
        self.left_initrd = left_initrd
        self._events = events
        self._confirmed: frozenset[int] | None = None

    @classmethod
    def of(cls, data: bytes, bank: str, register: Register) -> _Replayed | None:
        """Read and replay a log; None when it has no such bank; raises EvidenceError."""
        log = parse_log(data)
        ends = replay(log).get(bank)
        if ends is None:
            return None
        left = _left_initrd(log, bank, register)
        return cls(ends, _claims(log, bank, register), _runtime(log, bank, register), left_initrd=left)

    def claims(self, agreeing: frozenset[int]) -> list[dict[str, Any]]:
        """The events, with those verified that extend registers whose end was signed."""
        if self._confirmed is None:
            made = self._events  # nobody else has them yet
        elif self._confirmed == agreeing:
            return list(self._events)
        else:
            made = [dict(claim) for claim in self._events]
        for claim in made:
            # EV_NO_ACTION extends nothing: whoever carries the log can add one, and it still ends in the signed value.
            claim["verified"] = claim["register"] in agreeing and claim["type"] != _NO_ACTION
        self._events, self._confirmed = made, agreeing
        return list(made)


# A machine that attests again brings the same log, and so does a fleet of one image.
remembered = lru_cache(maxsize=128)(_Replayed.of)


def _replayed(data: bytes, bank: str, register: Register) -> _Replayed | None:
    return remembered(data, bank, register) if len(data) <= _REMEMBERED else _Replayed.of(data, bank, register)


class LoggedPhase(NamedTuple):
    """The boot phase that a register shows, and its value before the words of phases were extended."""

    phase: str
    before: bytes


def logged_phase(data: bytes, bank: str, signed: Registers, register: Register) -> LoggedPhase | None:
    """The boot phase that a register shows behind what a log explains of it; None when that cannot be told."""
    quoted = signed.get(register.phase)
    try:
        replayed = _replayed(data, bank, register) if data else None
    except EvidenceError:
        return None
    if quoted is None or (data and replayed is None):
        return None
    start = _initial(register.phase, len(quoted), register)
    if replayed is not None:
        start = replayed.ends.get(register.phase, start)
    words = words_between(bank, start, quoted)
    if words is None:
        return None
    # A log that was made to end in the quoted value has the words themselves as events: the chain of digests leaves no other way.
    left = replayed is not None and replayed.left_initrd
    return LoggedPhase(str(Phase.SYSTEM if left else phase_of(words)), start)


def judge_log(
    findings: Findings, data: bytes, bank: str, signed: Registers, register: Register
) -> list[dict[str, Any]] | None:
    """Check a log against signed registers; returns its events for the claims, or None when it cannot be read."""
    try:
        replayed = _replayed(data, bank, register)
    except EvidenceError as error:
        findings.fail("event-log", "event-log-unreadable", str(error), hint=error.hint)
        return None
    if replayed is None:
        findings.fail(
            "event-log", "event-log-lacks-bank", f"the log has no bank {bank}", hint="Quote a bank that the log has."
        )
        return None
    # Nothing signed is needed up to here: parsing and replaying what a stranger sent proves nothing, it only costs time.
    ends = replayed.ends
    # By register: events of one that agrees count, though another one of the same log does not (pitfall 18).
    agreeing = {index for index, value in ends.items() if signed.get(index) == value}
    if (
        register.phase in ends
        and words_between(bank, ends[register.phase], signed.get(register.phase, b"")) is not None
    ):
        agreeing.add(register.phase)
    for index in sorted(set(ends) & set(signed)):
        agrees, end = index in agreeing, ends[index].hex()
        if index == register.runtime and any(replayed.runtime):
            _user_data(findings, replayed.runtime, register, agrees=agrees)
            # Refusing here would let a measurement by systemd, after the agent wrote its log, lock a good machine out.
            if not agrees and register.shared:
                continue
        findings.answer(_question(register, index), agrees, end, end if agrees else signed[index].hex())
    _unexplained(findings, ends, signed, register)
    return replayed.claims(frozenset(agreeing))


@lru_cache(maxsize=64)
def _question(register: Register, index: int) -> Question:
    """What is asked of each register that is both signed and extended."""
    return Question(
        f"event-log {register.name(index)}",
        "event-log-differs",
        "the signed register",
        "The log is incomplete, belongs to another boot, or was changed.",
    )


def _user_data(findings: Findings, events: tuple[str, ...], register: Register, *, agrees: bool) -> None:
    """What the machine took from its host, as far as the register confirms it: shown, never a reason to refuse."""
    texts, name = "; ".join(filter(None, events)), register.name(register.runtime)
    if not agrees:
        findings.warn(
            "user-data", "user-data-unconfirmed", texts, source=name,
            hint=f"{name} holds something else or more: the log is not of this boot, or others extended it later.",
        )  # fmt: skip
    elif not all(events):
        findings.warn(
            "user-data", "user-data-not-alone", texts, source=name, hint=f"Other events of the log are in {name}, too."
        )
    else:
        findings.checks.append(Check("user-data", Result.PASS, "ok", texts, "", name, mandatory=False))


def _runtime(log: EventLog, bank: str, register: Register) -> tuple[str, ...]:
    """The events of the register for user-data, in words; an empty word for one that is of somebody else."""
    place = next(at for at, entry in enumerate(log.banks) if entry.name == bank)
    events = [event for event in log.events if event.register == register.runtime and event.kind != EV_NO_ACTION]
    hashed = hash_of(bank)
    # The words count only where the digest that was extended is that of the words (pitfall 18).
    return tuple(
        described(event.data) if hashed(event.data).digest() == event.values[place] else "" for event in events
    )


def _left_initrd(log: EventLog, bank: str, register: Register) -> bool:
    """Whether the log itself says that the initrd was left."""
    place = next(at for at, entry in enumerate(log.banks) if entry.name == bank)
    later = later_digests(bank)
    return any(
        event.register == register.phase and event.kind != EV_NO_ACTION and event.values[place] in later
        for event in log.events
    )


def _unexplained(findings: Findings, ends: Registers, signed: Registers, register: Register) -> None:
    # Registers that nothing explains are a warning: values are compared with what was measured, not with what a log tells of it.
    silent = [
        register.name(index)
        for index, value in sorted(signed.items())
        if index not in ends and value != _initial(index, len(value), register)
    ]
    if silent:
        findings.warn("event-log coverage", "event-log-incomplete", f"no event explains {', '.join(silent)}")
    unsigned = sorted(set(ends) - set(signed))
    if unsigned:
        findings.warn(
            "event-log scope",
            "event-log-unverified",
            f"events of registers that were not signed: {', '.join(map(str, unsigned))}",
            hint="They are listed as unverified and count for nothing.",
        )


def _initial(index: int, size: int, register: Register) -> bytes:
    return b"\xff" * size if register.dynamic and index in _RESET_TO_ONES else bytes(size)


def _claims(log: EventLog, bank: str, register: Register) -> list[dict[str, Any]]:
    """The events; whether a register confirms them is not known here."""
    names = {index: register.name(index) for index in {event.register for event in log.events}}
    hashed, place = hash_of(bank), next(at for at, listed in enumerate(log.banks) if listed.name == bank)
    claims = []
    for number, event in enumerate(log.events):
        index, kind, digest = event.register, event.kind, event.values[place]
        claims.append(
            {
                "number": number,
                "register": index,
                "register_name": names[index],
                "type": EVENT_NAMES.get(kind) or f"{kind:#010x}",
                "digest": digest.hex(),
                "verified": False,
                # For many types the digest is of something else than the data (of an image that was loaded, say): the text beside
                # it is then the firmware's word at best, and the host's at worst, because the log passes through its hands.
                "covers_data": hashed(event.data).digest() == digest,
            }
        )
    return claims
