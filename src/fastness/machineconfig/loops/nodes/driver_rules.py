"""Every node is told which program should deploy its operating system, as stage and gates of the cluster say.

An annotation, because that is what an agent watches: the rule reaches it at once, and no machine needs another right for it.
Without a rule there is no annotation. A setting that cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of, object_name
from fastness.kinds.openshift.node_settings import FEATURE_GATE
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.built_images import ImageModes
from fastness.runtime.clock import Clock

_ALL = ObjectName("", "*")
_AS = WriteOptions(manager="os-driver-rules")


def _every(_obj: Object) -> Iterable[ObjectName]:
    return (_ALL,)


class DriverRules:
    """Tells nodes the rule about their driver."""

    name = "os-driver-rules"
    sources: Sequence[Source] = (
        Source(NODE.resource, reads=fields(annotations=(names.OS_DRIVER_RULE,))),
        Source(MACHINE_CONFIGURATION.resource, keys=_every),
        Source(FEATURE_GATE.resource, keys=_every),
    )
    writes: Sequence[Resource] = (NODE.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self._cluster = cluster
        self._nodes = informers.of(NODE.resource)
        self._modes = ImageModes(informers)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the annotation of one node, or of all, to what holds."""
        mode = self._modes.now()
        if mode.unreadable:
            return Done()
        if key == _ALL:
            for each in self._nodes.list():
                await self._tell(each, mode.driver)
            return Done()
        node = self._nodes.get("", key.name)
        if node is None:
            return GONE
        await self._tell(node, mode.driver)
        return Done()

    async def _tell(self, node: Object, rule: str) -> None:
        if annotations_of(node).get(names.OS_DRIVER_RULE, "") == rule:
            return
        patch = {"metadata": {"annotations": {names.OS_DRIVER_RULE: rule or None}}}
        try:
            await self._cluster.patch(NODE.resource, object_name(node).name, patch, PatchType.MERGE, "", _AS)
        except NotFound:
            return
