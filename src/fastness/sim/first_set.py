"""The machine set that `fastness up` begins with: its first machines belong to it, so that they can be scaled.

    kubectl scale machineset worker-a -n openshift-machine-api --replicas 5

Machines first and the set last, because the set adopts what it finds and would make more of what it misses. A fleet that is too
large to be watched one by one has no set: whoever measures storms needs no objects beside the machines.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.openshift.machines import FINALIZER, MACHINE_SET, PROVIDER_MACHINE
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import Cluster
from fastness.machineconfig.scaling.providers import VIRTUAL

NAME: Final = "worker-a"
MOST: Final = 100
_LABELS: Final = {"machine.openshift.io/cluster-api-machineset": NAME}
_TEMPLATE: Final[JsonObject] = {
    "providerSpec": {
        "value": {
            "apiVersion": "fastness.dev/v1alpha1",
            "kind": VIRTUAL,
            "userDataSecret": {"name": f"{names.WORKER}{names.USER_DATA_SUFFIX}"},
        }
    }
}


def is_made(count: int) -> bool:
    """Whether so many first machines get a set."""
    return 0 < count <= MOST


def machine_name(number: int) -> str:
    """The Machine object of a first machine."""
    return f"{names.USER_DATA_NAMESPACE}/{NAME}-{number}"


async def create(cluster: Cluster, count: int) -> None:
    """The set and its Machines, if so many machines get one; raises ApiError."""
    if not is_made(count):
        return
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.USER_DATA_NAMESPACE}}
    with suppress(AlreadyExists):
        await cluster.create(NAMESPACE.resource, namespace)
    for number in range(count):
        meta = {
            "name": machine_name(number).partition("/")[2], "namespace": names.USER_DATA_NAMESPACE,
            "labels": _LABELS, "finalizers": [FINALIZER],
        }  # fmt: skip
        machine = {
            "apiVersion": PROVIDER_MACHINE.api_version, "kind": PROVIDER_MACHINE.kind, "metadata": meta,
            "spec": _TEMPLATE,
        }  # fmt: skip
        with suppress(AlreadyExists):
            await cluster.create(PROVIDER_MACHINE.resource, machine)
    machine_set = {
        "apiVersion": MACHINE_SET.api_version, "kind": MACHINE_SET.kind,
        "metadata": {"name": NAME, "namespace": names.USER_DATA_NAMESPACE},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _TEMPLATE},
        },
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(MACHINE_SET.resource, machine_set)
