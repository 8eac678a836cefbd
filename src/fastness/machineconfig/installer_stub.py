"""Pointers that an installer made (`<role>-user-data`): whose they are, and what may be changed in them.

    is_unmanaged_pointer(secret)       a pointer that somebody else made
    with_ca(secret, ca)                the same with today's authority, if the one in it is ours
    brought(secret, managed, version)  the content of the pool's own Secret in its place

Not one byte of a stub changes that leads to somebody else's server: machines of that installer are created with it. It is ours to
change when every authority in it is one of the doors', or when it is what we wrote last. A spec 2 stub is brought to spec 3 if it
is ours, or if a person says on every machine set that uses it that the boot image reads spec 3; it becomes what the managed
Secret says, ticket and address and all, because a stub of spec 3 without a ticket lets nobody in.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.formats import data_url, json
from fastness.formats.errors import DataUrlError, JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, object_name
from fastness.machineconfig.boot_images.makers import user_data_of
from fastness.machineconfig.pointer import base64_of, sealed, untouched
from fastness.machineconfig.render.errors import BadPointer

Object = Mapping[str, Any]
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


def is_unmanaged_pointer(secret: Object) -> bool:
    """Whether a Secret holds a pointer that somebody else made."""
    return names.MANAGED_CA_LABEL not in labels_of(secret) and _stub(secret) is not None


def is_brought(secret: Object) -> bool:
    """Whether a stub is one that we brought to spec 3 and nobody touched since."""
    return names.STUB_UPGRADED_TO in annotations_of(secret) and untouched(secret)


def pool_of(secret: Object) -> str:
    """The pool whose machines a stub is for; empty when its name does not tell."""
    name = object_name(secret).name
    return (
        name.removesuffix(names.UNMANAGED_USER_DATA_SUFFIX) if name.endswith(names.UNMANAGED_USER_DATA_SUFFIX) else ""
    )


def with_ca(secret: Object, ca: str) -> JsonObject | None:
    """A patch that brings the doors' authority of today into a stub that had an earlier one; None when there is nothing to do.

    Raises BadPointer for several authorities of which some are ours.
    """
    stub = _stub(secret)
    if stub is None:
        return None
    tls = _table(_table(stub["ignition"], "security"), "tls")
    sources = _authorities(stub)
    ours = [entry for entry in sources if untouched(secret) or _is_ours(entry, ca)]
    if not ours:
        return None
    if len(sources) > 1:
        text = f"{object_name(secret)} names {len(sources)} authorities, and ours is one of them"
        raise BadPointer(text, "leave one, or change it by hand when ours changes")
    source = data_url.encode(ca.encode(), "text/plain;charset=utf-8")
    if ours[0].get("source") == source:
        return None
    security = {"security": {"tls": {**tls, "certificateAuthorities": [{**ours[0], "source": source}]}}}
    return _patch(secret, {**stub, "ignition": {**stub["ignition"], **security}}, {})


def leads_here(secret: Object, ca: str) -> bool:
    """Whether a stub trusts the doors of this cluster and nobody else."""
    entries = _authorities(_stub(secret) or {})
    return bool(entries) and all(_is_ours(entry, ca) for entry in entries)


def says_so(secret: str, makers: Iterable[Object]) -> bool:
    """Whether a person said on every machine set that uses a Secret what its boot image reads."""
    mine = [maker for maker in makers if user_data_of(maker) == secret]
    return bool(mine) and all(annotations_of(maker).get(names.POINTER_VERSION) for maker in mine)


def brought(secret: Object, managed: Object, version: str, moment: str) -> JsonObject | None:
    """A patch that makes a stub what the pool's own Secret is, in a version; None when it is that already.

    Raises BadPointer for a stub with more in it than a pointer.
    """
    stub, own = _stub(secret), _stub(managed)
    if stub is None or own is None:
        return None
    if not is_brought(secret):
        _require_plain(secret, stub)
    document = {**own, "ignition": {**own["ignition"], "version": version}}
    if document == stub:
        return None
    same = annotations_of(secret).get(names.STUB_UPGRADED_TO) == version
    notes = {} if same else {names.STUB_UPGRADED_TO: version, names.STUB_UPGRADED_AT: moment}
    return _patch(secret, document, notes)


def is_legacy(secret: Object) -> bool:
    """Whether a stub is of a spec before 3."""
    stub = _stub(secret)
    return stub is not None and not str(stub["ignition"].get("version", "")).startswith("3")


def _require_plain(secret: Object, stub: JsonObject) -> None:
    extra = sorted(name for name, value in stub.items() if value and name != "ignition")
    config = _table(stub["ignition"], "config")
    if not str(stub["ignition"].get("version", "")).startswith("2.") or extra or config.keys() - {"append", "replace"}:
        what = f"section {extra[0]}" if extra else "version or config"
        raise BadPointer(f"{object_name(secret)} is not a plain spec 2 stub: {what}", "convert it by hand")


def _authorities(stub: Object) -> list[JsonObject]:
    entries = _table(_table(_table(stub, "ignition"), "security"), "tls").get("certificateAuthorities")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _is_ours(entry: Object, bundle: str) -> bool:
    """Whether every certificate of an entry is in the bundle of the doors, which holds successor and predecessors too."""
    source = entry.get("source")
    try:
        text = data_url.decode(source).decode() if isinstance(source, str) else ""
    except (DataUrlError, UnicodeDecodeError):
        return False
    certificates = _certificates(text)
    return bool(certificates) and certificates <= _certificates(bundle)


def _certificates(text: str) -> set[str]:
    return {"".join(block.split()) for block in text.split(_BEGIN)[1:]}


def _patch(secret: Object, document: JsonObject, notes: JsonObject) -> JsonObject:
    """The new content with the mark of who wrote it: the next change of the authority finds it ours."""
    data = {**(secret.get("data") or {}), "userData": base64_of(json.encode(document))}
    return {"data": data, "metadata": {"annotations": {**notes, names.USER_DATA_DIGEST: sealed(data)}}}


def _stub(secret: Object) -> JsonObject | None:
    try:
        document = json.decode(base64.b64decode((secret.get("data") or {}).get("userData") or "", validate=True))
    except (ValueError, JsonError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("ignition"), dict) else None


def _table(value: Object, name: str) -> Object:
    below = value.get(name)
    return below if isinstance(below, dict) else {}
