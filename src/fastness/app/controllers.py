"""The controllers of the product: the same on the embedded API and on any Kubernetes.

`product_loops` is the one list. Embedded mode adds those of `kube/`; on a real API server they are Kubernetes' own business.

Where somebody else does the work of a family of loops, that family does not start unless it is adopted by name:
`other_operators` asks the cluster, `product_loops(…, without=…)` leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from fastness.attestation.live.image_contents import Simulated
from fastness.attestation.live.named_record import NamedRecord
from fastness.attestation.live.statuses import Statuses
from fastness.attestation.loops import door_certificates as certificates
from fastness.attestation.loops.approvers import Approvers
from fastness.attestation.loops.built_images import BuiltImages
from fastness.attestation.loops.challenges import ChallengeSweeper, LaunchSweeper
from fastness.attestation.loops.confidential import Confidential
from fastness.attestation.loops.distrust import Distrusting
from fastness.attestation.loops.door_certificates import DoorIssuer
from fastness.attestation.loops.first_cluster import FirstClusters
from fastness.attestation.loops.image_values import ImageValues
from fastness.attestation.loops.images import Images
from fastness.attestation.loops.legacy_certificates import LegacyCertificates
from fastness.attestation.loops.policies import Policies
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.loops.retention import Retention
from fastness.attestation.loops.retirement import ImageLives
from fastness.attestation.loops.statuses import MachineStatuses
from fastness.attestation.loops.values import Values
from fastness.attestation.values.pushed_here import SIGNER, vouch
from fastness.builds.live.builder import MakeBuilder, nobody_builds
from fastness.builds.live.image_signer import ImageSigner
from fastness.builds.loops.builds import Builds
from fastness.builds.loops.default_configs import DefaultConfigs
from fastness.builds.loops.leaving import Leaving
from fastness.builds.loops.pull_credentials import PullCredentials
from fastness.disks.loops.key_life import DiskKeyLife
from fastness.enrolment.loops.join_tokens import BootstrapTokenController
from fastness.enrolment.loops.joined_nodes import JoinedNodeController
from fastness.enrolment.loops.kubelet_certificates import Joins
from fastness.enrolment.loops.machines import Machines
from fastness.enrolment.loops.pool_tokens import PoolTokenController
from fastness.enrolment.loops.trusted_cluster import AttestationKeys, TrustedClusters, told_doors
from fastness.enrolment.loops.unattested_joins import UnattestedJoins
from fastness.enrolment.trusted_cluster import Doors
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.openshift.node_settings import NODE_CONFIG
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.controllers.misplaced import Elsewhere
from fastness.kube.controllers.not_acted_on import NotActedOnLoop
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.live.registry import RegistryImages
from fastness.machineconfig.loops.controllers import REGISTRIES, machine_config_loops, nowhere
from fastness.machineconfig.loops.machines.machine_api import machine_api_loops
from fastness.machineconfig.loops.machines.other_machine_api import FAMILY as MACHINE_API
from fastness.machineconfig.loops.other_operators import FAMILY as MACHINE_CONFIG
from fastness.machineconfig.loops.rendering.image_contents import RegistryReader
from fastness.machineconfig.loops.rendering.render import ResolveImage
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.overlays import NodeOverlays
from fastness.machineconfig.scaling.providers import PROVIDERS
from fastness.record.live.door_keys import DoorSigner
from fastness.record.live.guard import RecordGuard
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import ConfigMapTiles, TileStore
from fastness.record.loops.sequencer import Sequencer
from fastness.record.loops.witnesses import RecordWitnesses
from fastness.release.loops.kbs_config import KbsConfigs, TrusteeConfigs
from fastness.runtime.clock import Clock, Entropy
from fastness.workloads.loops.controllers import workload_loops

PLAIN: Final = (
    KbsConfigs, TrusteeConfigs, Images, Retention, ImageLives, Values, NodeOverlays, ProofAge, BootstrapTokenController,
    PoolTokenController, JoinedNodeController, TrustedClusters, Elsewhere, AttestationKeys, NotActedOnLoop,
)  # fmt: skip
"""Loops that need the cluster, its caches and the time."""
RECORDED: Final = (Approvers, BuiltImages, Machines, DiskKeyLife, Distrusting, Joins, UnattestedJoins)
"""Loops whose decisions go into the record."""


def product_loops(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    *,
    timing: Timing = FIELD,
    doors: Callable[[], Doors | None] = nowhere,
    may_write: Callable[[], None] = nobody_asks,
    tiles: TileStore | None = None,
    watched: Callable[[], bool] = lambda: True,
    statuses: Statuses | None = None,
    without: Collection[str] = (),
    providers: Collection[str] = PROVIDERS,
    resolve_image: ResolveImage | None = None,
    images: RegistryImages = REGISTRIES,
    builder: MakeBuilder = nobody_builds,
    simulated_images: Simulated | None = None,
) -> list[Controller]:
    """All controllers of the product but those of some families, each behind its declaration of writes and the lease.

    `watched`: whether admission of ours stands in front of the API; the embedded one has it. `statuses`: those of Machines,
    where the cluster that the loops get signs them. `providers` make machines for machine sets. `resolve_image` asks a registry
    which image a tag means; `images` are looked into for streams, `builder` builds them.
    """

    def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
        return FencedCluster(cluster, name, writes, may_write)

    record = fenced(Sequencer.name, Sequencer.writes)
    guard = RecordGuard(record, tiles := tiles or ConfigMapTiles(record))
    witnesses = RecordWitnesses(fenced(RecordWitnesses.name, RecordWitnesses.writes), tiles, guard, clock)
    own = fenced("record-door", (AUDIT_BATCH.resource, CONFIG_MAP.resource, SECRETS))
    decisions = NamedRecord(ClusterRecord(own, clock, entropy, "controllers"), own, tiles)
    loops: list[Controller] = [
        ChallengeSweeper(fenced(ChallengeSweeper.name, ChallengeSweeper.writes), clock),
        LaunchSweeper(fenced(LaunchSweeper.name, LaunchSweeper.writes), informers, clock),
        Sequencer(record, tiles, clock, entropy, guard=guard, ask_witnesses=witnesses.ask_first),
        witnesses,
        Policies(fenced(Policies.name, Policies.writes), clock),
        Confidential(fenced(Confidential.name, Confidential.writes), informers, clock, decisions, tiles, watched),
        FirstClusters(fenced(FirstClusters.name, FirstClusters.writes), informers, clock, watched),
    ]
    loops += [loop(fenced(loop.name, loop.writes), informers, clock) for loop in PLAIN]
    loops += [loop(fenced(loop.name, loop.writes), informers, decisions, clock) for loop in RECORDED]
    loops.append(_image_values(fenced(ImageValues.name, ImageValues.writes), informers, clock, simulated_images))
    if statuses:
        signed = fenced(MachineStatuses.name, MachineStatuses.writes)
        loops.append(MachineStatuses(signed, informers, decisions, clock, statuses))
    loops += [loop(fenced(loop.name, loop.writes), informers, clock, entropy) for loop in _issuers(without)]
    if MACHINE_CONFIG not in without:
        named = told_doors(doors, informers.of(TRUSTED_EXECUTION_CLUSTER.resource))
        loops += machine_config_loops(
            cluster, informers, clock, entropy, timing=timing, doors=named, may_write=may_write,
            resolve_image=resolve_image, images=images,
        )  # fmt: skip
        loops += _builds(fenced, own, informers, clock, entropy, builder, timing)
    if MACHINE_API not in without:
        loops += machine_api_loops(cluster, clock, providers=providers, may_write=may_write)
    return [*loops, *workload_loops(cluster, informers, clock, timing=timing, may_write=may_write, without=without)]


def _issuers(without: Collection[str]) -> tuple[type[LegacyCertificates | DoorIssuer], ...]:
    return (LegacyCertificates,) if certificates.FAMILY in without else (LegacyCertificates, DoorIssuer)


def _image_values(
    cluster: FencedCluster, informers: Informers, clock: Clock, simulated: Simulated | None
) -> ImageValues:
    return ImageValues(cluster, informers, clock, RegistryReader(cluster), simulated)


def _builds(
    fenced: Callable[[str, Sequence[Resource]], FencedCluster], own: FencedCluster, informers: Informers, clock: Clock,
    entropy: Entropy, builder: MakeBuilder, timing: Timing,
) -> list[Controller]:  # fmt: skip
    """The loops of images that are built here; `own` is the cluster as whoever has the key of the controllers reads it."""
    signer = DoorSigner(SIGNER, own, clock, entropy)

    async def vouched(pool: str, image: str) -> str:
        return vouch(pool, image, await signer.current())

    cluster = fenced(Builds.name, Builds.writes)
    others = [loop(fenced(loop.name, loop.writes), informers, clock, timing) for loop in (DefaultConfigs, Leaving)]
    credentials = PullCredentials(fenced(PullCredentials.name, PullCredentials.writes), informers, timing)
    beside = ImageSigner(cluster, clock, entropy)
    builds = Builds(cluster, informers, clock, builder(cluster), timing, vouched, beside)
    return [builds, *others, credentials]


def graph(controllers: Iterable[Controller]) -> str:
    """What controllers read and write, as a Mermaid flow chart for the documentation."""
    lines = ["flowchart LR"]
    for controller in controllers:
        node = controller.name.replace("-", "_")
        lines.append(f"  {node}([{controller.name}])")
        # No sources: it hears of every write from the store itself.
        read = {_kind(source.resource) for source in controller.sources} or {EVERY_KIND}
        lines += sorted(f"  {kind} --> {node}" for kind in read)
        lines += sorted({f"  {node} --> {_kind(resource)}" for resource in controller.writes})
    return "\n".join(lines) + "\n"


EVERY_KIND = "everything[every kind]"


def _kind(resource: Resource) -> str:
    if resource == NODE_CONFIG.resource:
        return f"NodeConfig[Node of {resource.group}]"
    return EVERY_KIND if resource.kind == "*" else resource.kind
