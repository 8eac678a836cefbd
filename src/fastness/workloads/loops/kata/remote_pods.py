"""The gauges of pods that run as virtual machines beside their node.

Kept from what informers tell, change by change: nothing is listed when metrics are asked for. A cluster has many pods and
most clusters have no class `kata-remote`, so pods are followed only from the moment at which the class is seen.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import POD
from fastness.kinds.objects import ObjectName, object_name
from fastness.kube.informers import Informers
from fastness.observe import metrics
from fastness.workloads.loops.kata.look import CLASSES

_WELL: Final = ("Running", "Succeeded")


class RemotePods:
    """Keeps the gauges of pods with the class `kata-remote` in step."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._pods: set[ObjectName] = set()
        self._failed: set[ObjectName] = set()
        self._following = False
        self._tell(available=False)
        informers.of(CLASSES).subscribe(self._hear_class)

    def _hear_class(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if object_name(new or old or {}).name != names.REMOTE_CLASS:
            return
        self._tell(available=new is not None)
        if new is not None and not self._following:
            self._following = True
            self._informers.of(POD.resource).subscribe(self._hear_pod)

    def _hear_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        pod = new or old or {}
        if (pod.get("spec") or {}).get("runtimeClassName") != names.REMOTE_CLASS:
            return
        name = object_name(pod)
        for pods in (self._pods, self._failed):
            pods.discard(name)
        if new is not None:
            self._pods.add(name)
            if (pod.get("status") or {}).get("phase") not in _WELL:
                self._failed.add(name)
        self._count()

    def _tell(self, *, available: bool) -> None:
        metrics.REMOTE_CLASS.set(int(available))
        self._count()

    def _count(self) -> None:
        total, failed = len(self._pods), len(self._failed)
        metrics.REMOTE_PODS.set(total)
        metrics.REMOTE_PODS_FAILED.set(failed)
        metrics.REMOTE_FAILURES.set(100 * failed / total if total else 0)
