"""All loops of machine configuration, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastness.enrolment.trusted_cluster import Doors
from fastness.kinds.kind import Resource
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.live.registry import RegistryClient, RegistryImages
from fastness.machineconfig.loops.first_boot.boot_images import BootImages
from fastness.machineconfig.loops.first_boot.installer_pointers import InstallerStubs
from fastness.machineconfig.loops.first_boot.user_data import UserData
from fastness.machineconfig.loops.nodes.api_authority import ApiAuthority
from fastness.machineconfig.loops.nodes.config_nodes import ConfigNodes
from fastness.machineconfig.loops.nodes.driver_rules import DriverRules
from fastness.machineconfig.loops.nodes.labels import FirstLabels
from fastness.machineconfig.loops.nodes.node_trust import TrustOfNodes
from fastness.machineconfig.loops.nodes.pinned_images import PinnedImages
from fastness.machineconfig.loops.rendering.cluster_kinds import ClusterKinds
from fastness.machineconfig.loops.rendering.defaults import Defaults
from fastness.machineconfig.loops.rendering.generated import Generated
from fastness.machineconfig.loops.rendering.prune import Pruning
from fastness.machineconfig.loops.rendering.registries import Registries
from fastness.machineconfig.loops.rendering.render import Rendering, ResolveImage
from fastness.machineconfig.loops.rendering.streams import Streams
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.drain import Drains
from fastness.machineconfig.loops.updates.rollout import Rollout
from fastness.runtime.clock import Clock, Entropy

REGISTRIES = RegistryClient()


def nowhere() -> Doors | None:
    """The doors of a cluster that has none yet: no user-data is made."""
    return None


LOOPS = (
    Defaults, Generated, ApiAuthority, TrustOfNodes, ClusterKinds, Registries, FirstLabels, Rollout, Drains, ConfigNodes,
    PinnedImages, Pruning, BootImages, DriverRules,
)  # fmt: skip


def machine_config_loops(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    *,
    timing: Timing = FIELD,
    doors: Callable[[], Doors | None] = nowhere,
    may_write: Callable[[], None] = nobody_asks,
    resolve_image: ResolveImage | None = None,
    images: RegistryImages = REGISTRIES,
) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease; `images` are looked into for streams."""

    def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
        return FencedCluster(cluster, name, writes, may_write)

    loops: list[Controller] = [loop(fenced(loop.name, loop.writes), informers, clock, timing) for loop in LOOPS]
    streams = fenced(Streams.name, Streams.writes)
    rendering = fenced(Rendering.name, Rendering.writes)
    user_data = fenced(UserData.name, UserData.writes)
    stubs = fenced(InstallerStubs.name, InstallerStubs.writes)
    return [
        *loops,
        Streams(streams, informers, clock, images, timing),
        Rendering(rendering, informers, clock, images, timing, resolve_image),
        UserData(user_data, informers, clock, entropy, doors),
        InstallerStubs(stubs, informers, clock, doors),
    ]
