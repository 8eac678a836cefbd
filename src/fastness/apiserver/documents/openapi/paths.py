"""The operations of a kind: one entry per path, one operation per method.

Everything follows from the kind's verbs, scope and subresources. An operation says which kind it speaks
(`x-kubernetes-group-version-kind`) and which action it is (`x-kubernetes-action`): that is all kubectl reads, and what
`kubectl explain` and `--validate` stand on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastness.apiserver.documents.discovery import Subresource, subresources_of
from fastness.apiserver.documents.openapi import parameters
from fastness.apiserver.documents.openapi.schemas import (
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    Components,
    definition_name,
    foreign_definition,
    list_definition_name,
    reference,
)
from fastness.kinds.kind import JsonObject, Kind

PATCH_TYPES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
STRATEGIC: Final = "application/strategic-merge-patch+json"


class Method(NamedTuple):
    """How a verb looks on the wire."""

    http: str
    action: str
    title: str


COLLECTION: Final = {
    "list": Method("get", "list", "list or watch"),
    "create": Method("post", "post", "create"),
    "deletecollection": Method("delete", "deletecollection", "delete a collection of"),
}
ITEM: Final = {
    "get": Method("get", "get", "read"),
    "update": Method("put", "put", "replace"),
    "delete": Method("delete", "delete", "delete"),
    "patch": Method("patch", "patch", "partially update"),
}
SUBRESOURCE: Final = {**ITEM, "create": Method("post", "post", "create")}


def paths_of(kind: Kind, components: Components) -> JsonObject:
    """All paths of a kind; the schemas that they mention are added to `components`."""
    components.add_kind(kind)
    for name in (STATUS, DELETE_OPTIONS, PATCH):
        components.add(name)
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    inside = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    shared = [parameters.NAMESPACE, parameters.PRETTY] if kind.namespaced else [parameters.PRETTY]
    named = [parameters.NAME, *shared]
    paths: JsonObject = {}
    _put(paths, f"{inside}/{kind.plural}", shared, _collection(kind, COLLECTION))
    if kind.namespaced:
        listing = {"list": COLLECTION["list"]}
        _put(paths, f"{root}/{kind.plural}", [parameters.PRETTY], _collection(kind, listing, "ForAllNamespaces"))
    _put(paths, f"{inside}/{kind.plural}/{{name}}", named, _item(kind))
    for subresource in subresources_of(kind):
        _put(
            paths,
            f"{inside}/{kind.plural}/{{name}}/{subresource.name}",
            named,
            _subresource(kind, subresource, components),
        )
    return paths


def _put(paths: JsonObject, path: str, shared: list[JsonObject], operations: JsonObject) -> None:
    if operations:
        paths[path] = {**operations, "parameters": shared}


def _collection(kind: Kind, methods: dict[str, Method], suffix: str = "") -> JsonObject:
    operations: JsonObject = {}
    for verb, method in methods.items():
        if verb in kind.verbs:
            answer = {"list": list_definition_name(kind), "create": definition_name(kind)}.get(verb, STATUS)
            body = {"create": definition_name(kind), "deletecollection": DELETE_OPTIONS}.get(verb, "")
            operations[method.http] = _operation(kind, method, _gvk(kind), answer, body, suffix)
    return operations


def _item(kind: Kind) -> JsonObject:
    operations: JsonObject = {}
    name = definition_name(kind)
    for verb, method in ITEM.items():
        if verb in kind.verbs:
            body = {"update": name, "delete": DELETE_OPTIONS, "patch": PATCH}.get(verb, "")
            answer = STATUS if verb == "delete" else name
            operations[method.http] = _operation(kind, method, _gvk(kind), answer, body)
    return operations


def _subresource(kind: Kind, subresource: Subresource, components: Components) -> JsonObject:
    own = (subresource.group, subresource.version, subresource.kind) == (kind.group, kind.version, kind.kind)
    name = (
        definition_name(kind) if own else foreign_definition(subresource.group, subresource.version, subresource.kind)
    )
    if not own:
        components.add(name, subresource.group, subresource.version, subresource.kind)
    gvk = {"group": subresource.group, "kind": subresource.kind, "version": subresource.version}
    suffix = subresource.name[:1].upper() + subresource.name[1:]
    operations: JsonObject = {}
    for verb in subresource.verbs:
        method = SUBRESOURCE.get(verb)
        if method is not None:
            body = PATCH if verb == "patch" else name if verb in ("create", "update") else ""
            operations[method.http] = _operation(kind, method, gvk, name, body, suffix)
    return operations


def _operation(kind: Kind, method: Method, gvk: JsonObject, answer: str, body: str, suffix: str = "") -> JsonObject:
    tag = "_".join((kind.group.split(".")[0] or "core", kind.version))
    where = "Namespaced" if kind.namespaced and suffix != "ForAllNamespaces" else ""
    operation: JsonObject = {
        "tags": [tag],
        "description": f"{method.title} {kind.kind}{f' ({suffix})' if suffix else ''}",
        "operationId": f"{method.action}{tag.title().replace('_', '')}{where}{kind.kind}{suffix}",
        "responses": _responses(method, answer),
        "x-kubernetes-action": method.action,
        "x-kubernetes-group-version-kind": gvk,
    }
    query = parameters.of_action(method.action)
    if query:
        operation["parameters"] = query
    if body:
        types = PATCH_TYPES + ((STRATEGIC,) if kind.native else ()) if method.http == "patch" else ("*/*",)
        content = {media: {"schema": reference(body)} for media in types}
        operation["requestBody"] = {"content": content, **({"required": True} if method.http != "delete" else {})}
    return operation


def _responses(method: Method, answer: str) -> JsonObject:
    schema = {"schema": reference(answer)} if answer else {"schema": {"type": "string"}}
    content = {"content": {"application/json": schema}}
    codes = {"post": ("200", "201", "202"), "put": ("200", "201"), "patch": ("200", "201")}.get(method.http, ("200",))
    titles = {"200": "OK", "201": "Created", "202": "Accepted"}
    answers: JsonObject = {code: {"description": titles[code], **content} for code in codes}
    return {**answers, "401": {"description": "Unauthorized"}}


def _gvk(kind: Kind) -> JsonObject:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}
