"""One informer over several namespaces, for kinds that count in more than one: to its readers it is an informer like any other.

Each namespace has a watch of its own; what is out of touch in one is out of touch as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from fastness.kinds.kind import JsonObject
from fastness.kube.informers.cache import Indexer, Key, Objects
from fastness.kube.informers.informer import Handler, Informer


class JoinedInformer(Informer):
    """The objects of one resource in several scopes, each kept up to date by an informer of its own."""

    def __init__(self, parts: Sequence[Informer]) -> None:
        self.resource = parts[0].resource
        self.scope = parts[0].scope
        self._parts = tuple(parts)

    def get(self, namespace: str, name: str) -> JsonObject | None:
        """One object as last seen, or None."""
        return next((obj for part in self._parts if (obj := part.get(namespace, name)) is not None), None)

    def list(self, namespace: str = "") -> Objects:
        """All objects as last seen, or those of a namespace, in order of namespace and name."""
        parts = sorted(self._parts, key=lambda part: part.scope.namespace)
        return [obj for part in parts for obj in part.list(namespace)]

    def by_index(self, name: str, value: str) -> Objects:
        """The objects for which an index has this value; raises InformerError for an unknown index."""
        parts = sorted(self._parts, key=lambda part: part.scope.namespace)
        return [obj for part in parts for obj in part.by_index(name, value)]

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Keep an index from now on; raises InformerError when another one has the name."""
        for part in self._parts:
            part.add_index(name, indexer)

    def subscribe(self, handler: Handler) -> Callable[[], None]:
        """Tell a handler every change from now on, starting with what is there; the result ends it."""
        ends = [part.subscribe(handler) for part in self._parts]

        def end() -> None:
            for each in ends:
                each()

        return end

    async def synced(self) -> None:
        """Wait until every part has held the state of the cluster once."""
        for part in self._parts:
            await part.synced()

    @property
    def has_synced(self) -> bool:
        """Whether every part has held the state of the cluster once."""
        return all(part.has_synced for part in self._parts)

    @property
    def in_touch(self) -> bool:
        """Whether every part follows the cluster now."""
        # All: a rule may lie in the one namespace of which nothing is heard.
        return all(part.in_touch for part in self._parts)

    @property
    def age(self) -> float:
        """Seconds since the last word about the part that was heard of least lately."""
        return max(part.age for part in self._parts)

    @property
    def aside(self) -> Mapping[Key, str]:
        """The objects that are set aside in any part, with the reason."""
        return {key: reason for part in self._parts for key, reason in part.aside.items()}

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run(), name=f"informer {part.resource.plural} in {part.scope.namespace}")
