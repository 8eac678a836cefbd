"""Evidence is bound to the enrolment: what somebody gets with a ticket, a software key and public values. Nothing."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.crypto.jwk import decoded
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kube.port import PatchType
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.tdx import TdxMachine
from fastness.sim.tee.tpm import TpmMachine, public_der
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.authority import Extension, key_usage
from fastness.sim.tee.writers.keys import EcKey
from fastness.sim.tee.writers.tdx_quote import write_quote
from tests.attesting import ENTROPY, until
from tests.component.attacks.outsider import SECRET, Fortress, SoftwareKey, fortress, refusal
from tests.enrolling import BareTpm

DIFFERS = (403, "evidence-type-differs")


@pytest.mark.row("000-44")
@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_a_software_key_that_enrolled_as_a_guest_signs_no_quotes(tmp_path: Path, tee: str) -> None:
    """Enrol for evidence that proves nothing yet, then be a TPM with the published registers."""
    async with fortress(tmp_path) as site:
        guest = SoftwareKey(tee)
        assert (await site.enrol(guest)).status_code == 201
        assert await site.attest(SoftwareKey("tpm", guest.key)) == DIFFERS
        assert await site.recorded("refusal", guest.thumbprint, "evidence-type-differs")
        await site.gave_nothing(machines=1)


class Borrowed(SoftwareKey):
    """A key of its own beside evidence of a genuine machine, which that machine makes for anybody who asks."""

    def __init__(self, tee: str, key: EcKey, genuine: SimAttester) -> None:
        super().__init__(tee, key)
        self._genuine = genuine

    async def evidence(self, report_data: bytes) -> JsonObject:
        """What the genuine machine says of these bytes."""
        return await self._genuine.evidence(report_data)


def ak_of(machine: SimAttester) -> EcKey:
    """The attestation key of a simulated TPM, as if it would sign anything."""
    assert isinstance(machine.machine, TpmMachine)
    assert isinstance(machine.machine.chip.ak, EcKey)
    return machine.machine.chip.ak


@pytest.mark.parametrize(("enrolled", "sent"), [("tpm", "snp"), ("tpm", "tdx"), ("snp", "tdx"), ("tdx", "snp")])
async def test_evidence_of_another_type_is_refused_however_good_it_is(tmp_path: Path, enrolled: str, sent: str) -> None:
    """The report is genuine, approved and bound to the attempt, and the key signed: it is not what the machine enrolled for."""
    async with fortress(tmp_path, simulated=True) as site:
        machine = site.site.world.machine(enrolled)
        assert (await site.enrol(machine)).status_code == 201
        key = ak_of(machine) if enrolled == "tpm" else machine.machine.identity_key
        assert isinstance(key, EcKey)
        assert await site.attest(Borrowed(sent, key, site.site.world.machine(sent))) == DIFFERS
        assert await site.recorded("refusal", machine.machine.thumbprint, "evidence-type-differs")
        await site.gave_nothing(machines=1)


async def enrol_certified(site: Fortress, key: EcKey) -> tuple[int, str]:
    """Enrol a key as the attestation key of a genuine TPM, which opens the credential for it."""
    machine = site.site.world.machine("tpm")
    assert isinstance(machine.machine, TpmMachine)
    machine.machine.chip.__dict__["ak"] = key
    answer = await site.enrol(machine)
    return (answer.status_code, "") if answer.status_code == 201 else refusal(answer)


@pytest.mark.parametrize(("first", "second"), [("snp", "tdx"), ("tdx", "snp"), ("tpm", "snp"), ("snp", "tpm")])
async def test_one_key_enrols_for_one_type(tmp_path: Path, first: str, second: str) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        key = EcKey(ENTROPY)
        answers = []
        for tee in (first, second):
            if tee == "tpm":
                answers.append(await enrol_certified(site, key))
                continue
            answer = await site.enrol(SoftwareKey(tee, key))
            answers.append((201, "") if answer.status_code == 201 else refusal(answer))
        assert answers == [(201, ""), (403, "identity-conflict")]
        assert await site.recorded("enrol-refused", SoftwareKey(second, key).thumbprint, "identity-conflict")
        await site.gave_nothing(machines=1)


class SelfMadeQuote(SoftwareKey):
    """A quote of a trust domain that the guest key signed itself, inside of what a genuine platform vouched for."""

    def __init__(self, genuine: SimAttester) -> None:
        super().__init__("tdx")
        assert isinstance(genuine.machine, TdxMachine)
        self._genuine = genuine.machine

    async def evidence(self, report_data: bytes) -> JsonObject:
        """The published measurements, bound to this attempt."""
        published = self._genuine.raw_quote(report_data)
        body = published[48 : 48 + 584]
        quote = write_quote(4, body, self.key, self._genuine.chip.vouched)
        return {
            "quote": base64.b64encode(quote).decode(),
            "cc_eventlog": base64.b64encode(self._genuine.event_log).decode(),
        }


async def test_a_guest_key_that_signs_its_own_quote_is_no_platform(tmp_path: Path) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        guest = SelfMadeQuote(site.site.world.machine("tdx"))
        assert (await site.enrol(guest)).status_code == 201
        status, code = await site.attest(guest)
        assert status == 403
        assert await site.recorded("refusal", guest.thumbprint, code)
        await site.gave_nothing(machines=1)


async def test_the_guest_key_must_sign_the_attempt(tmp_path: Path) -> None:
    """Whoever knows the public half of an enrolled key, and has a confidential machine of its own, is not that machine."""
    async with fortress(tmp_path, simulated=True) as site:
        victim, other = site.site.world.machine("snp"), site.site.world.machine("snp")
        assert (await site.enrol(victim)).status_code == 201
        assert await site.attest(NamesAnother(victim, other)) == (403, "identity-unproved")
        assert await site.recorded("refusal", victim.machine.thumbprint, "identity-unproved")
        await site.gave_nothing(machines=1)


class NamesAnother(SimAttester):
    """A genuine machine that names the key of another."""

    def __init__(self, victim: SimAttester, own: SimAttester) -> None:
        super().__init__(own.machine)
        self._victim = victim

    async def identity_public(self) -> bytes:
        """The victim's, which is no secret."""
        return await self._victim.identity_public()


class StolenPaper(SoftwareKey):
    """A software key beside certificates of somebody else's TPM."""

    def __init__(self, certificates: list[bytes]) -> None:
        super().__init__("tpm")
        self._certificates = certificates

    async def ek_certificates(self) -> list[bytes]:
        """Copied: they are public."""
        return self._certificates

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """The credential is sealed to the other TPM: a guess."""
        return SecretBytes(bytes(32))


@pytest.mark.parametrize(
    ("paper", "code"), [("its endorsement key", "activation-failed"), ("its attestation key", "endorsement-refused")]
)
async def test_a_certificate_of_another_chip_makes_no_tpm(tmp_path: Path, paper: str, code: str) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        chip = site.site.world.vendor.chip("tpm")
        certificates = [*chip.ek_certificates[:2]]
        if paper == "its attestation key":
            # What a maker's service issues for attestation keys: the same authority, another purpose.
            purpose = Extension("2.5.29.37", asn1.sequence(asn1.oid("2.23.133.8.3")))
            issued = chip.foundry.authority.issue(
                asn1.sequence(), public_der(chip.ak), serial=7, extensions=[purpose, key_usage(0)]
            )
            certificates[0] = issued
        thief = StolenPaper(certificates)
        assert refusal(await site.enrol(thief)) == (403, code)
        assert await site.recorded("enrol-refused", thief.thumbprint, code)
        # Without a Machine its quotes are nobody's.
        assert await site.attest(thief) == (403, "not-enrolled")
        await site.gave_nothing(machines=0)


async def test_without_a_certified_endorsement_key_there_is_no_tpm(tmp_path: Path) -> None:
    async with fortress(tmp_path) as site:
        alone = SoftwareKey("tpm")
        assert refusal(await site.enrol(alone)) == (403, "first-use-not-allowed")
        assert await site.recorded("enrol-refused", alone.thumbprint, "first-use-not-allowed")
        await site.gave_nothing(machines=0)


@pytest.mark.row("000-53")
async def test_a_machine_that_proves_what_it_enrolled_as_gets_what_is_its_own(tmp_path: Path) -> None:
    """The other side of every refusal above: the same doors, and machines that are what they say."""
    async with fortress(tmp_path, simulated=True) as site:
        for tee, endorsement in (("tpm", "ek-certificate"), ("snp", "evidence"), ("tdx", "evidence")):
            machine = site.site.world.machine(tee)
            assert (await site.enrol(machine)).status_code == 201
            async with site.site.world.broker(machine) as broker:
                await broker.attest()
                assert (await broker.resource("pool/worker/secret")).reveal() == SECRET
            entry = [recorded for recorded in await site.record() if recorded["what"] == "release"][-1]
            assert entry["who"] == machine.machine.thumbprint
            assert entry["detail"] == {"basis": "verdict", "tee": tee, "endorsement": endorsement}


async def test_a_tpm_that_was_trusted_on_first_use_is_marked_and_stops_when_that_is_switched_off(
    tmp_path: Path,
) -> None:
    allowed = {"trustOnFirstUse": True}
    async with fortress(tmp_path, simulated=True, join=allowed) as site:
        world = site.site.world
        machine = BareTpm(world.vendor.chip("tpm").boot())
        assert (await site.enrol(machine)).status_code == 201
        async with world.broker(machine) as broker:
            token = await broker.attest()
            claims = json.decode(decoded(token.reveal().split(".")[1]))
            assert claims["fastness"]["endorsement"] == "trust-on-first-use"
            assert claims["fastness"]["properties"]["endorsement"] == "trust-on-first-use"
            await broker.resource("pool/worker/secret")
            stored = await world.machine_object(machine)
            verdict = await world.cluster.get(VERDICT.resource, stored["status"]["lastVerdict"])
            assert verdict["spec"]["subject"]["endorsement"] == "trust-on-first-use"
            attested = condition(stored, "Attested")
            assert attested is not None
            assert "trusted on first use" in attested["message"]
            clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
            off = {"spec": {"join": {"trustOnFirstUse": False}}}
            await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", off, PatchType.MERGE)
            await until(lambda: _is_off(clusters.get("", "cluster")))
            with pytest.raises(BrokerRefused) as refused:
                await broker.resource("pool/worker/secret")
            assert (refused.value.status, refused.value.reason) == (403, "first-use-not-allowed")
        assert await site.attest(machine) == (403, "first-use-not-allowed")
        assert await site.recorded("refusal", machine.machine.thumbprint, "first-use-not-allowed")


async def _is_off(cluster: JsonObject | None) -> bool:
    return cluster is not None and not cluster["spec"]["join"]["trustOnFirstUse"]
