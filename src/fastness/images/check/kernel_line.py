"""Kernel command lines of an image: where a tree keeps them, and what their words say.

| Place | Read by |
| --- | --- |
| `/etc/kernel/cmdline`, `/usr/lib/kernel/cmdline` | kernel-install and ukify, when they build a unified kernel image |
| `/usr/lib/bootc/kargs.d/*.toml` | bootc, for images of the Fedora CoreOS kind; together they are one line |
| `/etc/default/grub`, `/boot/loader/entries/*.conf` | boot loaders that take their words from a disk |

The line that counts is the one inside of a unified kernel image; those of a tree are what the next build puts there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Final

from fastness.images.check.tree import Tree, text

KERNEL_INSTALL: Final = "/etc/kernel/cmdline"
BOOTC: Final = "/usr/lib/bootc/kargs.d"
ENTRIES: Final = ("/boot/loader/entries", "/boot/efi/loader/entries", "/efi/loader/entries")
GRUB_DEFAULTS: Final = "/etc/default/grub"
PLATFORM: Final = "ignition.platform.id"
_WORD: Final = re.compile(r'(?:"[^"]*"|[^\s"])+')
_GRUB: Final = re.compile(r"^\s*GRUB_CMDLINE_LINUX(?:_DEFAULT)?=(.*)$", re.MULTILINE)
Words = tuple[str, ...]


def words_of(line: str) -> Words:
    """The words of a command line; blanks between double quotes belong to a word, as the kernel reads them."""
    return tuple(_WORD.findall(line))


def lines_of(tree: Tree) -> Mapping[str, Words]:
    """Every command line that a tree holds, by the place that it is kept at."""
    lines = {path: words_of(text(tree, path)) for path in (KERNEL_INSTALL, "/usr/lib/kernel/cmdline")}
    lines[BOOTC] = _bootc(tree)
    lines[GRUB_DEFAULTS] = tuple(
        word for value in _GRUB.findall(text(tree, GRUB_DEFAULTS)) for word in words_of(value.strip("\"' "))
    )
    for directory in ENTRIES:
        for name in tree.names(directory):
            lines[f"{directory}/{name}"] = _entry(text(tree, f"{directory}/{name}"))
    return {place: words for place, words in lines.items() if words}


def without_contradictions(present: Sequence[str], required: Sequence[str]) -> Words:
    """A line that has the required words at its end, and no others that set the same keys."""
    keys = {_key(word) for word in required}
    return (*(word for word in present if _key(word) not in keys), *required)


def lacking(words: Sequence[str], required: Sequence[str]) -> Words:
    """The required words that do not count: absent, or undone by a later word of the same key, because the last one wins."""
    last = {_key(word): word for word in words}
    return tuple(word for word in required if last.get(_key(word)) != word)


def _key(word: str) -> str:
    # systemd and the kernel take `-` and `_` in names for the same sign.
    return word.partition("=")[0].replace("-", "_")


def bootc_words(tree: Tree, path: str) -> Words:
    """The words of one file of bootc; none where it cannot be read, as bootc puts none on the line."""
    try:
        listed = tomllib.loads(text(tree, path)).get("kargs")
    except tomllib.TOMLDecodeError:
        return ()
    return tuple(word for word in listed if isinstance(word, str)) if isinstance(listed, list) else ()


def _bootc(tree: Tree) -> Words:
    return tuple(word for name in tree.names(BOOTC) for word in bootc_words(tree, f"{BOOTC}/{name}"))


def _entry(content: str) -> Words:
    options = (line.split(None, 1) for line in content.splitlines() if line.strip())
    return tuple(
        word for fields in options if fields[0] == "options" and len(fields) > 1 for word in words_of(fields[1])
    )
