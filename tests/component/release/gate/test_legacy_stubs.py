"""Stubs of an older installer at the gate: one more server name, TLS 1.2, pools of model None, and nothing else."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.enrolment.live.bootstrap_tokens import encoded
from fastness.http.certificates import load
from fastness.http.refusals import Refusal
from fastness.keys.authorities import SECRETS
from fastness.keys.certificates import DoorCertificates
from fastness.keys.legacy_stubs import IMPORTED
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.machineconfig.serving import KUBECONFIG_FILE
from fastness.protocol.door import DoorRole
from fastness.release.door.gate.server import GateDoor, gate
from fastness.release.live.configs import RemoteConfigs
from tests.attesting import ENTROPY, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord
from tests.joining import Place, client_request, new_key, outcome
from tests.unattested import Boot, PoolSite, cluster_spec, pool_site

pytestmark = pytest.mark.asyncio(loop_scope="module")
STUB = "api-int.old.example.com"
# What Ignition 0.35 sends.
IGNITION = {
    "user-agent": "Ignition/0.35.0",
    "accept": "application/vnd.coreos.ignition+json; version=2.4.0, application/vnd.coreos.ignition+json; version=1; q=0.5,"
    " */*; q=0.1",
}


@dataclass(frozen=True)
class Installer:
    """The authority of an older installer, with an RSA key as they have."""

    certificate: str
    key: str

    @classmethod
    def made(cls) -> Installer:
        key, now = rsa.generate_private_key(65537, 2048), datetime.now(UTC)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root-ca")])
        certificate = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        return cls(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())

    def trust(self, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> ssl.SSLContext:
        """What a stub of this installer believes."""
        context = ssl.create_default_context(cadata=self.certificate)
        context.maximum_version = newest
        return context


@dataclass
class LegacySite:
    """A gate in front of a cluster that has switched stubs on for two pools, of which one does not attest."""

    pools: PoolSite
    door: GateDoor
    record: MemoryRecord
    installer: Installer

    async def asked(
        self, path: str, name: str = STUB, method: str = "GET", trust: ssl.SSLContext | None = None, **headers: str
    ) -> httpx.Response:
        """What the gate answers somebody who asks for a server name."""
        url = f"https://127.0.0.1:{self.door.port}{path}"
        async with httpx.AsyncClient(verify=trust or self.installer.trust(), trust_env=False, timeout=20) as http:
            request = http.build_request(
                method, url, headers={**IGNITION, **headers}, extensions={"sni_hostname": name}
            )
            return await http.send(request)

    def to_the_gate(self) -> ssl.SSLContext:
        """What machines believe of the doors, with TLS 1.2 and 1.3."""
        return ssl.create_default_context(cadata=self.door.doors.bundle)

    async def serves(self, name: str = STUB) -> bool:
        """Whether the gate answers to a name with a certificate of the installer."""
        try:
            await self.asked("/config/plain", name, "HEAD")
        except httpx.ConnectError:
            return False
        return True


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LegacySite]:
    state, installer = tmp_path_factory.mktemp("legacy") / "state", Installer.made()
    spec = {**cluster_spec(), "join": {"legacyStubs": [{"serverName": STUB, "pools": ["plain", "secret", "host"]}]}}
    async with (
        open_apiserver(ServerOptions(state), PRODUCT) as server,
        pool_site(Place.embedded(Embedded(server, state)), spec) as pools,
    ):
        world, record = pools.joining.world, MemoryRecord()
        async with gate(world.cluster, world.informers, pools.door.served, record, world.clock, ENTROPY) as door:
            opened = LegacySite(pools, door, record, installer)
            await until(lambda: _is_told(pools, "LegacyStubsNotServed"))
            assert not await opened.serves(), "without the authority of the installer there is no certificate to show"
            await _import(pools, installer)
            await until(opened.serves)
            yield opened


async def _import(pools: PoolSite, installer: Installer) -> None:
    body = {
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": IMPORTED, "namespace": NAMESPACE},
        "data": encoded({"tls.crt": installer.certificate, "tls.key": installer.key}),
    }  # fmt: skip
    await pools.cluster.create(SECRETS, body)


async def _is_told(pools: PoolSite, reason: str) -> bool:
    return any(event["reason"] == reason for event in (await pools.cluster.list(EVENTS)).items)


async def test_an_old_stub_gets_the_config_in_spec_2_without_a_ticket_and_joins_by_it(site: LegacySite) -> None:
    answer = await site.asked("/config/plain")
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["ignition"]["version"] == "2.2.0"
    (entry,) = (file for file in document["storage"]["files"] if file["path"] == KUBECONFIG_FILE)
    assert entry["mode"] == 0o600
    token = Boot(document, entry).token
    async with site.pools.joining.client(token) as machine:
        request = await site.pools.joining.ask(machine, client_request(new_key(), "old-stub-1"))
    assert outcome(request)[0] == "Approved"
    (entry_of_record,) = [each for each in site.record.entries if each.who == f"stub:{STUB}"][:1]
    assert (entry_of_record.what, entry_of_record.detail["basis"]) == ("release", "legacy-stub")
    joins = [each["detail"] for each in await site.pools.entries("join")]
    assert any(detail.get("stub") == STUB and detail["pool"] == "plain" for detail in joins)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/config/secret", 403), ("/config/host", 403), ("/config/other", 403), ("/config/no-such", 403),
        ("/config/plain?rendered=rendered-plain-" + "0" * 32, 200), ("/healthz", 404), ("/", 404), ("/config", 404),
        ("/kbs/v0/auth", 404), ("/config/plain/x", 404),
    ],
)  # fmt: skip
async def test_nothing_but_listed_pools_of_model_none_is_reachable_under_that_name(
    site: LegacySite, path: str, status: int
) -> None:
    answer = await site.asked(path)
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["ignition"]["version"] == "2.2.0", "never the MachineConfig itself"


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE"])
async def test_under_that_name_things_are_read_and_nothing_else(site: LegacySite, method: str) -> None:
    assert (await site.asked("/config/plain", method=method)).status_code == 405


async def test_every_route_of_the_gate_with_every_name(site: LegacySite) -> None:
    """The names that the gate has of old still need a token, and speak TLS 1.3 alone; the stubs' name never reaches them."""
    for route in site.door.routes:
        path = route.path.replace("<pool>", "plain")
        own = await site.asked(path, "localhost", trust=site.to_the_gate())
        assert own.status_code == (200 if route.name == "health" else 401), route.name
        # Headers choose nothing: neither a host of the other name nor a credential.
        wrong = await site.asked(path, "localhost", trust=site.to_the_gate(), host=STUB)
        assert wrong.status_code == own.status_code, route.name
        as_stub = await site.asked(path, STUB, host="localhost", authorization="Bearer fst_x")
        assert as_stub.status_code == (200 if route.name == "config" else 404), route.name


async def test_tls_1_2_is_for_that_name_alone(site: LegacySite) -> None:
    old = site.to_the_gate()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(httpx.ConnectError):
        await site.asked("/healthz", "localhost", trust=old)
    with pytest.raises(httpx.ConnectError):
        await site.asked("/config/plain", "api-int.other.example.com", trust=old)
    modern = site.installer.trust(ssl.TLSVersion.TLSv1_3)
    assert (await site.asked("/config/plain", trust=modern)).status_code == 200


async def test_the_gate_shows_no_certificate_of_the_installer_under_another_name(site: LegacySite) -> None:
    with pytest.raises(httpx.ConnectError):
        await site.asked("/config/plain", "localhost", trust=site.installer.trust(ssl.TLSVersion.TLSv1_3))


async def test_a_gate_elsewhere_passes_stubs_on_and_the_config_server_decides_again(site: LegacySite) -> None:
    world = site.pools.joining.world
    certificates = await DoorCertificates.open(
        DoorRole.GATE, world.cluster, world.informers, world.clock, ["localhost"]
    )

    def context() -> ssl.SSLContext:
        return shown

    inner = certificates.current.inner
    assert inner is not None
    shown = ssl.create_default_context(cadata=certificates.current.internal.bundle)
    load(shown, inner)
    remote = RemoteConfigs(f"https://localhost:{site.pools.door.internal_port}", context)
    try:
        config = await remote.stub("plain", IGNITION["accept"], STUB)
        assert b'"2.2.0"' in config.body
        for pool, name in (("secret", STUB), ("host", STUB), ("other", STUB), ("plain", "made-up.example.com")):
            with pytest.raises(Refusal):
                await remote.stub(pool, IGNITION["accept"], name)
    finally:
        await remote.close()


async def test_switching_stubs_on_needs_a_confirmation_and_switching_them_off_ends_them(site: LegacySite) -> None:
    listed = [
        {"serverName": STUB, "pools": ["plain", "secret", "host"]},
        {"serverName": "new.example.com", "pools": ["plain"]},
    ]
    with pytest.raises(ApiError, match=r"confirm-lower"):
        await _list(site, listed)
    await _list(site, [])
    await until(lambda: _is_over(site))
    old = site.to_the_gate()
    with pytest.raises(httpx.ConnectError):
        await site.asked("/config/plain", STUB, trust=site.installer.trust())
    assert (await site.asked("/healthz", "localhost", trust=old)).status_code == 200


async def _list(site: LegacySite, stubs: list[JsonObject]) -> None:
    patch = {"spec": {"join": {"legacyStubs": stubs}}}
    await site.pools.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)


async def _is_over(site: LegacySite) -> bool:
    return not await site.serves()
