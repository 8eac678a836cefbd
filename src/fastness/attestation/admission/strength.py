"""How two values of a field compare, whatever the field: times, bounds, lists of people; and how to reach them in a spec.

Whatever cannot be compared (a time that nobody can read, a number that became a text) counts as weaker when it differs: who wants
to be waved through has to write something that can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration

Object = Mapping[str, Any]


def at(cluster: Object, *path: str) -> Any:
    """A value of the spec; None when there is none."""
    value: Any = cluster.get("spec")
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def entries(cluster: Object, *path: str) -> list[Object]:
    """The entries of a list of objects in the spec."""
    listed = at(cluster, *path)
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def texts(listed: Any) -> frozenset[str]:
    """The members of a list of texts."""
    return frozenset(str(item) for item in listed) if isinstance(listed, list) else frozenset()


def longer(old: Object, new: Object, path: tuple[str, ...], default: str) -> Iterator[str]:
    """A time that got longer; none at all is endless."""
    before, after = (_or_default(at(side, *path), default) for side in (old, new))
    if before != after and not _as_short(after, before, path[-1]):
        yield f"{_dotted(path)} goes from {before or 'never'} to {after or 'never'}"


def shorter(old: Object, new: Object, path: tuple[str, ...], default: str) -> Iterator[str]:
    """A time that got shorter."""
    before, after = (_or_default(at(side, *path), default) for side in (old, new))
    if before != after and not _as_short(before, after, path[-1]):
        yield f"{_dotted(path)} goes from {before} to {after}"


def lower_bounds(old: Any, new: Any, path: str) -> Iterator[str]:
    """Bounds in a tree that got lower or went away."""
    if isinstance(old, dict):
        for key, value in sorted(old.items()):
            yield from lower_bounds(value, new.get(key) if isinstance(new, dict) else None, f"{path}.{key}")
    elif old is not None and not _at_least(new, old):
        yield f"{path} goes from {old} to {'nothing' if new is None else new}"


def changed(old: Sequence[Object], new: Sequence[Object], gained: str, lost: str) -> Iterator[str]:
    """Entries that came and went, by name; one whose content changed does both."""
    before, after = (
        {json.canonical(dict(entry)): str(entry.get("name") or "") for entry in side} for side in (old, new)
    )
    for content in sorted(after.keys() - before.keys()):
        yield gained.format(name=after[content])
    for content in sorted(before.keys() - after.keys()):
        yield lost.format(name=before[content])


class FieldPath(NamedTuple):
    """Where a value is: the field as the schema knows it, and with the names of the entries that lead there."""

    field: str
    label: str


_ROOT: Final = FieldPath("", "")


def leaves(value: Any, skip: Callable[[str], bool], at: FieldPath = _ROOT) -> Iterator[tuple[FieldPath, bytes]]:
    """The values of a tree by their places, but for fields that are skipped; lists whose entries have no names count as one."""
    if at.field and skip(at.field):
        return
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            dot = "." if at.field else ""
            yield from leaves(inner, skip, FieldPath(f"{at.field}{dot}{key}", f"{at.label}{dot}{key}"))
    elif isinstance(value, list) and value and all(isinstance(entry, dict) and "name" in entry for entry in value):
        for entry in value:
            yield from leaves(entry, skip, FieldPath(f"{at.field}[]", f"{at.label}[{entry['name']}]"))
    elif value not in (None, {}, []):  # what says nothing is as good as absent
        yield at, json.canonical(value)


def _or_default(value: Any, default: str) -> Any:
    return default if value is None else value


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path[1:] or path)


def _as_short(time: Any, limit: Any, name: str) -> bool:
    if not limit:
        return True
    if not time:
        return False
    try:
        return duration(time, name) <= duration(limit, name)
    except DurationError:
        return False


def _at_least(new: Any, old: Any) -> bool:
    """Whether a bound is as high as before."""
    if new == old and isinstance(new, bool) == isinstance(old, bool):
        return True
    if isinstance(new, bool) or isinstance(old, bool):
        return new is True and old is False
    if isinstance(new, int | float) and isinstance(old, int | float):
        return new >= old
    if isinstance(new, str) and isinstance(old, str):
        if new.isdecimal() and old.isdecimal() and new.isascii() and old.isascii():
            return int(new) >= int(old)
        dates = [_moment(new), _moment(old)]
        return dates[0] is not None and dates[1] is not None and dates[0] >= dates[1]
    return False


def _moment(text: str) -> datetime | None:
    """A date or a time in UTC; None for anything else."""
    if not text.isascii() or len(text) > 40:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=None) if moment.tzinfo is None or not moment.utcoffset() else None
