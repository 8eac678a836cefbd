"""The vendor: everything that its chips say is accepted on its roots and refused on the real ones, and a seed repeats it all."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.roots import PINNED, anchors_of
from fastness.attestation.policy.claims import policy_input
from fastness.attestation.policy.policy import default_policy
from fastness.attestation.values.values import ReferenceValues
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.pins import AMD_ROOTS, INTEL_ROOT, TPM_ROOTS
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import AttestationKey
from fastness.enrolment.endorsement import judge_endorsement
from fastness.formats.evidence.snp.tcb import Generation
from fastness.formats.evidence.tpm.public import parse_public
from fastness.sim.announce import anchors_of_vendor
from fastness.sim.tee import SimVendor, default_image
from fastness.sim.tee.snp import Endorsement
from fastness.sim.tee.tpm import Keys
from fastness.sim.tee.vendor import EPOCH
from tests.evidence.simulated import NONCE, judged, refusals
from tests.virtual import SeededEntropy

VENDOR = SimVendor()
TEES = ("tpm", "snp", "tdx")


@pytest.mark.parametrize("tee", TEES)
def test_it_reads_like_a_sentence(tee: str) -> None:
    evidence = SimVendor().chip(tee).boot(default_image()).quote(NONCE)
    appraisal = judged(VENDOR, tee, evidence)
    assert appraisal.acceptable, refusals(appraisal)


@pytest.mark.parametrize("endorsement", ["VCEK", "VLEK"])
@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("generation", list(Generation))
def test_every_snp_report_is_accepted(generation: Generation, version: int, endorsement: Endorsement) -> None:
    chip = VENDOR.chip("snp", generation=generation, endorsement=endorsement)
    machine = chip.boot(version=version)
    appraisal = judged(VENDOR, "snp", machine.quote(NONCE))
    assert appraisal.acceptable, refusals(appraisal)
    assert appraisal.claims["snp"]["measurement"] == default_image().launch_digest.hex()
    assert appraisal.identity is not None
    assert appraisal.identity.kind == ("chip" if endorsement == "VCEK" else "cloud-provider")


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("level", "status", "advisories"),
    [
        ("current", "UpToDate", []),
        ("hardening", "SWHardeningNeeded", ["INTEL-SA-00615"]),
        ("old", "OutOfDate", ["INTEL-SA-00837", "INTEL-SA-01036"]),
    ],
)
def test_every_tdx_level_is_judged_alike_by_both_implementations(
    version: int, level: str, status: str, advisories: list[str]
) -> None:
    appraisal = judged(VENDOR, "tdx", VENDOR.chip("tdx", level=level).boot(version=version).quote(NONCE))
    assert appraisal.authentic
    assert appraisal.acceptable == (level == "current")
    assert appraisal.claims["tdx"]["tcb_status"] == status
    assert appraisal.claims["tdx"]["advisory_ids"] == advisories
    second = next(check for check in appraisal.checks if check.name == "second-opinion")
    assert (second.result, second.seen.split("; ")) == ("Pass", [status, *advisories])


@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_tpm_quotes_are_accepted_with_the_key_that_was_enrolled(keys: Keys) -> None:
    machine = VENDOR.chip("tpm", keys=keys).boot()
    key = AttestationKey(machine.identity_key.public_der())
    assert str(key.thumbprint) == machine.thumbprint
    appraisal = judged(VENDOR, "tpm", machine.quote(NONCE), known_key=key)
    assert appraisal.acceptable, refusals(appraisal)
    assert all(event["verified"] for event in appraisal.claims["tpm"]["uefi_event_logs"])


def test_a_machine_can_quote_some_registers_only() -> None:
    evidence = VENDOR.chip("tpm").boot(registers=(4, 7, 11)).quote(NONCE)
    assert judged(VENDOR, "tpm", evidence, registers=frozenset({4, 7, 11})).acceptable
    assert refusals(judged(VENDOR, "tpm", evidence, registers=frozenset({4, 12}))) == ["register-missing"]


def test_what_is_extended_later_shows_in_the_quote_and_not_in_the_log() -> None:
    machine = VENDOR.chip("tpm").boot()
    machine.extend(15, bytes(32))
    appraisal = judged(VENDOR, "tpm", machine.quote(NONCE))
    assert appraisal.acceptable
    assert [check.code for check in appraisal.checks if check.name == "event-log coverage"] == ["event-log-incomplete"]


def test_a_tpm_counts_its_boots_and_keeps_its_keys() -> None:
    chip = VENDOR.chip("tpm")
    first, second = chip.boot(), chip.boot()
    assert first.thumbprint == second.thumbprint
    counted = [judged(VENDOR, "tpm", machine.quote(NONCE)).claims["tpm"] for machine in (first, second)]
    assert [claims["reset_count"] for claims in counted] == [1, 2]
    assert counted[0]["clock"] < counted[1]["clock"]


@pytest.mark.parametrize("tee", ["snp", "tdx"])
def test_guests_on_one_chip_have_identities_of_their_own_and_keep_them(tee: str) -> None:
    chip = VENDOR.chip("snp") if tee == "snp" else VENDOR.chip("tdx")
    first, two, again = chip.boot(), chip.boot(), chip.boot(default_image("43.0"), guest=0)
    assert first.thumbprint == again.thumbprint != two.thumbprint


# A cluster that is not simulated believes the pins alone.


def test_the_production_pins_refuse_every_snp_report() -> None:
    for generation in Generation:
        evidence = VENDOR.chip("snp", generation=generation).boot().quote(NONCE)
        appraisal = judged(VENDOR, "snp", evidence, roots=AMD_ROOTS)
        assert not appraisal.authentic
        assert refusals(appraisal) == ["untrusted-certificate"]


@pytest.mark.parametrize("version", [4, 5])
def test_the_production_pin_refuses_every_tdx_quote(version: int) -> None:
    appraisal = judged(VENDOR, "tdx", VENDOR.chip("tdx").boot(version=version).quote(NONCE), root=INTEL_ROOT)
    assert not appraisal.authentic
    assert refusals(appraisal)[0] == "untrusted-certificate"


@pytest.mark.parametrize("keys", ["ecc", "rsa"])
def test_the_production_pins_refuse_every_endorsement_and_the_simulators_root_accepts_it(keys: Keys) -> None:
    machine = VENDOR.chip("tpm", keys=keys).boot()
    certificates = [load_certificates(der)[0] for der in machine.chip.ek_certificates]
    findings = Findings()
    assert (
        judge_endorsement(findings, certificates, parse_public(machine.ak_public), set(TPM_ROOTS.values()), EPOCH)
        is None
    )
    assert [check.code for check in findings.checks if check.refuses] == ["untrusted-certificate"]
    believed = judge_endorsement(Findings(), certificates, parse_public(machine.ak_public), VENDOR.roots.tpm, EPOCH)
    assert believed is not None
    assert (believed.manufacturer, believed.model) == ("id:53494D00", "Fastness software TPM")


def test_no_simulated_root_is_pinned() -> None:
    pinned = {*AMD_ROOTS.values(), INTEL_ROOT, *TPM_ROOTS.values()}
    roots = VENDOR.roots
    mine = {*roots.amd.values(), roots.intel, *roots.tpm}
    assert len(mine) == 5
    assert not mine & pinned


@pytest.mark.parametrize("tee", TEES)
def test_only_a_simulated_cluster_believes_the_vendor_and_it_says_so(tee: str) -> None:
    mine = anchors_of_vendor(VENDOR)
    assert mine.simulated
    assert mine in anchors_of({"spec": {"mode": "Enforce", "simulated": True}}, tee, mine)
    assert anchors_of({"spec": {"mode": "Enforce"}}, tee, mine) == [PINNED]


def test_roots_depend_on_the_seed_alone() -> None:
    later = SimVendor.of(VENDOR.seed, EPOCH + timedelta(days=3650))
    assert later.roots == VENDOR.roots
    assert judged(VENDOR, "tdx", later.chip("tdx").boot().quote(NONCE), at=later.now).acceptable


def test_vendors_do_not_believe_each_other() -> None:
    other = SimVendor(SeededEntropy(1))
    for tee in ("snp", "tdx"):
        appraisal = judged(other, tee, VENDOR.chip(tee).boot().quote(NONCE))
        assert not appraisal.authentic


# Repeatable.


@pytest.mark.parametrize("tee", TEES)
def test_a_seed_repeats_every_byte_in_whatever_order_chips_are_asked_for(tee: str) -> None:
    first, two = SimVendor(SeededEntropy(7)), SimVendor(SeededEntropy(7))
    two.chip(tee, serial=9).boot().quote(NONCE)
    again = SimVendor.of(first.seed)
    assert first.roots == two.roots == again.roots
    texts = {json.dumps(vendor.chip(tee, serial=3).boot().quote(NONCE)) for vendor in (first, two, again)}
    assert len(texts) == 1
    assert first.collateral().raw == two.collateral().raw


def test_a_seed_that_was_kept_gives_the_same_vendor_in_every_version() -> None:
    roots = VENDOR.roots
    assert {"intel": roots.intel, "tpm": min(roots.tpm), **roots.amd} == {
        "intel": "e3aad6dedcfce9c1fe127ed5aae2bae32063fd445dc492d084ca3952fc29c288",
        "tpm": "8abb9b1f340c761f45066525650c44ed69c7d3cdac5df6e0cec27848aa0f456f",
        "Milan": "65029279ddee2c17db1d625310f5077db1185931114dd97dd172b5f995cd688a",
        "Genoa": "c8fed055f9907f35892dbeb3ecda121f10da72469206dbcf0ee0d19b02eadbbd",
        "Turin": "6527cdbe43f1f60662da960b09c4f15587f88c1b2705987c903a1436d5c6d646",
    }


def test_chips_are_numbered_one_after_the_other() -> None:
    vendor = SimVendor()
    ids = [vendor.chip("snp").chip_id for _ in range(3)]
    assert ids == [SimVendor().chip("snp", serial=number).chip_id for number in range(3)]
    vendor.chip("snp", serial=10)
    assert vendor.chip("snp").chip_id == SimVendor().chip("snp", serial=11).chip_id


def test_what_does_not_exist_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="choose one of tpm, snp, tdx"):
        VENDOR.chip("sgx")
    with pytest.raises(ValueError, match="32 bytes"):
        SimVendor.of(b"short")
    milan = VENDOR.chip("snp", generation=Generation.MILAN)
    with pytest.raises(ValueError, match="exists on Turin"):
        VENDOR.chip("snp", generation=Generation.TURIN, tcb=milan.tcb)
    with pytest.raises(ValueError, match="at most 64 bytes"):
        milan.boot().quote(bytes(65))


# Time and papers.


def test_collateral_moves_with_the_time_that_is_asked_for() -> None:
    evidence, later = VENDOR.chip("tdx").boot().quote(NONCE), EPOCH + timedelta(days=400)
    assert judged(VENDOR, "tdx", evidence, at=later).acceptable
    old = judged(VENDOR, "tdx", evidence, at=later, collateral=VENDOR.collateral(EPOCH))
    assert {"collateral-expired", "crl-expired"} <= set(refusals(old))


def test_collateral_speaks_of_one_kind_of_platform() -> None:
    kind = bytes.fromhex("00806f050000")
    evidence = VENDOR.chip("tdx", fmspc=kind).boot().quote(NONCE)
    assert judged(VENDOR, "tdx", evidence, collateral=VENDOR.collateral(fmspc=kind)).acceptable
    assert "collateral-of-another-platform" in refusals(judged(VENDOR, "tdx", evidence))


def test_an_old_quoting_enclave_is_behind() -> None:
    appraisal = judged(VENDOR, "tdx", VENDOR.chip("tdx", qe_svn=4).boot().quote(NONCE))
    assert refusals(appraisal) == ["tcb-behind"]


def test_a_revoked_platform_is_refused() -> None:
    chip = VENDOR.chip("tdx")
    revoked = VENDOR.collateral(revoked_platforms=[chip.pck_serial])
    assert refusals(judged(VENDOR, "tdx", chip.boot().quote(NONCE), collateral=revoked)) == ["certificate-revoked"]


@pytest.mark.parametrize("endorsement", ["VCEK", "VLEK"])
@pytest.mark.parametrize("generation", list(Generation))
def test_a_revoked_authority_of_amd_is_refused(generation: Generation, endorsement: Endorsement) -> None:
    evidence = VENDOR.chip("snp", generation=generation, endorsement=endorsement).boot().quote(NONCE)
    serial = VENDOR.snp.signer(generation, endorsement).serial
    for revoked, codes in (([], []), ([serial], ["certificate-revoked"])):
        listed = {generation: RevocationList(VENDOR.revocations(generation, serials=revoked))}
        assert refusals(judged(VENDOR, "snp", evidence, revocations=listed, revocations_required=True)) == codes


def test_init_data_lands_where_policies_look_for_it() -> None:
    digest = bytes(range(32))
    snp = judged(VENDOR, "snp", VENDOR.chip("snp").boot(host_data=digest).quote(NONCE))
    tdx = judged(VENDOR, "tdx", VENDOR.chip("tdx").boot(mr_config_id=digest).quote(NONCE))
    assert snp.claims["init_data"] == digest.hex()
    assert tdx.claims["init_data"] == (digest + bytes(16)).hex()


# With the built-in policies.


def book(tee: str) -> ReferenceValues:
    values = {
        "metadata": {"name": "image"},
        "spec": {"source": "manual", "values": default_image().reference_values(tee)},
    }
    return ReferenceValues.of([values], EPOCH)


@pytest.mark.parametrize("tee", TEES)
def test_the_values_of_an_image_affirm_its_machines_and_no_others(tee: str) -> None:
    for image, affirmed in ((default_image(), True), (default_image("43.0"), False)):
        machine = VENDOR.chip(tee).boot(image)
        expectations: dict[str, Any] = (
            {"known_key": AttestationKey(machine.identity_key.public_der())} if tee == "tpm" else {}
        )
        appraisal = judged(VENDOR, tee, machine.quote(NONCE), **expectations)
        vector = default_policy(tee).evaluate(policy_input(appraisal, {}), book(tee))
        assert vector.affirms(tee) == affirmed, vector
