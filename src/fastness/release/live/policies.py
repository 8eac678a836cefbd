"""The resource policies that count now: what `ResourcePolicies` makes of the AppraisalPolicies in the cache.

They are read anew when a policy changes, not for each request. Deciding which text of a policy is active belongs to its
controller; asking all that concern a path, and the built-in one beside them, belongs to them; running texts of users belongs
to processes of their own (`attestation.live.policy_workers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.policy.resource_policy import Access, ResourcePolicies, Unassessed
from fastness.attestation.verdict.conclude import EXCEEDED
from fastness.http.refusals import Refusal
from fastness.kube.admission import Denied
from fastness.kube.informers import Informer


class ActivePolicies:
    """Asks all policies that concern a resource."""

    def __init__(self, policies: Informer, workers: PolicyWorkers) -> None:
        self._policies = policies
        self._workers = workers
        self._active: ResourcePolicies | None = None
        policies.subscribe(self._changed)

    async def access(
        self, claims: Mapping[str, Any], path: tuple[str, ...], query: Mapping[str, str] | None = None
    ) -> Access:
        """Whether all of them let a caller with these claims have a resource."""
        if self._active is None:
            self._active = ResourcePolicies.of(self._policies.list())
        return await self._workers.decide(self._active.allowing(path, claims, query or {}))

    def _changed(self, _old: object, _new: object) -> None:
        self._active = None


def demand_access(access: Access, verdict: str) -> None:
    """Go on only where every policy allows; raises Refusal."""
    if isinstance(access, Denied):
        raise Refusal(403, "policy-denied", "the policy for this resource does not allow it", verdict)
    if isinstance(access, Unassessed):
        raise Refusal(503, EXCEEDED, "a policy for this resource gave no answer in time", verdict)
