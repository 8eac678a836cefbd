"""Sealing: an image gets a kernel image whose command line names every byte of its root.

    first pass     base, config and what people wrote, as ever
    look           the digest of the root, and what the kernel image is made of, read out of what was made
    second pass    the kernel image is copied to /boot, in a layer of its own; /boot does not count for the digest of a root

Asked for by the annotation `fastness.dev/sealed: "true"` of a MachineOSConfig. The kernel image is made of the image's own parts:
its kernel, its initial file system, its boot stub. Its line has the digest first, then the arguments of the files in kargs.d, of
the base and of what a layer brings, in the order of their names (the layout of bootc).

What is read here was left by a build and is hostile: every part is bounded, and an argument that would name another root, or that
a boot loader and a kernel read differently, is refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.builds.errors import BuildFailed
from fastness.formats.composefs import root_on
from fastness.formats.errors import ImageError
from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images.errors import OsImageError
from fastness.images.stub import rules_for
from fastness.images.uki import write_uki
from fastness.kinds.objects import annotations_of

SEALED: Final = "fastness.dev/sealed"
ARCHITECTURE: Final = "x86_64"
DIRECTORY: Final = "/boot/EFI/Linux"
NAME: Final = "sealed.efi"
MAX_LINE: Final = 2000
MAX_ARGUMENTS_FILE: Final = 64 * 1024
MAX_FILES: Final = 64
# Words that decide what is mounted as the root, or what runs first on it: the digest would name one tree, and another would run.
_FORBIDDEN: Final = (
    "composefs",
    "root=",
    "rootfstype=",
    "roothash=",
    "ostree=",
    "init=",
    "rdinit=",
    "initrd=",
    "systemd.verity",
)
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SealParts:
    """What a kernel image is made of: out of the image, but for the digest of its root, which is computed."""

    root: str
    kernel: bytes
    initrd: bytes
    stub: bytes
    os_release: bytes = b""
    kargs: Mapping[str, bytes] | None = None


def is_sealed(config: Object) -> bool:
    """Whether a MachineOSConfig asks for a sealed image."""
    return annotations_of(config).get(SEALED) == "true"


def sealing_problem(config: Object) -> str:
    """What is wrong with the annotation; empty where it is good or not there."""
    value = annotations_of(config).get(SEALED)
    return "" if value in (None, "true", "false") else f'is {value[:40]!r}, which is neither "true" nor "false"'


def arguments_of(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """The kernel arguments of the files in kargs.d, by name, for this architecture; raises BuildFailed."""
    if len(files) > MAX_FILES:
        raise BuildFailed(f"kargs.d has more than {MAX_FILES} files")
    return tuple(argument for name in sorted(files) for argument in _arguments(name, files[name]))


def _arguments(name: str, content: bytes) -> Iterator[str]:
    try:
        document = tomllib.loads(content[: MAX_ARGUMENTS_FILE + 1].decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BuildFailed(f"kargs.d/{name} is not TOML: {error}") from error
    unknown = sorted(set(document) - {"kargs", "match-architectures"})
    listed, only = document.get("kargs", []), document.get("match-architectures", [ARCHITECTURE])
    if unknown or len(content) > MAX_ARGUMENTS_FILE or not all(_texts(each) for each in (listed, only)):
        what = f"knows no {unknown[0]}" if unknown else "wants lists of texts: kargs, match-architectures"
        raise BuildFailed(f"kargs.d/{name}: it {what}")
    for argument in listed if ARCHITECTURE in only else ():
        if not argument or not argument.isascii() or not argument.isprintable() or argument != argument.strip():
            raise BuildFailed(f"kargs.d/{name}: {argument[:60]!r} is no kernel argument in plain ASCII")
        if any(word.strip('"').startswith(_FORBIDDEN) for word in argument.split()):
            raise BuildFailed(f"kargs.d/{name}: {argument[:60]!r} would decide what the root is, and the seal does")
        yield argument


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def sealed_line(root: str, arguments: Sequence[str]) -> str:
    """The command line of a sealed image; raises BuildFailed."""
    line = " ".join([root, *arguments])
    if not root_on(line):
        raise BuildFailed(f"the root was named as {root[:80]!r}, which binds none")
    if len(line) > MAX_LINE:
        raise BuildFailed(f"the command line has {len(line)} characters, and kernels take {MAX_LINE}")
    return line


def sealed_kernel_image(parts: SealParts) -> bytes:
    """The kernel image of a sealed image; raises BuildFailed where it cannot be made, or nobody could say what it measures."""
    line = sealed_line(parts.root, arguments_of(parts.kargs or {}))
    sections = {".cmdline": line.encode(), ".initrd": parts.initrd, ".linux": parts.kernel}
    if parts.os_release:
        sections[".osrel"] = parts.os_release
    try:
        made = write_uki(parts.stub, sections)
        rules_for(parse_uki(made))
    except (ImageError, OsImageError) as error:
        raise BuildFailed(f"the image cannot be sealed: {error}") from error
    return made
