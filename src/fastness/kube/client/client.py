"""`KubeCluster`: the `Cluster` port over HTTPS.

Thin on purpose: it builds paths and parameters, the transport sends, the watch streams, the server decides. Rules:

- A list without a limit reads pages of 500 at one version. If the server compacts that version away in between, the list starts
  again once, in one piece: consistency before comfort.
- Items of native kinds come without `kind` and `apiVersion` in lists; they get them here: a listed object reads as any other.
- A create, a JSON patch or a `connect` is never repeated once it may have reached the server.
- Names and namespaces are checked before they become part of a path: nobody addresses another object by a clever name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec

from fastness.formats import json
from fastness.formats.json import CUT, cut
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.resources import PODS
from fastness.kube.client.connection import Connection
from fastness.kube.client.retry import Safety
from fastness.kube.client.transport import Call, Transport
from fastness.kube.client.watching import Capabilities, Watch
from fastness.kube.errors import BadRequest, Expired, InternalError
from fastness.kube.port import DELETE, EVERYWHERE, WRITE, DeleteOptions, Event, Page, PatchType, Scope, WriteOptions
from fastness.kube.readable import READABLE, identity_of, too_deep
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy

# The page size of client-go's pager and of kubectl's --chunk-size.
CHUNK = 500
# JSON patches are left out: `add` to the end of a list is another element each time.
_REPEATABLE = frozenset({PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY})


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[dict[str, Any]] | None = None


class _CutList(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_lists = msgspec.json.Decoder(_List)
_cut_lists = msgspec.json.Decoder(_CutList)
_objects: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


@asynccontextmanager
async def connect(
    connection: Connection,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    pool: httpx.AsyncBaseTransport | None = None,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> AsyncIterator[KubeCluster]:
    """The cluster behind a connection, until the block ends; raises BadConfig for unusable certificates."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    transport = Transport(connection, clock, entropy, pool=pool, read=read)
    try:
        yield KubeCluster(transport, entropy)
    finally:
        await transport.close()


class KubeCluster:
    """Any Kubernetes API server."""

    def __init__(self, transport: Transport, entropy: Entropy) -> None:
        self._transport = transport
        self._entropy = entropy
        self._capabilities = Capabilities()

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; raises NotFound."""
        return await self._object(Call("GET", _path(resource, namespace, name)))

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects in order of namespace and name; all of them, or a page; raises Expired for an old token."""
        if limit or token:
            return await self._page(resource, scope, limit, token, version)
        first = await self._page(resource, scope, CHUNK, "", version)
        items, page, unreadable = first.items, first, [*first.unreadable]
        while page.next:
            try:
                page = await self._page(resource, scope, CHUNK, page.next, "")
            except Expired:
                # The rest of the pages would be of another version than the first ones: an object that was moved between is
                # missing or double.
                return await self._page(resource, scope, 0, "", version)
            items.extend(page.items)
            unreadable.extend(page.unreadable)
        return Page(items, first.resource_version, unreadable=unreadable)

    async def _page(self, resource: Resource, scope: Scope, limit: int, token: str, version: str) -> Page:
        params = _selectors(scope)
        if limit:
            params["limit"] = str(limit)
        if token:
            params["continue"] = token
        elif version:
            params |= {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
        body = await self._transport.send(Call("GET", _path(resource, scope.namespace), params))
        try:
            meta, items, unreadable = _read_list(body)
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
            raise InternalError(f"the server sent what is not a list: {error}") from error
        for item in items:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return Page(items, meta.resource_version, meta.continue_, meta.remaining_item_count, unreadable)

    async def _newest(self, resource: Resource, scope: Scope) -> str:
        return (await self._page(resource, scope, 1, "", "")).resource_version

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Changes after a version, or the present state and then changes; goes on over closed connections."""
        watch = Watch(
            self._transport,
            resource,
            _path(resource, scope.namespace),
            _selectors(scope),
            self._entropy,
            self._capabilities,
            lambda: self.list(resource, scope),
            partial(self._newest, resource, scope),
            version="" if initial else since,
        )
        async with aclosing(watch.events(initial=initial)) as events:
            yield events

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object in the namespace that it names."""
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        path = _path(resource, namespace, needs_namespace=True)
        return await self._object(Call("POST", path, _write_params(options), json.encode(obj), safety=Safety.ONCE))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        kind: PatchType,
        namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Change fields; a `resourceVersion` in the patch makes it conditional."""
        params = _write_params(options)
        if kind is PatchType.APPLY and options.force:
            params["force"] = "true"
        safety = Safety.REPEATABLE if kind in _REPEATABLE else Safety.ONCE
        path = _path(resource, namespace, name, options.subresource)
        return await self._object(Call("PATCH", path, params, json.encode(patch), kind.value, safety))

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Ask for deletion; the answer is the object (finalizers hold it) or a Status."""
        body = json.encode(_delete_body(options))
        return await self._object(
            Call("DELETE", _path(resource, namespace, name), content=body, safety=Safety.REPEATABLE)
        )

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """POST to `eviction`, `token` or `binding`; PUT to `finalize` of a namespace."""
        method = "PUT" if subresource == "finalize" else "POST"
        path = _path(resource, namespace, name, subresource)
        return await self._object(Call(method, path, content=json.encode(body), safety=Safety.ANSWER))

    async def log(self, pod: str, namespace: str, container: str, *, lines: int, most: int) -> bytes:
        """The newest lines of a container's log, at most so many bytes; raises NotFound, BadRequest, Forbidden."""
        params = {"container": container, "tailLines": str(lines), "limitBytes": str(most), "timestamps": "true"}
        return await self._transport.send(Call("GET", _path(PODS, namespace, pod, "log"), params))

    async def _object(self, call: Call) -> JsonObject:
        body = await self._transport.send(call)
        try:
            obj = _objects.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InternalError(f"{call.method} {call.path}: the server sent what is not an object: {error}") from error
        if (reason := too_deep(obj)) is not None:
            raise InternalError(f"{call.method} {call.path}: the object cannot be read: {reason}")
        return obj


def _read_list(body: bytes) -> tuple[_ListMeta, list[JsonObject], list[tuple[JsonObject, str]]]:
    """The objects of a list, and by name those that cannot be read: one of them must not cost the others."""
    try:
        listed = _lists.decode(body)
        meta, candidates = listed.metadata, [(item, too_deep(item)) for item in listed.items or []]
    except RecursionError:
        # A list is two levels around its objects.
        rest = _cut_lists.decode(cut(body, READABLE.max_depth + 2))
        meta, candidates = rest.metadata, [_read_cut(bytes(raw)) for raw in rest.items or []]
    items = [item for item, reason in candidates if reason is None]
    return meta, items, [(identity_of(item), reason) for item, reason in candidates if reason is not None]


def _read_cut(raw: bytes) -> tuple[JsonObject, str | None]:
    return _objects.decode(raw), f"it nests deeper than {READABLE.max_depth} levels" if CUT in raw else None


def _path(
    resource: Resource,
    namespace: str = "",
    name: str | None = None,
    subresource: str = "",
    *,
    needs_namespace: bool = False,
) -> str:
    """The path of a collection or an object; raises BadRequest for what cannot be part of one."""
    if resource.namespaced and not namespace and (name is not None or needs_namespace):
        raise BadRequest(f"{resource.kind} objects live in a namespace: name it")
    # Names come out of objects that others write (an owner, a node, a reference): "../secrets/x" would read what was not meant.
    for what, segment in (("namespace", namespace), ("name", name), ("subresource", subresource)):
        if segment is not None and (segment in (".", "..") or not _SEGMENT.issuperset(segment)):
            raise BadRequest(f"{segment[:80]!r} cannot be the {what} of an object")
    if name == "":
        raise BadRequest("resource name may not be empty")
    return resource.path(namespace, name, subresource)


# Names of RBAC objects hold colons; nothing that names an object needs more than this.
_SEGMENT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:@")


def _selectors(scope: Scope) -> dict[str, str]:
    selectors = {"labelSelector": scope.labels, "fieldSelector": scope.fields}
    return {key: value for key, value in selectors.items() if value}


def _write_params(options: WriteOptions) -> dict[str, str]:
    params = {"fieldManager": options.manager}
    return {**params, "dryRun": "All"} if options.dry_run else params


def _delete_body(options: DeleteOptions) -> JsonObject:
    body: JsonObject = {
        "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": options.propagation.value,
    }  # fmt: skip
    conditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    # Never empty members: an empty uid is a condition that no object meets.
    if preconditions := {key: value for key, value in conditions.items() if value}:
        body["preconditions"] = preconditions
    if options.grace_seconds is not None:
        body["gracePeriodSeconds"] = options.grace_seconds
    if options.dry_run:
        body["dryRun"] = ["All"]
    return body
