"""Simulated evidence before the production verifier: the same functions as for real evidence, on the simulator's roots."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.silicon.chains import load_certificates
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.tdx.collateral import Collateral
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.sim.tee import SimVendor
from fastness.sim.tee.vendor import EPOCH

NONCE = bytes(range(32))


def judged(
    vendor: SimVendor,
    tee: str,
    evidence: dict[str, Any],
    *,
    nonce: bytes = NONCE,
    at: datetime = EPOCH,
    collateral: Collateral | None = None,
    **expected: Any,
) -> Appraisal:
    """What the production verifier says, told to believe this vendor; `expected` are fields of the expectations."""
    data = json.dumps(evidence).encode()
    if tee == "tpm":
        return appraise_tpm(parse_envelope(data), TpmExpectations(nonce=nonce, **expected))
    if tee == "snp":
        snp = parse_snp(data)
        pool = [entry for der in snp.certificates for entry in load_certificates(der)]
        expectations = SnpExpectations(**{"nonce": nonce, "roots": vendor.roots.amd, **expected})
        return appraise_snp(snp.report, pool, expectations, at)
    tdx = parse_tdx(data)
    documents = collateral or vendor.collateral(at)
    fields = {"nonce": nonce, "root": vendor.roots.intel, "collateral": documents, "event_log": tdx.event_log}
    return appraise_tdx(tdx.quote, [], TdxExpectations(**{**fields, **expected}), at)


def refusals(appraisal: Appraisal) -> list[str]:
    """The codes of all checks that refuse."""
    return [check.code for check in appraisal.checks if check.refuses]
