"""What machines measure that boot an image, from the files in it: one state for each thing that they may start.

    expected = expect(boot_files(tree), (Platform(),))
    expected.manifest         as an approval carries it; None where nothing can be said
    expected.sources          which file gave which registers
    expected.missing          by kind of evidence: what was not computed, and why

* A unified kernel image is measured as a boot option starts it (`measure`), for each platform. Several in one image are states
  of it: whoever approves the image approves each of them.
* Behind shim and GRUB the image decides PCR 4 alone, with Secure Boot on: the keys (7, 14) are the platform's, and what GRUB
  reads is measured in registers that nobody compares. PCR 11 and 12 stay empty, as there is no boot stub.
* What a label of the image claims is not looked at here: whether it counts depends on who made the image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from fastness.crypto.silicon.registers import hashed
from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import parse_pe
from fastness.images import boot_files as kinds
from fastness.images.boot_files import BootFiles
from fastness.images.errors import OsImageError
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import authenticode, measure_uki
from fastness.images.measurement import BANK, MeasuredEvent, Measurement

# Another method means other values for the same bytes: whoever changes what is predicted changes this, and images are read again.
METHOD: Final = "1"
MAX_STATES: Final = 12
_SHIM_REGISTERS: Final = (4, 11, 12)
MISSING: Final[Mapping[str, str]] = {
    "snp": "the launch measurement is of the firmware and processors that the host starts the machine with, which no image holds",
    "tdx": "MRTD is of the firmware that the host loads, and its registers hold what that firmware does: no image holds it",
}
_OTHER: Final = "nobody predicts it from an image"
_NOTHING: Final = (
    "the image holds no unified kernel image (/boot/EFI/Linux, /usr/lib/modules) "
    "and no shim, GRUB and kernel (bootupd, /usr/lib/efi)"
)


@dataclass(frozen=True, slots=True)
class Platform:
    """A kind of machine: its firmware's variables, and whether it boots with Secure Boot."""

    name: str = ""
    firmware: FirmwareVars = field(default_factory=FirmwareVars.blank)
    secure_boot: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """A file of the image, and what it gave."""

    path: str
    digest: str
    registers: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """For people and programs."""
        gave = [f"tpm_pcr{register}" for register in self.registers]
        return {"file": f"/{self.path}", "sha256": self.digest, "values": gave}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known of an image before anybody boots it."""

    manifest: Mapping[str, Any] | None
    sources: tuple[Origin, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def expect(boot: BootFiles, platforms: Sequence[Platform], evidence: Sequence[str] = ("tpm",)) -> Expected:
    """What machines of these platforms measure, for these kinds of evidence; total."""
    missing = {kind: MISSING.get(kind, _OTHER) for kind in evidence if kind != "tpm"}
    states: dict[str, Measurement] = {}
    sources: dict[str, Origin] = {}
    problems: list[str] = []
    for path, content in boot.of(kinds.UKI).items():
        for platform in platforms or (Platform(),):
            try:
                measured = measure_uki(content, platform.firmware, secure_boot=platform.secure_boot)
            except (OsImageError, ImageError) as error:
                problems.append(f"/{path}: {error.message}" + ("" if not platform.name else f" ({platform.name})"))
                continue
            states[_state(path, platform, boot)] = measured
            sources[path] = _origin(path, content, measured)
    if not boot.of(kinds.UKI):
        _behind_shim(boot, states, sources, problems)
    if len(states) > MAX_STATES:
        problems, states = [f"the image has more than {MAX_STATES} states that machines may boot"], {}
    if not states:
        missing["tpm"] = "; ".join(problems)[:1024] or _NOTHING
        return Expected(None, (), missing)
    if problems:
        missing["tpm"] = f"of a part: {'; '.join(problems)}"[:1024]
    elif all(7 not in measured.registers for measured in states.values()):
        missing["tpm"] = (
            "PCR 7 and 14 hold what shim keeps in the variables of each machine (SbatLevel, MokList), which no image holds: "
            "publish those of a machine that you trust in a ReferenceValueSet of source manual"
        )
    return Expected(_manifest(states), tuple(sources.values()), missing)


def _behind_shim(
    boot: BootFiles, states: dict[str, Measurement], sources: dict[str, Origin], problems: list[str]
) -> None:
    """PCR 4 of a boot by shim and GRUB with Secure Boot; each is told apart by its hash, whatever its directory."""
    chain = [{sha256(content).digest(): path for path, content in boot.of(kind).items()} for kind in _CHAIN]
    if not all(chain):
        return
    if any(len(files) > 1 for files in chain):
        several = next(files for files in chain if len(files) > 1)
        problems.append(f"the image holds several of {', '.join(f'/{path}' for path in several.values())}")
        return
    digests = []
    for kind, files in zip(_CHAIN, chain, strict=True):
        (path,) = files.values()
        content = boot.of(kind)[path]
        try:
            digests.append((authenticode(parse_pe(content)), f"{kind} /{path}"))
        except ImageError as error:
            problems.append(f"/{path}: {error.message}")
            return
        sources[path] = Origin(path, sha256(content).hexdigest(), (4,))
    events = [
        MeasuredEvent(4, "EV_EFI_ACTION", hashed(BANK, _CALL), "a boot option is called", "Pcr4EfiCall"),
        MeasuredEvent(
            4, "EV_SEPARATOR", hashed(BANK, bytes(4)), "firmware is done with this register", "Pcr4Separator"
        ),
        *(MeasuredEvent(4, "EV_EFI_BOOT_SERVICES_APPLICATION", digest, what, "Pcr4Loader") for digest, what in digests),
    ]
    states["secure boot"] = Measurement.of(_SHIM_REGISTERS, events)


_CHAIN: Final = (kinds.SHIM, kinds.GRUB, kinds.KERNEL)
_CALL: Final = b"Calling EFI Application from Boot Option"


def _state(path: str, platform: Platform, boot: BootFiles) -> str:
    """The name of a state: the file where there are several, the platform where it has a name."""
    name = path.rpartition("/")[2].removesuffix(".efi") if len(boot.of(kinds.UKI)) > 1 else ""
    words = " ".join(word for word in (name, platform.name) if word)
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._- ") else "-" for letter in words)
    return plain[:56].strip("._- ") + (f" {sha256(path.encode()).hexdigest()[:5]}" if name else "")


def _origin(path: str, content: bytes, measured: Measurement) -> Origin:
    return Origin(path, sha256(content).hexdigest(), tuple(sorted(measured.registers)))


def _manifest(states: Mapping[str, Measurement]) -> dict[str, Any]:
    first, *others = states.items()
    manifest: dict[str, Any] = first[1].to_manifest()
    if others:
        named = ((name or f"state {number}", measured) for number, (name, measured) in enumerate(others, 2))
        manifest["variants"] = {name: measured.to_manifest() for name, measured in named}
    return manifest
