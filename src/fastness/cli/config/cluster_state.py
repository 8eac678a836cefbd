"""The objects that a plan is made from, asked of a cluster. A kind that the cluster does not have counts as empty."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastness import __version__
from fastness.cli.cluster import connected
from fastness.cli.config.offline import first_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.registry import find as find_kind
from fastness.kube.errors import NotFound
from fastness.kube.places import HOME
from fastness.kube.port import Cluster
from fastness.machineconfig.render.generated import Owners
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.rollout.plan import State

_MACHINE_CONFIG: Final = "machineconfiguration.openshift.io"
_KINDS: Final = {
    "pools": (_MACHINE_CONFIG, "v1", "machineconfigpools"),
    "configs": (_MACHINE_CONFIG, "v1", "machineconfigs"),
    "kubelets": (_MACHINE_CONFIG, "v1", "kubeletconfigs"),
    "runtimes": (_MACHINE_CONFIG, "v1", "containerruntimeconfigs"),
    "controllers": (_MACHINE_CONFIG, "v1", "controllerconfigs"),
    "configurations": ("operator.openshift.io", "v1", "machineconfigurations"),
    "streams": (_MACHINE_CONFIG, "v1", "osimagestreams"),
    "policies": ("fastness.dev", "v1alpha1", "rolloutpolicies"),
    "clusters": ("fastness.dev", "v1alpha1", "confidentialclusters"),
    "machines": ("trusted-execution-clusters.io", "v1alpha1", "machines"),
    "overlays": ("fastness.dev", "v1alpha1", "nodeoverlays"),
    "nodes": ("", "v1", "nodes"),
    "pods": ("", "v1", "pods"),
    "budgets": ("policy", "v1", "poddisruptionbudgets"),
}


async def ask(kubeconfig: Path | None, context: str) -> State:
    """The state of the cluster that a kubeconfig names."""
    async with connected(kubeconfig, context) as cluster:
        return await state_of(cluster)


async def state_of(cluster: Cluster) -> State:
    """The state of a cluster."""
    objects: dict[str, list[JsonObject]] = {}
    for name, coordinates in _KINDS.items():
        try:
            objects[name] = (await cluster.list(find_kind(*coordinates).resource)).items
        except NotFound:
            objects[name] = []
    controller = first_of(objects["controllers"])
    return State(
        pools=objects["pools"],
        configs=objects["configs"],
        nodes=objects["nodes"],
        pods=objects["pods"],
        budgets=objects["budgets"],
        cluster=first_of(objects["clusters"]),
        configuration=first_of(objects["configurations"]),
        owners=Owners.of(objects["kubelets"], objects["runtimes"], controller),
        defaults=Defaults.of(controller, __version__),
        policies=objects["policies"],
        streams=first_of(objects["streams"]),
        machines=[machine for machine in objects["machines"] if object_name(machine).namespace == HOME],
        overlays=objects["overlays"],
    )
