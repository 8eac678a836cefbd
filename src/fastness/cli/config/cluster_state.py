"""The objects that a plan is made from, asked of a cluster. A kind that the cluster does not have counts as empty."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fastness import __version__
from fastness.cli.cluster import connected
from fastness.cli.config.offline import called_cluster, first_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY, ROLLOUT_POLICY
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE, POD, POD_DISRUPTION_BUDGET
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.kubelet_config import CONTAINER_RUNTIME_CONFIG, KUBELET_CONFIG
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.machineconfiguration.pinned_images import OS_IMAGE_STREAM
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import object_name
from fastness.kinds.openshift.node_settings import API_SERVER, FEATURE_GATE, NODE_CONFIG
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound
from fastness.kube.places import HOME
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.rendering.registry_view import ask_for_objects
from fastness.machineconfig.render.generated import Owners
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.settings.cluster import ClusterSettings
from fastness.machineconfig.rollout.plan import State

_KINDS: Final = {
    "pools": MACHINE_CONFIG_POOL,
    "configs": MACHINE_CONFIG,
    "kubelets": KUBELET_CONFIG,
    "runtimes": CONTAINER_RUNTIME_CONFIG,
    "node_configs": NODE_CONFIG,
    "feature_gates": FEATURE_GATE,
    "apiservers": API_SERVER,
    "controllers": CONTROLLER_CONFIG,
    "configurations": MACHINE_CONFIGURATION,
    "streams": OS_IMAGE_STREAM,
    "policies": ROLLOUT_POLICY,
    "clusters": CONFIDENTIAL_CLUSTER,
    "machines": MACHINE,
    "overlays": NODE_OVERLAY,
    "os_configs": MACHINE_OS_CONFIG,
    "os_builds": MACHINE_OS_BUILD,
    "nodes": NODE,
    "pods": POD,
    "budgets": POD_DISRUPTION_BUDGET,
}


async def ask(kubeconfig: Path | None, context: str) -> State:
    """The state of the cluster that a kubeconfig names."""
    async with connected(kubeconfig, context) as cluster:
        return await state_of(cluster)


async def state_of(cluster: Cluster) -> State:
    """The state of a cluster."""
    objects: dict[str, list[JsonObject]] = {}
    for name, kind in _KINDS.items():
        try:
            objects[name] = (await cluster.list(kind.resource)).items
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
        owners=Owners.of(
            objects["kubelets"],
            objects["runtimes"],
            controller,
            settings=ClusterSettings(
                called_cluster(objects["node_configs"]),
                called_cluster(objects["feature_gates"]),
                called_cluster(objects["apiservers"]),
            ),
            pools=objects["pools"],
            configs=objects["configs"],
            confidential=first_of(objects["clusters"]),
        ),
        defaults=Defaults.of(controller, __version__),
        policies=objects["policies"],
        streams=first_of(objects["streams"]),
        machines=[machine for machine in objects["machines"] if object_name(machine).namespace == HOME],
        overlays=objects["overlays"],
        registries=await ask_for_objects(cluster),
        os_configs=objects["os_configs"],
        os_builds=objects["os_builds"],
    )
