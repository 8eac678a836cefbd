"""Where a machine differs from what was expected, register by register and event by event.

    findings = differences(appraisal, book, refused=True)

A policy says yes or no; this says what an operator should look at. For every register that policies of this kind of
evidence look at: what was seen, what would have been accepted and who says so. Where a register differs, its events are
walked in order and the first one that no accepted image knows is named, with the image it belongs to if that image was
approved once.

* Comparisons never decide. While the policy is content, a difference is a warning.
* Only events that the signed registers confirm are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.domain.attestation.checks import Appraisal, Check, Result
from fastness.domain.attestation.values import EVENT_PREFIX, Owner, ValueBook

MOST_EXPECTED: Final = 3
_EVENTS: Final = "uefi_event_logs"
_PLAINLY: Final[Mapping[str, str]] = {
    "EV_EFI_BOOT_SERVICES_APPLICATION": "a program that was started: boot loader or kernel image",
    "EV_EFI_BOOT_SERVICES_DRIVER": "a driver of the firmware",
    "EV_EFI_RUNTIME_SERVICES_DRIVER": "a driver of the firmware",
    "EV_EFI_VARIABLE_DRIVER_CONFIG": "a Secure Boot variable",
    "EV_EFI_VARIABLE_AUTHORITY": "the certificate that a program was checked with",
    "EV_EFI_VARIABLE_BOOT": "a boot option",
    "EV_EFI_VARIABLE_BOOT2": "a boot option",
    "EV_EFI_ACTION": "a step of the firmware",
    "EV_EFI_PLATFORM_FIRMWARE_BLOB": "firmware",
    "EV_EFI_PLATFORM_FIRMWARE_BLOB2": "firmware",
    "EV_EVENT_TAG": "the command line or the initial disk",
    "EV_IPL": "a part of the kernel image or of the boot loader's configuration",
    "EV_SEPARATOR": "the end of a phase",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured value: its name in policies, where its claim is, what people call it, and the register of its events."""

    name: str
    claim: tuple[str, ...]
    title: str
    register: str = ""


def _pcr(number: int, what: str) -> Compared:
    return Compared(f"tpm_pcr{number}", ("tpm", f"pcr{number:02d}"), f"PCR {number} ({what})", f"pcr{number}")


def _rtmr(number: int, what: str) -> Compared:
    return Compared(
        f"rtmr_{number}", ("tdx", "quote", "body", f"rtmr_{number}"), f"RTMR {number} ({what})", f"rtmr{number}"
    )


COMPARED: Final[Mapping[str, tuple[Compared, ...]]] = {
    "tpm": (
        _pcr(4, "boot loader and kernel"),
        _pcr(7, "Secure Boot"),
        _pcr(11, "unified kernel image"),
        _pcr(12, "command line and credentials"),
        _pcr(14, "owner's keys"),
    ),
    "snp": (Compared("snp_launch_measurement", ("snp", "measurement"), "launch measurement"),),
    "tdx": (
        Compared("mr_td", ("tdx", "quote", "body", "mr_td"), "MRTD (firmware)"),
        _rtmr(0, "firmware configuration"),
        _rtmr(1, "boot loader and kernel"),
        _rtmr(2, "command line and initial disk"),
    ),
}


def differences(appraisal: Appraisal, book: ValueBook, *, refused: bool) -> list[Check]:
    """The comparisons of an appraisal, as checks."""
    return [_check(appraisal, one, book, refused=refused) for one in COMPARED.get(appraisal.tee, ())]


def nothing_published(tee: str, book: ValueBook) -> bool:
    """Whether no value for this kind of evidence is accepted: a refusal would say nothing about the machine."""
    return not any(book.query(one.name) for one in COMPARED.get(tee, ()))


def _check(appraisal: Appraisal, compared: Compared, book: ValueBook, *, refused: bool) -> Check:
    seen = _claim(appraisal.claims, compared.claim)
    accepted = _accepted(book.query(compared.name))
    if seen and seen in accepted:
        owner = book.owner(compared.name, seen)
        return Check(compared.title, Result.PASS, "ok", seen, seen, _source(owner), mandatory=False)
    result = Result.FAIL if refused else Result.WARN
    expected = _listed(accepted) or "nothing is published for it"
    code = "value-missing" if not seen else "value-differs" if accepted else "value-not-published"
    hint = _hint(appraisal, compared, seen, book)
    return Check(
        compared.title, result, code, seen or "not in the evidence", expected, compared.name, hint, mandatory=False
    )


def _hint(appraisal: Appraisal, compared: Compared, seen: str, book: ValueBook) -> str:
    known = book.owner(compared.name, seen)
    if known is not None:
        return f"The value is that of {_whose(known)}."
    event = _first_stranger(appraisal, compared.register, book)
    if event is None:
        return "No image with this value was ever approved here."
    text = f"The first event that no approved image has is number {event['number']}: {event['type']}"
    plainly = _PLAINLY.get(str(event["type"]), "")
    text += f", {plainly}" if plainly else ""
    owner = book.owner(f"{EVENT_PREFIX}{compared.register}", str(event["digest"]))
    return (
        f"{text}. Its digest is that of {_whose(owner)}."
        if owner
        else f"{text}. No image that was ever approved has it."
    )


def _first_stranger(appraisal: Appraisal, register: str, book: ValueBook) -> Mapping[str, Any] | None:
    expected = _accepted(book.query(f"{EVENT_PREFIX}{register}"))
    if not register or not expected:
        return None
    return next((event for event in _events(appraisal, register) if str(event["digest"]) not in expected), None)


def _events(appraisal: Appraisal, register: str) -> Iterator[Mapping[str, Any]]:
    """The confirmed events of one register, in their order."""
    for event in (appraisal.claims.get(appraisal.tee) or {}).get(_EVENTS) or ():
        named = str(event.get("register_name", "")).lower().replace(" ", "").replace("_", "")
        if named == register and event.get("verified"):
            yield event


def _whose(owner: Owner) -> str:
    who = owner.image or f"the set {owner.set}"
    note = f" ({owner.note})" if owner.note else ""
    if owner.counts:
        return f"{who}{note}, which is approved"
    when = f" on {owner.since[:10]}" if owner.since else ""
    why = f": {owner.reason}" if owner.reason else ""
    return f"{who}{note}, whose approval ended{when}{why}"


def _source(owner: Owner | None) -> str:
    return (owner.image or owner.set) if owner else ""


def _accepted(found: Any) -> list[str]:
    values: Iterable[Any] = found if isinstance(found, list) else () if found is None else (found,)
    return [str(value) for value in values]


def _listed(values: list[str]) -> str:
    more = len(values) - MOST_EXPECTED
    return " or ".join(values[:MOST_EXPECTED]) + (f" or one of {more} others" if more > 0 else "")


def _claim(claims: Mapping[str, Any], path: tuple[str, ...]) -> str:
    found: Any = claims
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""
