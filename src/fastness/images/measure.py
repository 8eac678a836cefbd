"""What a machine will measure when it boots a unified kernel image from a boot option, by itself or through systemd-boot.

    predict(BootChain(uki, loader, gpt), firmware, secure_boot=False) -> Measurement

Computed from the files and the firmware's variables alone, SHA-256 bank. The formulas hold for EDK2 firmware, the versions of
systemd-stub in `stub` and of systemd-boot in `loader`, and Linux from `OLDEST_KERNEL` on; each was compared with the registers
of a real boot.

| PCR | from |
| --- | --- |
| 2, 3, 6 | a separator: no option ROM, nothing else |
| 4 | that a boot option is called, a separator, the boot loader if there is one, the image; without Secure Boot its kernel, too |
| 5 | a separator, the partition table of the disk where it has a GPT, leaving boot services |
| 7 | Secure Boot and its keys, a separator, with Secure Boot each key that let something start, once |
| 9 | the EFI stub of the kernel: its command line and the initial file system as the boot stub hands it over |
| 11 | the boot stub: name and content of each section |
| 12 | the load options that systemd-boot passes, measured by it and, without Secure Boot, by the boot stub again; else nothing |
| 14 | nothing: no shim |

PCR 0 and 1 depend on firmware build and machine type and are taken from a boot. What cannot be known from the file is
refused (`Unpredictable`) or left out with a note, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fastness.crypto.silicon.registers import hashed
from fastness.formats.evidence.efi.gpt import Gpt
from fastness.formats.evidence.efi.signature_lists import GLOBAL
from fastness.formats.evidence.efi.variables import variable_data
from fastness.formats.evidence.pe.authenticode import covered
from fastness.formats.evidence.pe.image import PeImage
from fastness.formats.evidence.pe.loader import Loader, parse_loader
from fastness.formats.evidence.pe.uki import Uki, parse_uki
from fastness.images.authority import Authority, authority_of
from fastness.images.errors import NotBootable
from fastness.images.firmware import FirmwareVars
from fastness.images.loader import passed_line
from fastness.images.measurement import BANK, MeasuredEvent, Measurement
from fastness.images.stub import StubRules, command_line, handed_initrd, rules_for

REGISTERS: Final = (2, 3, 4, 5, 6, 7, 9, 11, 12, 14)
OLDEST_KERNEL: Final = (6, 1)
_SEPARATOR: Final = bytes(4)


class Disk(Enum):
    """A disk without a partition table, and one that is not known: identifiers of partitions differ from machine to machine."""

    BARE = "bare"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BootChain:
    """What a machine boots: the image, the systemd-boot that firmware starts before it, the partition table of their disk.

    Empty bytes are a machine whose boot option is the image itself. Where nobody knows the disk, PCR 5 is not predicted.
    """

    uki: bytes
    loader: bytes = b""
    disk: Gpt | Disk = Disk.BARE


def measure_uki(uki: bytes, firmware: FirmwareVars, *, secure_boot: bool) -> Measurement:
    """Predict the registers of a boot of the image alone; raises ImageError, Unpredictable or NotBootable."""
    return predict(BootChain(uki), firmware, secure_boot=secure_boot)


def predict(chain: BootChain, firmware: FirmwareVars, *, secure_boot: bool) -> Measurement:
    """Predict the registers of a boot; raises ImageError, Unpredictable or NotBootable."""
    uki = parse_uki(chain.uki)
    loader = parse_loader(chain.loader) if chain.loader else None
    rules = rules_for(uki)
    passed = passed_line(loader, uki) if loader else ""
    started = [loader.image, uki.image] if loader else [uki.image]
    authorities = _allowed(started, firmware) if secure_boot else []
    events = [
        *(_separator(pcr) for pcr in (2, 3, 6)),
        *_firmware_policy(firmware, secure_boot=secure_boot),
        *_boot_path(uki, loader, secure_boot=secure_boot),
        *_disk_and_leaving(chain.disk),
        *_authorities(authorities),
        *_stub_sections(uki, rules),
        *_passed_options(passed, times=1 if secure_boot else 2),
        *_kernel_events(command_line(uki, rules), handed_initrd(uki, rules)),
    ]
    unknown = _not_predicted(uki, chain.disk)
    return Measurement.of([pcr for pcr in REGISTERS if pcr not in unknown], events, list(unknown.values()))


def _not_predicted(uki: Uki, disk: Gpt | Disk) -> dict[int, str]:
    """Registers that the files do not decide, each with the reason."""
    notes = {}
    if uki.kernel_version < OLDEST_KERNEL:
        notes[9] = f"PCR 9 is not predicted: kernel {uki.release} is older than 6.1"
    if disk is Disk.UNKNOWN:
        notes[5] = "PCR 5 is not predicted: the partition table of the disk is not known"
    return notes


def authenticode(image: PeImage) -> bytes:
    """The hash of an image as firmware computes it."""
    return hashed(BANK, b"".join(covered(image)))


def _allowed(started: Sequence[PeImage], firmware: FirmwareVars) -> list[Authority]:
    """Why firmware lets each of these start; raises NotBootable."""
    if not firmware.owned:
        raise NotBootable(
            "setup-mode",
            "the variables hold no platform key (PK): this firmware cannot have Secure Boot on",
            "Give the variables of a machine with enrolled keys, or measure without Secure Boot.",
        )
    return [authority_of(image, authenticode(image), firmware) for image in started]


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


def _boot_path(uki: Uki, loader: Loader | None, *, secure_boot: bool) -> list[MeasuredEvent]:
    application = "EV_EFI_BOOT_SERVICES_APPLICATION"
    events = [
        _event(4, "EV_EFI_ACTION", b"Calling EFI Application from Boot Option", "a boot option is called", "EfiCall"),
        _separator(4),
    ]
    if loader:
        text = f"the boot loader, systemd-boot {loader.name}"
        events.append(MeasuredEvent(4, application, authenticode(loader.image), text, "Pcr4Loader"))
    events.append(MeasuredEvent(4, application, authenticode(uki.image), "the unified kernel image", "Pcr4Uki"))
    # With Secure Boot on, the stub answers for the kernel itself, and firmware does not measure it a second time.
    if not secure_boot:
        inner = authenticode(uki.kernel)
        events.append(MeasuredEvent(4, application, inner, f"kernel {uki.release} in the image", "Pcr4UkiKernel"))
    return events


def _disk_and_leaving(disk: Gpt | Disk) -> list[MeasuredEvent]:
    gpt = disk if isinstance(disk, Gpt) else None
    table = f"the partition table of the disk, {len(gpt.used)} partitions" if gpt else ""
    return [
        _separator(5),
        *([_event(5, "EV_EFI_GPT_EVENT", gpt.measured, table, "Gpt")] if gpt else ()),
        _event(5, "EV_EFI_ACTION", b"Exit Boot Services Invocation", "boot services are left", "ExitInvocation"),
        _event(5, "EV_EFI_ACTION", b"Exit Boot Services Returned with Success", "they were left", "ExitSuccess"),
    ]


def _authorities(authorities: Sequence[Authority]) -> list[MeasuredEvent]:
    """An entry that lets several programs start is measured when the first of them does."""
    measured: dict[bytes, str] = {}
    for each in authorities:
        measured.setdefault(variable_data(each.vendor, each.variable, each.entry), each.description)
    return [
        _event(7, "EV_EFI_VARIABLE_AUTHORITY", data, text, "UkiAuthority" if number == 0 else f"Authority{number}")
        for number, (data, text) in enumerate(measured.items())
    ]


def _passed_options(line: str, *, times: int) -> list[MeasuredEvent]:
    """The command line that the boot loader passes: measured by it, and by a boot stub that takes it."""
    options, who = line.encode("utf-16-le") + b"\0\0", ("the boot loader", "the boot stub")
    return [
        _event(12, "EV_IPL", options, f"command line passed by {who[turn]}: {line[:200]}", f"Options{turn}")
        for turn in range(times if line else 0)
    ]


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
