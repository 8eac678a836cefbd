"""The verbs on objects, from HTTP to the engine and back.

One function per verb. A handler reads query and body, calls `EmbeddedApi`, and picks the form of the answer; it decides nothing.
Subresources that are not part of an object (`eviction`, `scale`, `token` …) have their own small table at the end.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastness.apiserver import subresources
from fastness.apiserver.call import Call, FieldValidation
from fastness.apiserver.catalog import Served
from fastness.apiserver.documents.discovery import subresources_of
from fastness.apiserver.door import bodies, forms, streams
from fastness.apiserver.door.guard import Guard
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.refusals import method_not_allowed, no_such_resource, options_invalid
from fastness.apiserver.tables import TableRequest
from fastness.apiserver.verbs import paths, selection
from fastness.apiserver.verbs.deletes import deleted_status, options_of
from fastness.apiserver.verbs.paths import Target
from fastness.apiserver.verbs.reads import ListQuery
from fastness.apiserver.verbs.watches import WatchQuery
from fastness.apiserver.verbs.writes import Written
from fastness.formats import json
from fastness.http import Answer, Request, Stream
from fastness.kinds.kind import JsonObject
from fastness.kube.access import User
from fastness.kube.errors import BadRequest, MethodNotAllowed, NotFound
from fastness.kube.port import DeleteOptions, PatchType

MAX_TIMEOUT = 24 * 3600.0
MAX_LIMIT = 1_000_000
_INTEGER = re.compile(r"-?[0-9]{1,18}")  # what an integer of 64 bits can always hold


@dataclass(frozen=True, slots=True)
class Context:
    """One authorized request to a resource."""

    api: EmbeddedApi
    guard: Guard
    request: Request
    target: Target
    served: Served
    call: Call

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name in the path."""
        return self.target.namespace, self.target.name


def check_shape(served: Served, target: Target, verb: str) -> None:
    """Whether the kind has such a path and this verb on it; raises NotFound, MethodNotAllowed."""
    namespaced = served.kind.namespaced
    if target.namespace and not namespaced and target.plural != "namespaces":
        raise no_such_resource()
    if namespaced and not target.namespace:
        if target.name:
            raise no_such_resource()
        if verb in ("create", "deletecollection"):
            raise method_not_allowed(verb)
    if target.subresource:
        verbs = {part.name: part.verbs for part in subresources_of(served.kind)}.get(target.subresource)
        if verbs is None:
            raise no_such_resource()
        if verb not in verbs:
            raise method_not_allowed(verb)
    elif verb == "deletecollection" and verb not in served.kind.verbs:
        raise method_not_allowed(verb)


def methods_of(served: Served, target: Target) -> tuple[str, ...]:
    """The methods that a kind has on a path."""
    return tuple(method for method in paths.methods_of(target) if _has(served, target, method))


def _has(served: Served, target: Target, method: str) -> bool:
    verb = paths.verb_of(method, target, watching=False)
    try:
        check_shape(served, target, verb)
    except MethodNotAllowed:
        return False
    return bool(target.subresource) or verb in served.kind.verbs


def call_of(request: Request, user: User, correlation: str) -> Call:
    """The call that a write's query parameters describe; raises Invalid."""
    query = request.query
    options = _OPTIONS.get(request.method, "ListOptions")
    validation = query.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        text = f'Unsupported value: "{validation[:40]}": supported values: "", "Ignore", "Strict", "Warn"'
        raise options_invalid(options, "fieldValidation", "FieldValueNotSupported", text)
    dry_run = query.get("dryRun", "All")
    if dry_run != "All":
        text = f'Unsupported value: "{dry_run[:40]}": supported values: "All"'
        raise options_invalid(options, "dryRun", "FieldValueNotSupported", text)
    checked: FieldValidation = validation  # type: ignore[assignment]  # compared above
    return Call(
        user=user,
        manager=manager_of(request, options),
        dry_run="dryRun" in query,
        force=query.get("force") == "true",
        validation=checked,
        correlation=correlation,
    )


_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}


def manager_of(request: Request, options: str) -> str:
    """The field manager: as the query says, else the first word of the user agent; raises Invalid."""
    # Length and characters as ValidateFieldManager of kube-apiserver has them: the name is stored with every object it writes.
    named = request.query.get("fieldManager", "")
    if len(named) > 128:
        raise options_invalid(options, "fieldManager", "FieldValueTooLong", "Too long: may not be more than 128 bytes")
    if not named.isprintable():
        text = f"Invalid value: {named!r:.60}: only printable characters"
        raise options_invalid(options, "fieldManager", "FieldValueInvalid", text)
    agent = request.header(b"user-agent").partition("/")[0][:128]
    return named or (agent if agent.isprintable() else "") or "unknown"


def _integer(query_value: str, name: str) -> int:
    if not query_value:
        return 0
    if not _INTEGER.fullmatch(query_value):
        raise BadRequest(f'{name}: "{query_value[:40]}" is not a number')
    return int(query_value)


def _boolean(text: str) -> bool:
    return text in ("1", "true", "True", "t", "T", "TRUE")


def _selection(ctx: Context) -> selection.Selection:
    query = ctx.request.query
    namespace = ctx.target.namespace if ctx.served.kind.namespaced else ""
    return selection.parse(ctx.served.kind, namespace, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _list_query(ctx: Context) -> ListQuery:
    query = ctx.request.query
    limit = _integer(query.get("limit", ""), "limit")
    return ListQuery(
        min(max(limit, 0), MAX_LIMIT),  # a negative limit is none, as in Kubernetes
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
    )


async def get(ctx: Context) -> Answer:
    """GET of an object, or of its status or scale."""
    # A reader that has seen a newer version than we have must not be answered with an older state.
    ctx.api.check_version(ctx.request.query.get("resourceVersion", ""))
    body = ctx.api.get(ctx.served, *ctx.place)
    if ctx.target.subresource == "scale":
        return Answer(200, json.encode(subresources.get_scale(ctx.served, json.decode(body))))
    if ctx.target.subresource in subresources.OF_A_KUBELET:
        subresources.of_a_kubelet(json.decode(body), ctx.target.subresource)
    if ctx.target.subresource and ctx.target.subresource not in ctx.served.kind.subresources:
        raise no_such_resource()
    return forms.object_answer(ctx.request, ctx.served, body, ctx.api.clock.now())


async def list_objects(ctx: Context) -> Answer:
    """GET of a collection."""
    if "sendInitialEvents" in ctx.request.query:
        text = "Forbidden: sendInitialEvents is forbidden for list"
        raise options_invalid("ListOptions", "sendInitialEvents", "FieldValueForbidden", text)
    listed = ctx.api.list(ctx.served, _selection(ctx), _list_query(ctx))
    return forms.list_answer(ctx.request, ctx.served, listed, ctx.api.clock.now())


async def watch(ctx: Context) -> Stream:
    """GET of a collection with `watch`."""
    query, clock = ctx.request.query, ctx.api.clock
    initial = query.get("sendInitialEvents")
    watch_query = WatchQuery(
        version=query.get("resourceVersion", ""),
        bookmarks=_boolean(query.get("allowWatchBookmarks", "")),
        initial=None if initial is None else _boolean(initial),
        match=query.get("resourceVersionMatch", ""),
    )
    media = forms.form_of(ctx.request)
    table = TableRequest.of(media, query.get("includeObject", ""))
    seconds = float(_integer(query.get("timeoutSeconds", ""), "timeoutSeconds")) or _patience(ctx)
    if not 0 < seconds <= MAX_TIMEOUT:
        raise BadRequest(f"timeoutSeconds: must be between 1 and {MAX_TIMEOUT:.0f}")
    stream = ctx.api.watch(ctx.served, _selection(ctx), watch_query)
    writer = streams.Writer(ctx.served, media, table, clock)
    chunks = streams.lines(stream, writer, bookmarks=watch_query.bookmarks, seconds=seconds, clock=clock)
    return Stream(200, chunks, media.type.encode(), close=stream.close)


def _patience(ctx: Context) -> float:
    """Half an hour to an hour, spread so that a thousand watchers do not come back at once."""
    return streams.MIN_SECONDS * (1 + ctx.api.entropy.fraction())


async def create(ctx: Context) -> Answer:
    """POST to a collection, or to a subresource of an object."""
    sent = await bodies.read_object(ctx.request, ctx.api.heavy, ctx.call)
    if ctx.target.subresource:
        return await _connect(ctx, sent)
    # Reviews: they can be created and nothing else, because nothing of them is stored.
    if ctx.served.kind.verbs == ("create",):
        answered = ctx.guard.review(ctx.served, ctx.call.user, ctx.target.namespace, _object(sent))
        return Answer(201, json.encode(answered))
    done = await ctx.api.create(ctx.call, ctx.served, ctx.target.namespace, _object(sent))
    return forms.object_answer(ctx.request, ctx.served, done.body, ctx.api.clock.now(), 201)


async def update(ctx: Context) -> Answer:
    """PUT of an object, its status or another part of it."""
    sent = await bodies.read_object(ctx.request, ctx.api.heavy, ctx.call)
    body, part = _object(sent), ctx.target.subresource
    if part == "scale":
        done = await subresources.change_scale(
            ctx.api, ctx.call, ctx.served, *ctx.place, subresources.scale_change(None, body)
        )
    elif part in ("finalize", "approval"):
        edit = subresources.only(ctx.served, part, body)
        done = await ctx.api.change(ctx.call, ctx.served, *ctx.place, edit, part)
    else:
        _require_part(ctx)
        done = await ctx.api.replace(ctx.call, ctx.served, *ctx.place, body, part)
    return forms.object_answer(ctx.request, ctx.served, done.body, ctx.api.clock.now())


async def patch(ctx: Context) -> Answer:
    """PATCH of an object, its status or its scale."""
    kind, body = await bodies.read_patch(ctx.request, ctx.api.heavy, ctx.call)
    if kind is PatchType.APPLY and not ctx.request.query.get("fieldManager"):
        text = "Required value: is required for apply patch"
        raise options_invalid("PatchOptions", "fieldManager", "FieldValueRequired", text)
    # `force` takes fields away from other managers, which only an apply knows of; kube-apiserver refuses it elsewhere, too.
    if ctx.call.force and kind is not PatchType.APPLY:
        text = "Forbidden: may not be specified for non-apply patch"
        raise options_invalid("PatchOptions", "force", "FieldValueForbidden", text)
    part = ctx.target.subresource
    if part == "scale":
        done = await subresources.change_scale(
            ctx.api, ctx.call, ctx.served, *ctx.place, subresources.scale_change(kind, body)
        )
        return Answer(200, done.body)
    _require_part(ctx)
    done = await ctx.api.patch(ctx.call, ctx.served, *ctx.place, kind, body, part)
    code = 201 if done.created else 200
    return forms.object_answer(ctx.request, ctx.served, done.body, ctx.api.clock.now(), code)


def _require_part(ctx: Context) -> None:
    if ctx.target.subresource and ctx.target.subresource not in ctx.served.kind.subresources:
        raise no_such_resource()


async def delete(ctx: Context) -> Answer:
    """DELETE of an object."""
    if ctx.target.subresource:
        raise no_such_resource()
    options = await _delete_options(ctx)
    done = await ctx.api.delete(ctx.call, ctx.served, *ctx.place, options)
    return _deleted(ctx, done)


async def _delete_options(ctx: Context) -> DeleteOptions:
    sent = await bodies.read_object(ctx.request, ctx.api.heavy, ctx.call)
    return options_of(sent, ctx.request.query)


def _deleted(ctx: Context, done: Written) -> Answer:
    status = deleted_status(ctx.served, done.body) if done.deleted else None
    if status is not None:
        return Answer(200, json.encode(status))
    return forms.object_answer(ctx.request, ctx.served, done.body, ctx.api.clock.now())


async def delete_collection(ctx: Context) -> Answer:
    """DELETE of everything that a selection names; answers with the list of what was there."""
    options = await _delete_options(ctx)
    listed = ctx.api.list(ctx.served, _selection(ctx), _list_query(ctx))
    for body in listed.bodies:
        meta = json.decode(body)["metadata"]
        try:
            await ctx.api.delete(ctx.call, ctx.served, meta.get("namespace", ""), meta["name"], options)
        # Somebody else deleted it between the list and here, which is what was asked for.
        except NotFound:
            continue
    return forms.list_answer(ctx.request, ctx.served, listed, ctx.api.clock.now())


def _object(sent: object) -> JsonObject:
    if not isinstance(sent, dict):
        raise BadRequest("the body of the request must be a JSON object")
    return sent


async def _connect(ctx: Context, sent: object) -> Answer:
    """POST to a subresource: one row per (kind, subresource)."""
    body = _object(sent)
    match (ctx.served.kind.kind, ctx.target.subresource):
        case ("Pod", "eviction"):
            done = await subresources.evict(ctx.api, ctx.call, *ctx.place, body)
        case ("Pod", "binding"):
            done = await subresources.bind(ctx.api, ctx.call, *ctx.place, body)
        case ("ServiceAccount", "token"):
            if body.get("kind", "TokenRequest") != "TokenRequest":
                raise BadRequest(f"{str(body['kind'])[:60]} cannot be handled as a TokenRequest")
            done = ctx.guard.token_request(ctx.api, ctx.call.user, ctx.served, *ctx.place, body)
        case _:
            raise no_such_resource()
    return Answer(201, json.encode(done))


VERBS: dict[str, Callable[[Context], Awaitable[Answer]]] = {
    "get": get, "list": list_objects, "create": create, "update": update, "patch": patch,
    "delete": delete, "deletecollection": delete_collection,
}  # fmt: skip
