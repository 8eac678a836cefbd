"""Each fault leaves everything else genuine, and one named check stops it."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from typing import Any

import pytest

from fastness.agent.host.errors import TpmFailure
from fastness.attestation.policy.claims import policy_input
from fastness.attestation.policy.policy import default_policy
from fastness.attestation.values.differences import differences
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.errors import BrokenSeal
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.credential import EndorsementKey, make_credential
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.public import Attributes, parse_public
from fastness.sim.tee import BootImage, SimVendor, default_image, tamper
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.firmware import CURRENT_TCB
from fastness.sim.tee.tpm import Keys, TpmMachine
from fastness.sim.tee.vendor import EPOCH
from fastness.sim.tee.writers.tpm2 import AK_ATTRIBUTES
from tests.evidence.simulated import NONCE, judged, refusals
from tests.virtual import SeededEntropy

VENDOR = SimVendor()
TEES = ("tpm", "snp", "tdx")
IMAGE = default_image()
LOGGED = ("tpm", "tdx")
STRIDE = 1 if os.environ.get("FASTNESS_SOAK") else 37


def affirmed(tee: str, image: BootImage) -> bool:
    """Whether the built-in policy affirms a machine that booted this, where only the default image is approved."""
    machine = VENDOR.chip(tee).boot(image)
    expectations: dict[str, Any] = (
        {"known_key": AttestationKey(machine.identity_key.public_der())} if tee == "tpm" else {}
    )
    appraisal = judged(VENDOR, tee, machine.quote(NONCE), **expectations)
    assert appraisal.acceptable, refusals(appraisal)
    spec = {"source": "manual", "values": IMAGE.reference_values(tee)}
    book = ReferenceValues.of([{"metadata": {"name": "image"}, "spec": spec}], EPOCH)
    return default_policy(tee).evaluate(policy_input(appraisal, {}), book).affirms(tee)


@pytest.mark.parametrize("tee", TEES)
def test_a_word_more_on_the_command_line_is_not_affirmed(tee: str) -> None:
    assert affirmed(tee, IMAGE)
    assert not affirmed(tee, tamper.with_word(IMAGE))
    assert not affirmed(tee, tamper.with_options(IMAGE))


@pytest.mark.parametrize("tee", LOGGED)
def test_another_boot_loader_and_an_open_machine_are_not_affirmed(tee: str) -> None:
    assert not affirmed(tee, tamper.with_boot_loader(IMAGE))
    assert not affirmed(tee, tamper.without_secure_boot(IMAGE))


@pytest.mark.parametrize(("tee", "register"), [("tpm", "PCR 4"), ("tdx", "RTMR 1")])
def test_the_first_event_that_differs_is_named_and_belongs_to_an_image(tee: str, register: str) -> None:
    other = tamper.with_boot_loader(IMAGE)
    spec = {"source": "manual", "values": IMAGE.reference_values(tee)}
    gone = {"source": "manual", "values": other.reference_values(tee), "withdrawn": {"at": "2025-12-01T00:00:00Z"}}
    sets = [{"metadata": {"name": "good"}, "spec": spec}, {"metadata": {"name": "gone"}, "spec": gone}]
    hybrid = replace(other, sections=(*other.sections[:-1], (".sbat", b"never approved")))
    appraisal = judged(VENDOR, tee, VENDOR.chip(tee).boot(hybrid).quote(NONCE))
    checks = {check.name: check for check in differences(appraisal, ReferenceValues.of(sets, EPOCH), refused=True)}
    check = next(check for name, check in checks.items() if name.startswith(register))
    assert check.code == "value-differs"
    assert "EV_EFI_BOOT_SERVICES_APPLICATION" in check.hint
    assert "the set gone (boot loader)" in check.hint


@pytest.mark.parametrize("tee", LOGGED)
def test_a_log_cannot_hide_what_was_booted(tee: str) -> None:
    bad = VENDOR.chip(tee).boot(tamper.with_boot_loader(IMAGE)).quote(NONCE)
    good = VENDOR.chip(tee).boot(IMAGE).quote(NONCE)
    assert refusals(judged(VENDOR, tee, tamper.with_log_of(bad, good))) == ["event-log-differs"]


@pytest.mark.parametrize("tee", ["snp", "tdx"])
def test_a_debuggable_guest_is_a_hard_failure_of_authentic_evidence(tee: str) -> None:
    appraisal = judged(VENDOR, tee, VENDOR.chip("snp" if tee == "snp" else "tdx").boot(debug=True).quote(NONCE))
    assert appraisal.authentic
    assert refusals(appraisal)[0] == "debug-allowed"


def test_old_firmware_of_snp_is_below_the_minimum_and_has_a_key_of_its_own() -> None:
    chip = VENDOR.chip("snp")
    old = tamper.old_firmware(chip)
    assert old.chip_id == chip.chip_id
    assert old.certificate != chip.certificate
    appraisal = judged(VENDOR, "snp", old.boot().quote(NONCE), minimum=CURRENT_TCB)
    assert appraisal.authentic
    assert set(refusals(appraisal)) == {"tcb-behind"}


def test_old_firmware_of_tdx_names_component_and_advisory() -> None:
    appraisal = judged(VENDOR, "tdx", tamper.old_firmware(VENDOR.chip("tdx")).boot().quote(NONCE))
    assert refusals(appraisal) == ["tcb-behind"]
    status_text = next(check.seen for check in appraisal.checks if check.name == "tcb-status")
    assert status_text.startswith("OutOfDate; SGX component 1 (BIOS, Early Microcode Update): 3, needs 5")
    assert status_text.endswith("INTEL-SA-00837; INTEL-SA-01036")


def test_a_tpm_tells_nothing_of_firmware_levels() -> None:
    with pytest.raises(TypeError, match="no firmware"):
        tamper.old_firmware(VENDOR.chip("tpm"))


@pytest.mark.parametrize("tee", TEES)
def test_replayed_evidence_answers_the_wrong_challenge(tee: str) -> None:
    machine = tamper.Replayed(VENDOR.chip(tee).boot())
    assert judged(VENDOR, tee, machine.quote(NONCE)).acceptable
    assert refusals(judged(VENDOR, tee, machine.quote(b"other"), nonce=b"other")) == ["nonce-differs"]
    assert (machine.tee, machine.image) == (tee, IMAGE)
    assert machine.thumbprint.startswith("sha256:")


@pytest.mark.parametrize("tee", TEES)
def test_another_chips_papers_do_not_fit(tee: str) -> None:
    mine, others = VENDOR.chip(tee).boot().quote(NONCE), VENDOR.chip(tee).boot().quote(NONCE)
    appraisal = judged(VENDOR, tee, tamper.with_certificates_of(mine, others))
    assert not appraisal.authentic
    assert (
        refusals(appraisal)[0]
        == {"tpm": "signature-invalid", "snp": "signature-invalid", "tdx": "qe-signature-invalid"}[tee]
    )


@pytest.mark.parametrize("tee", TEES)
def test_no_flipped_bit_of_what_is_signed_is_accepted(tee: str) -> None:
    evidence = VENDOR.chip(tee).boot().quote(NONCE)
    message = len(base64.b64decode(evidence.get("tpm_quote", {}).get("message", "")))
    size = 8 * {"tpm": message, "snp": 0x2A0, "tdx": 632}[tee]
    for bit in range(0, size, STRIDE):
        try:
            appraisal = judged(VENDOR, tee, tamper.with_flipped_bit(tee, evidence, bit))
        except EvidenceError:
            continue
        assert not appraisal.authentic, bit


# Credentials: what proves that an attestation key lives beside an endorsement key.


def sealed(machine: TpmMachine, ak: TpmMachine, entropy: SeededEntropy | None = None) -> Any:
    (certificate,) = load_certificates(machine.ek_certificate)
    name = parse_public(ak.ak_public).name
    return make_credential(EndorsementKey.of(certificate), name, SecretBytes(b"s" * 32), entropy or SeededEntropy())


@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_a_credential_opens_in_its_tpm_for_its_key_only(keys: Keys) -> None:
    first, other = VENDOR.chip("tpm", keys=keys).boot(), VENDOR.chip("tpm", keys=keys).boot()
    blob = sealed(first, first)
    assert first.activate(blob.credential, blob.secret).reveal() == b"s" * 32
    with pytest.raises(BrokenSeal):
        other.activate(blob.credential, blob.secret)
    for wrong in (sealed(first, other), sealed(other, first)):
        with pytest.raises(BrokenSeal):
            first.activate(wrong.credential, wrong.secret)
    with pytest.raises(BrokenSeal):
        first.activate(blob.credential[:-1] + bytes([blob.credential[-1] ^ 1]), blob.secret)


@pytest.mark.parametrize("missing", [Attributes.RESTRICTED, Attributes.FIXED_TPM, Attributes.SENSITIVE_DATA_ORIGIN])
def test_an_attestation_key_can_be_made_that_must_not_be_believed(missing: Attributes) -> None:
    machine = VENDOR.chip("tpm", ak_attributes=AK_ATTRIBUTES & ~missing).boot()
    assert not parse_public(machine.ak_public).is_attestation_key
    assert parse_public(VENDOR.chip("tpm").boot().ak_public).is_attestation_key


# The port of agents.


async def test_an_agent_sees_a_simulated_tpm_as_any_other() -> None:
    machine = VENDOR.chip("tpm").boot()
    attester = SimAttester(machine)
    assert parse_public(await attester.identity_public()).spki == machine.identity_key.public_der()
    assert parse_public(await attester.ek_public()).attributes & Attributes.DECRYPT
    assert len(await attester.ek_certificates()) == 2
    blob = sealed(machine, machine)
    assert (await attester.activate(blob.credential, blob.secret)).reveal() == b"s" * 32
    with pytest.raises(TpmFailure, match="does not open"):
        await attester.activate(blob.credential, blob.credential)
    with pytest.raises(TpmFailure, match="restricted"):
        await attester.sign(b"message")
    assert judged(VENDOR, "tpm", await attester.evidence(NONCE)).acceptable


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_an_agent_signs_with_the_key_of_its_guest(tee: str) -> None:
    attester = SimAttester(VENDOR.chip(tee).boot())
    key = AttestationKey(await attester.identity_public())
    signature = await attester.sign(b"message")
    assert key.signed("ECDSA", "sha256", (signature[:32], signature[32:]), b"message")
    assert (await attester.ek_certificates(), await attester.ek_public()) == ([], b"")
    with pytest.raises(TpmFailure, match="no TPM"):
        await attester.activate(b"", b"")
    assert attester.tee == tee
    assert judged(VENDOR, tee, await attester.evidence(NONCE)).acceptable
