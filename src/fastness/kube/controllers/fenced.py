"""A `Cluster` that refuses writes which nobody declared, or which come after the lease was lost.

Controllers get this instead of the cluster itself. The two checks are the cheap half of two promises: what the
documentation draws is what happens, and two leaders never write at the same time. Reads keep to the rule of
`kube.informers.placed`: what speaks for the cluster is never looked for in just any namespace. The loops of Kubernetes itself
(`everywhere`) believe no object and clean up after all of them, so they look at every namespace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.informers.placed import require_place
from fastness.kube.port import (
    DELETE,
    EVERYWHERE,
    WRITE,
    Cluster,
    DeleteOptions,
    Event,
    Page,
    PatchType,
    Scope,
    WriteOptions,
)
from fastness.runtime.errors import FastnessError


class UndeclaredWrite(FastnessError):
    """A controller writes something that is not in its declaration: a defect."""

    code = "UndeclaredWrite"
    hint = "Add the resource to the controller's `writes`, or do not write it."


def nobody_asks() -> None:
    """The check of a process that needs no lease."""


class FencedCluster:
    """Passes reads on, and writes that are declared while `may_write` does not raise."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        writes: Collection[Resource],
        may_write: Callable[[], None] = nobody_asks,
        *,
        everywhere: bool = False,
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._writes = {(resource.group, resource.plural) for resource in writes}
        self._may_write = may_write
        self._everywhere = everywhere

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object."""
        return await self._cluster.get(resource, name, namespace)

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects; raises InformerError for a look into every namespace at what does not speak for its own."""
        self._place(resource, scope)
        return await self._cluster.list(resource, scope, limit=limit, token=token, version=version)

    def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Changes; raises InformerError as `list` does."""
        self._place(resource, scope)
        return self._cluster.watch(resource, scope, since=since, initial=initial)

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object, if it is declared."""
        self._check(resource)
        return await self._cluster.create(resource, obj, options)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        kind: PatchType,
        namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Changed fields, if they are declared."""
        self._check(resource)
        return await self._cluster.patch(resource, name, patch, kind, namespace, options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """A delete, if it is declared."""
        self._check(resource)
        return await self._cluster.delete(resource, name, namespace, options)

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """A subresource, if its object is declared."""
        self._check(resource)
        return await self._cluster.connect(resource, name, namespace, subresource, body)

    def _place(self, resource: Resource, scope: Scope) -> None:
        if not self._everywhere:
            require_place(resource, scope)

    def _check(self, resource: Resource) -> None:
        # Declaration before lease: an undeclared write is a defect whoever leads.
        declared = (resource.group, resource.plural) in self._writes or ("*", "*") in self._writes
        if not declared:
            raise UndeclaredWrite(f"{self._name} writes {resource.plural} of {resource.group or 'the core group'}")
        self._may_write()
