"""Attested join: tokens, requests, certificates, impostors; on the embedded API and on a real Kubernetes, which must agree."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from fastness.agent.boot.node_certificates import CLIENT_FILE, SERVING_FILE, SERVING_KEY_FILE, NodeCertificates
from fastness.agent.boot.prove import BrokerRefused
from fastness.agent.boot.reattest import Staying
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.crypto.csr import make_request
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, Subject
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.loops.join_tokens import BINDING, BINDINGS
from fastness.keys.authorities import SECRETS
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.client.client import connect
from fastness.kube.client.connection import Connection
from fastness.kube.errors import AlreadyExists
from fastness.kube.events import EVENTS
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.protocol.node_certificates import CLIENT_SIGNER
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, until
from tests.contract.worlds import served
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.joining import (
    CSRS,
    JoiningSite,
    Place,
    certificate_of,
    client_request,
    csr,
    joining,
    name_of,
    new_key,
    outcome,
    serving_request,
)
from tests.realkube import RealKube

GROUPS = ("fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org")
HOUR = timedelta(hours=1)
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server that knows bootstrap tokens and signs, with our definitions."""
    with RealKube.start(
        tmp_path_factory.mktemp("join"), real_kube_binaries, unsafe_no_fsync=True,
        apiserver_flags=["--enable-bootstrap-token-auth=true"], signing=HOUR,
    ) as server:  # fmt: skip
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        definitions = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in definitions:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in definitions:
                for _ in range(600):
                    if served(admin, f"{path}/{manifest['metadata']['name']}"):
                        break
        yield server


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor(ENTROPY)


@pytest.fixture(params=["embedded", "real"])
async def site(request: pytest.FixtureRequest, vendor: SimVendor, tmp_path: Path) -> AsyncIterator[JoiningSite]:
    if request.param == "real":
        async with opened(Place.real(request.getfixturevalue("kube")), vendor) as opened_site:
            yield opened_site
        return
    async with (
        open_apiserver(ServerOptions(tmp_path / "state"), PRODUCT) as server,
        opened(Place.embedded(Embedded(server, tmp_path / "state")), vendor) as opened_site,
    ):
        yield opened_site


@asynccontextmanager
async def opened(place: Place, vendor: SimVendor, spec: JsonObject | None = None) -> AsyncIterator[JoiningSite]:
    """A site that knows the image and lets machines ask."""
    async with joining(place, vendor, spec) as opened_site:
        with suppress(AlreadyExists):
            await opened_site.world.approve("tpm")
        await until(lambda: _bound(opened_site))
        yield opened_site


async def _bound(site: JoiningSite) -> bool:
    """Whether holders of tokens may ask already."""
    return any(binding["metadata"]["name"] == BINDING for binding in (await site.world.cluster.list(BINDINGS)).items)


async def entries(site: JoiningSite, what: str) -> list[JsonObject]:
    batches = (await site.world.cluster.list(AUDIT_BATCH.resource)).items
    return [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == what]


async def addressed(node: httpx.AsyncClient, name: str, *addresses: str) -> None:
    """Register a Node and tell its addresses, as a kubelet does."""
    made = await node.post("/api/v1/nodes", json={"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    assert made.status_code == 201, made.text
    entries = [
        {"type": "Hostname", "address": name},
        *({"type": "InternalIP", "address": address} for address in addresses),
    ]
    patched = await node.patch(
        f"/api/v1/nodes/{name}/status", json={"status": {"addresses": entries}},
        headers={"content-type": "application/merge-patch+json"},
    )  # fmt: skip
    assert patched.status_code == 200, patched.text


async def joined(site: JoiningSite, machine: SimAttester, directory: Path) -> httpx.AsyncClient:
    """The API as the node that a machine became."""
    key = new_key()
    async with site.client(await site.token(machine, key)) as http:
        answer = await site.ask(http, client_request(key, await site.node(machine)))
    assert outcome(answer) == ("Approved", "Attested")
    return site.node_client(directory, key, certificate_of(answer))


async def test_an_attested_machine_becomes_its_node_and_no_other(site: JoiningSite, tmp_path: Path) -> None:
    machine, key = await site.attested(), new_key()
    node = await site.node(machine)
    async with site.client(await site.token(machine, key)) as http:
        assert (await http.get("/api/v1/namespaces/kube-system/secrets")).status_code == 403
        answer = await site.ask(http, client_request(key, node))
    assert outcome(answer) == ("Approved", "Attested")
    certificate = Certificate.from_pem(certificate_of(answer))
    assert certificate.subject.common_name == f"system:node:{node}"
    assert certificate.not_after - certificate.not_before <= HOUR + timedelta(minutes=5)
    async with site.node_client(tmp_path, key, certificate.pem) as kubelet:
        await addressed(kubelet, node, "10.0.0.7")
        other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "another"}}
        assert (await kubelet.post("/api/v1/nodes", json=other)).status_code == 403
        assert outcome(await site.ask(kubelet, client_request(new_key(), node))) == ("Denied", "KeyNotNamed")
        serving, renewed = new_key(), new_key()
        await site.named(machine, renewed, serving)
        served_by = await site.ask(kubelet, serving_request(serving, node, [node, "10.0.0.7"]))
        assert outcome(served_by) == ("Approved", "Attested")
        assert Certificate.from_pem(certificate_of(served_by)).hosts == (node, "10.0.0.7")
        again = await site.ask(kubelet, client_request(renewed, node))
        assert outcome(again) == ("Approved", "Attested")
    ends = rfc3339(Certificate.from_pem(certificate_of(again)).not_after)
    await until(lambda: _ends(site, machine, ends))
    joined_condition = condition(await site.world.machine_object(machine), "Joined")
    assert joined_condition is not None
    assert joined_condition["status"] == "True"
    mine = [entry for entry in await entries(site, "join") if entry["detail"]["node"] == node]
    assert len(mine) == 3
    assert {entry["who"] for entry in mine} == {machine.machine.thumbprint}
    assert all(entry["verdict"] for entry in mine)


async def _ends(site: JoiningSite, machine: SimAttester, when: str) -> bool:
    return bool((await site.world.machine_object(machine))["status"].get("credentialEnds") == when)


async def test_a_token_is_of_no_use_for_another_node_or_with_another_key(site: JoiningSite) -> None:
    machine, victim, key = await site.attested(), await site.attested(), new_key()
    own, theirs = await site.node(machine), await site.node(victim)
    async with site.client(await site.token(machine, key)) as http:
        assert outcome(await site.ask(http, client_request(key, theirs))) == ("Denied", "OtherNode")
        assert outcome(await site.ask(http, client_request(key, "control-plane-0"))) == ("Denied", "OtherNode")
        stolen = await site.ask(http, client_request(new_key(), own))
        assert outcome(stolen) == ("Denied", "OtherKey")
        assert not (stolen.get("status") or {}).get("certificate")
    refused = [entry["detail"]["reason"] for entry in await entries(site, "join-refused")]
    assert sorted(refused)[-3:] == ["OtherKey", "OtherNode", "OtherNode"]


async def test_the_broker_gives_a_token_to_its_own_machine_alone(site: JoiningSite) -> None:
    machine, victim, key = await site.attested(), await site.attested(), new_key()
    with pytest.raises(BrokerRefused) as refused:
        await site.token(machine, key, of=victim)
    assert (refused.value.status, refused.value.reason) == (403, "other-machine")
    changed_image = changed(default_image(), command_line="quiet init=/bin/sh")
    impostor = await site.world.enrolled("tpm", changed_image)
    with pytest.raises(BrokerRefused) as unproved:
        await site.token(impostor, key)
    assert unproved.value.status == 403
    uid = (await site.world.machine_object(machine))["metadata"]["uid"]
    async with site.world.broker(machine) as broker:
        await broker.attest()
        for query in ("", "key=", "key=sha256:00", f"key=sha512:{'0' * 128}"):
            with pytest.raises(BrokerRefused) as unnamed:
                await broker.resource(f"machine/{uid}/bootstrap-token", query)
            assert (unnamed.value.status, unnamed.value.reason) == (400, "bad-join-key")


async def test_a_machine_has_one_token_which_stays_the_same_until_its_key_changes(site: JoiningSite) -> None:
    machine, key = await site.attested(), new_key()
    released = await asyncio.gather(*(site.token(machine, key) for _ in range(5)))
    assert len(set(released)) == 1
    again = await site.token(machine, new_key())
    assert again.partition(".")[0] == released[0].partition(".")[0]
    async with site.client(released[0]) as old, site.client(again) as new:
        assert (await old.get(CSRS)).status_code == 401
        assert (await new.get(CSRS)).status_code == 200
    uid = (await site.world.machine_object(machine))["metadata"]["uid"]
    secrets = (await site.world.cluster.list(SECRETS, Scope(bootstrap.NAMESPACE))).items
    assert len([secret for secret in secrets if secret["metadata"]["annotations"].get(bootstrap.MACHINE) == uid]) == 1


async def test_a_request_waits_while_the_proof_is_not_live_and_passes_when_it_is_again(site: JoiningSite) -> None:
    machine, key = await site.attested(), new_key()
    token = await site.token(machine, key)
    name = (await site.world.machine_object(machine))["metadata"]["name"]
    refused = [{"type": "Attested", "status": "False", "reason": "Refused", "message": "x", "lastTransitionTime": NOW}]
    conditions_before = (await site.world.machine_object(machine))["status"]["conditions"]
    conditions = [*(entry for entry in conditions_before if entry["type"] != "Attested"), *refused]
    options = WriteOptions(subresource="status")
    patch = {"status": {"conditions": conditions}}
    await site.world.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, options)
    async with site.client(token) as http:
        made = await http.post(CSRS, json=client_request(key, await site.node(machine)))
    request = made.json()["metadata"]["name"]
    await until(lambda: _told(site, request, "WaitsRefused"))
    assert outcome(await site.settled(request, decided=False)) == ("", "")
    async with site.world.broker(machine) as broker:
        await broker.attest()
    assert outcome(await site.settled(request)) == ("Approved", "Attested")


async def _told(site: JoiningSite, about: str, reason: str) -> bool:
    events = (await site.world.cluster.list(EVENTS)).items
    return any(event["involvedObject"]["name"] == about and event["reason"] == reason for event in events)


async def test_a_machine_that_is_no_longer_trusted_loses_its_token_and_gets_no_certificate_again(
    site: JoiningSite, tmp_path: Path
) -> None:
    machine = await site.attested()
    kubelet = await joined(site, machine, tmp_path)
    token = await site.token(machine, new_key())
    name = (await site.world.machine_object(machine))["metadata"]["name"]
    await site.world.cluster.patch(
        MACHINE.resource, name, {"spec": {"approval": "Quarantined"}}, PatchType.MERGE, NAMESPACE
    )
    async with kubelet, site.client(token) as http:
        request = client_request(new_key(), await site.node(machine))
        if site.place.signer is None:
            assert outcome(await site.ask(kubelet, request)) == ("Denied", "Quarantined")
        else:
            # The embedded API asks our authorizer: a quarantined machine's credential does not even get to ask.
            assert (await kubelet.post(CSRS, json=request)).status_code == 403
        await until(lambda: _refused(http))
    with pytest.raises(BrokerRefused):
        await site.token(machine, new_key())


async def _refused(http: httpx.AsyncClient) -> bool:
    return (await http.get(CSRS)).status_code == 401


async def test_a_node_serves_under_its_own_names_only(site: JoiningSite, tmp_path: Path) -> None:
    machine, other = await site.attested(), await site.attested()
    node, theirs = await site.node(machine), await site.node(other)
    async with await joined(site, machine, tmp_path) as kubelet, await joined(site, other, tmp_path) as neighbour:
        await addressed(kubelet, node, "10.0.1.1", "10.0.1.2")
        await addressed(neighbour, theirs, "10.0.1.2")
        key = new_key()
        await site.named(machine, serving=key)
        for hosts, reason in (
            ([theirs], "ForeignNames"), (["kubernetes.default.svc"], "ForeignNames"), ([node, "127.0.0.1"], "ForeignNames"),
            ([node, "10.0.1.2"], "SharedAddresses"),
        ):  # fmt: skip
            request = serving_request(key, node, hosts)
            assert outcome(await site.ask(kubelet, request)) == ("Denied", reason), hosts
        assert outcome(await site.ask(kubelet, serving_request(key, node, [node, "10.0.1.1"])))[0] == "Approved"


async def test_the_agent_renews_the_certificates_of_its_node_with_keys_that_its_proof_names(
    site: JoiningSite, tmp_path: Path
) -> None:
    """Half of the first certificate's life is over; the kubelet serves with what it signed itself."""
    machine, first = await site.attested(), new_key()
    node, file = await site.node(machine), tmp_path / CLIENT_FILE
    async with site.client(await site.token(machine, first)) as http:
        answer = await site.ask(http, client_request(first, node))
    file.write_bytes(certificate_of(answer) + first.to_pem().reveal())
    async with site.node_client(tmp_path, first, certificate_of(answer)) as kubelet:
        await addressed(kubelet, node, "10.0.3.1", "127.0.0.1")

    def api() -> AbstractAsyncContextManager[Cluster]:
        pem = file.read_bytes()
        return connect(Connection(site.place.url, site.place.ca.read_bytes(), certificate=pem, key=SecretBytes(pem)))

    later = MovedClock()
    later.ahead = timedelta(minutes=40)
    certificates = NodeCertificates(tmp_path, api, later, ENTROPY)
    assert await certificates.new_keys()
    before = file.read_bytes()
    await certificates.renew()
    assert file.read_bytes() == before, "keys that no proof named get nothing"
    broker = f"https://127.0.0.1:{site.world.doors.broker.port}"
    staying = Staying(
        machine, lambda: broker, lambda: site.world.trust, site.world.clock, ENTROPY, certificates=certificates
    )
    assert 0 < await staying.round() <= staying.rounds.interval
    renewed, serving = (Certificate.from_pem((tmp_path / name).read_bytes()) for name in (CLIENT_FILE, SERVING_FILE))
    key = PrivateKey.from_pem(SecretBytes(file.read_bytes()[len(renewed.pem) :]))
    named = (await site.world.machine_object(machine))["status"]["nodeKeys"]
    assert name_of(key) == named["client"]["key"] != name_of(first)
    assert set(serving.hosts) == {node, "10.0.3.1"}
    assert serving.belongs_to(PrivateKey.from_pem(SecretBytes((tmp_path / SERVING_KEY_FILE).read_bytes())))
    names = (CLIENT_FILE, SERVING_FILE, SERVING_KEY_FILE)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {0o600}
    async with site.node_client(tmp_path, key, renewed.pem) as kubelet:
        assert (await kubelet.get(f"/api/v1/nodes/{node}")).status_code == 200
    assert not await NodeCertificates(tmp_path, api, site.world.clock, ENTROPY).new_keys(), "nothing is due now"


async def test_who_else_may_ask_gets_no_node_of_a_machine_and_other_nodes_are_left_to_others(site: JoiningSite) -> None:
    node = await site.node(await site.attested())
    async with site.admin() as admin:
        assert outcome(await site.ask(admin, client_request(new_key(), node))) == ("Denied", "NotTheMachine")
        made = await admin.post(CSRS, json=client_request(new_key(), "control-plane-0"))
        marker = await site.ask(admin, client_request(new_key(), node))
        assert outcome(marker)[0] == "Denied"
        assert outcome(await site.settled(made.json()["metadata"]["name"], decided=False)) == ("", "")


async def test_an_approval_does_not_make_a_bad_request_good(site: JoiningSite) -> None:
    pem = make_request(new_key(), Subject("admin", ("system:masters",)))
    request = csr(pem, CLIENT_SIGNER, ("digital signature", "client auth"))
    async with site.admin() as admin:
        made = (await admin.post(CSRS, json=request)).json()
        approved = {"type": "Approved", "status": "True", "reason": "ByHand", "message": "by mistake"}
        put = await admin.put(
            f"{CSRS}/{made['metadata']['name']}/approval", json={**made, "status": {"conditions": [approved]}}
        )
        assert put.status_code == 200, put.text
        await until(lambda: _failed(site, made["metadata"]["name"]))
    answer = await site.settled(made["metadata"]["name"], decided=False)
    assert not answer["status"].get("certificate")


async def _failed(site: JoiningSite, name: str) -> bool:
    failure = condition(await site.settled(name, decided=False), "Failed")
    return failure is not None and failure["reason"] == "SignerValidationFailure"


async def test_with_mode_audit_nothing_is_denied_and_what_would_be_is_told(tmp_path: Path, vendor: SimVendor) -> None:
    async with open_apiserver(ServerOptions(tmp_path / "state"), PRODUCT) as server:
        place = Place.embedded(Embedded(server, tmp_path / "state"))
        async with opened(place, vendor, {"mode": "Audit", "simulated": True}) as site:
            machine = await site.attested()
            async with site.admin() as admin:
                made = await admin.post(CSRS, json=client_request(new_key(), await site.node(machine)))
            name = made.json()["metadata"]["name"]
            await until(lambda: _told(site, name, "WouldDenyNotTheMachine"))
            assert outcome(await site.settled(name, decided=False)) == ("", "")
            key = new_key()
            async with site.client(await site.token(machine, key)) as http:
                assert outcome(await site.ask(http, client_request(key, await site.node(machine))))[0] == "Approved"
