"""The network cable of a virtual machine: as long as it is pulled, nothing of the machine reaches the cluster.

* What the machine asks of the API fails as it does when no route leads there; a watch that is open stays silent and ends with the
  first thing that it should have told, as a connection does that nobody closed.
* What it asks of the doors goes to an address where nobody listens.
* A machine that boots waits for the cable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.errors import Unavailable
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

# The discard port (RFC 863), where nobody listens: a refused connection, as from a host that is gone.
NOWHERE: Final = "https://127.0.0.1:9"


class Cable:
    """The cable of one machine."""

    def __init__(self) -> None:
        self._plugged = asyncio.Event()
        self._plugged.set()

    @property
    def plugged(self) -> bool:
        """Whether anything gets through."""
        return self._plugged.is_set()

    def pull(self) -> None:
        """Cut the machine off."""
        self._plugged.clear()

    def plug(self) -> None:
        """Connect it again."""
        self._plugged.set()

    async def carries(self) -> None:
        """Wait until something gets through."""
        await self._plugged.wait()

    def way(self, address: str) -> str:
        """Where a request to that address ends up."""
        return address if self.plugged else NOWHERE

    def check(self) -> None:
        """Raises Unavailable while the cable is pulled."""
        if not self.plugged:
            raise Unavailable("no route to the cluster: the network of this virtual machine is cut")


class Cabled:
    """The cluster port at the end of a cable."""

    def __init__(self, cluster: Cluster, cable: Cable) -> None:
        self._cluster = cluster
        self._cable = cable

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.get(resource, name, namespace)

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.list(resource, scope, limit=limit, token=token, version=version)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Changes, until one does not get through."""
        self._cable.check()
        async with self._cluster.watch(resource, scope, since=since, initial=initial) as events:
            # Silent until something should have come: a half-open connection is noticed by what does not arrive.
            yield self._carried(events)

    async def _carried(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            self._cable.check()
            yield event

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.create(resource, obj, options)

    async def patch(
        self, resource: Resource, name: str, patch: Any, kind: PatchType, namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:  # fmt: skip
        """Change fields; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.patch(resource, name, patch, kind, namespace, options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Ask for deletion; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.delete(resource, name, namespace, options)

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """POST to a subresource; raises Unavailable besides."""
        self._cable.check()
        return await self._cluster.connect(resource, name, namespace, subresource, body)
