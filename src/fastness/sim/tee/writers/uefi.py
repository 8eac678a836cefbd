"""What UEFI firmware measures on the way to a unified kernel image: events, in order, with data as real firmware writes it.

    firmware ─ PCR 0 │ boot variables ─ 1 │ Secure Boot variables ─ 7 │ shim, boot loader, kernel image ─ 4
    │ MOK lists ─ 14 │ sections of the kernel image ─ 11 │ options from outside ─ 12 │ command line and initrd ─ 9

TCG PC Client Platform Firmware Profile §10 for the structures; order and kinds are those that OVMF, shim and systemd-stub 252
log, compared with the log of a real boot. Confidential VMs extend the same events into other registers:
`cc_events` knows which (UEFI 2.10 §38.4.1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from fastness.formats.evidence.efi.signature_lists import GLOBAL, IMAGE_SECURITY, guid
from fastness.formats.evidence.efi.variables import variable_data
from fastness.sim.tee.writers.eventlog import Measured

SEPARATOR: Final = 0x00000004
EVENT_TAG: Final = 0x00000006
CRTM_VERSION: Final = 0x00000008
IPL: Final = 0x0000000D
VARIABLE_CONFIG: Final = 0x80000001
VARIABLE_BOOT: Final = 0x80000002
APPLICATION: Final = 0x80000003
ACTION: Final = 0x80000007
FIRMWARE_BLOB: Final = 0x80000008
FIRMWARE_BLOB2: Final = 0x8000000A
HANDOFF_TABLES2: Final = 0x8000000B
AUTHORITY: Final = 0x800000E0

SHIM: Final = guid("605dab50-e046-4300-abb6-3dd810dd8b23")
# What systemd-stub 252 measures, in its order.
SECTIONS: Final = (".linux", ".osrel", ".cmdline", ".initrd", ".splash", ".dtb", ".pcrpkey")
_HOB: Final = guid("93bb96af-b9f2-4eb8-9462-e0ba74564236")
_TAG_LOAD_OPTIONS: Final = 0x8F3B22ED
_TAG_INITRD: Final = 0x8F3B22EC
# Firmware maps PCR numbers to registers of the TEE; PCR 0 is the launch measurement, which the TEE itself makes.
_CC_REGISTER: Final[Mapping[int, int]] = {
    1: 1, 7: 1, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, **dict.fromkeys(range(8, 16), 3),
}  # fmt: skip


@dataclass(frozen=True)
class Loader:
    """A program on the way to the kernel."""

    what: str
    path: str
    content: bytes


class Measurable(Protocol):
    """What firmware sees of an image; `sim.tee.images.BootImage` is one."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def version(self) -> str:
        """Which one of these."""

    @property
    def firmware(self) -> bytes:
        """The firmware itself."""

    @property
    def firmware_version(self) -> str:
        """What it calls itself."""

    @property
    def loaders(self) -> tuple[Loader, ...]:
        """The programs before the kernel image, in order."""

    @property
    def variables(self) -> Mapping[str, bytes]:
        """Variables of UEFI by name."""

    @property
    def secure_boot(self) -> bool:
        """Whether Secure Boot is on."""

    @property
    def sbat_level(self) -> str:
        """Which shims are revoked."""

    @property
    def load_options(self) -> str:
        """Options from outside the kernel image."""

    @property
    def kernel_image(self) -> bytes:
        """The unified kernel image."""

    @property
    def booted_with(self) -> str:
        """The command line that the kernel gets."""

    def section(self, name: str) -> bytes:
        """A section of the kernel image; empty when it has none of that name."""


def image_load(path: str, size: int) -> bytes:
    """UEFI_IMAGE_LOAD_EVENT with a device path to a file."""
    text = path.encode("utf-16-le") + b"\0\0"
    device = struct.pack("<BBH", 4, 4, 4 + len(text)) + text + struct.pack("<BBH", 0x7F, 0xFF, 4)
    return struct.pack("<QQQQ", 0x7E00_0000, size, 0, len(device)) + device


def tagged(number: int, text: bytes) -> bytes:
    """TCG_PCClientTaggedEvent."""
    return struct.pack("<II", number, len(text)) + text


def pcr_events(image: Measurable) -> tuple[Measured, ...]:
    """Everything that a machine with a TPM measures when it boots the image."""
    parts = (_firmware, _secure_boot, _boot_option, _loaders, _kernel_image, _kernel)
    return tuple(event for part in parts for event in part(image))


def cc_events(image: Measurable) -> tuple[Measured, ...]:
    """The same for a confidential VM: SHA-384 registers 1 to 4 instead of PCRs, and separators in the first of them only."""
    hob, variables = image.firmware_version.encode() + b" hand-off", bytes(4096)
    table = b"\x09TdxTable\0" + struct.pack("<Q16sQ", 1, _HOB, 0x80_9000)
    volume = b"\x29Fv(XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX)\0" + struct.pack("<QQ", 0xFFC0_0000, len(variables))
    head = (
        Measured(1, HANDOFF_TABLES2, hob, table, "what the host handed to the firmware"),
        Measured(1, FIRMWARE_BLOB2, variables, volume, "variables of the firmware"),
    )
    mapped = (
        Measured(_CC_REGISTER[event.register], event.kind, event.subject, event.data, event.what)
        for event in pcr_events(image)
        if event.register in _CC_REGISTER and (event.kind != SEPARATOR or event.register in (1, 7))
    )
    return (*head, *mapped)


def _measured(register: int, kind: int, data: bytes, what: str) -> Measured:
    """A measurement whose digest covers the data of the event."""
    return Measured(register, kind, data, data, what)


def _firmware(image: Measurable) -> Iterator[Measured]:
    version = image.firmware_version.encode("utf-16-le") + b"\0\0"
    yield _measured(0, CRTM_VERSION, version, "firmware version")
    place = struct.pack("<QQ", (1 << 32) - len(image.firmware), len(image.firmware))
    yield Measured(0, FIRMWARE_BLOB, image.firmware, place, "firmware")


def _secure_boot(image: Measurable) -> Iterator[Measured]:
    state = bytes((image.secure_boot,))
    yield _measured(7, VARIABLE_CONFIG, variable_data(GLOBAL, "SecureBoot", state), "Secure Boot state")
    for vendor, name in ((GLOBAL, "PK"), (GLOBAL, "KEK"), (IMAGE_SECURITY, "db"), (IMAGE_SECURITY, "dbx")):
        yield _measured(7, VARIABLE_CONFIG, variable_data(vendor, name, image.variables.get(name, b"")), name)
    yield _measured(7, SEPARATOR, bytes(4), "end of the Secure Boot variables")


def _boot_option(image: Measurable) -> Iterator[Measured]:
    option = struct.pack("<IH", 1, 0) + image.name.encode("utf-16-le") + b"\0\0"
    for name, value in (("BootOrder", b"\0\0"), ("Boot0000", option)):
        # Of this kind of event the digest covers the value alone.
        yield Measured(1, VARIABLE_BOOT, value, variable_data(GLOBAL, name, value), name)
    yield _measured(4, ACTION, b"Calling EFI Application from Boot Option", "start of the boot option")
    for register in range(7):
        yield _measured(register, SEPARATOR, bytes(4), "end of firmware")
    if image.secure_boot:
        signer = image.variables.get("db", b"")
        yield _measured(7, AUTHORITY, variable_data(IMAGE_SECURITY, "db", signer), "who signed what firmware started")


def _loaders(image: Measurable) -> Iterator[Measured]:
    for number, loader in enumerate(image.loaders):
        yield Measured(4, APPLICATION, loader.content, image_load(loader.path, len(loader.content)), loader.what)
        if number == 0:
            yield from _shim(image)


def _shim(image: Measurable) -> Iterator[Measured]:
    level = variable_data(SHIM, "SbatLevel", image.sbat_level.encode())
    for name in ("MokList", "MokListX", "MokListTrusted"):
        if name == "MokListTrusted" and image.secure_boot:
            yield _measured(7, AUTHORITY, level, "SBAT level")
        yield Measured(14, IPL, image.variables.get(name, b""), name.encode() + b"\0", name)


def _kernel_image(image: Measurable) -> Iterator[Measured]:
    path, content = f"\\EFI\\Linux\\{image.name}-{image.version}.efi", image.kernel_image
    yield Measured(4, APPLICATION, content, image_load(path, len(content)), "kernel image")
    if image.load_options:
        yield _measured(12, IPL, _wide(image.load_options), "options from outside the image")
    for name in SECTIONS:
        if section := image.section(name):
            yield Measured(11, IPL, name.encode() + b"\0", _wide(name), f"name of section {name}")
            yield Measured(11, IPL, section, _wide(name), f"section {name}")
    # With Secure Boot on, the stub answers for the kernel itself, and firmware does not see it.
    if not image.secure_boot:
        kernel = image.section(".linux")
        yield Measured(4, APPLICATION, kernel, image_load("\\kernel", len(kernel)), "kernel in the image")


def _kernel(image: Measurable) -> Iterator[Measured]:
    options, initrd = tagged(_TAG_LOAD_OPTIONS, b"LOADED_IMAGE::LoadOptions\0"), tagged(_TAG_INITRD, b"Linux initrd\0")
    yield Measured(9, EVENT_TAG, _wide(image.booted_with), options, "command line")
    yield Measured(9, EVENT_TAG, image.section(".initrd"), initrd, "initial RAM disk")
    for text in ("Exit Boot Services Invocation", "Exit Boot Services Returned with Success"):
        yield _measured(5, ACTION, text.encode(), "hand-over to the kernel")


def _wide(text: str) -> bytes:
    return text.encode("utf-16-le") + b"\0\0"
