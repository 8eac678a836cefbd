"""What the cluster demands of who releases something, as the ConfidentialCluster and the AppraisalPolicies say now.

Read from the caches on every request and decoded again only when an object changed: a new lifetime or a new kind of evidence
counts from the next handshake on, a new policy from the next request on. Which text of a policy is active belongs to its
controller; asking all that concern a path, and the built-in one beside them, belongs to `ResourcePolicies`; running texts of
users belongs to processes of their own (`attestation.live.policy_workers`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, Protocol, TypeVar

import msgspec

from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.policy.query import Decision
from fastness.attestation.policy.resource_policy import ResourcePolicies
from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev.cluster import NAME, Attestation, ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import Mode, clevis_pools, legacy_stubs, listed_pools, mode_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kube.informers import Informer
from fastness.release.authorise import ClusterRules
from fastness.release.configs import Delivery, delivery_of

VERIFIED: Final = ("tpm", "tdx", "snp")
SHORTEST, LONGEST_CHALLENGE, LONGEST_TOKEN = timedelta(seconds=5), timedelta(minutes=10), timedelta(hours=24)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Demands:
    """What counts now."""

    rules: ClusterRules = field(default_factory=ClusterRules)
    mode: Mode = Mode.DISABLED
    delivery: Delivery = field(default_factory=Delivery)
    accepted: tuple[str, ...] = VERIFIED
    challenge_lifetime: timedelta = timedelta(seconds=60)
    token_lifetime: timedelta = timedelta(minutes=10)
    reattest: timedelta = timedelta(minutes=15)


class Settings:
    """Gives the demands of now."""

    def __init__(self, confidential: Informer) -> None:
        self._confidential = confidential
        self._read: tuple[JsonObject | None, Demands] | None = None

    @property
    def current(self) -> Demands:
        """The demands of now; without a ConfidentialCluster, those of a real one whose pools do not attest."""
        cluster = self._confidential.get("", NAME)
        if self._read is None or self._read[0] is not cluster:
            self._read = (cluster, _demands(cluster))
        return self._read[1]


class PolicyDecider(Protocol):
    """The policies about resources, and whoever asks them; `ActivePolicies` in a cluster."""

    @property
    def current(self) -> ResourcePolicies:
        """The policies of now."""

    async def decide(self, decision: Decision[Made]) -> Made:
        """Drive a decision to its end, asking policies what it yields."""


class ActivePolicies:
    """The AppraisalPolicies of a cluster, asked in processes of their own."""

    def __init__(self, policies: Informer, workers: PolicyWorkers) -> None:
        self._policies = policies
        self._workers = workers
        self._active: ResourcePolicies | None = None
        policies.subscribe(self._changed)

    @property
    def current(self) -> ResourcePolicies:
        """The policies of now; made anew when one has changed, not for each request."""
        if self._active is None:
            self._active = ResourcePolicies.of(self._policies.list())
        return self._active

    async def decide(self, decision: Decision[Made]) -> Made:
        """Drive a decision to its end, asking policies what it yields."""
        return await self._workers.decide(decision)

    def _changed(self, _old: object, _new: object) -> None:
        # Thrown away and not changed: a decision under way goes on with the set that it began with, and is made again at its end.
        self._active = None


def _demands(cluster: JsonObject | None) -> Demands:
    mode = mode_of(cluster)
    # What a pool is counts also while the rest of the object cannot be read: it is what keeps its configurations here.
    attests = mode is not Mode.DISABLED
    rules = ClusterRules(pools=listed_pools(cluster), attests=attests, stubs=legacy_stubs(cluster))
    demands = Demands(rules, mode)
    if cluster is None:
        return demands
    try:
        spec, delivery = view(cluster, ConfidentialCluster).spec, delivery_of(cluster)
    # What cannot be read falls back to the strict side: not simulated, enforcing, no trust on first use.
    except msgspec.ValidationError:
        return demands
    attestation = spec.attestation
    challenge, token = _lifetimes(attestation)
    return replace(
        demands,
        rules=replace(
            rules,
            simulated=spec.simulated,
            enforcing=mode is Mode.ENFORCE,
            first_use=spec.join.trust_on_first_use,
            copies=delivery.copies,
            clevis=clevis_pools(cluster),
        ),
        delivery=delivery,
        # In our own order and out of our own list: a word in the object that no verifier stands behind is not accepted by naming
        # it.
        accepted=tuple(tee for tee in VERIFIED if tee in attestation.evidence) if attestation.evidence else VERIFIED,
        challenge_lifetime=challenge,
        token_lifetime=token,
        reattest=_bounded(attestation.reattest_interval, demands.reattest, LONGEST_TOKEN),
    )


def _lifetimes(attestation: Attestation) -> tuple[timedelta, timedelta]:
    return (
        _bounded(attestation.challenge_lifetime, Demands().challenge_lifetime, LONGEST_CHALLENGE),
        _bounded(attestation.token_lifetime, Demands().token_lifetime, LONGEST_TOKEN),
    )


def _bounded(text: str, default: timedelta, most: timedelta) -> timedelta:
    try:
        # Both ends: a token of years is one that no revocation list shortens, one of nothing locks every machine out.
        return min(max(duration(text, "lifetime"), SHORTEST), most)
    except DurationError:
        return default
