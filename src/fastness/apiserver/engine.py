"""The embedded API without HTTP: what every verb does.

`EmbeddedApi` joins the parts: the catalog says what is served, reads and watches go to the store, writes through the pipeline,
subresources and reviews to their handlers. HTTP handlers (`apiserver/door`) and the in-process adapter (`local.py`) are its only
callers, so a controller and a kubectl see one behaviour.

* Authorization is asked by the caller's door, admission by the pipeline: a controller in process is trusted, its objects are not.
* After a committed write to a CustomResourceDefinition or to RBAC the catalog or the policy is made anew from the store.
* Errors of the store become API errors here; no other exception is expected to leave.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from fastness.apiserver import definitions
from fastness.apiserver.admission.admit import Admission
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Catalog, Served
from fastness.apiserver.catalog.crd_rules import check_crd, check_crd_update
from fastness.apiserver.documents.discovery import Discovery
from fastness.apiserver.documents.openapi import OpenApi
from fastness.apiserver.large_objects import HeavyWork
from fastness.apiserver.refusals import method_not_allowed, no_such_resource
from fastness.apiserver.store import Overloaded, Store, StoreError, StoreUnavailable
from fastness.apiserver.verbs import applies, edits, reads, watches
from fastness.apiserver.verbs.convert import outward
from fastness.apiserver.verbs.deletes import Deleter
from fastness.apiserver.verbs.managed import Ownership
from fastness.apiserver.verbs.placement import PodsByNode
from fastness.apiserver.verbs.selection import Selection
from fastness.apiserver.verbs.writes import Edit, Writer, Written
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Cause, InternalError, TooManyRequests, Unavailable
from fastness.kube.port import DeleteOptions, PatchType
from fastness.runtime.clock import Clock, Entropy

T = TypeVar("T")


@contextmanager
def store_errors() -> Iterator[None]:
    """Errors of the store as answers."""
    try:
        yield
    except Overloaded as error:
        raise TooManyRequests(str(error), retry_after=1) from error
    except StoreUnavailable as error:
        raise Unavailable(f"{error}: {error.hint}", retry_after=1) from error
    except StoreError as error:
        raise InternalError(str(error)) from error


class EmbeddedApi:
    """Every verb of the API on the embedded store."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        clock: Clock,
        entropy: Entropy,
        admission: Admission,
        policy_changed: Callable[[], None],
    ) -> None:
        self.store = store
        self.clock = clock
        self.entropy = entropy
        self.policy_changed = policy_changed
        self.ownership = Ownership()
        self._pods = PodsByNode(store)
        self.heavy = HeavyWork()
        self.writer = Writer(store, clock, entropy, admission, self.ownership, self._judge, self.heavy)
        self.deleter = Deleter(store, self.writer, admission)
        self._use(catalog)

    def _use(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.discovery = Discovery(catalog)
        self.openapi = OpenApi(catalog)

    def close(self) -> None:
        """Let go of the thread for large objects."""
        self.heavy.close()

    def served(self, group: str, version: str, plural: str) -> Served:
        """The kind at these coordinates; raises NotFound."""
        kind = self.catalog.find(group, version, plural)
        if kind is None:
            raise no_such_resource()
        return kind

    def check_version(self, text: str) -> None:
        """A version that a read names must be one that was given; raises BadRequest, Timeout."""
        reads.require_known(self.store, text)

    def get(self, served: Served, namespace: str, name: str) -> bytes:
        """One object, encoded."""
        _require(served, "get")
        return outward(served, reads.get(self.store, served, namespace, name).body)

    def list(self, served: Served, selection: Selection, query: reads.ListQuery) -> reads.Listed:
        """Objects, encoded in the stored version."""
        _require(served, "list")
        of_node = self._pods.of_node(served, selection, query)
        return of_node if of_node is not None else reads.list_objects(self.store, served, selection, query)

    def watch(self, served: Served, selection: Selection, query: watches.WatchQuery) -> watches.Stream:
        """Changes, encoded in the version that was asked for."""
        _require(served, "watch")
        return watches.open_stream(self.store, served, selection, query, lambda body: outward(served, body))

    async def create(self, call: Call, served: Served, namespace: str, sent: JsonObject) -> Written:
        """A new object."""
        _require(served, "create")
        return await self._committed(served, self.writer.create(call, served, namespace, sent))

    async def replace(
        self, call: Call, served: Served, namespace: str, name: str, sent: JsonObject, subresource: str = ""
    ) -> Written:
        """PUT of an object or of its status."""
        _require(served, "update")
        edit = edits.replacement(sent)
        return await self._committed(served, self.writer.change(call, served, namespace, name, edit, subresource))

    async def patch(
        self, call: Call, served: Served, namespace: str, name: str, kind: PatchType, body: Any, subresource: str = ""
    ) -> Written:
        """PATCH of an object or of its status, in any of the four languages."""
        _require(served, "patch")
        if kind is PatchType.APPLY:
            return await self._committed(
                served, applies.apply(self.writer, call, served, namespace, name, body, subresource)
            )
        edit = edits.patch(served, name, kind, body)
        change = self.writer.change(call, served, namespace, name, edit, subresource, patched=True)
        return await self._committed(served, change)

    async def change(
        self, call: Call, served: Served, namespace: str, name: str, edit: Edit, subresource: str = ""
    ) -> Written:
        """Change an object by a function; for subresources."""
        return await self._committed(served, self.writer.change(call, served, namespace, name, edit, subresource))

    async def delete(self, call: Call, served: Served, namespace: str, name: str, options: DeleteOptions) -> Written:
        """Delete, or mark for deletion."""
        _require(served, "delete")
        return await self._committed(served, self.deleter.delete(call, served, namespace, name, options))

    async def _committed(self, served: Served, write: Awaitable[T]) -> T:
        with store_errors():
            done = await write
            # Before the answer: kubectl creates an object of a kind right after its definition.
            if served.storage_key == definitions.CRD_KEY:
                await self._redefine()
        # Before the answer as well: a binding that was taken away must not decide one more request.
        if served.kind.group == "rbac.authorization.k8s.io":
            self.policy_changed()
        return done

    def _judge(self, served: Served, new: JsonObject, old: JsonObject | None) -> Sequence[Cause]:
        """What the catalog has against a definition; nothing against any other object."""
        if served.storage_key != definitions.CRD_KEY:
            return []
        if old is None:
            return check_crd(new, self.catalog)
        # A built-in definition is refused by admission, with a better reason.
        built_in = definitions.is_builtin(self.catalog, str(old["metadata"]["name"]))
        return [] if built_in else check_crd_update(old, new, self.catalog)

    async def _redefine(self) -> None:
        """Serve what the stored definitions say now, and say so in their status."""
        catalog = definitions.current(self.catalog, self.store)
        if catalog is not self.catalog:
            self._use(catalog)
        await definitions.publish_status(self.store, catalog, self.clock.now())


def _require(served: Served, verb: str) -> None:
    if verb not in served.kind.verbs:
        raise method_not_allowed(verb)
