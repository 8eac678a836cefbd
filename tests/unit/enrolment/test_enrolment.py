"""Enrolment without I/O: what is asked, what proves it, and every reason to say no."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.agent.boot.enrol import first_message, read_offer, second_message
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.chains import load_certificates
from fastness.enrolment.enrolment import (
    LIFETIME,
    Begun,
    Enrolment,
    EnrolmentRefused,
    Invitation,
    Terms,
    begin,
    prove,
    thumbprint_of,
)
from fastness.formats import json
from fastness.formats.evidence.tpm.public import Attributes
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.protocol.enrolment import Completion, TpmRequest, parse_completion, parse_request
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.virtual import SeededEntropy

NOW = datetime(2026, 6, 1, tzinfo=UTC)
VENDOR = SimVendor()
SECRET = SecretBytes(bytes(range(32)))
INVITATION = Invitation("ticket", "uid-1", "worker")
AUTHORITIES = tuple(
    entry for der in (VENDOR.tpm.authority.certificate, VENDOR.tpm.root.certificate) for entry in load_certificates(der)
)
TERMS = Terms(TrustModel.CONFIDENTIAL_CLUSTER, simulated_roots=VENDOR.roots.tpm, authorities=AUTHORITIES)


def machine(tee: str = "tpm", serial: int = 1, keys: str = "ecc") -> SimAttester:
    chip = VENDOR.chip("tpm", serial=serial, keys=keys) if tee == "tpm" else VENDOR.chip(tee, serial=serial)  # type: ignore[call-overload]  # a word
    return SimAttester(chip.boot())


def begun(attester: SimAttester, terms: Terms = TERMS, invitation: Invitation = INVITATION, pool: str = "") -> Begun:
    request = parse_request(asyncio.run(first_message(attester, pool)))
    return begin(request, invitation, terms, NOW, SECRET, SeededEntropy(1))


def completion(attester: SimAttester, opening: Begun) -> Completion:
    offer = read_offer(json.encode({"enrolment": "x", **opening.question}))
    return parse_completion(asyncio.run(second_message(attester, offer)))


def refused(call: Any) -> str:
    with pytest.raises(EnrolmentRefused) as error:
        call()
    return error.value.code


@pytest.mark.parametrize(("tee", "keys"), [("tpm", "ecc"), ("tpm", "rsa"), ("snp", ""), ("tdx", "")])
def test_a_machine_proves_its_key(tee: str, keys: str) -> None:
    attester = machine(tee, keys=keys or "ecc")
    opening = begun(attester)
    newcomer = prove(opening.enrolment, completion(attester, opening), TERMS, NOW)
    assert newcomer.thumbprint == attester.machine.thumbprint
    assert newcomer.public == attester.machine.identity_key.public_der()
    assert (newcomer.pool, newcomer.ticket, newcomer.approved) == ("worker", "ticket", True)
    assert (newcomer.simulated, bool(newcomer.endorsement)) == (tee == "tpm", tee == "tpm")


def test_the_state_survives_its_bytes_and_never_holds_the_secret() -> None:
    opening = begun(machine())
    data = opening.enrolment.encode()
    assert Enrolment.decode(data) == opening.enrolment
    for form in (SECRET.reveal(), SECRET.reveal().hex().encode(), base64.b64encode(SECRET.reveal())):
        assert form not in data
    assert base64.b64encode(SECRET.reveal()).decode() not in str(opening.question)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"ticket":"x"}'])
def test_a_state_of_another_version_is_begun_again(data: bytes) -> None:
    assert refused(lambda: Enrolment.decode(data)) == "enrolment-invalid"


@pytest.mark.parametrize("tee", ["tpm", "snp"])
def test_the_proof_of_another_machine_proves_nothing(tee: str) -> None:
    first, other = machine(tee), machine(tee, serial=2)
    mine, theirs = begun(first), begun(other)
    assert mine.enrolment.thumbprint != theirs.enrolment.thumbprint
    swapped = replace(mine.enrolment, thumbprint=theirs.enrolment.thumbprint, public=theirs.enrolment.public)
    code = refused(lambda: prove(mine.enrolment, Completion("x", b"?" * 32, b"s" * 64), TERMS, NOW))
    assert code == ("activation-failed" if tee == "tpm" else "signature-invalid")
    if tee == "snp":
        assert refused(lambda: prove(swapped, completion(first, mine), TERMS, NOW)) == "signature-invalid"


@pytest.mark.parametrize("proof", [{"activated": b""}, {"signature": b"s" * 64}, {"activated": SECRET.reveal()[:-1]}])
def test_a_credential_that_was_not_opened_is_refused(proof: dict[str, bytes]) -> None:
    opening = begun(machine())
    assert refused(lambda: prove(opening.enrolment, Completion("x", **proof), TERMS, NOW)) == "activation-failed"


def test_an_enrolment_ends_after_its_time() -> None:
    attester = machine()
    opening = begun(attester)
    proof = completion(attester, opening)
    assert prove(opening.enrolment, proof, TERMS, NOW + LIFETIME - timedelta(seconds=1)).approved
    assert refused(lambda: prove(opening.enrolment, proof, TERMS, NOW + LIFETIME)) == "enrolment-expired"


def test_terms_that_changed_in_between_count() -> None:
    attester = machine()
    opening = begun(attester)
    proof = completion(attester, opening)
    for terms, code in (
        (replace(TERMS, model=TrustModel.NONE), "pool-not-attested"),
        (replace(TERMS, evidence=("snp",)), "evidence-not-accepted"),
        (replace(TERMS, simulated_roots=frozenset()), "endorsement-refused"),
    ):
        assert refused(lambda terms=terms: prove(opening.enrolment, proof, terms, NOW)) == code
    assert not prove(opening.enrolment, proof, replace(TERMS, manual=True), NOW).approved


def test_a_message_is_refused_before_anything_is_sealed() -> None:
    attester = machine()
    for terms, code in (
        (replace(TERMS, model=TrustModel.NONE), "pool-not-attested"),
        (replace(TERMS, evidence=("tdx",)), "evidence-not-accepted"),
        (replace(TERMS, simulated_roots=frozenset()), "endorsement-refused"),
        (replace(TERMS, authorities=()), "endorsement-refused"),
    ):
        assert refused(lambda terms=terms: begun(attester, terms)) == code
    assert refused(lambda: begun(attester, pool="infra")) == "wrong-pool"


def test_a_host_of_pod_machines_may_enrol() -> None:
    assert "credential" in begun(machine(), replace(TERMS, model=TrustModel.CONTAINERS_HOST)).question


def test_a_tpm_outside_the_dates_of_its_certificate_is_refused() -> None:
    request = parse_request(asyncio.run(first_message(machine())))
    late = NOW + timedelta(days=365 * 40)
    code = refused(lambda: begin(request, INVITATION, TERMS, late, SECRET, SeededEntropy(1)))
    assert code == "endorsement-refused"


def test_roots_of_the_simulator_count_in_a_simulated_cluster_alone_and_extra_roots_only_for_tpms() -> None:
    extra = [{"sha256": "1" * 64, "for": "tpm", "reason": "x"}, {"sha256": "2" * 64, "for": "snp", "reason": "x"}]
    spec: dict[str, Any] = {"mode": "Enforce", "simulated": True, "attestation": {"extraRoots": extra}}
    terms = Terms.of({"spec": spec}, "worker", {"3" * 64})
    assert "1" * 64 in terms.roots
    assert "2" * 64 not in terms.roots
    assert terms.simulated_roots == {"3" * 64}
    assert Terms.of({"spec": {**spec, "simulated": False}}, "worker", {"3" * 64}).simulated_roots == frozenset()
    assert Terms.of(None, "worker").model is TrustModel.NONE
    assert not Terms.of({"spec": spec}, "worker").first_use


def test_the_thumbprint_is_known_before_anything_is_judged() -> None:
    for tee in ("tpm", "snp"):
        attester = machine(tee)
        request = parse_request(asyncio.run(first_message(attester)))
        assert thumbprint_of(request) == attester.machine.thumbprint


def test_every_field_of_the_state_is_covered_by_its_bytes() -> None:
    state = json.decode(begun(machine()).enrolment.encode())
    assert set(state) == {entry.name for entry in fields(Enrolment)}


class Bare(SimAttester):
    """A TPM without a certificate."""

    async def ek_certificates(self) -> list[bytes]:
        return []


def test_a_tpm_without_a_certificate_needs_trust_on_first_use_and_its_endorsement_key() -> None:
    bare, trusting = Bare(machine().machine), replace(TERMS, first_use=True)
    assert refused(lambda: begun(bare)) == "first-use-not-allowed"
    opening = begun(bare, trusting)
    newcomer = prove(opening.enrolment, completion(bare, opening), trusting, NOW)
    assert (newcomer.first_use, newcomer.root, newcomer.simulated) == (True, "", False)
    assert newcomer.endorsement == begun(machine()).enrolment.endorsement
    request = parse_request(asyncio.run(first_message(bare)))
    assert isinstance(request, TpmRequest)
    silent = replace(request, ek_public=b"")
    code = refused(lambda: begin(silent, INVITATION, trusting, NOW, SECRET, SeededEntropy(1)))
    assert code == "endorsement-missing"
    odd = replace(request, ek_public=b"junk")
    assert refused(lambda: begin(odd, INVITATION, trusting, NOW, SECRET, SeededEntropy(1))) == "bad-key"


def test_a_certified_tpm_is_never_marked_as_trusted_on_first_use() -> None:
    attester, trusting = machine(), replace(TERMS, first_use=True)
    opening = begun(attester, trusting)
    assert not prove(opening.enrolment, completion(attester, opening), trusting, NOW).first_use


def test_trust_on_first_use_that_is_switched_off_between_the_messages_makes_no_machine() -> None:
    bare, trusting = Bare(machine().machine), replace(TERMS, first_use=True)
    opening = begun(bare, trusting)
    answer = completion(bare, opening)
    assert refused(lambda: prove(opening.enrolment, answer, TERMS, NOW)) == "first-use-not-allowed"
    assert prove(opening.enrolment, answer, trusting, NOW).first_use


@pytest.mark.parametrize("attribute", [Attributes.RESTRICTED, Attributes.FIXED_TPM, Attributes.SENSITIVE_DATA_ORIGIN])
def test_a_key_that_could_sign_anything_or_be_copied_is_not_trusted_on_first_use_either(attribute: Attributes) -> None:
    trusting = replace(TERMS, first_use=True)
    request = parse_request(asyncio.run(first_message(Bare(machine().machine))))
    assert isinstance(request, TpmRequest)
    place = slice(6, 10)  # TPM2B_PUBLIC: size, type, nameAlg, objectAttributes
    attributes = int.from_bytes(request.ak_public[place], "big")
    assert attributes & attribute
    area = request.ak_public[:6] + (attributes & ~attribute).to_bytes(4, "big") + request.ak_public[10:]
    unfit = replace(request, ak_public=area)
    code = refused(lambda: begin(unfit, INVITATION, trusting, NOW, SECRET, SeededEntropy(1)))
    assert code == "endorsement-refused"
