"""From evidence to a vector: simulated machines of every kind, judged as real ones are."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.policy.claims import TrustVector, policy_input
from fastness.attestation.policy.policy import PolicySet
from fastness.attestation.values.from_images import set_of_image
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.sim.tee import BootImage, SimVendor, default_image, tamper
from fastness.sim.tee.firmware import CURRENT_TCB
from fastness.sim.tee.vendor import EPOCH
from tests.evidence.simulated import NONCE, judged
from tests.unit.attestation.inprocess import decided

REFERENCE = "registry.example/os@sha256:" + "12" * 32
POLICIES = PolicySet([])


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor()


def approval(image: BootImage) -> JsonObject:
    notes = {"fastness.dev/measurements": json.encode(image.manifest()).decode()}
    meta = {"name": "os", "namespace": "n", "creationTimestamp": rfc3339(EPOCH), "annotations": notes}
    return {"metadata": meta, "spec": {"image": REFERENCE}}


def book(image: BootImage) -> ReferenceValues:
    approved = approval(image)
    return ReferenceValues.of([set_of_image(REFERENCE, [approved])], EPOCH, [approved])


def vector(vendor: SimVendor, tee: str, machine: Any, values: ReferenceValues, **expected: Any) -> TrustVector:
    if tee == "tpm":
        expected["known_key"] = AttestationKey(machine.identity_key.public_der())
    appraisal = judged(vendor, tee, machine.quote(NONCE), **expected)
    return decided(POLICIES.judging(tee, policy_input(appraisal, {"nonce": "n"}), values)).vector


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
def test_a_machine_that_booted_an_approved_image_is_affirmed(vendor: SimVendor, tee: str) -> None:
    image = default_image()
    trust_vector = vector(vendor, tee, vendor.chip(tee).boot(image), book(image))
    assert trust_vector.affirms(tee), trust_vector


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
def test_a_machine_that_booted_another_image_is_refused(vendor: SimVendor, tee: str) -> None:
    machine = vendor.chip(tee).boot(default_image("41.0"))
    trust_vector = vector(vendor, tee, machine, book(default_image("42.1")))
    assert not trust_vector.affirms(tee)
    assert "executables" in trust_vector.unaffirmed(tee)


@pytest.mark.parametrize("fault", [tamper.with_boot_loader, tamper.with_word, tamper.with_options])
def test_a_changed_boot_is_refused(vendor: SimVendor, fault: Any) -> None:
    image = default_image()
    assert not vector(vendor, "tpm", vendor.chip("tpm").boot(fault(image)), book(image)).affirms("tpm")
    assert not vector(vendor, "tdx", vendor.chip("tdx").boot(fault(image)), book(image)).affirms("tdx")


def test_a_machine_without_secure_boot_has_no_known_configuration(vendor: SimVendor) -> None:
    image = default_image()
    machine = vendor.chip("tpm").boot(tamper.without_secure_boot(image))
    assert "configuration" in vector(vendor, "tpm", machine, book(image)).unaffirmed("tpm")


def test_a_tpm_without_an_enrolled_key_is_nobody(vendor: SimVendor) -> None:
    image = default_image()
    appraisal = judged(vendor, "tpm", vendor.chip("tpm").boot(image).quote(NONCE))
    trust_vector = decided(POLICIES.judging("tpm", policy_input(appraisal, {}), book(image))).vector
    assert trust_vector.unaffirmed("tpm") == ("instance-identity",)


def test_a_quote_without_a_register_that_the_policy_wants_is_refused(vendor: SimVendor) -> None:
    image = default_image()
    machine = vendor.chip("tpm").boot(image, registers=[4, 7, 12, 14])
    assert not vector(vendor, "tpm", machine, book(image)).affirms("tpm")


@pytest.mark.parametrize(("tee", "expected"), [("snp", {"minimum": CURRENT_TCB}), ("tdx", {})])
def test_a_chip_with_old_firmware_is_no_good_hardware(vendor: SimVendor, tee: str, expected: dict[str, Any]) -> None:
    image = default_image()
    good, old = vendor.chip(tee), tamper.old_firmware(vendor.chip(tee))
    assert vector(vendor, tee, good.boot(image), book(image), **expected).affirms(tee)
    assert "hardware" in vector(vendor, tee, old.boot(image), book(image), **expected).unaffirmed(tee)


def test_the_boot_loader_of_a_withdrawn_image_is_still_known_by_name(vendor: SimVendor) -> None:
    image = default_image()
    withdrawn = set_of_image(REFERENCE, [approval(image)])
    withdrawn["spec"]["withdrawn"] = {"at": rfc3339(EPOCH), "reason": "removed"}
    reference_values = ReferenceValues.of([withdrawn], EPOCH, [])
    event = next(event for event in image.measurement.events if event.pcr == 4 and "oader" in event.description)
    owner = reference_values.owner("event_pcr4", event.digest.hex())
    assert owner is not None
    assert (owner.image, owner.note) == (REFERENCE, event.description)
