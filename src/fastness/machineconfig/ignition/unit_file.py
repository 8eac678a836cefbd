"""The syntax of a systemd unit, as the machine's reader sees it.

Ignition refuses a config whose unit it cannot take apart, and warns about an enabled unit that has nothing to enable. Both
need only the skeleton: sections, and which of them hold an option. The reader is peculiar, and the peculiarities decide
between a machine that boots and one that does not, so they are kept:

- before the first section everything but comments is skipped, even `Key=value`;
- a section name runs to the next `]`, over line ends; after it the line must be blank;
- an option name runs to `=` and must not meet a line end, nor the end of the file;
- a comment continues on the next line after a backslash; so does a value, until a blank line;
- 2,048 bytes without a line end are refused, but only when the reader's buffer of 4,096 bytes happens to hold them all at
  the start of a step.

Nearly every unit is plain, so a pass over its lines settles it; anything odd goes to `_Reader`, which follows the buffer
byte for byte.
"""

import re
from typing import Final

_LINE_MAX: Final = 2048
_BUFFER: Final = 4096
# What Go counts as space; Python would add four control characters.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_ODD: Final = re.compile(r"[\r\x1c-\x1f]|\\ ?\n")


class UnitSyntax(Exception):
    """The unit cannot be taken apart."""


def sections(text: str) -> frozenset[str]:
    """The names of the sections that hold at least one option; raises `UnitSyntax`."""
    names = _plain(text)
    return _odd(text) if names is None else names


def _plain(text: str) -> frozenset[str] | None:
    """The answer for a unit whose every line is blank, a comment, a section or an option; None for any other."""
    names: set[str] = set()
    section: str | None = None
    # Whatever is not obviously plain goes the slow way: the fast one may only ever agree with it.
    if not text.isascii() or _ODD.search(text):
        return None
    for line in text.split("\n"):
        if len(line) >= _LINE_MAX - 1:
            return None
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[-1] == "\\":
            return None
        if stripped[0] == "[":
            if stripped.find("]") != len(stripped) - 1:
                return None
            section = stripped[1:-1]
        elif section is None or "=" not in stripped:
            return None
        else:
            names.add(section)
    return frozenset(names)


class _Reader:
    """Bytes behind a buffer of 4,096 that is filled as Go's `bufio.Reader` fills it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self._end = 0

    def _fill(self) -> bool:
        end = min(len(self.data), self.at + _BUFFER)
        grown = end > self._end
        self._end = end
        return grown

    def check_line(self) -> None:
        """Refuse a long line, if the buffer shows it now."""
        if self._end - self.at >= _LINE_MAX:
            window = self.data[self.at : self.at + _LINE_MAX]
            if b"\n" not in window and b"\r" not in window:
                raise UnitSyntax(f"a line has {_LINE_MAX} bytes or more")

    def rune(self) -> str:
        """The next character, or nothing at the end."""
        if self._end - self.at < 4:
            self._fill()
        if self.at >= len(self.data):
            return ""
        first = self.data[self.at]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
        text = self.data[self.at : self.at + size].decode()
        self.at += size
        return text

    def back(self, text: str) -> None:
        """Put the last character back."""
        self.at -= len(text.encode())

    def until(self, delimiter: bytes) -> tuple[bytes, bool]:
        """Everything up to and with the delimiter, and whether it was found."""
        start = self.at
        while True:
            end = self.data.find(delimiter, self.at, self._end)
            if end >= 0:
                self.at = end + 1
                return self.data[start : self.at], True
            if self._end - self.at >= _BUFFER:
                self.at = self._end
            elif not self._fill():
                self.at = self._end
                return self.data[start : self.at], False

    def line(self) -> bytes:
        """The rest of the line without its end."""
        return self.until(b"\n")[0].removesuffix(b"\r").removesuffix(b"\n")


def _odd(text: str) -> frozenset[str]:
    # JSON can hold a lone surrogate, which UTF-8 cannot; Go's decoder has replaced it before the unit is parsed.
    reader = _Reader(text.encode("utf-8", "replace"))
    names: set[str] = set()
    section: str | None = None
    while True:
        reader.check_line()
        character = reader.rune()
        if not character:
            return frozenset(names)
        if character == "[":
            reader.check_line()
            section = _section(reader)
        elif character in "#;":
            reader.check_line()
            _skip_comment(reader)
        elif section is not None and character not in _SPACE:
            reader.back(character)
            reader.check_line()
            _option(reader)
            names.add(section)


def _section(reader: _Reader) -> str:
    name, closed = reader.until(b"]")
    if not closed:
        raise UnitSyntax("a section name has no end")
    reader.check_line()
    if not _blank(reader.line()):
        raise UnitSyntax("something follows a section name")
    return name[:-1].decode("utf-8", "replace")


def _skip_comment(reader: _Reader) -> None:
    while reader.line().removesuffix(b" ").endswith(b"\\"):
        pass


def _option(reader: _Reader) -> None:
    while (character := reader.rune()) != "=":
        if not character:
            raise UnitSyntax("the last line is neither a section nor an option")
        if character in "\r\n":
            raise UnitSyntax("a line is neither a section nor an option")
    reader.check_line()
    while True:
        line = reader.line()
        if _blank(line) or not line.endswith(b"\\"):
            return
        reader.check_line()


def _blank(line: bytes) -> bool:
    return not line.decode("utf-8", "replace").strip(_SPACE)
