"""Namespace lifecycle: a namespace goes when everything in it has gone.

A deleted namespace is Terminating. Its content is deleted kind by kind; what finalizers hold is waited for, and the conditions of
the namespace say what and why, in the words of Kubernetes. When nothing is left the finalizer `kubernetes` is taken off.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.apiserver.loops.garbage import EVERYTHING
from fastness.apiserver.loops.inventory import Inventory
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kinds.objects import ObjectName, with_condition
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

NAMESPACES = NAMESPACE.resource
FINALIZER = "kubernetes"
AGAIN_SECONDS = 0.5
PAGE = 500
_AS = WriteOptions(manager="namespace-controller")


class NamespaceLifecycle:
    """Empties namespaces that are being deleted."""

    name = "namespace-lifecycle"
    sources: Sequence[Source] = (Source(NAMESPACES),)
    writes: Sequence[Resource] = (EVERYTHING,)

    def __init__(self, cluster: Cluster, inventory: Inventory, clock: Clock) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete a part of the content, or let the namespace go."""
        try:
            namespace = await self._cluster.get(NAMESPACES, key.name)
        except NotFound:
            return GONE
        if not namespace["metadata"].get("deletionTimestamp") or FINALIZER not in _finalizers(namespace):
            return Done()
        failures = await self._delete_content(key.name)
        # Looked at after the deletions and in the store itself, unreadable objects included: a namespace must not leave orphans.
        remaining = self._remaining(key.name)
        if remaining or failures:
            await self._tell(namespace, remaining, failures)
            return Done(again_after=AGAIN_SECONDS)
        left = [entry for entry in _finalizers(namespace) if entry != FINALIZER]
        body = {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": left}}
        try:
            await self._cluster.connect(NAMESPACES, key.name, "", "finalize", body)
        except NotFound:
            return GONE
        return Done()

    async def _delete_content(self, namespace: str) -> list[str]:
        """Ask for the deletion of everything that was not asked for yet; what could not be asked."""
        failures = []
        for group, plural in self._inventory.collections(namespace):
            resource = self._inventory.resource(group, plural)
            if resource is None:
                continue
            page = await self._cluster.list(resource, Scope(namespace), limit=PAGE)
            for obj in page.items:
                if obj["metadata"].get("deletionTimestamp"):
                    continue
                try:
                    await self._cluster.delete(resource, obj["metadata"]["name"], namespace)
                except NotFound:
                    continue
                except ApiError as error:
                    failures.append(f"{plural} {obj['metadata']['name']}: {error.message}")
        return failures

    def _remaining(self, namespace: str) -> list[str]:
        return [f"{plural}.{group}" if group else plural for group, plural in self._inventory.collections(namespace)]

    async def _tell(self, namespace: JsonObject, remaining: list[str], failures: list[str]) -> None:
        """Say in the conditions what holds the namespace."""
        before = (namespace.get("status") or {}).get("conditions") or []
        now = self._clock.now()
        content = with_condition(
            before, kind="NamespaceContentRemaining", status="True" if remaining else "False",
            reason="SomeResourcesRemain" if remaining else "ContentRemoved",
            message=f"Some resources are remaining: {', '.join(remaining)}" if remaining else "All content successfully removed",
            now=now,
        )  # fmt: skip
        conditions = with_condition(
            content, kind="NamespaceDeletionContentFailure", status="True" if failures else "False",
            reason="ContentDeletionFailed" if failures else "ContentDeleted",
            message="; ".join(failures[:5]) if failures else "All content successfully deleted, may be waiting on finalization",
            now=now,
        )  # fmt: skip
        if conditions == before:
            return
        options = WriteOptions(manager=_AS.manager, subresource="status")
        try:
            await self._cluster.patch(
                NAMESPACES,
                namespace["metadata"]["name"],
                {"status": {"conditions": conditions}},
                PatchType.MERGE,
                "",
                options,
            )
        except NotFound:
            return


def _finalizers(namespace: JsonObject) -> list[str]:
    return list((namespace.get("spec") or {}).get("finalizers") or ())
