"""Vendors' documents: from directories and services, once each, never too old, never older than before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fastness.attestation.evidence.roots import Anchors
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.live.appraisers import SHORTEST_STALENESS, STALENESS, Demands
from fastness.attestation.live.collateral import Collateral
from fastness.attestation.live.collateral_files import authorities_file, crl_file, tdx_file, vcek_file
from fastness.attestation.live.vendor_services import Services, VendorServices
from fastness.crypto.silicon.chains import load_certificates
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.snp.tcb import Generation
from fastness.sim.tee import SimVendor
from tests.attesting import attesting_world
from tests.embedded.fixtures import Embedded
from tests.evidence.snp import VENDOR, Chip
from tests.virtual import START, VirtualClock

ROOTS = Anchors(VENDOR.roots.amd, VENDOR.roots.intel, VENDOR.roots.tpm)
FMSPC = VENDOR.collateral(START).tcb_info.fmspc.lower()
DAY = 86_400.0
SERVICES = Services("https://intel.test", "https://intel.test/root.der", "https://amd.test")


class Site:
    """The vendors' services as they are today; counts what is asked."""

    def __init__(self, clock: VirtualClock, vendor: SimVendor = VENDOR) -> None:
        self.clock = clock
        self.vendor = vendor
        self.requested_paths: list[str] = []
        self.down = 0
        self.number = 1
        self.chip: Chip | None = None
        self.headers: dict[str, str] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requested_paths.append(request.url.path)
        if self.down:
            return httpx.Response(self.down, headers=self.headers)
        if request.url.host == "amd.test":
            return self.amd(request)
        return self.intel(request.url.path)

    def intel(self, path: str) -> httpx.Response:
        documents = self.vendor.collateral(self.clock.now(), number=self.number)
        chain = {"issuer": quote(documents.tcb_text.chain.decode()), "crl": quote(documents.pck_crl_chain.decode())}
        if path.endswith("/tcb"):
            body = (
                b'{"tcbInfo":'
                + documents.tcb_text.text
                + b',"signature":"'
                + documents.tcb_text.signature.hex().encode()
                + b'"}'
            )
            return httpx.Response(200, content=body, headers={"TCB-Info-Issuer-Chain": chain["issuer"]})
        if path.endswith("/identity"):
            body = b'{"enclaveIdentity":' + documents.qe_text.text
            body += b',"signature":"' + documents.qe_text.signature.hex().encode() + b'"}'
            return httpx.Response(200, content=body, headers={"SGX-Enclave-Identity-Issuer-Chain": chain["issuer"]})
        if path.endswith("/pckcrl"):
            return httpx.Response(200, content=documents.pck_crl, headers={"SGX-PCK-CRL-Issuer-Chain": chain["crl"]})
        return httpx.Response(200, content=documents.root_crl)

    def amd(self, request: httpx.Request) -> httpx.Response:
        _, kind, _, generation, what = request.url.path.split("/")
        if what == "cert_chain":
            return httpx.Response(200, content=authorities(self.vendor, Generation(generation), kind == "vlek"))
        if what == "crl":
            listed = self.vendor.revocations(Generation(generation), self.clock.now(), number=self.number)
            return httpx.Response(200, content=listed)
        if self.chip is not None and what == self.chip.chip_id.hex():
            return httpx.Response(200, content=self.chip.certificates()[0].der)
        return httpx.Response(404)


def authorities(vendor: SimVendor, generation: Generation, shared: bool = False) -> bytes:
    signer = vendor.snp.signer(generation, "VLEK" if shared else "VCEK")
    chain = (signer.certificate, vendor.snp.root(generation).certificate)
    return b"".join(load_certificates(der)[0].pem for der in chain)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def site(clock: VirtualClock) -> Site:
    return Site(clock)


@pytest.fixture
def connected(site: Site, clock: VirtualClock, tmp_path: Path) -> Callable[[], Collateral]:
    """Collateral with services and a directory that lasts; each call is a restart."""

    def make() -> Collateral:
        client = httpx.AsyncClient(transport=httpx.MockTransport(site.answer))
        services = VendorServices(client, clock, SERVICES)
        return Collateral(clock, cache=tmp_path / "kept", services=services, published=ROOTS)

    return make


def put(directory: Path, name: str, data: bytes) -> None:
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


async def test_documents_of_an_imported_directory_are_used_without_a_network(
    clock: VirtualClock, tmp_path: Path
) -> None:
    put(tmp_path, tdx_file(FMSPC, "platform"), VENDOR.collateral(START).raw.encode())
    documents = await Collateral(clock, imported=tmp_path).tdx(FMSPC, "platform", ROOTS)
    assert documents is not None
    assert documents.tcb_info.fmspc.lower() == FMSPC


async def test_what_the_service_gives_is_fetched_once_and_survives_a_restart(
    connected: Callable[[], Collateral], site: Site
) -> None:
    first = connected()
    answers = await asyncio.gather(*(first.tdx(FMSPC, "platform", ROOTS) for _ in range(20)))
    assert all(answer is answers[0] and answer is not None for answer in answers)
    assert len(site.requested_paths) == 4
    assert await connected().tdx(FMSPC, "platform", ROOTS) is not None
    assert len(site.requested_paths) == 4


async def test_pitfall_19_documents_that_ran_out_are_not_used(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None
    site.down = 500
    await clock.advance(29 * DAY)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None, "good until its own end"
    await clock.advance(3 * DAY)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert "500" in collateral.problems[tdx_file(FMSPC, "platform")]
    site.down = 0
    await clock.advance(61)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None


async def test_newer_documents_are_looked_for_before_the_old_ones_end(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    first = await collateral.tdx(FMSPC, "platform", ROOTS)
    await clock.advance(2 * DAY)
    second = await collateral.tdx(FMSPC, "platform", ROOTS)
    assert first is not None
    assert second is not None
    assert second.tcb_info.issued > first.tcb_info.issued


async def test_pitfall_19_lower_numbers_than_those_seen_are_refused_also_after_a_restart(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    site.number = 7
    assert await connected().snp_crl(Generation.GENOA, ROOTS) is not None
    site.number = 6
    await clock.advance(40 * DAY)
    later = connected()
    assert await later.snp_crl(Generation.GENOA, ROOTS) is None
    assert "6 after 7" in later.problems[crl_file(Generation.GENOA)]
    site.number = 8
    await clock.advance(61)
    assert await later.snp_crl(Generation.GENOA, ROOTS) is not None


async def test_documents_under_another_root_leave_no_number_behind(clock: VirtualClock, tmp_path: Path) -> None:
    forger = SimVendor.of(b"somebody else".ljust(32, b"!"))
    imported, cache_directory = tmp_path / "in", tmp_path / "kept"
    put(imported, tdx_file(FMSPC, "platform"), forger.collateral(START, number=10**6).raw.encode())
    collateral = Collateral(clock, imported=imported, cache=cache_directory)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    put(imported, tdx_file(FMSPC, "platform"), VENDOR.collateral(START, number=1).raw.encode())
    await clock.advance(61)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None


@pytest.mark.parametrize("name", ["../../etc/passwd", "00", "00A06D080000", "", "0" * 13])
async def test_a_platform_that_is_none_is_not_looked_for(
    connected: Callable[[], Collateral], site: Site, name: str
) -> None:
    collateral = connected()
    assert await collateral.tdx(name, "platform", ROOTS) is None
    assert await collateral.tdx(FMSPC, "../platform", ROOTS) is None
    assert (site.requested_paths, collateral.problems) == ([], {}), "no service is asked, and no file is opened"


async def test_a_clock_that_went_back_makes_documents_of_the_future_count_for_nothing(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    collateral = connected()
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None
    site.down = 500
    monkeypatch.setattr(clock, "now", lambda: START - timedelta(days=2))
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None


async def test_a_key_is_not_asked_for_while_nobody_knows_who_signs_keys(
    connected: Callable[[], Collateral], site: Site
) -> None:
    site.down = 500
    chip = Chip("Genoa")
    assert await connected().snp_key(Generation.GENOA, chip.chip_id, chip.simulated.tcb, ROOTS) is None
    assert [path for path in site.requested_paths if chip.chip_id.hex() in path] == []


async def test_documents_about_other_platforms_are_refused(clock: VirtualClock, tmp_path: Path) -> None:
    put(tmp_path, tdx_file("00a06d080000", "platform"), VENDOR.collateral(START).raw.encode())
    collateral = Collateral(clock, imported=tmp_path)
    assert await collateral.tdx("00a06d080000", "platform", ROOTS) is None
    assert "it is about platforms" in collateral.problems[tdx_file("00a06d080000", "platform")]


async def test_a_missing_document_is_not_looked_for_again_within_a_minute(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    site.down = 404
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert len(site.requested_paths) == 1
    await clock.advance(61)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert len(site.requested_paths) == 2


async def test_a_service_that_says_429_is_left_alone_for_as_long_as_it_asks(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    site.down, site.headers = 429, {"Retry-After": "300"}
    assert not await collateral.snp_authorities(Generation.MILAN, ROOTS)
    site.down = 0
    await clock.advance(120)
    assert not await collateral.snp_authorities(Generation.MILAN, ROOTS)
    assert len(site.requested_paths) == 1
    await clock.advance(200)
    assert len(await collateral.snp_authorities(Generation.MILAN, ROOTS)) == 3


async def test_an_answer_without_end_is_cut_off(clock: VirtualClock) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=bytes(3 * 1024 * 1024)))
    services = VendorServices(httpx.AsyncClient(transport=transport), clock, SERVICES)
    collateral = Collateral(clock, services=services, published=ROOTS)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert "more than" in collateral.problems[tdx_file(FMSPC, "platform")]


@pytest.mark.parametrize("version", [2, 3, 5])
@pytest.mark.parametrize("generation", list(Generation))
async def test_the_endorsement_key_of_a_chip_completes_its_report(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock, generation: Generation, version: int
) -> None:
    site.chip = Chip(generation)
    report = parse_report(site.chip.report(version))
    completed = await connected().snp(report, ROOTS)
    listed = await connected().snp_crl(generation, ROOTS)
    assert listed is not None
    expected = SnpExpectations(roots=VENDOR.roots.amd, revocations={generation: listed}, revocations_required=True)
    appraisal = appraise_snp(report, completed, expected, clock.now())
    assert appraisal.acceptable, appraisal.reason
    requests_before = len(site.requested_paths)
    assert await connected().snp(report, ROOTS) == list(completed), "kept for ever: it never changes"
    # A report of version 2 does not name its generation: a chip of Genoa could be one of Milan, which is asked about first.
    assert len(site.requested_paths) == requests_before + (version == 2 and generation is Generation.GENOA)


async def test_the_key_of_another_chip_is_not_kept(
    connected: Callable[[], Collateral], site: Site, tmp_path: Path
) -> None:
    site.chip = Chip("Genoa")
    other = Chip("Genoa")
    chip_id, tcb = other.chip_id, other.simulated.tcb
    put(tmp_path / "kept", authorities_file(Generation.GENOA), authorities(VENDOR, Generation.GENOA))
    put(tmp_path / "kept", vcek_file(Generation.GENOA, chip_id, tcb), site.chip.certificates()[0].der)
    collateral = connected()
    assert await collateral.snp_key(Generation.GENOA, chip_id, tcb, ROOTS) is None


async def test_makers_of_tpms_are_read_from_the_imported_directory(clock: VirtualClock, tmp_path: Path) -> None:
    (tmp_path / "tpm").mkdir()
    root = load_certificates(VENDOR.tpm.root.certificate)[0]
    (tmp_path / "tpm" / "maker.pem").write_bytes(root.pem)
    (tmp_path / "tpm" / "damaged.pem").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (tmp_path / "tpm" / "notes.txt").write_text("not a certificate")
    assert [maker.der for maker in await Collateral(clock, imported=tmp_path).makers()] == [root.der]


async def test_services_that_are_switched_off_are_not_asked(site: Site, clock: VirtualClock) -> None:
    client = httpx.AsyncClient(transport=httpx.MockTransport(site.answer))
    services = VendorServices(client, clock, replace(SERVICES, intel="", amd=""))
    collateral = Collateral(clock, services=services, published=ROOTS)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None
    assert not await collateral.snp_authorities(Generation.GENOA, ROOTS)
    assert site.requested_paths == []


async def test_the_caches_directory_holds_what_other_verifiers_read(
    connected: Callable[[], Collateral], tmp_path: Path
) -> None:
    await connected().tdx(FMSPC, "platform", ROOTS)
    document = json.loads((tmp_path / "kept" / tdx_file(FMSPC, "platform")).read_bytes())
    assert len(document) == 9


async def test_newer_documents_are_looked_for_at_the_age_that_the_cluster_names(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    collateral.look_after(timedelta(hours=48))  # the vendor says that its documents are a day old
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None
    requests_before = len(site.requested_paths)
    await clock.advance(2 * 3600)
    await collateral.tdx(FMSPC, "platform", ROOTS)
    assert len(site.requested_paths) == requests_before
    collateral.look_after(timedelta(hours=25))
    await collateral.tdx(FMSPC, "platform", ROOTS)
    assert len(site.requested_paths) > requests_before


async def test_documents_beyond_that_age_count_until_they_run_out_and_not_longer(
    connected: Callable[[], Collateral], site: Site, clock: VirtualClock
) -> None:
    collateral = connected()
    collateral.look_after(timedelta(hours=1))
    first = await collateral.tdx(FMSPC, "platform", ROOTS)
    assert first is not None
    site.down = 500  # nothing newer can be had
    end = (first.tcb_info.next_update - clock.now()).total_seconds()
    await clock.advance(end - 1)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is not None
    await clock.advance(2)
    assert await collateral.tdx(FMSPC, "platform", ROOTS) is None


async def test_the_age_is_that_of_the_confidential_cluster(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages: list[timedelta] = []
    monkeypatch.setattr(Collateral, "look_after", lambda _, staleness: ages.append(staleness))
    spec = {"mode": "Enforce", "simulated": True, "attestation": {"collateralStaleness": "90m"}}
    async with attesting_world(embedded_server.cluster, spec) as world:
        await world.approve("tpm")
        attester = await world.enrolled("tpm")
        async with world.broker(attester) as broker:
            await broker.attest()
    assert ages == [timedelta(minutes=90)]


@pytest.mark.parametrize(
    ("setting", "age"),
    [("36h", timedelta(hours=36)), ("1s", SHORTEST_STALENESS), ("soon", STALENESS), (None, STALENESS)],
)
def test_an_age_is_read_within_bounds(setting: str | None, age: timedelta) -> None:
    attestation = {} if setting is None else {"collateralStaleness": setting}
    assert Demands.of({"spec": {"mode": "Enforce", "attestation": attestation}}).staleness == age
