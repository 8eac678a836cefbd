"""Where a machine differs from what was expected, register by register and event by event.

    findings = differences(appraisal, book, refused=True)

A policy says yes or no; this says what an operator should look at. The machine is compared with the image that came nearest
(`tuples`): for every register that policies of this kind of evidence look at, what was seen, what that image has and who says so.
Where a register differs, its events are walked in order and the first one that no accepted image knows is named, with the image
it belongs to if that image was approved once. A last line names the image.

* Comparisons never decide. While the policy is content, a difference is a warning.
* Only events that the signed registers confirm are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.values.measured import COMPARED, Compared, seen_values
from fastness.attestation.values.tuples import Candidate
from fastness.attestation.values.values import EVENT_PREFIX, Owner, ReferenceValues

MOST_EXPECTED: Final = 3
IMAGE_CHECK: Final = "approved image"
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


def differences(appraisal: Appraisal, book: ReferenceValues, *, refused: bool) -> list[Check]:
    """The comparisons of an appraisal, as checks."""
    values = seen_values(appraisal.tee, appraisal.claims)
    nearest = next(iter(book.candidates(appraisal.tee, values)), None)
    registers = COMPARED.get(appraisal.tee, ())
    checks = [
        _check(appraisal, compared, values[compared.name], book, nearest, refused=refused) for compared in registers
    ]
    if nearest is None:
        return checks
    notes = [
        owner.note for name in values if (owner := book.owner(name, values[name])) is not None and ";" in owner.note
    ]
    about = ". ".join(dict.fromkeys(note.partition("; ")[2] for note in notes))
    return [*checks, _image(nearest, registers, about, refused=refused)]


def nothing_published(tee: str, book: ReferenceValues) -> bool:
    """Whether no value for this kind of evidence is accepted: a refusal would say nothing about the machine."""
    return not any(book.query(compared.name) for compared in COMPARED.get(tee, ()))


def _check(
    appraisal: Appraisal,
    compared: Compared,
    value: str,
    book: ReferenceValues,
    nearest: Candidate | None,
    *,
    refused: bool,
) -> Check:
    if nearest is not None and compared.name in nearest.agreeing:
        owner = book.owner(compared.name, value)
        return Check(compared.title, Result.PASS, "ok", value, value, _source(owner), mandatory=False)
    result = Result.FAIL if refused else Result.WARN
    accepted = _accepted(book, compared.name, nearest)
    expected = _listed(accepted) or "nothing is published for it"
    published = bool(accepted or book.query(compared.name))
    code = "value-missing" if not value else "value-not-published" if not published else "value-differs"
    hint = _hint(appraisal, compared, value, book)
    if value and nearest is not None and _counts(book.owner(compared.name, value)):
        code = "value-of-another-image"
        hint += f" The other registers are those of {nearest.base.label}: values of two images do not mix."
    return Check(
        compared.title, result, code, value or "not in the evidence", expected, compared.name, hint, mandatory=False
    )


def _image(nearest: Candidate, registers: Sequence[Compared], about: str, *, refused: bool) -> Check:
    """Which image the machine shows as a whole, with its root and its build; or which came nearest and where it differs."""
    differing = [compared.title for compared in registers if compared.name not in nearest.agreeing]
    label = nearest.base.label
    if not differing:
        return Check(IMAGE_CHECK, Result.PASS, "ok", label, label, nearest.base.set, about, mandatory=False)
    return Check(
        IMAGE_CHECK, Result.FAIL if refused else Result.WARN, "image-differs",
        f"none as a whole; {label} came nearest, with {len(nearest.agreeing)} of {len(registers)} values",
        label, nearest.base.set, f"It differs in {', '.join(differing)}.", mandatory=False,
    )  # fmt: skip


def _hint(appraisal: Appraisal, compared: Compared, value: str, book: ReferenceValues) -> str:
    published = book.owner(compared.name, value)
    if published is not None:
        return f"The value is that of {_whose(published)}."
    event = _first_unpublished(appraisal, compared.register, book)
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


def _first_unpublished(appraisal: Appraisal, register: str, book: ReferenceValues) -> Mapping[str, Any] | None:
    expected = _texts(book.query(f"{EVENT_PREFIX}{register}"))
    if not register or not expected:
        return None
    return next((event for event in _events(appraisal, register) if str(event["digest"]) not in expected), None)


def _events(appraisal: Appraisal, register: str) -> Iterator[Mapping[str, Any]]:
    """The confirmed events of one register, in their order."""
    for event in (appraisal.claims.get(appraisal.tee) or {}).get(_EVENTS) or ():
        named = str(event.get("register_name", "")).lower().replace(" ", "").replace("_", "")
        # An event that no signed register confirms is whatever its sender wrote: naming it would send an operator after a ghost.
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


def _counts(owner: Owner | None) -> bool:
    return owner is not None and owner.counts


def _accepted(book: ReferenceValues, name: str, nearest: Candidate | None) -> list[str]:
    """What would be accepted beside the rest of the nearest image; where it does not say, what others have."""
    if nearest is None:
        return []
    own = nearest.entries(name)
    return [str(value) for value, _ in own] if own else _texts(book.query(name))


def _texts(claim: Any) -> list[str]:
    values: Iterable[Any] = claim if isinstance(claim, list) else () if claim is None else (claim,)
    return [str(value) for value in values]


def _listed(values: list[str]) -> str:
    more = len(values) - MOST_EXPECTED
    return " or ".join(values[:MOST_EXPECTED]) + (f" or one of {more} others" if more > 0 else "")
