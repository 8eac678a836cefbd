"""What changes between two rendered configs: every part, by name, with its content.

Both sides are specs whose Ignition is of the current version, as rendering makes them. Absent and neutral mean the same: no
kernel type is the default one, no list is an empty one. `Change` is one file, unit, user, argument list or field; `Flags` are the
questions that agents ask. The text of a change is a unified diff where both sides are text, digests where one is not, and never
a password.

`disruption` turns a difference into actions, `plan` shows it.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.ignition.shape import plain

Object = Mapping[str, Any]
# The text goes into plans, pages and answers of the API; a file of megabytes is told by its digest.
MAX_DIFF_LINES: Final = 400
MAX_TEXT: Final = 256 * 1024


class Part(StrEnum):
    """What kind of thing changed."""

    OS_IMAGE = "osImageURL"
    KERNEL_ARGUMENTS = "kernelArguments"
    KERNEL_TYPE = "kernelType"
    FIPS = "fips"
    EXTENSIONS = "extensions"
    FILE = "file"
    UNIT = "unit"
    USER = "user"
    GROUP = "group"
    DIRECTORY = "directory"
    LINK = "link"
    STORAGE = "storage"
    IGNITION = "ignition"
    OTHER = "other"

    @property
    def needs_reboot(self) -> bool:
        """Whether the part only takes effect at boot, whatever policies say."""
        return self in _HARD


# They take effect with the next boot only, so no policy can lower this: a machine that reports new kernel arguments and runs the
# old ones would say one thing and be another.
_HARD: Final = frozenset({Part.OS_IMAGE, Part.KERNEL_ARGUMENTS, Part.KERNEL_TYPE, Part.FIPS, Part.EXTENSIONS})


class How(StrEnum):
    """What happened to a part."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One part that differs; `old` and `new` are its JSON, None where it does not exist."""

    part: Part
    path: str
    how: How
    old: Any = None
    new: Any = None

    def __str__(self) -> str:
        named = f"{self.part} {self.path}" if self.path and self.path != self.part else str(self.part)
        return f"{named} {self.how}"


@dataclass(frozen=True, slots=True)
class Flags:
    """The questions that agents ask about a difference."""

    os_update: bool = False
    kargs: bool = False
    fips: bool = False
    passwd: bool = False
    files: bool = False
    units: bool = False
    kernel_type: bool = False
    extensions: bool = False

    @property
    def needs_reboot(self) -> bool:
        """Whether something changed that only takes effect at boot."""
        return self.os_update or self.kargs or self.fips or self.kernel_type or self.extensions


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes, in a fixed order: fields of the config, then files, units, users and the rest, each by name."""

    changes: tuple[ConfigChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    def of(self, part: Part) -> tuple[ConfigChange, ...]:
        """The changes of one kind."""
        return tuple(change for change in self.changes if change.part is part)

    @property
    def flags(self) -> Flags:
        """The questions that agents ask."""
        parts = {change.part for change in self.changes}
        return Flags(
            os_update=Part.OS_IMAGE in parts,
            kargs=Part.KERNEL_ARGUMENTS in parts,
            fips=Part.FIPS in parts,
            passwd=bool(parts & {Part.USER, Part.GROUP}),
            files=Part.FILE in parts,
            units=Part.UNIT in parts,
            kernel_type=Part.KERNEL_TYPE in parts,
            extensions=Part.EXTENSIONS in parts,
        )


# Fields of a MachineConfig's spec, and what stands for "not set".
_FIELDS: Final[tuple[tuple[Part, Any], ...]] = (
    (Part.OS_IMAGE, ""),
    (Part.KERNEL_ARGUMENTS, []),
    (Part.KERNEL_TYPE, "default"),
    (Part.FIPS, False),
    (Part.EXTENSIONS, []),
)
# Lists of the Ignition document: the part, where it is, and what names an entry.
_LISTS: Final[tuple[tuple[Part, str, str, str], ...]] = (
    (Part.FILE, "storage", "files", "path"),
    (Part.UNIT, "systemd", "units", "name"),
    (Part.USER, "passwd", "users", "name"),
    (Part.GROUP, "passwd", "groups", "name"),
    (Part.DIRECTORY, "storage", "directories", "path"),
    (Part.LINK, "storage", "links", "path"),
)
_STORAGE: Final = (("disks", "device"), ("raid", "name"), ("luks", "name"), ("filesystems", "device"))
_SPEC_KNOWN: Final = frozenset({"config", *(str(part) for part, _ in _FIELDS)})
_SECRET: Final = frozenset({"passwordHash"})


def compare(old: Object, new: Object) -> Difference:
    """What changes between two specs."""
    if old == new:
        return Difference()
    return Difference(tuple(_changes(old, new)))


def _changes(old: Object, new: Object) -> Iterator[ConfigChange]:
    for part, neutral in _FIELDS:
        # Absent and neutral must be one, or a config that states a default would reboot every machine of the pool.
        before, after = old.get(part) or neutral, new.get(part) or neutral
        if before != after:
            yield ConfigChange(part, str(part), How.CHANGED, before, after)
    # Fields that this version does not know are shown as well: a difference that is left out of a plan is one that nobody
    # approved.
    for name in sorted((old.keys() | new.keys()) - _SPEC_KNOWN):
        if (old.get(name) or None) != (new.get(name) or None):
            yield ConfigChange(Part.OTHER, name, How.CHANGED, old.get(name), new.get(name))
    yield from _document_changes(old.get("config") or {}, new.get("config") or {})


def _document_changes(old: Object, new: Object) -> Iterator[ConfigChange]:
    if old == new:
        return
    for part, section, name, key in _LISTS:
        yield from _entries(part, "", _at(old, section, name), _at(new, section, name), key)
    for name, key in _STORAGE:
        yield from _entries(Part.STORAGE, f"{name}/", _at(old, "storage", name), _at(new, "storage", name), key)
    for name in ("kernelArguments", "ignition"):
        before, after = plain(old.get(name) or {}), plain(new.get(name) or {})
        if before != after:
            yield ConfigChange(Part.IGNITION, name, How.CHANGED, before, after)


def _at(document: Object, section: str, name: str) -> list[JsonObject]:
    entries = (document.get(section) or {}).get(name)
    return entries if isinstance(entries, list) else []


def _entries(part: Part, prefix: str, old: list[JsonObject], new: list[JsonObject], key: str) -> Iterator[ConfigChange]:
    if old == new:
        return
    before, after = _by_key(old, key), _by_key(new, key)
    for name in sorted(before.keys() | after.keys()):
        was, will = before.get(name), after.get(name)
        if was == will or (was is not None and will is not None and plain(was) == plain(will)):
            continue
        how = How.ADDED if was is None else How.REMOVED if will is None else How.CHANGED
        yield ConfigChange(part, f"{prefix}{name}", how, was, will)


def _by_key(entries: list[JsonObject], key: str) -> dict[str, JsonObject]:
    return {str(entry.get(key)): entry for entry in entries}


def text_of(change: ConfigChange) -> str:
    """The change as text: a unified diff, or digests where the content is not text; bounded in length."""
    match change.part:
        case Part.FILE:
            return _file_text(change)
        case Part.UNIT:
            return _unified(change.path, _unit_text(change.old), _unit_text(change.new))
        case _:
            return _unified(change.path, _field_text(change.old), _field_text(change.new))


def _file_text(change: ConfigChange) -> str:
    lines = [
        f"{name}: {_printable(name, (change.old or {}).get(name))} -> {_printable(name, (change.new or {}).get(name))}"
        for name in ("mode", "user", "group", "overwrite", "append")
        if change.old is not None
        and change.new is not None
        and plain((change.old or {}).get(name)) != plain((change.new or {}).get(name))
    ]
    old, new = file_bytes(change.old), file_bytes(change.new)
    if old != new or change.how is not How.CHANGED:
        lines.append(_content_text(change, old, new))
    return "\n".join(line for line in lines if line)


def _content_text(change: ConfigChange, old: bytes | None, new: bytes | None) -> str:
    before, after = _decoded(old), _decoded(new)
    if before is None or after is None:
        return f"content: {_digest(change.old, old)} -> {_digest(change.new, new)}"
    return _unified(change.path, before, after)


def _decoded(data: bytes | None) -> str | None:
    """Text of bounded length, or None; no content is empty text."""
    if data is None:
        return ""
    # git's rule of thumb: with a NUL it is not text, whatever it decodes to.
    if len(data) > MAX_TEXT or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _digest(entry: Any, data: bytes | None) -> str:
    if entry is None:
        return "absent"
    return f"sha256:{hashlib.sha256(data).hexdigest()} ({len(data)} bytes)" if data is not None else "fetched elsewhere"


def _unit_text(unit: Any) -> str:
    if unit is None:
        return ""
    lines = [f"# {name}: {_printable(name, unit[name])}" for name in ("enabled", "mask") if unit.get(name) is not None]
    lines.append(str(unit.get("contents") or "").rstrip("\n"))
    for dropin in unit.get("dropins") or ():
        lines += [f"# drop-in {dropin.get('name')}", str(dropin.get("contents") or "").rstrip("\n")]
    return "\n".join(line for line in lines if line) + "\n"


def _field_text(value: Any, indent: str = "") -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return "".join(
            f"{indent}{name}:\n{_field_text(item, indent + '  ')}"
            if isinstance(item, dict | list)
            else f"{indent}{name}: {_printable(name, item)}\n"
            for name, item in sorted(value.items())
        )
    if isinstance(value, list):
        return "".join(
            f"{indent}-\n{_field_text(item, indent + '  ')}" if isinstance(item, dict) else f"{indent}- {item}\n"
            for item in value
        )
    return f"{indent}{_printable('', value)}\n"


def _printable(name: str, value: Any) -> str:
    if name in _SECRET:
        # The digest tells two hashes apart without handing either to somebody who may crack it.
        return f"(hidden, {hashlib.sha256(str(value).encode()).hexdigest()[:8]})"
    if name == "mode" and isinstance(value, int):
        return f"{value:04o}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else str(value)


def _unified(path: str, old: str, new: str) -> str:
    lines = list(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}", lineterm=""
        )
    )
    if len(lines) > MAX_DIFF_LINES:
        lines = [*lines[:MAX_DIFF_LINES], f"... {len(lines) - MAX_DIFF_LINES} more lines"]
    return "\n".join(lines)
