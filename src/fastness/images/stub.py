"""What a version of systemd-stub does with the sections of an image: measure, tidy, pack.

Only versions that were booted here and compared are listed; what another version would do is not guessed.

* It measures name and content of some sections, in an order of its own.
* It hands the command line to the kernel with control characters turned into blanks, without those at the end.
* It packs some sections as files into archives of their own and appends them to the initial file system, which the kernel
  then measures as a whole. Several parts are each filled up to four bytes; a single part stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.evidence.pe.uki import Uki
from fastness.images.errors import Unpredictable

_KEYS: Final = ((".pcrsig", "tpm2-pcr-signature.json"), (".pcrpkey", "tpm2-pcr-public-key.pem"))
_DIRECTORY: Final = ".extra"
# The stub writes this record from a text with a capital B; everything else it writes in small letters.
_TRAILER: Final = (
    b"070701" + b"00000000" * 4 + b"00000001" + b"00000000" * 6 + b"0000000B" + b"00000000" + b"TRAILER!!!" + bytes(4)
)


@dataclass(frozen=True, slots=True)
class StubRules:
    """One version: sections it measures, parts of the initial file system, and what it cannot decide from the image."""

    measured: tuple[str, ...]
    leading: tuple[str, ...]
    packed: tuple[tuple[str, str], ...]
    strips_leading_blanks: bool = False
    depends_on_machine: tuple[str, ...] = ()


STUBS: Final[Mapping[int, StubRules]] = {
    252: StubRules(
        measured=(".linux", ".osrel", ".cmdline", ".initrd", ".splash", ".dtb", ".pcrpkey"),
        leading=(".initrd",),
        packed=_KEYS,
    ),
    254: StubRules(
        measured=(".linux", ".osrel", ".cmdline", ".initrd", ".splash", ".dtb", ".uname", ".sbat", ".pcrpkey"),
        leading=(".initrd",),
        packed=_KEYS,
    ),
    257: StubRules(
        measured=(
            ".linux",
            ".osrel",
            ".cmdline",
            ".initrd",
            ".ucode",
            ".splash",
            ".dtb",
            ".uname",
            ".sbat",
            ".pcrpkey",
        ),
        leading=(".ucode", ".initrd"),
        packed=(*_KEYS, (".osrel", "os-release")),
        strips_leading_blanks=True,
        depends_on_machine=(".profile", ".dtbauto", ".hwids", ".efifw"),
    ),
}


def rules_for(uki: Uki) -> StubRules:
    """The rules of the image's boot stub; raises Unpredictable."""
    rules = STUBS.get(uki.stub)
    if rules is None:
        raise Unpredictable(
            "unknown-stub",
            f"the boot stub is systemd-stub {uki.stub_name}; what it measures has not been compared with a boot",
            f"Build the image with version {_either(STUBS)} of the stub, or approve what a trusted machine measured.",
        )
    choosing = [name for name in rules.depends_on_machine if name in uki.sections]
    if choosing:
        raise Unpredictable(
            "depends-on-machine",
            f"the image has sections {', '.join(choosing)}, of which the boot stub chooses by machine or boot entry",
            "Build an image for one purpose and one kind of machine.",
        )
    return rules


def command_line(uki: Uki, rules: StubRules) -> str:
    """The line that the kernel gets; raises Unpredictable."""
    content = uki.sections.get(".cmdline", b"")
    line = "".join(" " if byte <= 0x20 or byte == 0x7F else chr(byte) for byte in content).rstrip(" ")
    if not line:
        raise Unpredictable(
            "no-command-line",
            "the image has no command line of its own, so it takes one from the boot entry",
            "Build the image with a command line: what a boot entry says can be changed by whoever owns the disk.",
        )
    if rules.strips_leading_blanks:
        line = line.lstrip(" ")
    if not line.isascii() or b"\0" in content or (line.startswith(" ") and content[:1] != b" "):
        raise Unpredictable(
            "odd-command-line",
            "the command line in the image begins with a control character, holds a zero byte or is not ASCII",
            "Build the image with a plain command line: versions of the boot stub treat such lines differently.",
        )
    return line


def handed_initrd(uki: Uki, rules: StubRules) -> bytes:
    """The initial file system that the kernel gets and measures; empty when there is none."""
    parts = [uki.sections[name] for name in rules.leading if uki.sections.get(name)]
    parts += [_archive(name, uki.sections[section]) for section, name in rules.packed if uki.sections.get(section)]
    if len(parts) < 2:
        return b"".join(parts)
    return b"".join(part + bytes(-len(part) % 4) for part in parts)


def _archive(name: str, content: bytes) -> bytes:
    """A cpio archive (newc) with one file in the stub's directory, as the stub writes it."""
    return _entry(1, _DIRECTORY, 0o040555, b"") + _entry(2, f"{_DIRECTORY}/{name}", 0o100444, content) + _TRAILER


def _entry(inode: int, name: str, mode: int, content: bytes) -> bytes:
    path = name.encode("ascii") + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % value for value in fields) + path
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def _either(versions: Mapping[int, StubRules]) -> str:
    *most, last = map(str, versions)
    return f"{', '.join(most)} or {last}"
