"""What a machine boots, and the values that it should measure.

    image = default_image()
    changed(image, command_line=image.command_line + " debug")
    image.reference_values("tpm")          # entries of ReferenceValueSet.spec.values
    image.manifest()                       # what an ApprovedImage carries: the values of all three TEEs

A BootImage is a description: firmware, Secure Boot variables, boot loaders, sections of a unified kernel image. Registers, event
logs and launch measurements follow from it by the rules of `uefi` and `launch`, and are worked out once per image, so that a
thousand machines that boot the same image share them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from fastness.attestation.values.from_images import values_of_measurement
from fastness.attestation.values.values import EVENT_PREFIX
from fastness.crypto.silicon.registers import hashed
from fastness.formats.evidence.eventlog.log import EVENT_NAMES
from fastness.images.measurement import MeasuredEvent, Measurement
from fastness.sim.tee.firmware import CURRENT_TCB, XFAM
from fastness.sim.tee.writers import uefi
from fastness.sim.tee.writers.eventlog import Measured, replayed, write_log
from fastness.sim.tee.writers.launch import PAGE, kernel_hashes, mr_td, snp_launch_digest, whole_pages
from fastness.sim.tee.writers.uefi import Loader

PCRS: Final = 24
RTMRS: Final = 4
LOG_BANKS: Final = ("sha256", "sha384")
# What an image decides; registers 0, 1 and 5 belong to the firmware and the disk of the single machine.
TPM_REFERENCES: Final = (2, 3, 4, 6, 7, 9, 11, 12, 14)
_ONES: Final = range(17, 23)
Value = dict[str, Any]


@dataclass(frozen=True)
class BootImage:
    """An operating system image with the firmware that starts it."""

    name: str
    version: str
    firmware: bytes
    firmware_version: str
    loaders: tuple[Loader, ...]
    sections: tuple[tuple[str, bytes], ...]
    variables: Mapping[str, bytes] = field(default_factory=dict)
    secure_boot: bool = True
    sbat_level: str = "sbat,1,2024010900\nshim,4\n"
    load_options: str = ""
    processors: int = 2

    def section(self, name: str) -> bytes:
        """The content of a section; empty when there is none."""
        return dict(self.sections).get(name, b"")

    @property
    def command_line(self) -> str:
        """The command line inside the image."""
        return self.section(".cmdline").decode()

    @cached_property
    def kernel_image(self) -> bytes:
        """The unified kernel image as a file, as far as its hash goes."""
        return b"".join(name.encode().ljust(8, b"\0") + content for name, content in self.sections)

    @cached_property
    def events(self) -> tuple[Measured, ...]:
        """What a machine with a TPM measures."""
        return uefi.pcr_events(self)

    @cached_property
    def event_log(self) -> bytes:
        """The log of a machine with a TPM."""
        return write_log(self.events, LOG_BANKS)

    @cached_property
    def cc_event_log(self) -> bytes:
        """The log of a confidential VM."""
        return write_log(uefi.cc_events(self), ("sha384",))

    @cached_property
    def pcrs(self) -> tuple[bytes, ...]:
        """The SHA-256 registers of a TPM after the boot; those for dynamic launches begin with ones."""
        start = {index: bytes(32) for index in range(PCRS)} | dict.fromkeys(_ONES, b"\xff" * 32)
        return tuple((start | replayed(self.events, "sha256")).values())

    @cached_property
    def rtmrs(self) -> tuple[bytes, ...]:
        """The run-time registers of a trust domain after the boot."""
        ends = replayed(uefi.cc_events(self), "sha384")
        return tuple(ends.get(index + 1, bytes(48)) for index in range(RTMRS))

    @cached_property
    def mr_td(self) -> bytes:
        """The launch measurement of a trust domain."""
        return mr_td(self.firmware)

    @cached_property
    def launch_digest(self) -> bytes:
        """The launch measurement of an SNP guest."""
        hashes = kernel_hashes(self.section(".linux"), self.section(".initrd"), self.booted_with)
        return snp_launch_digest(self.firmware, hashes, self.processors)

    @property
    def booted_with(self) -> str:
        """The command line that the kernel gets."""
        return self.load_options or self.command_line

    @cached_property
    def measurement(self) -> Measurement:
        """What the image decides in a TPM, as `fastness measure` would predict it."""
        events = [
            MeasuredEvent(event.register, EVENT_NAMES[event.kind], hashed("sha256", event.subject), event.what)
            for event in self.events
        ]
        return Measurement.of(TPM_REFERENCES, events)

    def manifest(self) -> dict[str, Any]:
        """The manifest of an approval, for machines of every kind."""
        return self.measurement.to_manifest() | {"values": [*_snp_values(self), *_tdx_values(self)]}

    def reference_values(self, tee: str) -> list[Value]:
        """What a verifier should expect of the image, as a ReferenceValueSet lists it."""
        return reference_values(tee, self)


def reference_values(tee: str, image: BootImage | None = None) -> list[Value]:
    """The values by the names that policies ask for: of the image, and of the vendor's current firmware."""
    chosen = image or default_image()
    makers = {"tpm": _tpm_values, "snp": _snp_values, "tdx": _tdx_values}
    if tee not in makers:
        raise ValueError(f"there is no simulated TEE {tee!r}: choose one of {', '.join(makers)}")
    return makers[tee](chosen)


def changed(
    image: BootImage, *, command_line: str | None = None, boot_loader: bytes | None = None, **fields: Any
) -> BootImage:
    """The image with something else in it; `fields` are those of BootImage."""
    if command_line is not None:
        fields["sections"] = tuple(
            (name, command_line.encode() if name == ".cmdline" else content) for name, content in image.sections
        )
    if boot_loader is not None:
        *others, last = image.loaders
        fields["loaders"] = (*others, replace(last, content=boot_loader))
    return replace(image, **fields)


def default_image(version: str = "42.1") -> BootImage:
    """An image like those that clusters boot: shim, a boot loader and a unified kernel image, with Secure Boot."""
    return _image_of(version)


@lru_cache(maxsize=8)
def _image_of(version: str) -> BootImage:
    sections = (
        (".linux", _filled(f"linux {version}", 16)),
        (".osrel", f'NAME="Fastness OS"\nID=fastness\nVERSION_ID={version}\n'.encode()),
        (".cmdline", b"root=/dev/mapper/root ro quiet systemd.verity=yes"),
        (".initrd", _filled(f"initrd {version}", 8)),
        (".uname", b"6.12.0-fastness"),
        (".sbat", b"sbat,1,SBAT Version,sbat,1\nfastness,1,Fastness,uki,1\n"),
    )
    return BootImage(
        name="fastness-os",
        version=version,
        firmware=whole_pages(_filled("firmware 2026.02", 4)),
        firmware_version="Fastness simulated firmware 2026.02",
        loaders=(
            Loader("shim", "\\EFI\\fastness\\shimx64.efi", _filled("shim 15.8", 2)),
            Loader("boot loader", "\\EFI\\fastness\\systemd-bootx64.efi", _filled("systemd-boot 257", 2)),
        ),
        sections=sections,
        variables={
            name: _filled(f"variable {name}", 1)[:64]
            for name in ("PK", "KEK", "db", "dbx", "MokList", "MokListX", "MokListTrusted")
        },
    )


def _filled(what: str, pages: int) -> bytes:
    """Content that stands for a file: different for each name, and as repeatable as the name."""
    return hashlib.shake_256(b"fastness simulated content\0" + what.encode()).digest(pages * PAGE)


def _measured(name: str, value: bytes, register: str, note: str = "") -> Value:
    """A value of a register, or of one event in it."""
    algorithm = "sha256" if len(value) == 32 else "sha384"
    entry = {"name": name, "value": value.hex(), "register": register, "algorithm": algorithm, "state": "Current"}
    return entry | ({"note": note} if note else {})


def _tpm_values(image: BootImage) -> list[Value]:
    return values_of_measurement(image.measurement)


def _snp_values(image: BootImage) -> list[Value]:
    names = {"bootloader": "snp_bootloader", "tee": "snp_tee_svn", "snp": "snp_snp_svn", "microcode": "snp_microcode"}
    versions = {(name, tcb.components()[part]) for tcb in CURRENT_TCB.values() for part, name in names.items()}
    return [
        _measured("snp_launch_measurement", image.launch_digest, "measurement"),
        *(
            {"name": name, "value": str(version), "type": "Number", "state": "Current"}
            for name, version in sorted(versions)
        ),
    ]


def _tdx_values(image: BootImage) -> list[Value]:
    registers = [_measured(f"rtmr_{index}", image.rtmrs[index], f"rtmr{index}") for index in range(RTMRS - 1)]
    xfam = {"name": "xfam", "value": XFAM.hex(), "state": "Current"}
    events: dict[tuple[str, str], Value] = {}
    for event in uefi.cc_events(image):
        name = f"rtmr{event.register - 1}"
        value = _measured(f"{EVENT_PREFIX}{name}", hashed("sha384", event.subject), name, event.what)
        events.setdefault((value["name"], value["value"]), value)
    return [_measured("mr_td", image.mr_td, "mrtd"), *registers, xfam, *events.values()]
