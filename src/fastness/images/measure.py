"""What a machine will measure when it boots a unified kernel image from a boot option.

Computed from the file and the firmware's variables alone, SHA-256 bank. The formulas hold for EDK2 firmware, the versions of
systemd-stub in `stub` and Linux from `OLDEST_KERNEL` on; each was compared with the registers of a real boot.

| PCR | from |
| --- | --- |
| 2, 3, 6 | a separator: no option ROM, nothing else |
| 4 | that a boot option is called, a separator, the image; without Secure Boot also the kernel in it, which firmware loads |
| 5 | a separator, leaving boot services; no disk with a GPT was measured before |
| 7 | Secure Boot and its keys, a separator, with Secure Boot the key that let the image start |
| 9 | the EFI stub of the kernel: its command line and the initial file system as the boot stub hands it over |
| 11 | the boot stub: name and content of each section |
| 12, 14 | nothing: no load options beside the image, no credentials, no shim |

PCR 0 and 1 depend on firmware build and machine type and are taken from a boot. What cannot be known from the file is
refused (`Unpredictable`) or left out with a note, never guessed.
"""

from __future__ import annotations

from typing import Final

from fastness.crypto.silicon.registers import hashed
from fastness.formats.evidence.efi.signature_lists import GLOBAL
from fastness.formats.evidence.efi.variables import variable_data
from fastness.formats.evidence.pe.authenticode import covered
from fastness.formats.evidence.pe.image import PeImage
from fastness.formats.evidence.pe.uki import Uki, parse_uki
from fastness.images.authority import Authority, authority_of
from fastness.images.errors import NotBootable
from fastness.images.firmware import FirmwareVars
from fastness.images.measurement import BANK, MeasuredEvent, Measurement
from fastness.images.stub import StubRules, command_line, handed_initrd, rules_for

REGISTERS: Final = (2, 3, 4, 5, 6, 7, 9, 11, 12, 14)
OLDEST_KERNEL: Final = (6, 1)
_SEPARATOR: Final = bytes(4)


def measure_uki(uki: bytes, firmware: FirmwareVars, *, secure_boot: bool) -> Measurement:
    """Predict the registers of a boot; raises ImageError, Unpredictable or NotBootable."""
    parsed = parse_uki(uki)
    rules = rules_for(parsed)
    digest = authenticode(parsed.image)
    authority = _authority(parsed, firmware, digest) if secure_boot else None
    line = command_line(parsed, rules)
    old = parsed.kernel_version < OLDEST_KERNEL
    events = [
        *(_separator(pcr) for pcr in (2, 3, 6)),
        *_firmware_policy(firmware, secure_boot=secure_boot),
        *_boot_path(parsed, digest, secure_boot=secure_boot),
        *_left_boot_services(),
        *_authorities(authority),
        *_stub_sections(parsed, rules),
        *_kernel_events(line, handed_initrd(parsed, rules)),
    ]
    notes = [f"PCR 9 is not predicted: kernel {parsed.release} is older than 6.1"] if old else []
    return Measurement.of([pcr for pcr in REGISTERS if not (old and pcr == 9)], events, notes)


def authenticode(image: PeImage) -> bytes:
    """The hash of an image as firmware computes it."""
    return hashed(BANK, b"".join(covered(image)))


def _authority(uki: Uki, firmware: FirmwareVars, digest: bytes) -> Authority:
    if not firmware.owned:
        raise NotBootable(
            "setup-mode",
            "the variables hold no platform key (PK): this firmware cannot have Secure Boot on",
            "Give the variables of a machine with enrolled keys, or measure without Secure Boot.",
        )
    return authority_of(uki.image, digest, firmware)


def _separator(pcr: int) -> MeasuredEvent:
    return _event(pcr, "EV_SEPARATOR", _SEPARATOR, "firmware is done with this register", "Separator")


def _firmware_policy(firmware: FirmwareVars, *, secure_boot: bool) -> list[MeasuredEvent]:
    switch = (GLOBAL, "SecureBoot", b"\1" if secure_boot else b"\0")
    return [
        *(
            _event(
                7,
                "EV_EFI_VARIABLE_DRIVER_CONFIG",
                variable_data(vendor, name, data),
                f"variable {name}, {len(data)} bytes" if name != "SecureBoot" else f"Secure Boot is {_on(secure_boot)}",
                name if name == "SecureBoot" else name.capitalize(),
            )
            for vendor, name, data in (switch, *firmware.measured_keys())
        ),
        _separator(7),
    ]


def _boot_path(uki: Uki, digest: bytes, *, secure_boot: bool) -> list[MeasuredEvent]:
    application = "EV_EFI_BOOT_SERVICES_APPLICATION"
    events = [
        _event(4, "EV_EFI_ACTION", b"Calling EFI Application from Boot Option", "a boot option is called", "EfiCall"),
        _separator(4),
        MeasuredEvent(4, application, digest, "the unified kernel image", "Pcr4Uki"),
    ]
    # With Secure Boot on, the stub answers for the kernel itself, and firmware does not measure it a second time.
    if not secure_boot:
        inner = authenticode(uki.kernel)
        events.append(MeasuredEvent(4, application, inner, f"kernel {uki.release} in the image", "Pcr4UkiKernel"))
    return events


def _left_boot_services() -> list[MeasuredEvent]:
    return [
        _separator(5),
        _event(5, "EV_EFI_ACTION", b"Exit Boot Services Invocation", "boot services are left", "ExitInvocation"),
        _event(5, "EV_EFI_ACTION", b"Exit Boot Services Returned with Success", "they were left", "ExitSuccess"),
    ]


def _authorities(authority: Authority | None) -> list[MeasuredEvent]:
    if authority is None:
        return []
    data = variable_data(authority.vendor, authority.variable, authority.entry)
    return [_event(7, "EV_EFI_VARIABLE_AUTHORITY", data, authority.description, "UkiAuthority")]


def _stub_sections(uki: Uki, rules: StubRules) -> list[MeasuredEvent]:
    events = []
    for name in rules.measured:
        content = uki.sections.get(name)
        if content:
            title = name[1:].capitalize()
            events.append(_event(11, "EV_IPL", name.encode() + b"\0", f"name of section {name}", f"{title}Name"))
            events.append(_event(11, "EV_IPL", content, f"section {name}, {len(content)} bytes", f"{title}Content"))
    return events


def _kernel_events(line: str, initrd: bytes) -> list[MeasuredEvent]:
    options = line.encode("utf-16-le") + b"\0\0"
    events = [_event(9, "EV_EVENT_TAG", options, f"command line: {line[:200]}", "LoadOptions")]
    if initrd:
        description = f"initial file system, {len(initrd)} bytes"
        events.append(_event(9, "EV_EVENT_TAG", initrd, description, "Initrd"))
    return events


def _event(pcr: int, name: str, data: bytes, description: str, ident: str) -> MeasuredEvent:
    return MeasuredEvent(pcr, name, hashed(BANK, data), description, f"Pcr{pcr}{ident}")


def _on(value: bool) -> str:
    return "on" if value else "off"
