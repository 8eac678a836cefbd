"""Message descriptions: the tables of this package, compiled to what the decoder looks up.

A line of a table describes one message, `name: number field type; …`:

    core.ConfigMap: 1 metadata meta.ObjectMeta; 2 data {}string; 3 binaryData {}bytes; 4 immutable bool!

- Types: `string`, `bool`, `int`, `bytes`, a message by name, `[]T` for a list, `{}T` for a map with text keys, and the types
  whose JSON form is special (`time`, `microtime`, `quantity`, `intorstring`, `rawjson`, `strings`).
- `!` keeps a zero value. Without it, empty text, 0 and false are left out of the JSON form: Kubernetes' encoder writes
  every plain field, set or not, and `omitempty` hides it again. A field that is a pointer, or required, has the `!`. An empty
  list has no form on the wire: one with `!` is there where nothing came.
- The field name `.` means that the members of the message stand directly in the parent (a Volume's source).

Lines are compiled on first use, so importing this costs nothing for a process that never sees protobuf.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from fastness.formats.protobuf.tables import MESSAGE_LINES

Shape = Literal["one", "list", "map"]

SCALARS: Final = frozenset(("string", "bool", "int", "bytes"))
SPECIAL: Final = frozenset(("time", "microtime", "quantity", "intorstring", "rawjson", "strings"))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: its JSON name and what it holds."""

    name: str
    type: str
    shape: Shape
    keep_zero: bool

    @property
    def inline(self) -> bool:
        """Whether the members of this message stand directly in the parent."""
        return self.name == "."


@cache
def message(name: str) -> dict[int, Field]:
    """The fields of a message by number."""
    return {int(number): _field(json_name, type_) for number, json_name, type_ in _columns(MESSAGE_LINES[name])}


def _columns(line: str) -> list[list[str]]:
    return [column.split() for column in line.split(";") if column.strip()]


def _field(name: str, type_: str) -> Field:
    keep_zero = type_.endswith("!")
    bare = type_.removesuffix("!")
    shape: Shape = "list" if bare.startswith("[]") else "map" if bare.startswith("{}") else "one"
    return Field(name, bare.removeprefix("[]").removeprefix("{}"), shape, keep_zero)
