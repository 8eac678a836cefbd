"""What makes an API server ours: the rules, questions and records of the product, for whoever opens the embedded one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fastness.admission.table import TABLE
from fastness.apiserver import Product
from fastness.app.node_lookups import NodeLookups
from fastness.attestation.admission.acts import acts_of
from fastness.attestation.live.named_record import RecordedActs
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, PolicyTrial
from fastness.kube.places import EMBEDDED
from fastness.kube.port import Cluster
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import Clock, Entropy
from fastness.workloads.admission.workloads import policy_to_try
from fastness.workloads.initdata.workload import TEMPLATES
from fastness.workloads.live.agent_policies import PolicyTrials


class AgentPolicies:
    """Asks the policy engine about the agent policies in workloads."""

    kinds: Collection[str] = frozenset(TEMPLATES)

    def __init__(self) -> None:
        self._trials = PolicyTrials()

    async def ask(self, request: AdmissionRequest, lookups: AdmissionLookups) -> PolicyTrial | None:
        """What the engine says; None where no rule would look at it."""
        text = policy_to_try(request, lookups)
        return await self._trials.of(text) if text is not None else None


class PersonActs:
    """Puts acts of people on the record of the cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._log = RecordedActs(ClusterRecord(cluster, clock, entropy, "api"))

    async def append(self, request: AdmissionRequest) -> bool:
        """Write down what a write is; whether there was anything. Raises Unavailable when it must not happen."""
        acts = acts_of(request, EMBEDDED)
        for act in acts:
            await self._log.append(act)
        return bool(acts)


PRODUCT: Final = Product(TABLE, NodeLookups, AgentPolicies, PersonActs)
