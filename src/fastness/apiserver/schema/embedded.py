"""Embedded resources: objects inside an object that are Kubernetes objects themselves.

Each needs `apiVersion` and `kind`; its metadata must decode and hold names, labels and annotations that an object could have.
The root is not judged here: its identity is the business of the REST engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.node import Node
from fastness.kube.errors import Cause

META_TYPES: Final[dict[str, type]] = {
    "name": str, "generateName": str, "namespace": str, "selfLink": str, "uid": str, "resourceVersion": str, "generation": int,
    "creationTimestamp": str, "deletionTimestamp": str, "deletionGracePeriodSeconds": int, "labels": dict,
    "annotations": dict, "ownerReferences": list, "finalizers": list, "managedFields": list,
}  # fmt: skip

_UNDECODABLE: Final = ("must be a string", "must be an object", "is of the wrong type")
_KIND: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def embedded_problems(root: Node, obj: Any) -> list[Cause]:
    """Everything that is wrong with the identity of embedded resources."""
    problems: list[Cause] = []
    if root.has_embedded:
        _walk(root, obj, "", problems)
    return problems


def undecodable(root: Node, obj: Any) -> list[Cause]:
    """Embedded identities of the wrong JSON type, which fail before anything is validated."""
    return [cause for cause in embedded_problems(root, obj) if cause.message.endswith(_UNDECODABLE)]


def _walk(node: Node, value: Any, path: str, problems: list[Cause]) -> None:
    if type(value) is dict:
        if node.embedded:
            problems.extend(_identity(value, path))
        for name, below in value.items():
            schema = node.properties.get(name)
            if schema is not None:
                if schema.has_embedded:
                    _walk(schema, below, causes.child(path, name), problems)
            elif node.extra is not None and node.extra.has_embedded:
                _walk(node.extra, below, causes.key(path, name), problems)
    elif type(value) is list and node.items is not None and node.items.has_embedded:
        for i, entry in enumerate(value):
            _walk(node.items, entry, f"{path}[{i}]", problems)


def _identity(value: dict[str, Any], path: str) -> Iterator[Cause]:
    for name in ("apiVersion", "kind"):
        where = causes.child(path, name)
        given = value.get(name)
        if name not in value:
            yield causes.required(where)
        elif not isinstance(given, str):
            yield causes.invalid(where, given, "must be a string")
        elif not given:
            yield causes.invalid(where, given, "must not be empty")
        elif name == "apiVersion" and given.count("/") > 1:
            yield causes.invalid(where, given, "must be a version, or a group and a version")
        elif name == "kind" and _KIND.fullmatch(given.lower()) is None:
            yield causes.invalid(where, given, "must consist of letters, digits and dashes, and start with a letter")
    if "metadata" in value:
        yield from _metadata(value["metadata"], causes.child(path, "metadata"))


def _metadata(meta: Any, path: str) -> Iterator[Cause]:
    if not isinstance(meta, dict):
        yield causes.invalid(path, meta, "must be an object")
        return
    for name, kind in META_TYPES.items():
        given = meta.get(name)
        if given is not None and (not isinstance(given, kind) or isinstance(given, bool)):
            yield causes.invalid(path, meta, f"metadata.{name} is of the wrong type")
            return
    for name in ("name", "generateName"):
        if _unfit_segment(meta.get(name) or "", whole=name == "name"):
            yield causes.invalid(causes.child(path, name), meta[name], "may not be '.' or '..', nor contain '/' or '%'")
    namespace = meta.get("namespace")
    if namespace and _LABEL.fullmatch(namespace) is None:
        yield causes.invalid(
            causes.child(path, "namespace"), namespace, "must be lower-case letters, digits and dashes"
        )
    for name in ("labels", "annotations"):
        yield from _tags(meta.get(name) or {}, causes.child(path, name), labels=name == "labels")


def _unfit_segment(text: str, *, whole: bool) -> bool:
    return (whole and text in (".", "..")) or "/" in text or "%" in text


def _tags(tags: dict[str, Any], path: str, *, labels: bool) -> Iterator[Cause]:
    for name, value in tags.items():
        if not _qualified(name if labels else name.lower()):
            yield causes.invalid(path, name, "must be a name, optionally after a DNS prefix and '/'")
        if labels and value and (not isinstance(value, str) or _NAME.fullmatch(value) is None):
            yield causes.invalid(path, value, "must be at most 63 letters, digits, '-', '_' or '.'")


def _qualified(name: str) -> bool:
    prefix, slash, last = name.rpartition("/")
    if slash and (len(prefix) > 253 or _PREFIX.fullmatch(prefix) is None):
        return False
    return _NAME.fullmatch(last) is not None
