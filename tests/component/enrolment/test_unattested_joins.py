"""Joining without a proof: what a ticket gives, and everything that somebody with a ticket, a token or a node may try.

On the embedded API and on a real Kubernetes, which must agree; everything goes over the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.crypto.x509 import Certificate
from fastness.enrolment.live import pool_tokens as tokens
from fastness.enrolment.live.bootstrap_tokens import NAMESPACE as PUBLIC
from fastness.enrolment.live.bootstrap_tokens import encoded
from fastness.enrolment.live.joined_nodes import CONFIG_MAPS, JOINED, record_name
from fastness.enrolment.loops import pool_tokens
from fastness.enrolment.unattested import LIFETIME, POOL_GROUP
from fastness.keys.authorities import SECRETS
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.kubernetes.rbac import CLUSTER_ROLE_BINDING
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.objects import annotations_of, labels_of, rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS
from fastness.kube.places import POOL_JOINS
from fastness.kube.port import PatchType, Scope, WriteOptions
from fastness.machineconfig.serving import KUBECONFIG_FILE
from tests.attesting import until
from tests.contract.worlds import served
from tests.embedded.fixtures import Embedded
from tests.joining import CSRS, Place, certificate_of, client_request, new_key, outcome, serving_request
from tests.realkube import RealKube
from tests.unattested import RENDERED, PoolSite, cluster_spec, pool_site

GROUPS = (
    "fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org", "machineconfiguration.openshift.io",
)  # fmt: skip
pytestmark = pytest.mark.asyncio(loop_scope="module")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server that knows bootstrap tokens and signs, with our definitions."""
    with RealKube.start(
        tmp_path_factory.mktemp("pools"), real_kube_binaries, unsafe_no_fsync=True,
        apiserver_flags=["--enable-bootstrap-token-auth=true"], signing=timedelta(hours=1),
    ) as server:  # fmt: skip
        ours = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in ours:
                assert admin.post(DEFINITIONS, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in ours:
                for _ in range(600):
                    if served(admin, f"{DEFINITIONS}/{manifest['metadata']['name']}"):
                        break
        yield server


@pytest_asyncio.fixture(params=["embedded", "real"], scope="module", loop_scope="module")
async def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PoolSite]:
    """One cluster for all: each test has names, and where it changes a pool, a pool of its own."""
    if request.param == "real":
        async with pool_site(Place.real(request.getfixturevalue("kube"))) as opened:
            yield opened
        return
    state = tmp_path_factory.mktemp("embedded") / "state"
    async with (
        open_apiserver(ServerOptions(state), PRODUCT) as server,
        pool_site(Place.embedded(Embedded(server, state))) as opened,
    ):
        yield opened


async def ask(site: PoolSite, token: str, request: JsonObject) -> JsonObject:
    """A request with a token, when it is decided."""
    async with site.joining.client(token) as http:
        return await site.joining.ask(http, request)


@asynccontextmanager
async def join(site: PoolSite, directory: Path, node: str, pool: str = "plain") -> AsyncIterator[httpx.AsyncClient]:
    """A machine that boots, gets its certificate and registers; the API as that node."""
    boot, key = await site.booted(pool), new_key()
    request = await ask(site, boot.token, client_request(key, node))
    assert outcome(request)[0] == "Approved", request["status"]
    async with site.joining.node_client(directory, key, certificate_of(request)) as http:
        await site.register(http, node, f"10.9.{len(node)}.{sum(node.encode()) % 250}")
        yield http


async def events_about(site: PoolSite, name: str) -> set[str]:
    return {
        event["reason"] for event in (await site.cluster.list(EVENTS)).items if event["involvedObject"]["name"] == name
    }


async def has_event(site: PoolSite, name: str, reason: str) -> bool:
    return reason in await events_about(site, name)


async def is_gone(site: PoolSite, token: str) -> bool:
    try:
        await site.cluster.get(SECRETS, f"bootstrap-token-{token.partition('.')[0]}", PUBLIC)
    except NotFound:
        return True
    return False


async def test_a_machine_boots_with_a_ticket_gets_its_certificate_registers_and_is_labelled(
    site: PoolSite, tmp_path: Path
) -> None:
    boot, key, node = await site.booted("plain"), new_key(), "first-plain"
    assert boot.entry["mode"] == 0o600
    assert boot.kubeconfig["clusters"][0]["cluster"]["server"] == site.joining.place.url
    request = await ask(site, boot.token, client_request(key, node))
    assert outcome(request) == ("Approved", "NotAttested")
    (entry,) = [entry for entry in await site.entries("join") if entry["detail"]["node"] == node]
    assert (entry["detail"]["pool"], entry["detail"]["basis"]) == ("plain", "not-attested")
    async with site.joining.node_client(tmp_path, key, certificate_of(request)) as http:
        # Whatever it says about itself: the pool is that of its token.
        claims = {names.FIRST_PIVOT_CONFIG: f"rendered-other-{RENDERED}"}
        await site.register(http, node, "10.9.1.1", **claims)
        await until(lambda: _is_labelled(site, node, "plain"))
        assert f"{names.NODE_ROLE_PREFIX}other" not in labels_of(await site.node_object(node))
        serving = await site.joining.ask(http, serving_request(new_key(), node, [node, "10.9.1.1"]))
        assert outcome(serving) == ("Approved", "NotAttested")
        renewal = await site.joining.ask(http, client_request(new_key(), node))
        assert outcome(renewal) == ("Approved", "NotAttested")
    await until(lambda: is_gone(site, boot.token))
    assert await opens_nothing(site, boot.token)


async def opens_nothing(site: PoolSite, token: str) -> bool:
    """Whether a token is worth nothing: the API server does not know it, or, while its cache does, the request is denied."""
    async with site.joining.client(token) as thief:
        made = await thief.post(CSRS, json=client_request(new_key(), "too-late"))
        if made.status_code == 401:
            return True
        return outcome(await site.joining.settled(made.json()["metadata"]["name"]))[0] == "Denied"


async def _is_labelled(site: PoolSite, node: str, pool: str) -> bool:
    return f"{names.NODE_ROLE_PREFIX}{pool}" in labels_of(await site.node_object(node))


async def test_a_token_may_do_nothing_but_ask_for_a_certificate(site: PoolSite) -> None:
    boot = await site.booted("host")
    async with site.joining.client(boot.token) as http:
        for path in ("/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets", "/api/v1/namespaces/default/pods"):
            assert (await http.get(path)).status_code == 403, path
        assert (await http.post("/api/v1/nodes", json={"metadata": {"name": "n"}})).status_code == 403
    binding = await site.cluster.get(CLUSTER_ROLE_BINDING.resource, pool_tokens.BINDING)
    assert binding["roleRef"]["name"] == "system:node-bootstrapper"
    assert [subject["name"] for subject in binding["subjects"]] == [POOL_GROUP]


async def test_each_boot_gets_a_token_of_its_own_and_head_gets_none(site: PoolSite) -> None:
    ticket = await site.ticket("counted")
    head = await site.asked("counted", ticket, "HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert not await tokens_of(site, "counted")
    first, second = await site.booted("counted", ticket), await site.booted("counted", ticket)
    assert first.token != second.token
    full = await site.asked("counted", ticket)
    assert full.headers["content-length"] == head.headers["content-length"]
    async with site.machine() as http:
        headers = {"authorization": f"Bearer {ticket}", "if-none-match": full.headers["etag"]}
        assert (await http.get("/config/counted", headers=headers)).status_code == 304
    assert len(await tokens_of(site, "counted")) == 3


async def tokens_of(site: PoolSite, pool: str) -> list[JsonObject]:
    """The published tokens of a pool."""
    published = (await site.cluster.list(SECRETS, pool_tokens.PUBLISHED_TOKENS)).items
    return [secret for secret in published if annotations_of(secret)[tokens.POOL] == pool]


async def test_no_machine_config_holds_a_token_and_no_attested_pool_gets_one(site: PoolSite) -> None:
    await site.booted("plain")
    configs = (await site.cluster.list(MACHINE_CONFIG.resource)).items
    assert KUBECONFIG_FILE not in str(configs)
    answer = await site.asked("secret", await site.ticket("secret"))
    assert (answer.status_code, answer.json()["code"]) == (403, "attestation-required")


async def test_a_second_node_with_the_same_token_is_refused_recorded_and_told(site: PoolSite) -> None:
    boot, key = await site.booted("plain"), new_key()
    assert outcome(await ask(site, boot.token, client_request(key, "twice-a")))[0] == "Approved"
    second = await ask(site, boot.token, client_request(key, "twice-b"))
    assert outcome(second) == ("Denied", "TokenSpent"), "the key of the first does not help either"
    stolen = await ask(site, boot.token, client_request(new_key(), "twice-a"))
    assert outcome(stolen) == ("Denied", "TokenSpent"), "nor the name of the first with another key"
    again = await ask(site, boot.token, client_request(key, "twice-a"))
    assert outcome(again)[0] == "Approved", "a kubelet that was interrupted asks again with its key"
    refused = [entry["detail"] for entry in await site.entries("join-refused")]
    assert {"twice-b"} <= {detail["node"] for detail in refused if detail["reason"] == "TokenSpent"}
    await until(lambda: has_event(site, "plain", "BootstrapTokenMisused"))
    await until(lambda: has_event(site, second["metadata"]["name"], "DeniedTokenSpent"))


async def test_of_two_requests_at_once_with_one_token_one_is_approved(site: PoolSite) -> None:
    boot = await site.booted("plain")
    requests = [client_request(new_key(), f"race-{number}") for number in range(6)]
    answers = await asyncio.gather(*(ask(site, boot.token, request) for request in requests))
    assert sorted(outcome(answer)[0] for answer in answers) == ["Approved", *["Denied"] * 5]


async def test_of_two_tokens_for_one_name_at_once_one_is_approved(site: PoolSite) -> None:
    boots = [await site.booted("plain") for _ in range(4)]
    answers = await asyncio.gather(*(ask(site, boot.token, client_request(new_key(), "one-name")) for boot in boots))
    assert sorted(outcome(answer)[0] for answer in answers) == ["Approved", "Denied", "Denied", "Denied"]


async def test_the_name_of_a_node_of_a_machine_or_of_another_token_is_refused(site: PoolSite, tmp_path: Path) -> None:
    async with join(site, tmp_path, "taken-by-node"):
        pass
    machine = "plain-" + "a1" * 10
    await _machine_with_node(site, "machine-of-worker", "named-by-enrolment")
    held = await site.booted("plain")
    assert outcome(await ask(site, held.token, client_request(new_key(), "held-by-token")))[0] == "Approved"
    foreign = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "of-somebody-else"}}
    await site.cluster.create(NODE.resource, foreign)
    boot, key = await site.booted("plain"), new_key()
    for node, reason in {
        "taken-by-node": "NameTaken", "held-by-token": "NameTaken", "of-somebody-else": "NameTaken",
        "named-by-enrolment": "NameOfMachine", machine: "NameOfMachine", "Not_A.Name": "BadSubject",
    }.items():  # fmt: skip
        denied = await ask(site, boot.token, client_request(key, node))
        assert outcome(denied)[0] == "Denied", node
        # The loop of machines that attest may be the first to say no.
        assert outcome(denied)[1] in (reason, "NotTheMachine"), node
    good = await ask(site, boot.token, client_request(key, "free-after-all"))
    assert outcome(good)[0] == "Approved", "a name that was taken does not use the token up"


async def _machine_with_node(site: PoolSite, name: str, node: str) -> None:
    body = {
        "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"id": "00000000-0000-0000-0000-000000000001"},
    }  # fmt: skip
    await site.cluster.create(MACHINE.resource, body)
    status = {"status": {"nodeName": node, "pool": "secret"}}
    options = WriteOptions(subresource="status")
    await site.cluster.patch(MACHINE.resource, name, status, PatchType.MERGE, NAMESPACE, options)
    machines = site.joining.world.informers.of(MACHINE.resource)

    async def is_cached() -> bool:
        machine = machines.get(NAMESPACE, name) or {}
        return bool((machine.get("status") or {}).get("nodeName"))

    await until(is_cached)


async def test_a_node_renews_for_itself_and_for_no_other(site: PoolSite, tmp_path: Path) -> None:
    async with join(site, tmp_path, "self-a") as first, join(site, tmp_path, "self-bb") as second:
        for node in ("self-a", "nobody-yet"):
            made = await second.post(CSRS, json=client_request(new_key(), node))
            if made.status_code != 403:  # Kubernetes' own admission says so first
                denied = await site.joining.settled(made.json()["metadata"]["name"])
                assert outcome(denied) == ("Denied", "NotTheNode"), node
        assert outcome(await site.joining.ask(first, client_request(new_key(), "self-a")))[0] == "Approved"
        boot = await site.booted("plain")
        serving = await ask(site, boot.token, serving_request(new_key(), "self-a", ["self-a"]))
        assert outcome(serving) == ("Denied", "NotTheNode"), "a token serves nothing"


async def test_a_serving_certificate_speaks_for_what_the_node_shows_and_no_other_node(
    site: PoolSite, tmp_path: Path
) -> None:
    async with join(site, tmp_path, "serves-a") as first, join(site, tmp_path, "serves-bb") as second:
        theirs = (await site.node_object("serves-a"))["status"]["addresses"][0]["address"]
        for host in ("serves-a", "kubernetes.default", "127.0.0.1"):
            denied = await site.joining.ask(second, serving_request(new_key(), "serves-bb", ["serves-bb", host]))
            assert outcome(denied) == ("Denied", "ForeignNames"), host
        patch = {"status": {"addresses": [{"type": "InternalIP", "address": theirs}]}}
        headers = {"content-type": "application/merge-patch+json"}
        assert (await second.patch("/api/v1/nodes/serves-bb/status", json=patch, headers=headers)).status_code == 200
        await until(lambda: _shows(site, "serves-bb", theirs))
        shared = await site.joining.ask(second, serving_request(new_key(), "serves-bb", ["serves-bb", theirs]))
        assert outcome(shared) == ("Denied", "SharedAddresses")
        both = await site.joining.ask(first, serving_request(new_key(), "serves-a", ["serves-a", theirs]))
        assert outcome(both) == ("Denied", "SharedAddresses"), "nobody's, while two show it"


async def _shows(site: PoolSite, node: str, address: str) -> bool:
    cached = site.joining.world.informers.of(NODE.resource).get("", node) or {}
    return any(entry["address"] == address for entry in (cached.get("status") or {}).get("addresses") or ())


async def test_renewals_end_when_the_pool_begins_to_attest_and_its_tokens_are_taken_back(
    site: PoolSite, tmp_path: Path
) -> None:
    spare = await site.booted("turning")
    async with join(site, tmp_path, "later-attested", "turning") as node:
        await _set_models(site, turning="ConfidentialCluster")
        denied = await site.joining.ask(node, client_request(new_key(), "later-attested"))
        assert outcome(denied) == ("Denied", "PoolAttests")
        await until(lambda: is_gone(site, spare.token))
        assert await opens_nothing(site, spare.token)
        assert (await site.asked("turning", await site.ticket("turning"))).status_code == 403


async def test_a_node_that_was_moved_to_an_attested_pool_is_not_renewed(site: PoolSite, tmp_path: Path) -> None:
    async with join(site, tmp_path, "moved-node") as node:
        patch = {"metadata": {"labels": {f"{names.NODE_ROLE_PREFIX}secret": ""}}}
        await site.cluster.patch(NODE.resource, "moved-node", patch, PatchType.MERGE)
        denied = await site.joining.ask(node, client_request(new_key(), "moved-node"))
        assert outcome(denied) == ("Denied", "PoolAttests")


async def _set_models(site: PoolSite, **models: str) -> None:
    patch = {"spec": {"pools": cluster_spec(**models)["pools"]}}
    await site.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)


async def test_a_node_that_was_deleted_is_a_stranger_and_its_name_is_free(site: PoolSite, tmp_path: Path) -> None:
    async with join(site, tmp_path, "deleted-node") as node:
        await until(lambda: _is_noted(site, "deleted-node"))
        await site.cluster.delete(NODE.resource, "deleted-node")
        await until(lambda: _is_forgotten(site, "deleted-node"))
        await site.register(node, "deleted-node", "10.9.7.7")
        made = await node.post(CSRS, json=client_request(new_key(), "deleted-node"))
        open_request = await site.joining.settled(made.json()["metadata"]["name"], decided=False)
        assert outcome(open_request) == ("", ""), "left to others: nobody of ours approves it"
        await site.cluster.delete(NODE.resource, "deleted-node")
        async with join(site, tmp_path, "deleted-node"):
            pass


async def _is_noted(site: PoolSite, node: str) -> bool:
    record = await site.cluster.get(CONFIG_MAPS, record_name(node), NAMESPACE)
    return bool(record["data"]["uid"])


async def _is_forgotten(site: PoolSite, node: str) -> bool:
    return record_name(node) not in {
        record["metadata"]["name"] for record in (await site.cluster.list(CONFIG_MAPS, JOINED)).items
    }


async def test_a_name_that_got_a_certificate_and_never_came_is_held_until_that_ends(site: PoolSite) -> None:
    boot = await site.booted("plain")
    request = await ask(site, boot.token, client_request(new_key(), "never-came"))
    assert outcome(request)[0] == "Approved"
    await until(lambda: _ends_with(site, "never-came", certificate_of(request)))
    other = await site.booted("plain")
    denied = await ask(site, other.token, client_request(new_key(), "never-came"))
    assert outcome(denied) == ("Denied", "NameTaken")


async def _ends_with(site: PoolSite, node: str, pem: bytes) -> bool:
    record = await site.cluster.get(CONFIG_MAPS, record_name(node), NAMESPACE)
    return str(record["data"]["ends"]) >= rfc3339(Certificate.from_pem(pem).not_after)


async def test_a_stolen_ticket_gets_so_many_tokens_and_deleting_it_takes_them_back(
    site: PoolSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_tokens, "MOST_UNUSED", 5)
    ticket = await site.ticket("capped")
    boots = [await site.booted("capped", ticket) for _ in range(5)]
    await until(lambda: _are_cached(site, 5))
    refused = await site.asked("capped", ticket)
    assert (refused.status_code, refused.json()["code"]) == (503, "token-contended")
    assert "retry-after" in refused.headers, "a machine of ours waits and comes again"
    await until(lambda: has_event(site, "capped", "TooManyBootstrapTokens"))
    assert (await site.asked("other", await site.ticket("other"))).status_code == 200, "other pools go on"
    assert outcome(await ask(site, boots[0].token, client_request(new_key(), "used-one")))[0] == "Approved"
    await until(lambda: _are_cached(site, 4))
    assert (await site.asked("capped", ticket)).status_code == 200, "one that was used makes room"
    tickets = (await site.cluster.list(JOIN_TICKET.resource)).items
    (stolen,) = (each for each in tickets if each["spec"]["pool"] == "capped")
    assert stolen["status"]["used"] == 1, "a use is a node"
    await site.cluster.delete(JOIN_TICKET.resource, stolen["metadata"]["name"])
    for boot in boots[1:]:
        await until(lambda token=boot.token: is_gone(site, token))  # type: ignore[misc]
    assert await opens_nothing(site, boots[1].token)


async def _are_cached(site: PoolSite, count: int) -> bool:
    cache = site.joining.world.informers.of(SECRETS, pool_tokens.PUBLISHED_TOKENS)
    return len(cache.by_index(pool_tokens.BY_POOL, "capped")) == count


async def test_a_token_ends_after_an_hour(site: PoolSite) -> None:
    boot = await site.booted("plain")
    async with site.joining.client(boot.token) as http:
        site.joining.world.clock.ahead = LIFETIME + timedelta(seconds=1)
        try:
            denied = await site.joining.ask(http, client_request(new_key(), "after-an-hour"))
        finally:
            site.joining.world.clock.ahead = timedelta()
    assert outcome(denied) == ("Denied", "TokenEnded"), "though the API server's own clock would still take it"


async def test_what_a_taken_over_config_server_asks_for_gives_nothing_but_a_token_of_such_a_pool(
    site: PoolSite,
) -> None:
    """It may create Secrets in its namespace: whatever it writes there becomes no token of a pool that attests."""
    await site.ticket("plain")
    ticket = next(
        entry for entry in (await site.cluster.list(JOIN_TICKET.resource)).items if entry["spec"]["pool"] == "plain"
    )
    soon = rfc3339(site.joining.world.clock.now() + timedelta(minutes=30))
    late = rfc3339(site.joining.world.clock.now() + timedelta(days=30))
    good = {"fastness.dev/pool": "plain", "fastness.dev/ticket-name": ticket["metadata"]["name"]}
    attempts = {
        "aaaaa1": ({**good, "fastness.dev/pool": "secret"}, soon, {}),
        "aaaaa2": ({**good, "fastness.dev/pool": "other"}, soon, {}),
        "aaaaa3": (good, late, {}),
        "aaaaa4": ({**good, "fastness.dev/ticket-name": "no-such"}, soon, {}),
        "aaaaa5": ({**good, "fastness.dev/ticket-name": ""}, soon, {}),
        "aaaaa6": (good, soon, {"auth-extra-groups": "system:bootstrappers:fastness"}),
        "aaaaa7": ({**good, "fastness.dev/node": "forged", "fastness.dev/join-key": "forged"}, soon, {}),
    }
    for identity, (notes, expires, further) in attempts.items():
        data = {"token-id": identity, "token-secret": "b" * 16, "expiration": expires, **further}
        meta = {
            "name": f"ask-{identity}", "namespace": POOL_JOINS, "labels": {"fastness.dev/pool-token": "true"},
            "annotations": notes,
        }  # fmt: skip
        body = {
            "apiVersion": "v1", "kind": "Secret", "type": "fastness.dev/pool-token", "metadata": meta, "data": encoded(data),
        }  # fmt: skip
        await site.cluster.create(SECRETS, body)
    await until(lambda: _all_answered(site))
    published = (await site.cluster.list(SECRETS, pool_tokens.PUBLISHED_TOKENS)).items
    made = {name: secret for secret in published if "aaaaa" in (name := secret["metadata"]["name"])}
    assert set(made) == {"bootstrap-token-aaaaa6", "bootstrap-token-aaaaa7"}
    for secret in made.values():
        assert secret["data"]["auth-extra-groups"] == encoded({"g": POOL_GROUP})["g"]
        assert "fastness.dev/node" not in secret["metadata"]["annotations"]


async def _all_answered(site: PoolSite) -> bool:
    asking = (await site.cluster.list(SECRETS, Scope(POOL_JOINS))).items
    return all("fastness.dev/answer" in secret["metadata"]["annotations"] for secret in asking)


async def test_without_an_address_of_the_api_server_machines_wait(site: PoolSite) -> None:
    ticket = await site.ticket("plain")
    controllers = site.joining.world.informers.of(CONTROLLER_CONFIG.resource)
    stated = await site.cluster.get(CONTROLLER_CONFIG.resource, SINGLETON)
    await site.cluster.delete(CONTROLLER_CONFIG.resource, SINGLETON)
    await until(lambda: _none(controllers.get("", SINGLETON)))
    answer = await site.asked("plain", ticket)
    assert (answer.status_code, answer.json()["code"]) == (503, "api-server-unknown")
    await site.cluster.create(CONTROLLER_CONFIG.resource, {**stated, "metadata": {"name": SINGLETON}})


async def _none(value: object) -> bool:
    return value is None
