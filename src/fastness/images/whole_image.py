"""What machines measure that boot an image, from the files in it: one state for each thing that they may start.

    expected = expect(boot_files(tree), (Platform(),), loaders=marks)
    expected.manifest         as an approval carries it; None where nothing can be said
    expected.sources          which file gave which registers
    expected.missing          by kind of evidence: what was not computed, and why

* A unified kernel image is measured for each platform (`measure`). Several in one image are states of it: whoever approves the
  image approves each of them.
* Where the image brings systemd-boot, machines start it through that: first the boot loader of the image itself, then every other
  that machines of its pools may have been installed with (`transition`, docs/adr/0108). That firmware starts the image by itself
  is a state as well: the same bytes run, and one program less.
* Which disk a machine has is not decided by an image, so PCR 5 is left out.
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
from fastness.formats.composefs import root_on
from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.image import parse_pe
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images import boot_files as kinds
from fastness.images.boot_files import BootFiles
from fastness.images.errors import OsImageError
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import BootChain, Disk, authenticode, predict
from fastness.images.measurement import BANK, MeasuredEvent, Measurement
from fastness.images.transition import LoaderMark, mark_of, under

# Another method means other values for the same bytes: whoever changes what is predicted changes this, and images are read again.
METHOD: Final = "2"
MAX_STATES: Final = 12
ALONE: Final = "without boot loader"
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
    """A file of the image, and what it gave; `root` is the root file system that the command line in it names."""

    path: str
    digest: str
    registers: tuple[int, ...]
    loader: LoaderMark | None = None
    root: str = ""

    def to_json(self) -> dict[str, Any]:
        """For people and programs."""
        gave = [f"tpm_pcr{register}" for register in self.registers]
        mark = {} if self.loader is None else {"loader": self.loader.to_json()}
        root = {"root": self.root} if self.root else {}
        return {"file": f"/{self.path}", "sha256": self.digest, "values": gave, **mark, **root}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is known of an image before anybody boots it."""

    manifest: Mapping[str, Any] | None
    sources: tuple[Origin, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)


def expect(
    boot: BootFiles, platforms: Sequence[Platform], evidence: Sequence[str] = ("tpm",), loaders: Sequence[LoaderMark] = ()
) -> Expected:  # fmt: skip
    """What machines of these platforms measure, for these kinds of evidence; total.

    `loaders` are boot loaders that machines may have been installed with; that of the image itself need not be among them.
    """
    missing = {kind: MISSING.get(kind, _OTHER) for kind in evidence if kind != "tpm"}
    states: dict[str, Measurement] = {}
    sources: dict[str, Origin] = {}
    problems: list[str] = []
    own = _own_loaders(boot, sources, problems) if boot.of(kinds.UKI) else {}
    for path, content in boot.of(kinds.UKI).items():
        for platform in platforms or (Platform(),):
            name = _state(path, platform, boot)
            try:
                measured = _states_of(content, platform, own, loaders, problems)
            except (OsImageError, ImageError) as error:
                problems.append(f"/{path}: {error.message}" + ("" if not platform.name else f" ({platform.name})"))
                continue
            states |= {_joined(name, how): each for how, each in measured.items()}
            sources[path] = _origin(path, content, next(iter(measured.values())))
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


def _own_loaders(boot: BootFiles, sources: dict[str, Origin], problems: list[str]) -> dict[LoaderMark, bytes]:
    """The boot loaders that the image brings, each once, the one on its system partition first."""
    own: dict[LoaderMark, bytes] = {}
    for path, content in boot.of(kinds.LOADER).items():
        try:
            mark = mark_of(content)
        except ImageError as error:
            problems.append(f"/{path}: {error.message}")
            continue
        own.setdefault(mark, content)
        sources[path] = Origin(path, sha256(content).hexdigest(), (4, 12), mark)
    return own


def _states_of(
    uki: bytes,
    platform: Platform,
    own: Mapping[LoaderMark, bytes],
    loaders: Sequence[LoaderMark],
    problems: list[str],
) -> dict[str, Measurement]:
    """What a unified kernel image measures on a platform, by the way in which it is started, the usual one first."""

    def measured(loader: bytes) -> Measurement:
        chain = BootChain(uki, loader, Disk.UNKNOWN)
        return predict(chain, platform.firmware, secure_boot=platform.secure_boot)

    alone, through = measured(b""), dict[LoaderMark, Measurement]()
    for mark, content in own.items():
        try:
            through[mark] = measured(content)
        except OsImageError as error:
            problems.append(error.message)
    if not through:
        return {"": alone}
    first, *others = through.items()
    states = {"": first[1], **{mark.label: each for mark, each in others}}
    # With Secure Boot the key that let a boot loader start is measured, which a mark does not have.
    for mark in () if platform.secure_boot else sorted(set(loaders) - set(own)):
        changed = under(first[1], parse_uki(uki).stub, mark)
        if changed is not None:
            states[mark.label] = changed
    return states | {ALONE: alone}


def _joined(name: str, how: str) -> str:
    return " ".join(word for word in (name[: 62 - len(how)].strip("._- "), how) if word)


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
    line = parse_uki(content).sections.get(".cmdline", b"").decode("ascii", "replace")
    return Origin(path, sha256(content).hexdigest(), tuple(sorted(measured.registers)), root=root_on(line))


def _manifest(states: Mapping[str, Measurement]) -> dict[str, Any]:
    first, *others = states.items()
    manifest: dict[str, Any] = first[1].to_manifest()
    if others:
        named = ((name or f"state {number}", measured) for number, (name, measured) in enumerate(others, 2))
        manifest["variants"] = {name: measured.to_manifest() for name, measured in named}
    return manifest
