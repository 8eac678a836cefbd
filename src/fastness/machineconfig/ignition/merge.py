"""Child configs laid over a parent, as Ignition does it, for configs of spec 3 in normal form.

- A scalar of the child replaces that of the parent; what the child does not mention stays.
- Entries of keyed lists with the same key become one, in the parent's place; others are appended in the child's order.
- Lists that share a key space exclude each other: a child's link takes away the parent's file at that path.
- A header without a value takes away the parent's header. Lists without keys are concatenated.

`Merger` takes any number of children one after the other and keeps its lists indexed by key, so the cost is that of the
entries brought, however much has been merged before. Nothing is copied that does not change, and no child is changed.

Two corrections make merging fit for machine configs, where many children define whole files. `forget_compression` lets a
child's file that brings contents but no compression override an inherited `gzip`. `default_overwrite` lets every
file replace what the image has at its path. A merger with `corrections` does the same to the few files that need it.
"""

from collections.abc import Iterable
from typing import Any, Final

from fastness.machineconfig.ignition.fields import PARTITION, VALUE, Field, Kind
from fastness.machineconfig.ignition.origins import Observer, Origins, Place
from fastness.machineconfig.ignition.shape import JsonObject, Shape, entry_key, shape_of
from fastness.protocol.ignition_spec import CURRENT

_SCALARS: Final = frozenset({Kind.STRING, Kind.INTEGER, Kind.BOOLEAN})


class Merger:
    """Accumulates children; `result` is the config they make together."""

    def __init__(self, observer: Observer | None = None, corrections: bool = False) -> None:
        origins = Origins(observer) if observer is not None else None
        self._corrections = corrections
        self._root = _Section(shape_of(CURRENT), (), origins, corrections)

    def add(self, child: JsonObject, source: str = "") -> None:
        """Lay one more child over what is there; `source` is the name under which the observer hears of it."""
        self._root.add(child, source)

    def result(self) -> JsonObject:
        """The merged config, in normal form."""
        merged = self._root.result()
        return default_overwrite(merged) if self._corrections else merged


def merge(parent: JsonObject, child: JsonObject, observer: Observer | None = None) -> JsonObject:
    """One child over one parent; the observer hears of them as `parent` and `child`."""
    merger = Merger(observer)
    merger.add(parent, "parent")
    merger.add(child, "child")
    return merger.result()


def merge_all(
    children: Iterable[tuple[str, JsonObject]], observer: Observer | None = None, corrections: bool = False
) -> JsonObject:
    """Named children in order, the first being the base; `corrections` are those for machine configs."""
    merger = Merger(observer, corrections)
    for source, child in children:
        merger.add(child, source)
    return merger.result()


def forget_compression(child: JsonObject) -> JsonObject:
    """The child with an explicit empty compression on each file that brings contents without naming one."""
    return _with_files(child, _name_compression)


def settle_compression(config: JsonObject) -> JsonObject:
    """The config with empty compressions taken out again, once merging is done."""
    return _with_files(config, _drop_empty_compression)


def default_overwrite(config: JsonObject) -> JsonObject:
    """The config with `overwrite: true` on every file that does not say."""
    # Without it Ignition fails the boot where the image has a file of that path, and to replace one is what a MachineConfig is
    # often for.
    return _with_files(config, lambda file: file if "overwrite" in file else {**file, "overwrite": True})


def _with_files(config: JsonObject, change: Any) -> JsonObject:
    storage = config.get("storage")
    if not storage or not storage.get("files"):
        return config
    return {**config, "storage": {**storage, "files": [change(file) for file in storage["files"]]}}


def _name_compression(file: JsonObject) -> JsonObject:
    contents = file.get("contents")
    if contents is None or "source" not in contents or "compression" in contents:
        return file
    # A child's plain text over a parent's gzip would inherit "gzip", and the machine would fail to unpack text at its first boot.
    return {**file, "contents": {**contents, "compression": ""}}


def _drop_empty_compression(file: JsonObject) -> JsonObject:
    contents = file.get("contents")
    if contents is None or contents.get("compression") != "":
        return file
    return {**file, "contents": {name: value for name, value in contents.items() if name != "compression"}}


class _Section:
    """An object on the way from the root to the lists: its lists, which all have keys, are dicts while merging."""

    def __init__(self, shape: Shape, place: Place, origins: Origins | None, corrections: bool) -> None:
        self._shape = shape
        self._place = place
        self._origins = origins
        self._corrections = corrections
        self._scalars: JsonObject = {}
        self._sections: dict[str, _Section] = {}
        self._lists: dict[str, dict[str, Any]] = {}
        self._rivals = {name: [other for other in names if other != name] for names in shape.spaces for name in names}

    def add(self, child: JsonObject, source: str) -> None:
        for name, item in child.items():
            _, kind, field, shape = self._shape.fields[name]
            if kind in _SCALARS:
                _tell(self._origins, (*self._place, name), source, item, self._scalars.get(name))
                self._scalars[name] = item
            elif kind is Kind.OBJECT and shape is not None:
                if name not in self._sections:
                    self._sections[name] = _Section(shape, (*self._place, name), self._origins, self._corrections)
                self._sections[name].add(item, source)
            else:
                self._add_entries(name, field, shape, item, source)

    def _add_entries(self, name: str, field: Field, shape: Shape | None, items: list[Any], source: str) -> None:
        entries = self._lists.setdefault(name, {})
        rivals = [(rival, self._lists[rival]) for rival in self._rivals.get(name, ()) if rival in self._lists]
        origins = self._origins
        simple = "" if field.key in (VALUE, PARTITION) else field.key
        for item in items:
            key = item.get(simple, "") if simple else entry_key(field.key, item)
            # Files, directories and links share one key space (Ignition's merge rules): the last one to claim a path has it.
            for rival, others in rivals:
                if key in others:
                    old = others.pop(key)
                    if origins is not None:
                        origins.removed((*self._place, rival, key), source, old)
            present = entries.get(key)
            if present is None:
                entries[key] = item
                if origins is not None:
                    origins.added((*self._place, name, key), source, item)
            elif self._corrections and name == "files":
                _merge_entry(entries, key, field, shape, _name_compression(item), (*self._place, name), source, origins)
                entries[key] = _drop_empty_compression(entries[key])
            else:
                _merge_entry(entries, key, field, shape, item, (*self._place, name), source, origins)

    def result(self) -> JsonObject:
        merged = dict(self._scalars)
        for name, section in self._sections.items():
            if value := section.result():
                merged[name] = value
        merged |= {name: list(entries.values()) for name, entries in self._lists.items() if entries}
        return merged


def _merge_entry(
    entries: dict[str, Any],
    key: str,
    field: Field,
    shape: Shape | None,
    item: Any,
    place: Place,
    source: str,
    origins: Origins | None,
) -> None:
    """An entry that both sides have: merge it where it stands."""
    here = (*place, key)
    if shape is None:
        _tell(origins, here, source, item, entries[key])
    # Ignition's documented way to take an inherited header away: a child that names it without a value.
    elif field.struct == "HttpHeader" and "value" not in item:
        if origins is not None:
            origins.removed(here, source, entries[key])
        del entries[key]
    else:
        # Field by field, as Ignition does it, also where that surprises: a child that brings new contents keeps the mode and the
        # owner of the parent's file.
        entries[key] = _merge_object(shape, entries[key], item, here, source, origins, field.key)


def _merge_object(
    shape: Shape,
    parent: JsonObject,
    child: JsonObject,
    place: Place,
    source: str,
    origins: Origins | None,
    key: str = VALUE,
) -> JsonObject:
    merged = dict(parent)
    for name, item in child.items():
        if name == key:
            continue
        _, kind, field, inner = shape.fields[name]
        here = (*place, name) if origins is not None else ()
        old = parent.get(name)
        if old is None or kind in _SCALARS:
            _tell(origins, here, source, item, old)
            merged[name] = item
        elif kind is Kind.OBJECT and inner is not None:
            merged[name] = _merge_object(inner, old, item, here, source, origins)
        elif field.key:
            merged[name] = _merge_lists(field, inner, old, item, here, source, origins)
        else:
            # No key, so nothing can tell a repetition from a second entry (fragments to append, options of mkfs): both stay, in
            # order.
            merged[name] = old + item
            for number, value in enumerate(item, len(old)):
                _tell(origins, (*here, str(number)), source, value, None)
    return merged


def _merge_lists(
    field: Field,
    shape: Shape | None,
    parent: list[Any],
    child: list[Any],
    place: Place,
    source: str,
    origins: Origins | None,
) -> list[Any]:
    entries = {entry_key(field.key, entry): entry for entry in parent}
    for item in child:
        key = entry_key(field.key, item)
        if key in entries:
            _merge_entry(entries, key, field, shape, item, place, source, origins)
        else:
            entries[key] = item
            _tell(origins, (*place, key), source, item, None)
    return list(entries.values())


def _tell(origins: Origins | None, place: Place, source: str, value: Any, old: Any) -> None:
    # An empty string over nothing says nothing; a correction puts such a compression in and takes it out again.
    if origins is None or (value == "" and not old):
        return
    if old is None or old == "":
        origins.added(place, source, value)
    else:
        origins.replaced(place, source, value, old)
