"""Says of every MachineOSConfig whether its nodes come back when it goes: condition Removable, which admission reads.

A MachineOSConfig of which nothing is to be said has no such condition: everything as before for pools that never had a problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.builds.checks import pool_of
from fastness.builds.leaving import stranded
from fastness.builds.loops.statuses import AS_EXPECTED, CONFIGS
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, condition, metadata, with_condition
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.controllers.statuses import write_status
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.built import config_for
from fastness.runtime.clock import Clock

_STATUS = WriteOptions(manager="leaving-images", subresource="status")
_READS = fields(annotations=(names.CURRENT_IMAGE, names.CURRENT_CONFIG, names.OS_DRIVER))


def _of_config(config: Object) -> Iterable[ObjectName]:
    return (ObjectName("", pool_of(config)),)


def _of_node(node: Object) -> Iterable[ObjectName]:
    pool = _pool(node)
    return (ObjectName("", pool),) if pool else ()


def _nobody(_obj: Object) -> Iterable[ObjectName]:
    return ()


def _pool(node: Object) -> str:
    """The pool whose config a node has."""
    return annotations_of(node).get(names.CURRENT_CONFIG, "").removeprefix("rendered-").rpartition("-")[0]


class Leaving:
    """Keeps the condition Removable."""

    name = "leaving-images"
    writes: Sequence[Resource] = (CONFIGS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIGS, keys=_of_config, delay=timing.render_delay),
            Source(MACHINE_CONFIG_POOL.resource, reads=fields("spec"), delay=timing.render_delay),
            Source(MACHINE_CONFIG.resource, keys=_nobody),
            Source(NODE.resource, keys=_of_node, reads=_READS, delay=timing.render_delay),
        )
        self._cluster = cluster
        self._clock = clock
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._configs = informers.of(CONFIGS)
        self._machine_configs = informers.of(MACHINE_CONFIG.resource)
        self._nodes = informers.of(NODE.resource)

    async def reconcile(self, key: ObjectName) -> Done:
        """Say it of the MachineOSConfig of one pool."""
        config, pool = config_for(key.name, self._configs.list()), self._pools.get("", key.name)
        if config is None or pool is None:
            return Done()
        rendered = str(((pool.get("spec") or {}).get("configuration") or {}).get("name") or "")
        nodes = [node for node in self._nodes.list() if _pool(node) == key.name]
        why = stranded(self._machine_configs.get("", rendered) or {}, nodes)
        if not why and condition(config, names.REMOVABLE) is None:
            return Done()

        def change(current: JsonObject) -> JsonObject | None:
            before = (current.get("status") or {}).get("conditions") or []
            conditions = with_condition(
                before, kind=names.REMOVABLE, status="False" if why else "True", message=why, now=self._clock.now(),
                reason="NodesWouldBeStranded" if why else AS_EXPECTED, generation=metadata(current).get("generation"),
            )  # fmt: skip
            return None if conditions == before else {"conditions": conditions}

        await write_status(self._cluster, CONFIGS, dict(config), change, _STATUS)
        return Done()
