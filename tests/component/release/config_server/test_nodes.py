"""Nodes that never attested fetch their configs on day two, with their certificates, and nothing but their own."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from fastness.agent.boot.configs import ConfigRefused, NodeConfigs, NodeIdentity
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, CertificateAuthority, Credential
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.http.opening import ListenOptions
from fastness.keys import client_authorities as clientca
from fastness.keys.client_authorities import ClientAuthorities
from fastness.keys.doors import doors_authority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.client.connection import Connection, context_for
from fastness.kube.errors import Unavailable
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.machine_names import machine_of_node
from fastness.release.door.config_server.server import ConfigDoor, config_server
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.broker.brokered_cluster import until as until_so
from tests.component.release.config_server.doors import CONFIDENTIAL, CONFIG, TICKET, furnish, rendered
from tests.delivering import until
from tests.embedded.fixtures import Embedded

ENTROPY, HOUR, DAY = SystemEntropy(), timedelta(hours=1), timedelta(days=1)
NODES = Resource("", "v1", "nodes", "Node", False)
OLD, NEW, SECRET = (
    f"rendered-{pool}-{letter * 32}" for pool, letter in (("plain", "a"), ("plain", "b"), ("secret", "c"))
)
HOST = f"rendered-host-{'d' * 32}"
NEAR = f"rendered-plain-secret-{'e' * 32}"  # of a confidential pool whose name begins as another's
NODE_OF_A_MACHINE = "host-0123456789abcdef0123"


def authority(name: str = "kubernetes") -> CertificateAuthority:
    return CertificateAuthority.create(name, datetime.now(UTC), ENTROPY)


@dataclass
class World:
    """A config server that believes a cluster's client authority, and the nodes before it."""

    door: ConfigDoor
    cluster: Cluster
    ca: CertificateAuthority = field(repr=False)
    authorities: list[Certificate]

    def shows(self, node: str, by: CertificateAuthority | None = None, since: timedelta = timedelta()) -> Credential:
        issuer = by or self.ca
        return issuer.issue_client(f"system:node:{node}", ["system:nodes"], HOUR, datetime.now(UTC) - since)

    def tls(self, credential: Credential | None) -> ssl.SSLContext:
        connection = Connection("", ca=self.door.doors.bundle.encode())
        if credential is not None:
            pair = {"certificate": credential.certificate.pem, "key": SecretBytes(credential.key_pem.reveal())}
            connection = replace(connection, **pair)  # type: ignore[arg-type]
        return context_for(connection)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.door.port}"

    async def get(
        self, credential: Credential | None, pool: str, name: str, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        async with httpx.AsyncClient(verify=self.tls(credential), timeout=20, trust_env=False) as client:
            return await client.get(f"{self.url}/config/{pool}", params={"rendered": name}, headers=headers)

    async def answer(self, credential: Credential | None, pool: str, name: str) -> tuple[int, str]:
        answer = await self.get(credential, pool, name)
        return answer.status_code, answer.json()["metadata"]["name"] if answer.is_success else answer.json()["code"]

    def configs(self, node: str) -> NodeConfigs:
        return self.configs_for(self.shows(node))

    def configs_for(self, credential: Credential, url: str = "", keys: Sequence[JsonObject] = ()) -> NodeConfigs:
        """The agent of the node of a certificate; it believes the config server's own keys unless told others."""
        jwks = keys or self.door.served.signer.jwks()
        believed = {key.id: key for key in map(Ed25519Verifier.from_jwk, jwks)}
        node = credential.certificate.subject.common_name.removeprefix("system:node:")
        identity = NodeIdentity(node, str(credential.certificate.fingerprint), self.tls(credential), believed)
        return NodeConfigs(url or self.url, lambda: identity, SystemClock(), ENTROPY)

    async def recorded(self) -> list[JsonObject]:
        """All entries of the record, in their order."""
        batches = (await self.cluster.list(AUDIT_BATCH.resource)).items
        return [entry for batch in batches for entry in batch["spec"]["entries"]]

    async def quarantine(self, node: str) -> None:
        """Make the Machine of a node, in quarantine."""
        name = machine_of_node(node)
        made = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"id": "01234567-89ab-cdef-0123-456789abcdef", "approval": "Quarantined"},
        }  # fmt: skip
        await self.cluster.create(MACHINE.resource, made)
        status, options = {"status": {"nodeName": node}}, WriteOptions(subresource="status")
        await self.cluster.patch(MACHINE.resource, name, status, PatchType.MERGE, NAMESPACE, options)

    async def ticket(self, pool: str) -> dict[str, str]:
        ticket = mint(ENTROPY)
        await self.cluster.create(TICKET, join_ticket("t", ticket, pool, datetime.now(UTC) + DAY))
        return {"authorization": f"Bearer {ticket.reveal()}"}

    async def sent(self, node: str, desired: str, current: str = "") -> None:
        notes = {names.DESIRED_CONFIG: desired, names.CURRENT_CONFIG: current}
        await self.cluster.patch(NODES, node, {"metadata": {"annotations": notes}}, PatchType.MERGE)


def node(name: str, pool: str, desired: str, current: str) -> JsonObject:
    notes = {names.DESIRED_CONFIG: desired, names.CURRENT_CONFIG: current}
    meta = {"name": name, "labels": {f"{names.NODE_ROLE_PREFIX}{pool}": ""}, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


@asynccontextmanager
async def opened(embedded: Embedded) -> AsyncIterator[World]:
    cluster, clock, ca = embedded.cluster, SystemClock(), authority()
    await furnish(cluster)
    for name in (OLD, NEW, SECRET, HOST, NEAR):
        await cluster.create(CONFIG, rendered(name, f"content of {name}"))
    for made in (
        node("plain-1", "plain", NEW, OLD), node("plain-2", "plain", OLD, OLD), node("host-1", "host", HOST, HOST),
        node("secret-1", "secret", SECRET, SECRET), node(NODE_OF_A_MACHINE, "host", HOST, HOST),
    ):  # fmt: skip
        await cluster.create(NODES, made)
    believed = [ca.certificate]
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        issuing(cluster, informers, clock, ENTROPY),
        config_server(cluster, informers, clock, ENTROPY, ListenOptions(rust=True), lambda: believed) as door,
    ):
        yield World(door, cluster, ca, believed)


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    async with opened(embedded_server) as opening:
        yield opening


async def test_a_node_gets_its_desired_and_its_current_config_as_the_object_that_agents_read(world: World) -> None:
    for name in (NEW, OLD):
        config = await world.configs("plain-1").fetch(name)
        assert (config["kind"], config["metadata"]["name"]) == ("MachineConfig", name)
        assert f"content%20of%20{name}" in str(config["spec"])
    assert await world.answer(world.shows("host-1"), "host", HOST) == (200, HOST)


async def test_a_node_gets_no_config_of_another_node_or_pool(world: World) -> None:
    assert await world.answer(world.shows("plain-2"), "plain", NEW) == (403, "not-assigned")
    assert await world.answer(world.shows("plain-1"), "plain", f"rendered-plain-{'f' * 32}") == (403, "not-assigned")
    assert await world.answer(world.shows("plain-1"), "plain", HOST) == (403, "not-assigned")
    assert await world.answer(world.shows("plain-1"), "host", HOST) == (403, "wrong-pool")
    assert await world.answer(world.shows("nobody"), "plain", NEW) == (403, "not-assigned")
    with pytest.raises(ConfigRefused, match="not-assigned"):
        await world.configs("plain-2").fetch(NEW)


async def test_a_config_of_a_confidential_pool_never_leaves_whatever_a_node_writes_about_itself(world: World) -> None:
    assert await world.answer(world.shows("secret-1"), "secret", SECRET) == (403, "attestation-required")
    for forged in (SECRET, NEAR):
        # On a Kubernetes of somebody else a kubelet writes these annotations as it likes.
        await world.sent("plain-1", forged, forged)
        for pool in ("plain", "secret", "plain-secret"):
            answer = await world.get(world.shows("plain-1"), pool, forged)
            assert answer.status_code == 403
            assert b"content%20of" not in answer.content


async def test_a_pool_that_begins_to_need_a_proof_is_shut_for_certificates(world: World) -> None:
    assert await world.answer(world.shows("plain-1"), "plain", NEW) == (200, NEW)
    models = {"host": "ContainersHost", "plain": "ConfidentialCluster", "secret": "ConfidentialCluster"}
    pools = [{"name": name, "trustModel": model} for name, model in models.items()]
    await world.cluster.patch(CONFIDENTIAL, "cluster", {"spec": {"pools": pools}}, PatchType.MERGE)

    async def shut() -> bool:
        return await world.answer(world.shows("plain-1"), "plain", NEW) == (403, "attestation-required")

    await until_so(shut)


async def test_a_config_that_was_taken_back_is_refused_at_once(world: World) -> None:
    await world.sent("plain-1", OLD, OLD)
    assert await world.answer(world.shows("plain-1"), "plain", NEW) == (403, "not-assigned")


async def test_certificates_of_other_authorities_and_of_another_time_are_refused(world: World) -> None:
    forged = [world.shows("plain-1", authority()), world.shows("plain-1", since=2 * DAY)]
    forged.append(
        (await doors_authority(world.cluster, ENTROPY, datetime.now(UTC))).lineage.issuing.issue_client(
            "system:node:plain-1", ["system:nodes"], HOUR, datetime.now(UTC)
        )
    )
    for credential in forged:
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            await world.get(credential, "plain", NEW)
    with pytest.raises(Unavailable):
        await world.configs_for(forged[0]).fetch(NEW)


async def test_an_authority_that_is_taken_out_or_comes_counts_without_a_restart(world: World) -> None:
    successor = authority("kubernetes, the next")
    world.authorities.append(successor.certificate)
    assert await world.answer(world.shows("plain-1", successor), "plain", NEW) == (200, NEW)
    world.authorities.remove(world.ca.certificate)
    # OpenSSL believes it still.
    assert await world.answer(world.shows("plain-1"), "plain", NEW) == (401, "bad-certificate")


async def test_other_clients_of_the_cluster_are_no_nodes(world: World) -> None:
    now = datetime.now(UTC)
    for name, groups in (("plain-1", ["system:nodes"]), ("system:node:plain-1", []), ("admin", ["system:masters"])):
        credential = world.ca.issue_client(name, groups, HOUR, now)
        assert await world.answer(credential, "plain", NEW) == (403, "wrong-credential")


async def test_without_a_certificate_there_is_nothing_and_a_ticket_is_for_the_first_boot_alone(world: World) -> None:
    assert await world.answer(None, "plain", NEW) == (401, "certificate-required")
    ticket = await world.ticket("plain")
    assert (await world.get(None, "plain", NEW, ticket)).json()["code"] == "wrong-credential"
    async with httpx.AsyncClient(verify=world.tls(None), timeout=20, trust_env=False) as client:
        assert (await client.get(f"{world.url}/config/plain", headers=ticket)).status_code == 200
    async with httpx.AsyncClient(verify=world.tls(world.shows("plain-1")), timeout=20, trust_env=False) as client:
        assert (await client.get(f"{world.url}/config/plain")).status_code == 401


async def test_the_node_of_a_machine_in_quarantine_gets_nothing(world: World) -> None:
    assert await world.answer(world.shows(NODE_OF_A_MACHINE), "host", HOST) == (200, HOST)
    await world.quarantine(NODE_OF_A_MACHINE)
    assert await world.answer(world.shows(NODE_OF_A_MACHINE), "host", HOST) == (403, "revoked")


async def published(cluster: Cluster, authorities: Sequence[Certificate]) -> None:
    bundle = b"".join(authority.pem for authority in authorities).decode()
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "data": {clientca.KEY: bundle}}
    body["metadata"] = {"name": clientca.NAME, "namespace": clientca.NAMESPACE}
    await cluster.create(clientca.MAPS, body)


async def test_the_authorities_are_those_that_the_api_server_publishes(embedded_server: Embedded) -> None:
    cluster, first, second = embedded_server.cluster, authority("one"), authority("two")
    async with Informers(cluster, clock=SystemClock(), entropy=ENTROPY) as informers:
        # An embedded API publishes its own from the beginning.
        await cluster.delete(clientca.MAPS, clientca.NAME, clientca.NAMESPACE)
        assert await ClientAuthorities.open(cluster, informers) is None
        await published(cluster, [first.certificate])
        authorities, cache = (
            await ClientAuthorities.open(cluster, informers),
            informers.of(clientca.MAPS, clientca.PLACE),
        )
        assert authorities is not None
        assert [issuer.fingerprint for issuer in authorities()] == [first.certificate.fingerprint]
        for bundle, expected in (("damaged", first), (second.certificate.pem.decode(), second)):
            patch = {"data": {clientca.KEY: bundle}}
            made = await cluster.patch(clientca.MAPS, clientca.NAME, patch, PatchType.MERGE, clientca.NAMESPACE)
            version = made["metadata"]["resourceVersion"]

            def heard(version: str = version) -> bool:
                published_map = cache.get(clientca.NAMESPACE, clientca.NAME) or {}
                return bool(published_map["metadata"]["resourceVersion"] == version)

            await until(heard)
            assert [issuer.fingerprint for issuer in authorities()] == [expected.certificate.fingerprint]
