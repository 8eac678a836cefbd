"""Strings that look like keys, whatever the field is called: long, mixed, without words in them.

    without_keys("token AbC9xQ…")     # the part that looks like a key is replaced

A password that is a word looks like any word; such are taken out by where they stand (`places`). What machines make looks
different: letters of both cases and digits in one run, changing at every second character, or base32 without a word in it.
Hexadecimal stays, because digests are what most of an object of ours consists of and a key cannot be told from them; it goes
where only users write (`places`). Certificates and public keys in PEM stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise
from typing import Final

REDACTED: Final = "<redacted>"
SHORTEST: Final = 20
_RUN: Final = re.compile(rf"[A-Za-z0-9+/_]{{{SHORTEST},}}={{0,2}}")
_SEPARATORS: Final = re.compile(r"[/_+]")
_WORD: Final = re.compile(r"(?:[a-z]{3,}|[A-Z]{3,})\Z")
# Five consonants in a row of small letters: no word, and likely where letters are random.
_UNSPEAKABLE: Final = re.compile(r"[bcdfghjklmnpqrstvwxz]{5}")
_HEX: Final = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)\Z")
_PUBLIC: Final = re.compile(
    r"-----BEGIN (?P<what>CERTIFICATE|PUBLIC KEY|CERTIFICATE REQUEST)-----[A-Za-z0-9+/=\s]{1,100000}?-----END (?P=what)-----"
)
_PUBLIC_HEAD: Final = (b"-----BEGIN CERTIFICATE", b"-----BEGIN PUBLIC KEY")


def without_keys(text: str) -> str:
    """A text in which whatever looks like a key is replaced."""
    if len(text) < SHORTEST:
        return text
    parts, done = list[str](), 0
    for public in _PUBLIC.finditer(text):
        parts += [_RUN.sub(_judged, text[done : public.start()]), public[0]]
        done = public.end()
    return "".join([*parts, _RUN.sub(_judged, text[done:])])


def looks_like_key(run: str) -> bool:
    """Whether a run of letters and digits looks as if a machine had made it up."""
    pieces = [piece for piece in _SEPARATORS.split(run.rstrip("=")) if piece]
    # A path, or a name of several words: only a piece that is long by itself can be a key.
    if any(_WORD.match(piece) for piece in pieces):
        return any(len(piece) >= SHORTEST and _mixed(piece) for piece in pieces)
    return _mixed("".join(pieces))


def _mixed(text: str) -> bool:
    if _HEX.match(text) or not any(char.isdigit() for char in text):
        return False
    changes = sum(before != after for before, after in pairwise(map(_kind, text)))
    # Random letters and digits change their kind six times in ten; names in camel case three times.
    return changes * 100 >= 34 * len(text) or (len(text) >= SHORTEST and _UNSPEAKABLE.search(text) is not None)


def _kind(char: str) -> str:
    return "0" if char.isdigit() else "a" if char.islower() else "A"


def _judged(run: re.Match[str]) -> str:
    text = run[0]
    if not looks_like_key(text):
        return text
    try:
        public = base64.b64decode(text, validate=True).startswith(_PUBLIC_HEAD)
    except (binascii.Error, ValueError):
        public = False
    return text if public else REDACTED
