"""Reading JSON members strictly: what a member must be, and where it stood.

LUKS2 writes 64-bit numbers as decimal texts, smaller ones as numbers, and bytes in base64. A member that is not named is refused:
what one reader ignores another may obey, and an opener that skips `"flags"` opens something else than was checked.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from fastness.formats.errors import Luks2Error

MAX_ENTRIES: Final = 32
MAX_TEXT: Final = 128
MAX_BYTES: Final = 512
_DECIMAL: Final = re.compile(r"(?:0|[1-9][0-9]{0,19})\Z", re.ASCII)
_TEXT: Final = re.compile(r"[\x21-\x7e]{1,128}\Z", re.ASCII)
_U32: Final = 2**32 - 1
_U64: Final = 2**64 - 1
_MISSING: Final = object()
Entry = TypeVar("Entry")


class Fields:
    """The members of one JSON object; each is taken once, and `finish` refuses what is left."""

    __slots__ = ("_rest", "path")

    def __init__(self, value: Any, path: str) -> None:
        if type(value) is not dict:
            raise wrong(path, "an object")
        self._rest: dict[str, Any] = dict(value)
        self.path = path

    def at(self, name: str) -> str:
        """The path of a member."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Whether a member is there and not taken yet."""
        return name in self._rest

    def take(self, name: str) -> Any:
        """A member of any kind."""
        value = self._rest.pop(name, _MISSING)
        if value is _MISSING:
            raise Luks2Error("missing-field", "is missing", self.at(name))
        return value

    def text(self, name: str) -> str:
        """A short text of printable ASCII without blanks."""
        value = self.take(name)
        if type(value) is not str or _TEXT.match(value) is None:
            raise wrong(self.at(name), f"a text of 1 to {MAX_TEXT} printable characters")
        return value

    def u32(self, name: str) -> int:
        """A number."""
        value = self.take(name)
        if type(value) is not int or not 0 <= value <= _U32:
            raise wrong(self.at(name), "a number of 32 bits")
        return value

    def u64(self, name: str) -> int:
        """A number that is written as a text."""
        return decimal(self.take(name), self.at(name))

    def octets(self, name: str) -> bytes:
        """Bytes in base64, in the one spelling that they have."""
        value = self.take(name)
        try:
            data = base64.b64decode(value, validate=True) if type(value) is str else b""
        except (binascii.Error, ValueError) as error:
            raise wrong(self.at(name), "base64") from error
        if not 0 < len(data) <= MAX_BYTES or base64.b64encode(data).decode() != value:
            raise wrong(self.at(name), f"1 to {MAX_BYTES} bytes in base64")
        return data

    def names(self, name: str) -> tuple[str, ...]:
        """A list of short texts, each once."""
        value = self.take(name)
        whole = type(value) is list and len(value) <= MAX_ENTRIES
        if not whole or not all(type(item) is str and _TEXT.match(item) for item in value):
            raise wrong(self.at(name), f"a list of at most {MAX_ENTRIES} names")
        if len(set(value)) != len(value):
            raise Luks2Error("repeated-name", "names something twice", self.at(name))
        return tuple(value)

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of entries by number, each once."""
        return tuple(entry_id(text, self.at(name)) for text in self.names(name))

    def inner(self, name: str) -> Fields:
        """An object."""
        return Fields(self.take(name), self.at(name))

    def entries(self, name: str, read: Callable[[Fields], Entry]) -> Mapping[int, Entry]:
        """An object whose members are numbered entries of one kind, in the order of their numbers."""
        whole = Fields(self.take(name), self.at(name))
        if len(whole._rest) > MAX_ENTRIES:
            raise Luks2Error("too-many", f"has {len(whole._rest)} entries; {MAX_ENTRIES} are possible", whole.path)
        numbered = {entry_id(key, whole.path): read(Fields(value, whole.at(key))) for key, value in whole._rest.items()}
        return dict(sorted(numbered.items()))

    def rest(self) -> dict[str, Any]:
        """Everything that was not taken; nothing is left."""
        rest, self._rest = self._rest, {}
        return rest

    def finish(self) -> None:
        """Refuse whatever was not taken."""
        if self._rest:
            name = min(self._rest)[:MAX_TEXT]
            raise Luks2Error("unknown-field", f"has a member {name!r} that LUKS2 does not have there", self.path)


def decimal(value: Any, path: str) -> int:
    """A 64-bit number that is written as a text."""
    if type(value) is not str or _DECIMAL.match(value) is None or int(value) > _U64:
        raise wrong(path, "a number of 64 bits, written as a text")
    return int(value)


def entry_id(text: str, path: str) -> int:
    """The number of an entry, in the one spelling that it has."""
    if _DECIMAL.match(text) is None or int(text) >= MAX_ENTRIES:
        raise Luks2Error("bad-number", f"numbers an entry {text[:MAX_TEXT]!r}", path)
    return int(text)


def wrong(path: str, meant: str) -> Luks2Error:
    """The error about a member that is something else."""
    return Luks2Error("wrong-type", f"is not {meant}", path)
