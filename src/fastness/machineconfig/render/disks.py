"""Which encryption of disks is none, or opens without a proof: what `storage.luks` of a confidential pool must not ask for.

Whoever runs the host of a confidential machine reads and writes its disks. A volume whose cipher is null, or that is too weak,
looks encrypted to the machine and gives everything to the host: swapped headers with a null cipher broke eight projects at once
(CVE-2025-59054, CVE-2025-58356). So options of a volume may name only ciphers of a list, with keys of at least 256 bits. Volumes
without options get the default of cryptsetup, which is on the list.

Whoever runs the host also runs what unlocks a volume by itself: its virtual TPM, and any tang server that the machine can reach
from the initrd. A volume that Clevis binds to those opens for the host, whatever it boots: the key of a disk comes from the key
broker, for a proof (`disk.volume` of the pool).

`options` are words of a command line (`cryptsetup luksFormat`), read as its parser reads them: long ones with `=` or a word of
their own, short ones alone, together, or with the value attached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

CIPHERS: Final = (
    "aes-xts-plain64", "aes-xts-random", "serpent-xts-plain64", "twofish-xts-plain64", "aes-gcm-random", "aegis256-random",
    "chacha20-random", "xchacha12,aes-adiantum-plain64", "xchacha20,aes-adiantum-plain64",
)  # fmt: skip
LEAST_BITS: Final = 256
_TAKES_VALUE: Final = "chsSlitTopbdM"


def weak_disks(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The volumes of an Ignition document of the current version that a host could read: the place, and what it asks for."""
    for index, volume in enumerate((document.get("storage") or {}).get("luks") or ()):
        place = f"spec.config.storage.luks[{index}].options"
        for why in _weak([str(word) for word in volume.get("options") or ()]):
            yield place, f"{volume.get('name')} {why}"


def pinned_disks(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The volumes that Clevis opens without a proof of what was booted: the place, and what opens them."""
    for index, volume in enumerate((document.get("storage") or {}).get("luks") or ()):
        clevis = volume.get("clevis")
        for member, what in _pins(clevis) if isinstance(clevis, Mapping) else ():
            yield f"spec.config.storage.luks[{index}].clevis.{member}", f"{volume.get('name')} is opened by {what}"


def _pins(clevis: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if clevis.get("tpm2"):
        yield "tpm2", "its TPM"
    if clevis.get("tang"):
        yield "tang", "a tang server"
    custom = clevis.get("custom")
    pin = str(custom.get("pin") or "") if isinstance(custom, Mapping) else ""
    # Ignition knows no other pins than these and one that combines them (sss).
    if pin:
        yield "custom.pin", f"the pin {pin!r}"


def _weak(words: Sequence[str]) -> Iterator[str]:
    for name, value in _options(words):
        if name == "cipher" and value not in CIPHERS:
            yield f"asks for the cipher {value!r}"
        if name == "key-size" and not (value.isascii() and value.isdigit() and int(value[:9]) >= LEAST_BITS):
            yield f"asks for keys of {value!r} bits"


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options that matter, every time that they are given, under their long names."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if name in ("cipher", "key-size"):
                yield name, value if equals else next(rest, "")
            continue
        for at, letter in enumerate(word[1:] if word.startswith("-") else "", 2):
            if letter in _TAKES_VALUE:
                value = word[at:].removeprefix("=") if len(word) > at else next(rest, "")
                if letter in "cs":
                    yield ("cipher" if letter == "c" else "key-size"), value
                break
