"""Get and list on the embedded store.

Answers are the stored bytes, untouched: nothing is decoded unless a selector asks for it, and a list of thousands is a join.

* A list is consistent at one revision. Its pages carry that revision in the continue token; when the store has compacted it
  away, the answer is 410 with a fresh token that goes on inconsistently, as Kubernetes offers it.
* `resourceVersion` means what Kubernetes says: empty is the present, `0` anything, a number "not older than" unless
  `resourceVersionMatch=Exact`; a version from the future is a 504 that asks to try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import not_found, options_invalid, set_aside, too_new
from fastness.apiserver.store import Compacted, FutureRevision, Key, Record, Store
from fastness.apiserver.verbs.selection import Selection
from fastness.formats.continue_token import ContinueToken, decode_continue_token
from fastness.formats.errors import TokenError
from fastness.kube.errors import BadRequest, Expired

# A selector that matches little must not copy a whole collection to look at it.
SCAN_PAGE = 2000


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The paging and version parameters of a list."""

    limit: int = 0
    token: str = ""
    version: str = ""
    match: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """Encoded objects, consistent at one revision."""

    bodies: Sequence[bytes]
    revision: int
    token: str = ""
    remaining: int | None = None


def get(store: Store, served: Served, namespace: str, name: str) -> Record:
    """One object; raises NotFound."""
    key = Key(*served.storage_key, namespace if served.kind.namespaced else "", name)
    require_readable(store, key)
    record = store.get(key)
    if record is None:
        raise not_found(served, name)
    return record


def require_readable(store: Store, key: Key) -> None:
    """Nothing unless the object was set aside; raises InternalError then: a name that is taken is not "not found"."""
    if key in store.aside:
        raise set_aside(key.group, key.plural, key.name, store.aside[key].reason)


def list_objects(store: Store, served: Served, selection: Selection, query: ListQuery) -> Listed:
    """Objects in order of namespace and name; raises BadRequest, Expired, Timeout."""
    at, after = _position(store, query)
    name = selection.name
    if name is not None and (selection.namespace or not served.kind.namespaced) and at is None:
        # An agent that watches its own Node lists it by name first: a look-up instead of a scan for each of thousands.
        record = store.get(Key(*served.storage_key, selection.namespace, name))
        bodies = [record.body] if record is not None and selection.matches(record.body) else []
        return Listed(bodies, store.revision)
    try:
        return _scan(store, served, selection, query.limit, at, after)
    except Compacted as error:
        raise _expired(query, after, store.revision) from error
    except FutureRevision as error:
        raise BadRequest("continue key is not valid: it comes from another server or a lost state") from error


def _scan(
    store: Store, served: Served, selection: Selection, limit: int, at: int | None, after: tuple[str, str] | None
) -> Listed:
    """Read pages of the store until enough objects match."""
    group, plural = served.storage_key
    if selection.everything:
        page = store.range(group, plural, selection.namespace, after=after, limit=limit, at=at)
        bodies = [record.body for record in page.records]
        if not page.remaining:
            return Listed(bodies, page.revision)
        return Listed(bodies, page.revision, _token(page.revision, page.records[-1].key), page.remaining)
    bodies = []
    revision = at if at is not None else store.revision
    while True:
        page = store.range(group, plural, selection.namespace, after=after, limit=SCAN_PAGE, at=revision)
        for index, record in enumerate(page.records):
            if not selection.matches(record.body):
                continue
            bodies.append(record.body)
            if limit and len(bodies) == limit:
                more = index + 1 < len(page.records) or page.remaining
                return Listed(bodies, revision, _token(revision, record.key) if more else "")
        if not page.remaining:
            return Listed(bodies, revision)
        last = page.records[-1].key
        after = (last.namespace, last.name)


def _token(revision: int, key: Key) -> str:
    return ContinueToken(revision, f"{key.namespace}/{key.name}").encode()


def _position(store: Store, query: ListQuery) -> tuple[int | None, tuple[str, str] | None]:
    """The revision to read at (None: the present) and the key to go on after."""
    _check_match(query)
    if query.token:
        # The token carries the version of its first page; with another one the pages would not be one list.
        if query.version not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        try:
            token = decode_continue_token(query.token)
        except TokenError as error:
            raise BadRequest(f"continue key is not valid: {error}") from error
        # What a client sends back is only a place to go on from: it is compared with keys and never becomes one, and rights were
        # decided before.
        namespace, _, name = token.start.partition("/")
        return token.resource_version, (namespace, name)
    version = parse_version(query.version)
    if version > store.revision:
        raise too_new(version, store.revision)
    # A limit with a version and no match means Exact, for clients from before resourceVersionMatch (API concepts, "get and
    # list").
    exact = query.match == "Exact" or (query.limit > 0 and version > 0 and not query.match)
    return (version if exact and version > 0 else None), None


def _check_match(query: ListQuery) -> None:
    problem = ""
    if query.match and query.match not in ("Exact", "NotOlderThan"):
        text = f'Unsupported value: "{query.match[:40]}": supported values: "Exact", "NotOlderThan"'
        raise options_invalid("ListOptions", "resourceVersionMatch", "FieldValueNotSupported", text)
    if query.match and not query.version:
        problem = "is forbidden unless resourceVersion is provided"
    elif query.match == "Exact" and query.version == "0":
        problem = "Exact is forbidden for resourceVersion 0"
    if problem:
        raise options_invalid("ListOptions", "resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {problem}")


def require_known(store: Store, text: str) -> None:
    """Nothing when this store has reached that version; raises BadRequest, Timeout."""
    version = parse_version(text)
    if version > store.revision:
        raise too_new(version, store.revision)


def parse_version(text: str) -> int:
    """A resource version from a query; raises BadRequest."""
    if not text:
        return 0
    # str.isdigit takes digits of every script; 19 of them are what 64 bits hold.
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise BadRequest(f"resourceVersion: {text[:40]!r} is not a version that this server gave")
    return int(text)


def _expired(query: ListQuery, after: tuple[str, str] | None, revision: int) -> Expired:
    if after is None:
        return Expired(f"the resource version {query.version} is no longer available: list again without one")
    error = Expired(
        "the continue token is too old to go on consistently: start the list anew, or use the token in this answer to go on "
        "with objects as they are now"
    )
    # ListMeta.continue: a client that can do without consistency goes on with this token instead of reading everything again.
    error.continue_token = ContinueToken(revision, "/".join(after)).encode()
    return error
