"""No bit of what a real TPM signed can be changed: quotes and papers of swtpm, strided here, every bit in the long run."""

from __future__ import annotations

import base64
import copy
import json
import os
from pathlib import Path

import pytest

from fastness.agent.host.tee.tpm import TpmTools
from fastness.attestation.evidence.checks import Appraisal, Findings
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.verify import AttestationKey
from fastness.enrolment.endorsement import judge_endorsement
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.formats.evidence.tpm.public import parse_public
from fastness.kinds.kind import JsonObject
from tests.swtpm import Maker, Swtpm

COMPLETE = bool(os.environ.get("FASTNESS_SOAK"))
STRIDE = 1 if COMPLETE else 7


def accepted(evidence: JsonObject, key: AttestationKey) -> Appraisal | None:
    try:
        appraisal = appraise_tpm(parse_envelope(json.dumps(evidence).encode()), TpmExpectations(b"nonce", key))
    except EvidenceError:
        return None
    return appraisal if appraisal.authentic else None


@pytest.mark.parametrize("algorithm", ["ecc", "rsa"])
async def test_no_bit_of_a_quote_can_change(swtpm: Swtpm, tmp_path: Path, algorithm: str) -> None:
    tools = TpmTools(swtpm.tcti, event_log=tmp_path / "none")
    ak = await tools.create_ak(tmp_path / "ak", algorithm)
    evidence, key = await tools.quote(ak, b"nonce"), AttestationKey(ak.area.spki)
    assert accepted(evidence, key) is not None
    for part in ("message", "signature"):
        data = base64.b64decode(evidence["tpm_quote"][part])
        for bit in range(0, len(data) * 8, STRIDE):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            forged = copy.deepcopy(evidence)
            forged["tpm_quote"][part] = base64.b64encode(changed).decode()
            assert accepted(forged, key) is None, f"bit {bit} of {part}"
    for register in range(24):
        for bit in range(register % STRIDE, 256, STRIDE * 5):
            value = bytearray.fromhex(evidence["tpm_quote"]["pcrs"][register])
            value[bit // 8] ^= 1 << bit % 8
            forged = copy.deepcopy(evidence)
            forged["tpm_quote"]["pcrs"][register] = value.hex()
            assert accepted(forged, key) is None, f"bit {bit} of register {register}"


async def test_no_bit_of_an_endorsement_certificate_can_change(swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path) -> None:
    tools = TpmTools(swtpm.tcti)
    area = (await tools.create_ak(tmp_path / "ak")).area
    data = await tools.ek_certificate()
    (leaf,) = load_certificates(data)
    at = leaf.not_before.replace(year=leaf.not_before.year + 1)
    assert judge_endorsement(Findings(), [leaf, *tpm_maker.certificates], area, {tpm_maker.root}, at) is not None
    for bit in range(0, len(data) * 8, 1 if COMPLETE else 37):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            pool = [*load_certificates(bytes(changed)), *tpm_maker.certificates]
        except CryptoError:
            continue
        assert judge_endorsement(Findings(), pool, area, {tpm_maker.root}, at) is None, f"bit {bit}"


async def test_any_bit_of_a_public_area_gives_another_name(swtpm: Swtpm, tmp_path: Path) -> None:
    """The name covers every bit, so a credential sealed to it opens for exactly this area."""
    ak = await TpmTools(swtpm.tcti).create_ak(tmp_path / "ak")
    name, names = ak.area.name, set()
    for bit in range(16, len(ak.public) * 8):
        changed = bytearray(ak.public)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            names.add(parse_public(bytes(changed)).name)
        except EvidenceError:
            continue
    assert len(names) > 400
    assert name not in names
