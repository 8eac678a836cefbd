"""What the credential of a node is worth without the proof of its machine: whose keys get certificates, over the API itself.

The attacker has what lies on the node's disk: its client key and certificate, and whatever the machine was given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.crypto.keys import PrivateKey
from fastness.enrolment.loops.join_tokens import BINDING, BINDINGS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.protocol import kbs
from fastness.protocol.node_keys import KEY_REUSED, NamedKeys
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, changed, default_image
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, until
from tests.embedded.fixtures import Embedded
from tests.joining import (
    CSRS,
    JoiningSite,
    Place,
    certificate_of,
    client_request,
    joining,
    name_of,
    new_key,
    outcome,
    serving_request,
)

NODES = "/api/v1/nodes"
CONFIGS = "/apis/machineconfiguration.openshift.io/v1/machineconfigs"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JoiningSite]:
    state = tmp_path_factory.mktemp("node-keys")
    async with (
        open_apiserver(ServerOptions(state), PRODUCT) as server,
        joining(Place.embedded(Embedded(server, state)), SimVendor(ENTROPY)) as joining_site,
    ):
        for tee in ("tpm", "snp"):
            with suppress(AlreadyExists):
                await joining_site.world.approve(tee)
        await until(lambda: _may_ask(joining_site))
        yield joining_site


async def _may_ask(site: JoiningSite) -> bool:
    return any(binding["metadata"]["name"] == BINDING for binding in (await site.world.cluster.list(BINDINGS)).items)


async def joined(
    site: JoiningSite, directory: Path, tee: str = "tpm"
) -> tuple[SimAttester, PrivateKey, httpx.AsyncClient]:
    """A machine that became a node: the machine, the key of its node, and the API with that credential."""
    machine, key = await site.attested(tee), new_key()
    async with site.client(await site.token(machine, key)) as http:
        answer = await site.ask(http, client_request(key, await site.node(machine)))
    assert outcome(answer) == ("Approved", "Attested")
    return machine, key, site.node_client(directory, key, certificate_of(answer))


def rebooted(machine: SimAttester, image: BootImage) -> SimAttester:
    """The same machine, with its identity, after its host had it boot another image."""
    chip: Any = machine.machine.chip  # type: ignore[attr-defined]
    return SimAttester(chip.boot(image, **({} if machine.tee == "tpm" else {"guest": 0})))


async def recorded(site: JoiningSite, what: str, **detail: str) -> bool:
    batches = (await site.world.cluster.list(AUDIT_BATCH.resource)).items
    entries = [entry for batch in batches for entry in batch["spec"]["entries"] if entry["what"] == what]
    return any(detail.items() <= entry["detail"].items() for entry in entries)


async def event_exists(site: JoiningSite, about: str, reason: str) -> bool:
    events = (await site.world.cluster.list(EVENTS)).items
    return any(event["involvedObject"]["name"] == about and event["reason"] == reason for event in events)


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_a_tampered_machine_with_the_credential_of_its_node_renews_nothing(
    site: JoiningSite, tmp_path: Path, tee: str
) -> None:
    """It booted another command line; the proof of before still counts for a while, and its disk holds the credential."""
    machine, _, kubelet = await joined(site, tmp_path, tee)
    node, fresh, serving = await site.node(machine), new_key(), new_key()
    async with kubelet:
        made = await kubelet.post(NODES, json={"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
        assert made.status_code == 201, made.text
        for request in (client_request(fresh, node), serving_request(serving, node, [node])):
            denied = await site.ask(kubelet, request)
            assert outcome(denied) == ("Denied", "KeyNotNamed")
            assert await recorded(site, "join-refused", reason="KeyNotNamed", csr=denied["metadata"]["name"])
            await until(partial(event_exists, site, denied["metadata"]["name"], "DeniedKeyNotNamed"))
        tampered = rebooted(machine, changed(default_image(), command_line="quiet init=/bin/sh"))
        with pytest.raises(BrokerRefused):
            await site.named(tampered, fresh, serving)
        assert outcome(await site.ask(kubelet, client_request(fresh, node))) == ("Denied", "KeyNotNamed")
    keys = (await site.world.machine_object(machine))["status"]["nodeKeys"]
    assert name_of(fresh) not in str(keys)


async def test_a_certificate_that_was_joined_with_reads_nothing_secret_while_its_machine_is_not_proved(
    site: JoiningSite, tmp_path: Path
) -> None:
    """The credential is the one that the machine joined with: named in its proof, approved, signed."""
    machine, _, kubelet = await joined(site, tmp_path, "snp")
    node, cluster = await site.node(machine), site.world.cluster
    path, config = f"/api/v1/namespaces/default/secrets/{node}", f"{CONFIGS}/rendered-worker-{'c' * 32}"
    async with kubelet, site.admin() as admin:
        made = await kubelet.post(NODES, json={"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
        assert made.status_code == 201, made.text
        await _give_secret(admin, node)

        async def reads() -> tuple[int, int]:
            return (await kubelet.get(path)).status_code, (await kubelet.get(config)).status_code

        assert (await reads())[0] == 200
        with pytest.raises(BrokerRefused):
            await site.named(rebooted(machine, changed(default_image(), command_line="quiet init=/bin/sh")))
        assert await reads() == (403, 403)
        await site.named(rebooted(machine, default_image()))
        assert (await reads())[0] == 200
        name = (await site.world.machine_object(machine))["metadata"]["name"]
        patch = {"spec": {"approval": "Quarantined"}}
        await cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
        assert await reads() == (403, 403)


async def _give_secret(admin: httpx.AsyncClient, node: str) -> None:
    """A pod on a node, with a Secret of the node's name."""
    meta = {"name": node, "namespace": "default"}
    spec: JsonObject = {
        "nodeName": node, "containers": [{"name": "a", "image": "b"}],
        "volumes": [{"name": "v", "secret": {"secretName": node}}],
    }  # fmt: skip
    for kind, more in (("Secret", {}), ("Pod", {"spec": spec})):
        body = {"apiVersion": "v1", "kind": kind, "metadata": meta, **more}
        made = await admin.post(f"/api/v1/namespaces/default/{kind.lower()}s", json=body)
        assert made.status_code == 201, made.text


async def test_who_stole_a_machines_token_names_no_key_with_it(site: JoiningSite) -> None:
    """A token alone opens the broker: the thief asks for a bootstrap token that is for a key of its own."""
    machine, thiefs = await site.attested(), new_key()
    uid = (await site.world.machine_object(machine))["metadata"]["uid"]
    async with site.world.broker(machine) as broker:
        await broker.attest()
        token = (await broker.resource(f"machine/{uid}/bootstrap-token", f"key={name_of(thiefs)}")).reveal().decode()
    async with site.client(token) as http:
        answer = await site.ask(http, client_request(thiefs, await site.node(machine)))
    assert outcome(answer) == ("Denied", "KeyNotNamed")


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_whoever_stands_between_machine_and_broker_names_no_other_key(
    site: JoiningSite, monkeypatch: pytest.MonkeyPatch, tee: str
) -> None:
    machine, own, theirs = await site.attested(tee), name_of(new_key()), name_of(new_key())
    honest = kbs.attestation_message

    def changed_on_the_way(answer: kbs.KbsAttestation) -> bytes:
        return honest(answer).replace(own.encode(), theirs.encode())

    monkeypatch.setattr(kbs, "attestation_message", changed_on_the_way)
    async with site.world.broker(machine) as broker:
        with pytest.raises(BrokerRefused):
            await broker.attest(keys=NamedKeys(client=own))
    assert "nodeKeys" not in (await site.world.machine_object(machine))["status"]


async def test_a_named_key_gets_one_certificate_and_a_renewal_rests_on_a_proof_of_its_own(
    site: JoiningSite, tmp_path: Path
) -> None:
    machine, key, kubelet = await joined(site, tmp_path)
    node, renewed = await site.node(machine), new_key()
    async with kubelet:
        await until(lambda: _refuses(site, kubelet, client_request(key, node)))
        await site.named(machine, renewed)
        assert outcome(await site.ask(kubelet, client_request(renewed, node))) == ("Approved", "Attested")


async def _refuses(site: JoiningSite, http: httpx.AsyncClient, request: JsonObject) -> bool:
    """Whether the approver has heard of the certificate that the key has already."""
    return outcome(await site.ask(http, request)) == ("Denied", "KeyUsed")


async def test_a_replaced_key_that_asks_again_is_denied_and_an_alarm(site: JoiningSite, tmp_path: Path) -> None:
    """A thief copied the disk before the last renewal, and comes with what was on it."""
    machine, stolen, kubelet = await joined(site, tmp_path)
    node, name = await site.node(machine), (await site.world.machine_object(machine))["metadata"]["name"]
    await site.named(machine, new_key())
    await until(lambda: _a_second_later(site, machine))
    async with kubelet:
        denied = await site.ask(kubelet, client_request(stolen, node))
    assert outcome(denied) == ("Denied", "ReplacedKey")
    alarm = condition(await site.world.machine_object(machine), KEY_REUSED)
    assert alarm is not None
    assert (alarm["status"], alarm["reason"]) == ("True", "ReplacedKeyUsed")
    assert name_of(stolen) in alarm["message"]
    assert await recorded(site, "key-reused", key=name_of(stolen), csr=denied["metadata"]["name"])
    await until(lambda: event_exists(site, name, KEY_REUSED))


async def _a_second_later(site: JoiningSite, machine: SimAttester) -> bool:
    """Whether the API writes a later second than that of the naming: times of objects have no fractions."""
    named = (await site.world.machine_object(machine))["status"]["nodeKeys"]["client"]["named"]
    async with site.admin() as admin:
        made = (await admin.post(CSRS, json=client_request(new_key(), "nobody"))).json()
    return bool(made["metadata"]["creationTimestamp"] > named)


async def test_a_session_that_names_a_replaced_key_is_an_alarm_and_does_not_bring_it_back(
    site: JoiningSite, tmp_path: Path
) -> None:
    """The host started a copy of the machine's older disk in its place: everything measured is as it should be."""
    machine, old, kubelet = await joined(site, tmp_path)
    await kubelet.aclose()
    current = new_key()
    await site.named(machine, current)
    await site.named(machine, old)
    stored = await site.world.machine_object(machine)
    assert stored["status"]["nodeKeys"]["client"]["key"] == name_of(current)
    alarm = condition(stored, KEY_REUSED)
    assert alarm is not None
    assert alarm["status"] == "True"
    assert await recorded(site, "key-reused", **{"client-key": name_of(old)})
    await until(lambda: event_exists(site, stored["metadata"]["name"], KEY_REUSED))


async def test_names_that_cannot_be_understood_are_refused(site: JoiningSite) -> None:
    machine = await site.attested()
    for names in (NamedKeys(client="sha256:00"), NamedKeys(serving="sha512:" + "0" * 128)):
        async with BrokerClient(
            f"https://127.0.0.1:{site.world.doors.broker.port}", site.world.trust, machine, ENTROPY
        ) as broker:
            with pytest.raises(BrokerRefused) as refused:
                await broker.attest(keys=names)
        assert refused.value.reason == "node-keys-unreadable"
