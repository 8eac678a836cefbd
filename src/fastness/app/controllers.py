"""The controllers of the product: the same on the embedded API and on any Kubernetes.

`product_loops` is the one list. Embedded mode adds those of `kube/`; on a real API server they are Kubernetes' own business.

Where somebody else does the work of a family of loops, that family does not start unless it is adopted by name:
`other_operators` asks the cluster, `product_loops(…, without=…)` leaves them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from fastness.attestation.live.named_record import NamedRecord
from fastness.attestation.loops import door_certificates as certificates
from fastness.attestation.loops.approvers import Approvers
from fastness.attestation.loops.challenges import ChallengeSweeper
from fastness.attestation.loops.confidential import Confidential
from fastness.attestation.loops.distrust import Distrusting
from fastness.attestation.loops.door_certificates import DoorIssuer
from fastness.attestation.loops.images import Images
from fastness.attestation.loops.policies import Policies
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.loops.retention import Retention
from fastness.attestation.loops.retirement import ImageLives
from fastness.attestation.loops.statuses import MachineStatuses
from fastness.attestation.loops.values import Values
from fastness.enrolment.loops.join_tokens import BootstrapTokenController
from fastness.enrolment.loops.kubelet_certificates import Joins
from fastness.enrolment.loops.machines import Machines
from fastness.enrolment.loops.trusted_cluster import AttestationKeys, TrustedClusters, told_doors
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.misplaced import Elsewhere
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.controllers import Around, machine_config_loops
from fastness.machineconfig.loops.other_operators import FAMILY as MACHINE_CONFIG
from fastness.machineconfig.loops.overlays import NodeOverlays
from fastness.record.live.guard import RecordGuard
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import ConfigMapTiles
from fastness.record.loops.sequencer import Sequencer
from fastness.record.loops.witnesses import RecordWitnesses
from fastness.release.loops.kbs_config import KbsConfigs, TrusteeConfigs
from fastness.workloads.loops.controllers import workload_loops


def product_loops(
    cluster: Cluster, informers: Informers, around: Around, *, without: Collection[str] = ()
) -> list[Controller]:
    """All controllers of the product but those of some families, each behind its declaration of writes and the lease."""

    def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
        return FencedCluster(cluster, name, writes, around.may_write)

    record = fenced(Sequencer.name, Sequencer.writes)
    tiles = around.tiles or ConfigMapTiles(record)
    guard = RecordGuard(record, tiles)
    witnesses = RecordWitnesses(fenced(RecordWitnesses.name, RecordWitnesses.writes), tiles, guard, around.clock)
    own = fenced("record-door", (AUDIT_BATCH.resource, CONFIG_MAP.resource, SECRETS))
    decisions = NamedRecord(ClusterRecord(own, around.clock, around.entropy, "controllers"), own, tiles)
    members = fenced(Machines.name, Machines.writes)
    standing = fenced(Confidential.name, Confidential.writes)
    approvers = fenced(Approvers.name, Approvers.writes)
    distrust = fenced(Distrusting.name, Distrusting.writes)
    joins = fenced(Joins.name, Joins.writes)
    statuses = fenced(MachineStatuses.name, MachineStatuses.writes)
    with_named_broker = replace(
        around, doors=told_doors(around.doors, informers.of(TRUSTED_EXECUTION_CLUSTER.resource))
    )
    issuer = DoorIssuer(fenced(DoorIssuer.name, DoorIssuer.writes), informers, around.clock, around.entropy)
    return [
        *([issuer] if certificates.FAMILY not in without else ()),
        ChallengeSweeper(fenced(ChallengeSweeper.name, ChallengeSweeper.writes), around.clock),
        Sequencer(record, tiles, around.clock, around.entropy, guard=guard, ask_witnesses=witnesses.ask_first),
        witnesses,
        Policies(fenced(Policies.name, Policies.writes), around.clock),
        KbsConfigs(fenced(KbsConfigs.name, KbsConfigs.writes), informers, around.clock),
        TrusteeConfigs(fenced(TrusteeConfigs.name, TrusteeConfigs.writes), informers, around.clock),
        Images(fenced(Images.name, Images.writes), informers, around.clock),
        Approvers(approvers, informers, decisions, around.clock),
        Confidential(standing, informers, around.clock, decisions, tiles, around.watched),
        Retention(fenced(Retention.name, Retention.writes), informers, around.clock),
        ImageLives(fenced(ImageLives.name, ImageLives.writes), informers, around.clock),
        Values(fenced(Values.name, Values.writes), informers, around.clock),
        Machines(members, informers, decisions, around.clock),
        *([MachineStatuses(statuses, informers, decisions, around.clock, around.statuses)] if around.statuses else ()),
        NodeOverlays(fenced(NodeOverlays.name, NodeOverlays.writes), informers, around.clock),
        ProofAge(fenced(ProofAge.name, ProofAge.writes), informers, around.clock),
        Distrusting(distrust, informers, decisions, around.clock),
        Joins(joins, informers, decisions, around.clock),
        BootstrapTokenController(
            fenced(BootstrapTokenController.name, BootstrapTokenController.writes), informers, around.clock
        ),
        TrustedClusters(fenced(TrustedClusters.name, TrustedClusters.writes), informers, around.clock),
        Elsewhere(fenced(Elsewhere.name, Elsewhere.writes), informers, around.clock),
        AttestationKeys(fenced(AttestationKeys.name, AttestationKeys.writes), informers, around.clock),
        *(machine_config_loops(cluster, informers, with_named_broker) if MACHINE_CONFIG not in without else ()),
        *workload_loops(cluster, informers, around, without=without),
    ]


def graph(controllers: Iterable[Controller]) -> str:
    """What controllers read and write, as a Mermaid flow chart for the documentation."""
    lines = ["flowchart LR"]
    for controller in controllers:
        node = controller.name.replace("-", "_")
        lines.append(f"  {node}([{controller.name}])")
        # No sources: it hears of every write from the store itself.
        read = {_kind(source.resource.kind) for source in controller.sources} or {_kind("*")}
        lines += sorted(f"  {kind} --> {node}" for kind in read)
        lines += sorted({f"  {node} --> {_kind(resource.kind)}" for resource in controller.writes})
    return "\n".join(lines) + "\n"


def _kind(kind: str) -> str:
    return "everything[every kind]" if kind == "*" else kind
