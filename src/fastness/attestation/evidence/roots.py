"""Whom a cluster believes: the vendors' pinned roots, roots that an administrator added, and simulated vendors.

Evidence is judged under one set of anchors at a time, so that a verdict can say which it rests on. The pinned set comes
first. A root out of `extraRoots` may vouch for the kind of evidence it was added for and nothing else. Roots of a simulated
vendor count only in a cluster that is simulated, and the verdict then says `simulated`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.pins import AMD_ROOTS, INTEL_ROOT
from fastness.crypto.x509 import Certificate
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.objects import view

VERIFIED: Final = ("tpm", "tdx", "snp")
# What counts where a cluster does not say: a kind of evidence that an upgrade brings is never on by itself.
DEFAULT_EVIDENCE: Final = ("tpm", "tdx", "snp")


@dataclass(frozen=True, slots=True)
class Anchors:
    """One set of roots, by SHA-256 of the certificate."""

    amd: Mapping[str, str] = field(default_factory=lambda: AMD_ROOTS)
    intel: str = INTEL_ROOT
    tpm: frozenset[str] = frozenset()
    source: str = "the vendors' pinned roots"
    simulated: bool = False


PINNED: Final = Anchors()


@dataclass(frozen=True, slots=True)
class SimulatedMaker:
    """The TPM works of a simulated vendor: what its chains end in, and the certificates on the way."""

    pins: frozenset[str] = frozenset()
    certificates: tuple[Certificate, ...] = ()

    @classmethod
    def of(cls, pins: frozenset[str], *der: bytes) -> SimulatedMaker:
        """The works with these certificates; raises BadCertificate."""
        return cls(pins, tuple(entry for one in der for entry in load_certificates(one)))


NOT_SIMULATED: Final = SimulatedMaker()


def not_simulated() -> SimulatedMaker:
    """The vendor of a cluster without a simulator."""
    return NOT_SIMULATED


def anchors_of(cluster: Mapping[str, Any] | None, tee: str, simulated: Anchors | None) -> list[Anchors]:
    """The sets that may vouch for a kind of evidence in this cluster, in the order in which they are tried."""
    spec = view(cluster or {}, ConfidentialCluster).spec
    found = [PINNED]
    for root in spec.attestation.extra_roots:
        if root.used_for == tee:
            source = f"extraRoots of the ConfidentialCluster: {root.reason}"
            found.append(Anchors(dict.fromkeys(AMD_ROOTS, root.sha256), root.sha256, source=source))
    if spec.simulated and simulated is not None:
        # First, because most evidence of a simulated cluster is simulated.
        found.insert(0, simulated)
    return found


def accepted_evidence(cluster: Mapping[str, Any] | None, pool: str = "") -> tuple[str, ...]:
    """The kinds of evidence that count in this cluster, for the machines of a pool if one is named, and that can be judged."""
    wanted = wanted_evidence(cluster, pool)
    return tuple(tee for tee in VERIFIED if tee in wanted)


def wanted_evidence(cluster: Mapping[str, Any] | None, pool: str = "") -> frozenset[str]:
    """The kinds of evidence that a cluster says count, for the machines of a pool if one is named."""
    spec = view(cluster or {}, ConfidentialCluster).spec
    own = next((one.evidence for one in spec.pools if one.name == pool), ())
    return frozenset(own or spec.attestation.evidence or DEFAULT_EVIDENCE)
