"""The resource policies that count now: what `PolicySet` makes of the AppraisalPolicies in the cache.

The book is made anew when a policy changes, not for each request. Deciding which text of a policy is active belongs to its
controller; asking all that concern a path, and the built-in one beside them, belongs to the book; running texts of users belongs
to processes of their own (`attestation.live.policy_workers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.policy.policy_set import Access, PolicySet
from fastness.attestation.verdict.conclude import EXCEEDED
from fastness.http.refusals import Refusal
from fastness.kube.informers import Informer


class ActivePolicies:
    """Asks all policies that concern a resource."""

    def __init__(self, policies: Informer, workers: PolicyWorkers) -> None:
        self._policies = policies
        self._workers = workers
        self._book: PolicySet | None = None
        policies.subscribe(self._changed)

    async def access(
        self, claims: Mapping[str, Any], path: tuple[str, ...], query: Mapping[str, str] | None = None
    ) -> Access:
        """Whether all of them let a caller with these claims have a resource."""
        if self._book is None:
            self._book = PolicySet.of(self._policies.list())
        return await self._workers.decide(self._book.allowing(path, claims, query or {}))

    def _changed(self, _old: object, _new: object) -> None:
        self._book = None


def demand_access(access: Access, verdict: str) -> None:
    """Go on only where every policy allows; raises Refusal."""
    if access.refused_by:
        raise Refusal(403, "policy-denied", "the policy for this resource does not allow it", verdict)
    if access.unassessed:
        raise Refusal(503, EXCEEDED, "a policy for this resource gave no answer in time", verdict)
