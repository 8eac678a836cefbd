"""No node of a confidential pool is sent to an image before its reference values count.

A machine that boots an image that the verifier does not know is refused, and an update that everybody asked for would take the
cluster down node by node. So a rollout asks here first. A config that leaves the image as it is passes; what a node has already
is no change.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.attestation.evidence.roots import accepted_evidence
from fastness.attestation.values.image_life import digest_of, values_missing
from fastness.attestation.values.measured import COMPARED
from fastness.attestation.values.values import ReferenceValues, approved_images
from fastness.attestation.verdict.distrust import read_distrust
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import Resource
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import Informers
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts
from fastness.machineconfig.rollout.rollout import Hold, free
from fastness.runtime.clock import Clock


class ImageGate:
    """Knows the image of every config, and whether its values count."""

    reads: Sequence[Resource] = (REFERENCE_VALUE_SET.resource, APPROVED_IMAGE.resource, DISTRUST.resource)

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._clock = clock
        self._configs = informers.of(MACHINE_CONFIG.resource)
        self._sets = informers.of(REFERENCE_VALUE_SET.resource)
        self._approvals = informers.of(APPROVED_IMAGE.resource)
        self._distrusts = informers.of(DISTRUST.resource)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._machines = informers.of(MACHINE.resource)

    def hold(self, pool: str, goal: Goal) -> Hold:
        """What holds the nodes of a pool back on their way to a goal."""
        if trust_model(self._clusters.get("", NAME), pool) is not TrustModel.CONFIDENTIAL_CLUSTER:
            return free
        wanted = goal.image or self.image(goal.config)
        if not wanted:
            return free
        answers: list[str] = []

        def held(node: NodeFacts) -> str:
            if digest_of((node.current_image or "") or self.image(node.current)) == digest_of(wanted):
                return ""
            if not answers:
                answers.append(self._missing(wanted, pool))
            return answers[0]

        return held

    def image(self, config: str) -> str:
        """The operating system image of a rendered config; empty for one that is not known or names none."""
        found = self._configs.get("", config) if config else None
        return str(((found or {}).get("spec") or {}).get("osImageURL") or "")

    def _missing(self, image: str, pool: str) -> str:
        now, sets, approvals = self._clock.now(), self._sets.list(), self._approvals.list()
        read = [one for one in map(read_distrust, self._distrusts.list()) if one is not None and one.live(now)]
        distrusted = frozenset(str(one.target) for one in read if one.kind == "image")
        book = ReferenceValues.of(sets, now, approvals, distrusted, pool)
        return values_missing(
            image, sets, book, now, tees=self._tees(pool), approved=approved_images(approvals), distrusted=distrusted
        )

    def _tees(self, pool: str) -> frozenset[str]:
        """What the machines of a pool prove themselves by."""
        found = frozenset(
            str((machine.get("status") or {}).get("tee") or "")
            for machine in self._machines.list()
            if (machine.get("status") or {}).get("pool") == pool
        )
        return found & COMPARED.keys() & frozenset(accepted_evidence(self._clusters.get("", NAME), pool))
