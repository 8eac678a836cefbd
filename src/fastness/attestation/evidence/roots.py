"""Whom a cluster believes, and how old a platform may be: roots, kinds of evidence, the least security versions.

Evidence is judged under one set of anchors at a time, so that a verdict can say which it rests on. The pinned set comes
first. A root out of `extraRoots` may vouch for the kind of evidence it was added for and nothing else. Roots of a simulated
vendor count only in a cluster that is simulated, and the verdict then says `simulated`.

Of the least versions (`minimumTcb`) what a cluster does not name is left to what is built in (`snp_floors`), which a cluster can
raise and not lower. AMD's components are numbers of one byte, the same for every generation; the first mutable code exists from
Turin on. Intel's are the number of the TCB evaluation and the date of the level that the platform reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.pins import AMD_ROOTS, INTEL_ROOT
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.snp.tcb import Generation, Tcb
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
        return cls(pins, tuple(entry for encoded in der for entry in load_certificates(encoded)))


NOT_SIMULATED: Final = SimulatedMaker()


def not_simulated() -> SimulatedMaker:
    """The vendor of a cluster without a simulator."""
    return NOT_SIMULATED


def anchors_of(cluster: Mapping[str, Any] | None, tee: str, simulated: Anchors | None) -> list[Anchors]:
    """The sets that may vouch for a kind of evidence in this cluster, in the order in which they are tried."""
    spec = view(cluster or {}, ConfidentialCluster).spec
    # One set after the other and never their union: otherwise a chain could begin under a vendor's intermediate and end in an
    # administrator's root, and the verdict could not say on whose word it rests.
    anchors = [PINNED]
    for root in spec.attestation.extra_roots:
        if root.used_for == tee:
            source = f"extraRoots of the ConfidentialCluster: {root.reason}"
            # AMD has a root for each generation, an administrator has one: it stands in the place of all of them.
            anchors.append(Anchors(dict.fromkeys(AMD_ROOTS, root.sha256), root.sha256, source=source))
    # Both must say so, the cluster and the process: simulated silicon signs whatever its owner likes (pitfall 27).
    if spec.simulated and simulated is not None:
        # First, because most evidence of a simulated cluster is simulated.
        anchors.insert(0, simulated)
    return anchors


def accepted_evidence(cluster: Mapping[str, Any] | None, pool: str = "") -> tuple[str, ...]:
    """The kinds of evidence that count in this cluster, for the machines of a pool if one is named, and that can be judged."""
    # A kind that the schema allows and that nothing here can judge is left out: naming it must not mean accepting it unread.
    named = wanted_evidence(cluster, pool)
    return tuple(tee for tee in VERIFIED if tee in named)


def wanted_evidence(cluster: Mapping[str, Any] | None, pool: str = "") -> frozenset[str]:
    """The kinds of evidence that a cluster says count, for the machines of a pool if one is named."""
    spec = view(cluster or {}, ConfidentialCluster).spec
    own = next((entry.evidence for entry in spec.pools if entry.name == pool), ())
    return frozenset(own or spec.attestation.evidence or DEFAULT_EVIDENCE)


@dataclass(frozen=True, slots=True)
class TdxMinimum:
    """The least evaluation of Intel's documents, and the least date of the level that a platform reached."""

    evaluation: int = 0
    date: datetime | None = None


NO_MINIMUM: Final = TdxMinimum()


@dataclass(frozen=True, slots=True)
class Minimums:
    """The least versions that a cluster accepts, as appraisals take them; nothing where it names none."""

    snp: Mapping[Generation, Tcb] = field(default_factory=dict)
    tdx: TdxMinimum = NO_MINIMUM


def minimums(minimum_tcb: Mapping[str, Any] | None) -> Minimums:
    """The minimums of a cluster; the schema of the kind has checked their types."""
    given = minimum_tcb or {}
    snp, tdx = given.get("snp"), given.get("tdx") or {}
    date = tdx.get("tcbDate")
    return Minimums(
        {generation: _floor(snp, generation) for generation in Generation} if snp else {},
        TdxMinimum(int(tdx.get("evaluationDataNumber") or 0), _instant(date) if date else None),
    )


def _floor(given: Mapping[str, int], generation: Generation) -> Tcb:
    least = {name: int(given.get(name) or 0) for name in ("bootloader", "tee", "snp", "microcode")}
    return Tcb(**least, fmc=int(given.get("fmc") or 0) if generation is Generation.TURIN else None)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    # A date without an offset would otherwise depend on the time zone of the process that judges.
    return at if at.tzinfo else at.replace(tzinfo=UTC)
