"""What the cluster demands of the broker, as the ConfidentialCluster says now.

Read from the cache on every request and decoded again only when the object changed: a new lifetime or a new kind of evidence
counts from the next handshake on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from fastness.formats.duration import duration
from fastness.formats.errors import DurationError
from fastness.kinds.fastness_dev.cluster import Attestation, ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kube.informers import Informer
from fastness.release.authorise import ClusterRules

VERIFIED: Final = ("tpm", "tdx", "snp")
SHORTEST, LONGEST_CHALLENGE, LONGEST_TOKEN = timedelta(seconds=5), timedelta(minutes=10), timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Demands:
    """What counts now."""

    house: ClusterRules
    accepted: tuple[str, ...] = VERIFIED
    challenge_lifetime: timedelta = timedelta(seconds=60)
    token_lifetime: timedelta = timedelta(minutes=10)
    reattest: timedelta = timedelta(minutes=15)


class Settings:
    """Gives the demands of now."""

    def __init__(self, confidential: Informer) -> None:
        self._confidential = confidential
        self._seen: JsonObject | None = None
        self._demands = Demands(ClusterRules())

    @property
    def current(self) -> Demands:
        """The demands of now; without a ConfidentialCluster, those of a real one that enforces."""
        found = self._confidential.get("", "cluster")
        if found is None:
            self._seen, self._demands = None, Demands(ClusterRules())
        elif found is not self._seen:
            self._seen, self._demands = found, _demands(found)
        return self._demands


def _demands(obj: JsonObject) -> Demands:
    try:
        spec = view(obj, ConfidentialCluster).spec
        attestation = spec.attestation
    except msgspec.ValidationError:
        return Demands(ClusterRules())
    accepted = tuple(tee for tee in VERIFIED if tee in attestation.evidence) if attestation.evidence else VERIFIED
    challenge, token = _lifetimes(attestation)
    reattest = _bounded(attestation.reattest_interval, Demands(ClusterRules()).reattest, LONGEST_TOKEN)
    house = ClusterRules(spec.simulated, mode_of(obj) is Mode.ENFORCE, spec.join.trust_on_first_use)
    return Demands(house, accepted, challenge, token, reattest)


def _lifetimes(attestation: Attestation) -> tuple[timedelta, timedelta]:
    return (
        _bounded(attestation.challenge_lifetime, Demands(ClusterRules()).challenge_lifetime, LONGEST_CHALLENGE),
        _bounded(attestation.token_lifetime, Demands(ClusterRules()).token_lifetime, LONGEST_TOKEN),
    )


def _bounded(text: str, default: timedelta, most: timedelta) -> timedelta:
    try:
        return min(max(duration(text, "lifetime"), SHORTEST), most)
    except DurationError:
        return default
