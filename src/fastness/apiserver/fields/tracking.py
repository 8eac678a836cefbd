"""Ownership through a write: the two entry points of this package.

`track_update` is for create, update and patch: whoever writes a field owns it from then on, alone; what disappears leaves
everybody's set. `apply` is for server-side apply: the configuration is merged into the live object, and its manager owns
exactly the fields that it states.

- A field that another manager owns, and to which the configuration gives another value, is a conflict; `force` takes it.
- Equal values are owned together.
- What the manager applied last time, does not apply now, and nobody else owns, is removed.
- An apply that changes nothing leaves the time of its line alone, so that the stored object stays byte for byte the same.
- Fields that the door resets (`reset`) and that the server fills in belong to nobody.

Both are pure: objects go in as they are and are not changed; times are strings. The REST engine goes on with admission,
validation and the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from fastness.apiserver.fields.client_side import KUBECTL, follow, recorded
from fastness.apiserver.fields.compare import FieldChange, compare, same
from fastness.apiserver.fields.element import SELF
from fastness.apiserver.fields.errors import (
    ApplyConflict,
    BadConfiguration,
    DamagedOwnership,
    FieldConflict,
    ManagedFieldsGiven,
)
from fastness.apiserver.fields.fieldset import (
    FieldSet,
    Path,
    Trie,
    difference,
    human,
    intersection,
    ordered,
    paths,
    union,
    without,
)
from fastness.apiserver.fields.managed import (
    Identity,
    Managed,
    ManagedFieldsEntry,
    Writer,
    capped,
    identity,
    is_reset,
    listed,
    parse,
    stored,
)
from fastness.apiserver.fields.merge import check, merge, remove
from fastness.apiserver.fields.ownership import NOTHING, created, stated_fields, strip
from fastness.apiserver.fields.schema import DEDUCED, Node, TypedSchema
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata

BEFORE_FIRST_APPLY: Final = "before-first-apply"


class Applied(NamedTuple):
    """The merged object, fresh and with its managedFields, and whether anything differs from the live object."""

    obj: JsonObject
    managed: list[JsonObject]
    changed: bool


def track_update(
    live: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    by: Writer,
    schema: TypedSchema,
    reset: FieldSet = NOTHING,
) -> list[JsonObject]:
    """The managedFields of `new` after a create (`live` is None), update or patch; empty means: leave the field out.

    The list may be put into the object as it is; its fieldsV1 are shared and must not be written into.
    """
    sent = metadata(new).get("managedFields")
    # The way of most creates: no comparison with nothing, the walk over the object gives the set at once.
    if live is None and not sent and not schema.native:
        fields = created(new, schema, reset)
        by_now = ManagedFieldsEntry(by.manager or "unknown", "Update", by.api_version, by.time, by.subresource, fields)
        return [by_now.to_json()] if fields else []
    managed = _before(live, sent, by, schema)
    if live is not None and not managed:
        return []  # ownership was never tracked, or just reset: only an apply starts it again
    change = compare(live or {}, new, schema).without(reset)
    return listed(capped(_taken_over(managed, change, by)))


def apply(
    live: Mapping[str, Any] | None,
    config: Mapping[str, Any],
    by: Writer,
    schema: TypedSchema,
    *,
    force: bool = False,
    reset: FieldSet = NOTHING,
) -> Applied:
    """Merge a configuration into the live object (None: create it); raises ApplyConflict or BadConfiguration."""
    # Otherwise an applier could give itself, or take away, fields that it never applied; kube-apiserver refuses it, too.
    if metadata(config).get("managedFields") is not None:
        raise ManagedFieldsGiven
    _check(config, schema.root)
    base: Mapping[str, Any] = live if live is not None else {}
    managed = _owners(base, by, schema)
    mine = identity("Apply", by.manager, by.api_version, by.subresource)
    last = managed.get(mine)
    managed[mine] = _claim(config, by, schema, reset)._replace(time=last.time if last is not None else "")
    merged: JsonObject = merge(dict(base), dict(config), schema.root)
    # What is left out now was applied before: that is how a field is removed by apply. Without this nothing could ever go.
    if last is not None and difference(last.fields, managed[mine].fields):
        merged = _pruned(merged, managed, last.fields, schema.root)
    change = compare(base, merged, schema).without(reset)
    taken = change.taken
    if not force:
        _refuse(_conflicts(managed, mine, taken), base, by, schema)
    # Only after the refusal above: a conflict must leave everybody's ownership as it was.
    managed = {mine: managed.pop(mine), **_surrendered(managed, taken, change.removed or {})}
    managed = _signed(managed, mine, "" if same(dict(base), merged) else by.time)
    return _result(live, merged, managed, config if by.manager == KUBECTL else None)


def _claim(config: Mapping[str, Any], by: Writer, schema: TypedSchema, reset: FieldSet) -> ManagedFieldsEntry:
    """The line of an applier: the fields that its configuration states."""
    stated = stated_fields(dict(config), schema.root) or {}
    stated = without(stated, reset.trie) if reset else stated
    return ManagedFieldsEntry(by.manager, "Apply", by.api_version, "", by.subresource, stated)


def _check(config: Mapping[str, Any], root: Node) -> None:
    try:
        check(dict(config), root)
    except BadConfiguration as bad:
        meta, version = metadata(config), str(config.get("apiVersion", ""))
        name = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        kind = f"{version if '/' in version else '/' + version}, Kind={config.get('kind', '')}"
        bad.message = f"failed to create typed patch object ({name}; {kind}): {bad.message}"
        raise


def _result(
    live: Mapping[str, Any] | None, merged: JsonObject, managed: Managed, to_follow: Mapping[str, Any] | None
) -> Applied:
    lines = listed(managed)
    # A round trip through JSON is the cheapest deep copy there is, and callers go on to write defaults into the object.
    obj: JsonObject = orjson.loads(orjson.dumps(merged))
    if to_follow is not None:
        follow(obj, to_follow)
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    obj["metadata"] = {**meta, "managedFields": lines} if lines else meta
    return Applied(obj, lines, live is None or not same(dict(live), obj))


def _before(live: Mapping[str, Any] | None, sent: Any, by: Writer, schema: TypedSchema) -> Managed:
    """Ownership before the write: what the client sent counts, unless it sent nothing that can be read."""
    entries = metadata(live).get("managedFields") if live is not None else None
    # A client may hand ownership over by an update of the list; through a subresource it may not touch metadata at all.
    if sent is not None and not by.subresource and sent != entries:
        if is_reset(sent):
            return {}
        # Unreadable ownership must not make an object unwritable: as on kube-apiserver, what was stored counts then.
        with suppress(DamagedOwnership):
            return _current(parse(sent), schema)
    with suppress(DamagedOwnership):
        return _current(stored(entries), schema)
    return {}


def _owners(live: Mapping[str, Any], by: Writer, schema: TypedSchema) -> Managed:
    """Ownership before an apply: fields of an object that was never tracked are owned by nobody in particular."""
    managed = _current(stored(metadata(live).get("managedFields")), schema)
    if managed or not live:
        return managed
    return _taken_over({}, compare({}, live, schema), by._replace(manager=BEFORE_FIRST_APPLY))


def _current(managed: Managed, schema: TypedSchema) -> Managed:
    """Ownership under the schema and the versions of today."""
    out: Managed = {}
    for each, entry in managed.items():
        # A line of a version that is not served any more cannot be read by its schema, and would be a conflict for ever.
        if not schema.api_versions or entry.api_version in schema.api_versions:
            fields = reconciled(entry.fields, schema.root)
            out[each] = entry if fields is entry.fields else entry._replace(fields=fields)
    return out


def _taken_over(managed: Managed, change: FieldChange, by: Writer) -> Managed:
    """Ownership after an update: changed fields go from everybody to the writer, removed ones go."""
    taken = change.taken
    out = _surrendered(managed, taken, change.removed or {})
    own = strip(taken)
    if own:
        mine = identity("Update", by.manager or "unknown", by.api_version, by.subresource)
        previous = out.get(mine)
        fields = ordered(union(previous.fields, own) if previous is not None else own)
        out[mine] = ManagedFieldsEntry(
            by.manager or "unknown", "Update", by.api_version, by.time, by.subresource, fields
        )
    return out


def _surrendered(managed: Managed, taken: Trie, removed: Trie) -> Managed:
    """Everybody's ownership without fields that changed or went; who has nothing left is not listed."""
    out: Managed = {}
    for each, entry in managed.items():
        left = _left(entry.fields, taken, removed)
        if left:
            out[each] = entry if left is entry.fields else entry._replace(fields=left)
    return out


def _left(fields: Trie, taken: Trie, removed: Trie) -> Trie:
    left = fields
    for gone in (taken, removed):
        if gone and intersection(left, gone):
            left = difference(left, gone)
    return left


def _conflicts(managed: Managed, mine: Identity, taken: Trie) -> list[tuple[ManagedFieldsEntry, Path]]:
    """Fields that an apply would change and that others own."""
    return [
        (entry, path)
        for each, entry in managed.items()
        if each != mine
        for path in paths(intersection(entry.fields, taken))
    ]


def _refuse(
    conflicts: list[tuple[ManagedFieldsEntry, Path]], base: Mapping[str, Any], by: Writer, schema: TypedSchema
) -> None:
    """Raise ApplyConflict, unless all fields were the applier's own under client-side apply."""
    if not conflicts:
        return
    own = recorded(base, by.api_version, schema) if by.manager == KUBECTL else NOTHING
    refused = [
        FieldConflict(entry.manager, entry.operation, entry.api_version, entry.subresource, human(path))
        for entry, path in conflicts
        if not own.has(path)
    ]
    if refused:
        raise ApplyConflict(refused)


def _signed(managed: Managed, mine: Identity, time: str) -> Managed:
    """The applier's own line: stripped, ordered, dated when the object changed, gone when it states nothing."""
    entry = managed.pop(mine)
    fields = ordered(strip(entry.fields))
    if fields:
        managed[mine] = entry._replace(fields=fields, time=time or entry.time)
    return managed


def _pruned(merged: JsonObject, managed: Managed, last: Trie, root: Node) -> JsonObject:
    """The merged object without what its manager applied last time and nobody owns now."""
    everything = _named(stated_fields(merged, root) or {}, root)
    claimed: Trie = {}
    for entry in managed.values():
        claimed = union(claimed, entry.fields)
    before = _named(last, root)
    bare = remove(merged, before, root)
    named = union(_named(stated_fields(bare, root) or {}, root), _named(claimed, root))
    owned = remove(merged, difference(everything, named), root)
    gone = difference(everything, _named(stated_fields(owned, root) or {}, root))
    left: JsonObject = remove(merged, intersection(gone, before), root)
    return left


def _named(trie: Trie, node: Node | None) -> Trie:
    """The trie with declared struct fields as members wherever something below them is one."""
    out: Trie = {}
    for step, below in trie.items():
        child, declared = None, False
        if node is not None and step[:2] == "f:" and node.map is not None:
            child, declared = node.map.field(step[2:]), node.map.declares(step[2:])
        elif node is not None and step[:2] == "k:" and node.list is not None:
            child = node.list.element
        deeper = _named(below, child) if below else below
        out[step] = {SELF: {}, **deeper} if deeper and declared else deeper
    return out


def reconciled(trie: Trie, node: Node) -> Trie:
    """The trie with paths below atomic places replaced by the place; the very same trie when there are none.

    When a list or a map becomes atomic, managers still hold paths below it that nobody can own any more. They own the whole from
    then on, all of them, until one changes it. The other way round needs nothing: the next write divides what was whole.
    Free-form places are left alone.
    """
    if node is DEDUCED:
        return trie
    shape = node.map or (None if node.scalar else node.list)
    if shape is None or not trie:
        return trie
    if shape.atomic:
        return {}
    changed: Trie = {}
    for step, below in trie.items():
        if below and step != SELF:
            child = shape.element if step[0] != "f" or node.map is None else node.map.field(step[2:])
            now = reconciled(below, child) if child is not None else below
            if now is not below:
                changed[step] = now
    return {**trie, **changed} if changed else trie
