"""Does a JSON value have the shape that the field table describes?

The walk reports wrong types, fields the version does not know and repeated entries, and returns the value in normal form:
null means the same as absent, so nulls are gone; what has a wrong type or no meaning is gone too, so that the checks that
follow can rely on types. A value that is already in normal form is returned as it is, without a copy.

Go's JSON reader, which Ignition uses, matches field names without regard to capitals. A name that differs from a known one
only in capitals is therefore no harmless unknown field: the machine would obey it while every other reader ignores it. It is
an error here.
"""

from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from fastness.machineconfig.ignition.fields import PARTITION, SPEC_2, SPEC_3, VALUE, Field, Kind
from fastness.machineconfig.ignition.problems import Path, Report
from fastness.protocol.ignition_spec import LEGACY, Version, minor

JsonObject = dict[str, Any]

_PYTHON: Final[dict[Kind, type]] = {
    Kind.STRING: str,
    Kind.INTEGER: int,
    Kind.BOOLEAN: bool,
    Kind.STRINGS: list,
    Kind.OBJECT: dict,
    Kind.OBJECTS: list,
}
_MAX_SUGGESTED_NAME: Final = 40


class Shape:
    """The fields of one struct in one spec version, resolved for walking."""

    __slots__ = ("fields", "later", "spaces", "struct")

    def __init__(self, struct: str) -> None:
        self.struct = struct
        self.fields: dict[str, tuple[type, Kind, Field, Any]] = {}
        self.later: dict[str, int] = {}
        self.spaces: list[list[str]] = []


@cache
def shape_of(version: Version) -> Shape:
    """The shape of a whole config of a version."""
    table = SPEC_2 if version == LEGACY else SPEC_3
    limit = 0 if version == LEGACY else minor(version)
    shapes = {struct: Shape(struct) for struct in table}
    for struct, fields in table.items():
        shape = shapes[struct]
        for name, field in fields.items():
            if field.since > limit:
                shape.later[name] = field.since
            else:
                child = shapes[field.struct] if field.struct else None
                shape.fields[name] = (_PYTHON[field.kind], field.kind, field, child)
        spaces: dict[str, list[str]] = {}
        for name, field in fields.items():
            if field.space and name in shape.fields:
                spaces.setdefault(field.space, []).append(name)
        shape.spaces = [names for names in spaces.values() if len(names) > 1]
    return shapes["Config"]


def normalise(version: Version, value: JsonObject, report: Report) -> JsonObject:
    """Check the shape of a config; the result is in normal form and holds only what the version knows."""
    return _object(shape_of(version), value, None, report)


def _object(shape: Shape, value: JsonObject, path: Path, report: Report) -> JsonObject:
    clean = value
    fields = shape.fields
    for name, item in value.items():
        row = fields.get(name)
        if row is None:
            _report_unknown(shape, name, path, report)
        # `is` and not isinstance: to Python `true` is an integer, and a mode of `true` must not pass as 1.
        elif type(item) is row[0]:
            fresh: Any = item
            kind = row[1]
            if kind is Kind.OBJECT:
                fresh = _object(row[3], fresh, (path, name), report)
            elif kind is Kind.OBJECTS or kind is Kind.STRINGS:
                fresh = _list(row[2], row[3], fresh, (path, name), report)
            if fresh is not item:
                clean = dict(value) if clean is value else clean
                clean[name] = fresh
            continue
        elif item is not None:
            report.error((path, name), "wrong-type", f"must be {row[1].value}, not {_describe(item)}")
        clean = dict(value) if clean is value else clean
        del clean[name]
    for names in shape.spaces:
        _check_space(shape, names, clean, path, report)
    return clean


def _list(field: Field, shape: Shape | None, value: list[Any], path: Path, report: Report) -> list[Any]:
    clean: list[Any] = []
    same = True
    expected: type[Any] = str if shape is None else dict
    for index, item in enumerate(value):
        fresh = item
        if type(item) is expected:
            if shape is not None:
                fresh = _object(shape, item, (path, index), report)
        elif item is None:
            # As in Ignition: a null entry is an entry with nothing in it, and fails where something is required.
            fresh = expected()
        else:
            entry_type = "a string" if shape is None else "an object"
            report.error((path, index), "wrong-type", f"must be {entry_type}, not {_describe(item)}")
            fresh = expected()
        same = same and fresh is item
        clean.append(fresh)
    if field.key and len(clean) > 1:
        keys = [entry_key(field.key, item) for item in clean]
        # Which of two entries counts is up to the reader, so two readers of the same config may build two machines.
        if len(set(keys)) != len(keys):
            _report_duplicates([(path, index) for index in range(len(keys))], keys, report)
    return value if same else clean


def entry_key(key: str, entry: Any) -> str:
    """What tells an entry of a keyed list apart from its neighbours."""
    if key == VALUE:
        return str(entry)
    if key != PARTITION:
        value: str = entry.get(key, "")
        return value
    if entry.get("number", 0) != 0:
        return f"number {entry['number']}"
    return f"label {entry['label']}" if "label" in entry else ""


def _check_space(shape: Shape, names: list[str], value: JsonObject, path: Path, report: Report) -> None:
    present = [name for name in names if value.get(name)]
    if len(present) < 2:
        return
    keys: list[str] = []
    paths: list[Path] = []
    for name in present:
        key = shape.fields[name][2].key
        keys += [entry_key(key, entry) for entry in value[name]]
        paths += [((path, name), index) for index in range(len(value[name]))]
    # A path that is a file and a link at once: the link would decide where the content goes.
    if len(set(keys)) != len(keys):
        _report_duplicates(paths, keys, report)


def _report_duplicates(paths: list[Path], keys: list[str], report: Report) -> None:
    first: dict[str, Path] = {}
    for path, key in zip(paths, keys, strict=True):
        if key in first:
            report.error(path, "duplicate", f"{_shorten(key)} was defined before" if key else "was defined before")
        else:
            first[key] = path


def _report_unknown(shape: Shape, name: str, path: Path, report: Report) -> None:
    where: Path = (path, _shorten(name))
    if name in shape.later:
        report.unknown(where, f"exists only since spec 3.{shape.later[name]}")
        return
    lower = name.lower()
    for field in shape.fields:
        # An error and not a warning: encoding/json prefers the exact name but takes any capitals, so `Mode` beside `mode` is a
        # way to hide a value from reviewers.
        if field.lower() == lower:
            report.error(where, "field-case", f"must be spelled {field}")
            return
    close = []
    # The search is costly, so a config full of nonsense gets it only for its first mistakes.
    if len(name) <= _MAX_SUGGESTED_NAME and len(report.problems) < 8:
        close = get_close_matches(name, shape.fields, 1, 0.7)
    report.unknown(where, "is not a known field" + (f"; perhaps {close[0]} is meant" if close else ""))


def _describe(item: Any) -> str:
    names = {
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a fraction",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(item), "something else")


def _shorten(text: str) -> str:
    # Names come from the config; a message must not be as long as its author likes.
    return text if len(text) <= 80 else text[:77] + "..."


def plain(value: Any) -> Any:
    """A value without nulls and empty containers, which mean the same as nothing."""
    if isinstance(value, dict):
        cleaned = {name: plain(item) for name, item in value.items()}
        return {name: item for name, item in cleaned.items() if item not in (None, [], {})}
    return [plain(item) for item in value] if isinstance(value, list) else value
