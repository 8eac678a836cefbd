"""A controller: declarations and one function.

`sources` say what is read and which keys an object concerns; `writes` say what may change. Both are data, so that the
documentation draws the graph of all controllers and a test refuses a write that was not declared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName, object_name
from fastness.kube.port import EVERYWHERE, Scope

Object = Mapping[str, Any]
Keys = Callable[[Object], Iterable[Hashable]]


def itself(obj: Object) -> Iterable[ObjectName]:
    """The object's own key."""
    return (object_name(obj),)


@dataclass(frozen=True, slots=True)
class Source:
    """Something a controller reads, and which keys a change of it concerns; `delay` absorbs a burst of changes.

    An `optional` one is a kind that the cluster may not serve: work begins without it. With `reads` (`reads.py`) only changes of
    these fields concern anybody; with `unread` those of these fields alone concern nobody.
    """

    resource: Resource
    keys: Keys = itself
    scope: Scope = EVERYWHERE
    delay: float = 0.0
    optional: bool = False
    indexes: Mapping[str, Callable[[Object], Iterable[str]]] = field(default_factory=dict)
    reads: frozenset[str] | None = None
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Done:
    """A reconcile that went well.

    `again_after` asks for another one in so many seconds; `resync` False says that the object is gone and needs no other look.
    """

    again_after: float | None = None
    resync: bool = True


GONE = Done(resync=False)


class Controller(Protocol):
    """Brings one key from what is to what should be.

    A controller that has something to do in an empty cluster names its keys in an attribute `always`.
    """

    @property
    def name(self) -> str:
        """The name in logs and metrics."""

    @property
    def sources(self) -> Sequence[Source]:
        """What is read."""

    @property
    def writes(self) -> Sequence[Resource]:
        """What may be written."""

    async def reconcile(self, key: Any) -> Done:
        """One step for one key; whatever it raises is tried again later."""
