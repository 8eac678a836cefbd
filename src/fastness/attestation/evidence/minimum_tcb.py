"""The least security versions that a cluster accepts: `ConfidentialCluster.spec.attestation.minimumTcb` as verifiers need it.

What is not named is left to what is built in (`snpfloors`), which a cluster can raise and not lower. AMD's components are
numbers of one byte, the same for every generation; the first mutable code exists from Turin on. Intel's are the number of the
TCB evaluation and the date of the level that the platform reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastness.formats.evidence.snp.tcb import Generation, Tcb


@dataclass(frozen=True, slots=True)
class TdxMinimum:
    """The least evaluation of Intel's documents, and the least date of the level that a platform reached."""

    evaluation: int = 0
    date: datetime | None = None


NO_MINIMUM: Final = TdxMinimum()


@dataclass(frozen=True, slots=True)
class Minimums:
    """What verifiers are given."""

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
    return at if at.tzinfo else at.replace(tzinfo=UTC)
