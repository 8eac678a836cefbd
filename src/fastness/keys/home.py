"""The namespace that everything of ours lives in, watched: `fastness-system`.

Without it there are no Machines, no approvals and no keys, and whoever made it anew would begin a new record under new keys. So
nothing here makes it again: readiness says that it is gone, and a person restores it (docs/how-to/bring-the-namespace-back.md).
"""

from __future__ import annotations

from typing import Final

from fastness.keys.authorities import NAMESPACES
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, is_being_deleted
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, Scope
from fastness.runtime.clock import Clock

LOOK_SECONDS: Final = 10.0
GONE: Final = f"namespace {NAMESPACE} is gone, and with it machines, approvals and keys: nothing is released"
GOING: Final = f"namespace {NAMESPACE} is being deleted, with machines, approvals and keys: nothing is released"
RESTORING: Final = "fastness.dev/restoring"
"""An annotation of the namespace while a backup is brought back: what is missing may be on its way."""
NOT_WHOLE: Final = f"namespace {NAMESPACE} is being restored from a backup: nothing is released until that is done"
WAY_BACK: Final = "Restore it from a backup of the cluster before anything is started; see bring-the-namespace-back."


def home_of(informers: Informers) -> Informer:
    """The namespace as a door follows it (`touch`): what goes is known at once, not at the next look."""
    return informers.of(NAMESPACES, Scope(fields=f"metadata.name={NAMESPACE}"))


def is_restored(namespace: JsonObject) -> bool:
    """Whether a backup is brought back into it at this moment."""
    return RESTORING in annotations_of(namespace)


class Home:
    """Looks after the namespace now and then; `problem` is what was wrong the last time."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._problem: str | None = None

    def problem(self) -> str | None:
        """What is wrong with the namespace; None when nothing is."""
        return self._problem

    async def watch(self) -> None:
        """Look, for ever."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once; where the API does not tell, what was known stays."""
        try:
            namespace = await self._cluster.get(NAMESPACES, NAMESPACE)
        except NotFound:
            self._problem = GONE
        except ApiError:
            return
        else:
            self._problem = GOING if is_being_deleted(namespace) else NOT_WHOLE if is_restored(namespace) else None


async def was_lost(cluster: Cluster) -> bool:
    """Whether the namespace is missing although this cluster has a record: checkpoints lie outside it. Raises ApiError."""
    try:
        await cluster.get(NAMESPACES, NAMESPACE)
    except NotFound:
        # Checkpoints are of the cluster, so they outlive the namespace and tell a lost one from one that never was.
        return bool((await cluster.list(AUDIT_CHECKPOINT.resource)).items)
    return False
