"""The webhook over HTTPS in front of the embedded API: limits, refusals, failing closed, and its configuration."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest

from fastness.admission.door.app import MAX_BODY, RecordedReviews, WebhookDoor
from fastness.admission.door.configuration import NAME, RESOURCE
from fastness.admission.door.registration import WRITES_A_MINUTE
from fastness.admission.door.server import WebhookServer, webhook_server
from fastness.app.control_plane import control_plane
from fastness.app.parts import Part
from fastness.app.replica import ReplicaOptions, settings_of
from fastness.app.settings import ClusterKeys
from fastness.attestation.admission.acts import Act
from fastness.attestation.loops.door_certificates import issuing
from fastness.http.health import Health
from fastness.http.listener import Listener
from fastness.keys.authorities import ROTATE
from fastness.keys.doors import DOORS, NAMESPACE, SECRETS
from fastness.kinds.machineconfiguration import GROUP
from fastness.kinds.machineconfiguration.names import PUBLIC
from fastness.kinds.registry import find
from fastness.kube.admission import AdmissionLookups, AdmissionRequest
from fastness.kube.controllers import LeaderSettings
from fastness.kube.errors import Unavailable
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.admission.workloads import ENFORCEMENT
from fastness.workloads.live.agent_policies import PolicyAnswers, PolicyTrials
from tests.component.attacks.people import recorded
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.unit.admission.writes import World
from tests.unit.workloads.admission.test_workloads import RESTRICTIVE, packed, pod

Object = dict[str, Any]
NAMESPACES = find("", "v1", "namespaces").resource


@asynccontextmanager
async def webhook(
    embedded: Embedded, trials: PolicyTrials | None = None
) -> AsyncIterator[tuple[WebhookServer, httpx.AsyncClient]]:
    cluster, clock, entropy = embedded.cluster, SystemClock(), SystemEntropy()
    async with (
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        issuing(cluster, informers, clock, entropy),
        webhook_server(cluster, informers, clock, entropy, trials=trials) as door,
    ):
        bundle = (await cluster.get(SECRETS, DOORS.name, NAMESPACE))["data"]["ca.crt"]
        trust = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        async with httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{door.port}", verify=trust, trust_env=False
        ) as client:
            yield door, client


def review_of(obj: Object, resource: str = "pods", kind: str = "Pod", group: str = "") -> Object:
    request = {
        "uid": "u", "operation": "CREATE", "kind": {"group": group, "version": "v1", "kind": kind}, "namespace": "safe",
        "resource": {"group": group, "version": "v1", "resource": resource}, "name": "p", "object": obj,
    }  # fmt: skip
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def safe_namespace(embedded: Embedded) -> None:
    meta = {"name": "safe", "labels": {ENFORCEMENT: "deny"}}
    await embedded.cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def test_reviews_are_answered_with_the_rules_and_the_engine(embedded_server: Embedded) -> None:
    asks: list[str] = []

    async def trial(text: str) -> PolicyAnswers:
        asks.append(text)
        return PolicyAnswers(opened=("ExecProcessRequest",))

    async with webhook(embedded_server, PolicyTrials(trial)) as (_, client):
        await safe_namespace(embedded_server)
        for _ in range(2):
            answer = (await client.post("/review", json=review_of(pod(RESTRICTIVE)))).json()["response"]
            assert (answer["uid"], answer["allowed"]) == ("u", False)
            assert "ExecProcessRequest (a rule that anything satisfies)" in answer["status"]["message"]
        assert len(asks) == 1, "the same policy is tried once"
        missing = (await client.post("/review", json=review_of(pod()))).json()["response"]
        assert "it carries no init data" in missing["status"]["message"]
        assert len(asks) == 1, "nothing to try without a policy"


async def test_what_a_cluster_is_counts_behind_the_webhook_too(embedded_server: Embedded) -> None:
    enforcing = {"metadata": {"name": "cluster"}, "spec": {"mode": "Enforce", "simulated": True}}
    review = review_of(enforcing, "confidentialclusters", "ConfidentialCluster", "fastness.dev")
    review["request"] |= {"name": "cluster", "namespace": ""}
    maps, infrastructures = (
        find("", "v1", "configmaps").resource,
        find("config.openshift.io", "v1", "infrastructures").resource,
    )

    async with webhook(embedded_server) as (_, client):

        async def denial() -> str:
            answer = (await client.post("/review", json=review)).json()["response"]
            return "" if answer["allowed"] else str(answer["status"]["message"])

        assert await denial() == ""
        meta = {"name": "microshift-version", "namespace": "kube-public"}
        note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"major": "4"}}
        await embedded_server.cluster.create(maps, note)
        assert "pool master and worker cannot be ConfidentialCluster on MicroShift" in await denial()
        await embedded_server.cluster.delete(maps, "microshift-version", "kube-public")
        hosted = {"status": {"controlPlaneTopology": "External"}}
        status = WriteOptions(subresource="status")
        await embedded_server.cluster.patch(infrastructures, "cluster", hosted, PatchType.MERGE, "", status)
        assert "on a cluster of topology External: the control plane is hosted" in await denial()


async def test_policy_that_only_looks_as_if_it_looked_is_refused(embedded_server: Embedded) -> None:
    hidden = (
        "package agent_policy\n\ndefault ExecProcessRequest := false\n\nExecProcessRequest if {\n\tinput == input\n}\n"
    )
    async with webhook(embedded_server) as (_, client):
        await safe_namespace(embedded_server)
        answer = (await client.post("/review", json=review_of(pod(packed(hidden))))).json()["response"]
    assert "ExecProcessRequest (a rule that anything satisfies)" in answer["status"]["message"]


async def test_engine_that_fails_refuses_and_is_asked_again(embedded_server: Embedded) -> None:
    answers = [PolicyAnswers(error="the policy was not done within 6 seconds"), PolicyAnswers()]

    async def trial(text: str) -> PolicyAnswers:
        return answers.pop(0)

    classes = find("node.k8s.io", "v1", "runtimeclasses").resource
    made = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata-cc"},
        "handler": "kata-tdx",
    }
    await embedded_server.cluster.create(classes, made)
    async with webhook(embedded_server, PolicyTrials(trial)) as (_, client):
        await safe_namespace(embedded_server)
        first, second = [
            (await client.post("/review", json=review_of(pod(RESTRICTIVE)))).json()["response"] for _ in range(2)
        ]
    assert "not done within" in first["status"]["message"]
    assert second == {"uid": "u", "allowed": True}


async def test_second_kataconfig_is_refused_at_the_path_that_operators_know(embedded_server: Embedded) -> None:
    kata = find("kataconfiguration.openshift.io", "v1", "kataconfigs").resource
    obj = {
        "apiVersion": "kataconfiguration.openshift.io/v1",
        "kind": "KataConfig",
        "metadata": {"name": "p"},
        "spec": {},
    }
    path = "/validate-kataconfiguration-openshift-io-v1-kataconfig"
    question = review_of(obj, "kataconfigs", "KataConfig", "kataconfiguration.openshift.io")
    async with webhook(embedded_server) as (_, client):
        assert (await client.post(path, json=question)).json()["response"]["allowed"] is True
        await embedded_server.cluster.create(kata, {**obj, "metadata": {"name": "first"}})
        refused = (await client.post(path, json=question)).json()["response"]
        assert "A KataConfig instance already exists, refusing to create a duplicate" in refused["status"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "code"),
    [
        ("GET", "/healthz", {}, b"", 200),
        ("GET", "/review", {}, b"", 405),
        ("POST", "/elsewhere", {}, b"", 404),
        ("POST", "/review", {"content-type": "text/plain"}, b"{}", 415),
        ("POST", "/review", {"content-type": "application/json"}, b"{", 400),
        ("POST", "/review", {"content-type": "application/json", "content-encoding": "gzip"}, b"{", 415),
    ],
)
async def test_what_is_no_review_gets_the_status_that_says_so(
    method: str, path: str, headers: dict[str, str], content: bytes, code: int
) -> None:
    async with alone(WebhookDoor(crashing, SystemEntropy())) as client:
        answer = await client.request(method, path, headers=headers, content=content)
        assert answer.status_code == code


async def test_review_that_is_too_large_is_refused_before_it_is_read() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % (MAX_BODY + 1))]
    scope = {"type": "http", "method": "POST", "raw_path": b"/review", "query_string": b"", "headers": headers}
    await WebhookDoor(crashing, SystemEntropy()).app(scope, receive, send)
    assert sent[0]["status"] == 413


async def crashing(request: AdmissionRequest) -> tuple[AdmissionRequest, AdmissionLookups]:
    raise ZeroDivisionError


async def unreachable(request: AdmissionRequest) -> tuple[AdmissionRequest, AdmissionLookups]:
    raise Unavailable("etcd is away")


@asynccontextmanager
async def alone(door: WebhookDoor) -> AsyncIterator[httpx.AsyncClient]:
    listener = Listener(door.app)
    await listener.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.port}", trust_env=False) as client:
            yield client
    finally:
        await listener.stop()


@pytest.mark.parametrize(
    ("prepare", "code", "message"), [(crashing, 500, "an internal error"), (unreachable, 503, "etcd is away")]
)
async def test_a_review_that_fails_is_a_refusal(prepare: Any, code: int, message: str) -> None:
    async with alone(WebhookDoor(prepare, SystemEntropy())) as client:
        answer = await client.post("/review", json=review_of(pod()))
    assert answer.status_code == 200
    response = answer.json()["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, code)
    assert message in response["status"]["message"]


class ThisPath:
    """The path that the API server was told, whatever it is."""

    def counts(self, path: str) -> bool:
        return True


class FullRecord:
    """A record that takes nothing."""

    async def append(self, act: Act) -> None:
        raise Unavailable(f"{act.what} could not be recorded")


@pytest.mark.parametrize(
    ("resource", "kind", "group", "passes"),
    [("machineconfigs", "MachineConfig", GROUP, True), ("distrusts", "Distrust", "fastness.dev", False)],
)
async def test_a_write_fails_for_want_of_its_entry_unless_that_only_names_an_author(
    resource: str, kind: str, group: str, passes: bool
) -> None:
    async def ready(request: AdmissionRequest) -> tuple[AdmissionRequest, AdmissionLookups]:
        return request, World()

    acts = RecordedReviews(cast("Any", ThisPath()), cast("Any", FullRecord()))
    written = {"metadata": {"name": "p", "annotations": {PUBLIC: "true"}}, "spec": {}}
    review = review_of(written, resource, kind, group)
    review["request"] = {**review["request"], "namespace": "", "userInfo": {"username": "olga"}}
    async with alone(WebhookDoor(ready, SystemEntropy(), acts)) as client:
        answer = (await client.post("/review/key", json=review)).json()["response"]
    assert answer["allowed"] is passes, answer
    assert passes or "could not be recorded" in answer["status"]["message"]


async def test_more_reviews_than_fit_are_turned_away_at_once() -> None:
    go, inside = asyncio.Event(), asyncio.Semaphore(0)

    async def slow(request: AdmissionRequest) -> tuple[AdmissionRequest, AdmissionLookups]:
        inside.release()
        await go.wait()
        raise Unavailable("late")

    async with alone(WebhookDoor(slow, SystemEntropy(), in_flight=2)) as client, asyncio.timeout(PATIENCE):
        waiting = [asyncio.create_task(client.post("/review", json=review_of(pod()))) for _ in range(2)]
        for _ in waiting:
            await inside.acquire()
        assert (await client.post("/review", json=review_of(pod()))).status_code == 503
        go.set()
        assert [(await reply).status_code for reply in waiting] == [200, 200]


async def test_configuration_is_restored_and_follows_the_authority(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    async with webhook(embedded_server):
        first = await cluster.get(RESOURCE, NAME)
        await cluster.delete(RESOURCE, NAME)
        await until(
            embedded_server, lambda stored: stored is not None and stored["metadata"]["uid"] != first["metadata"]["uid"]
        )
        await cluster.patch(RESOURCE, NAME, {"webhooks": []}, PatchType.MERGE)
        await until(
            embedded_server, lambda stored: stored is not None and len(stored["webhooks"]) == len(first["webhooks"])
        )
        await cluster.patch(
            SECRETS, DOORS.name, {"metadata": {"annotations": {ROTATE: "now"}}}, PatchType.MERGE, NAMESPACE
        )
        before = first["webhooks"][0]["clientConfig"]["caBundle"]
        await until(embedded_server, lambda stored: stored is not None and len(bundle(stored)) > len(before))


async def test_serve_runs_it_as_a_role(embedded_server: Embedded) -> None:
    cluster, clock, entropy = embedded_server.cluster, SystemClock(), SystemEntropy()
    parts, sentences = frozenset({Part.WEBHOOK}), asyncio.Queue[str]()
    options = ReplicaOptions(parts, "test", webhook_port=0, webhook_url="https://webhook.example.com:9443")
    settings = settings_of(options, LeaderSettings(), sentences.put_nowait)
    async with (
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        issuing(cluster, informers, clock, entropy),
        control_plane(parts, cluster, ClusterKeys(), settings, clock, entropy, Health()) as running,
        asyncio.timeout(PATIENCE),
    ):
        await running.doors.all()
        sentence = await sentences.get()
        stored = await cluster.get(RESOURCE, NAME)
    assert "webhook on https://127.0.0.1:" in sentence
    assert "while it is down confidential workloads are refused" in sentence
    assert stored["webhooks"][1]["clientConfig"]["url"] == "https://webhook.example.com:9443/review"


async def test_a_quarrel_about_the_configuration_does_not_become_a_storm(embedded_server: Embedded) -> None:
    async with webhook(embedded_server):
        for _ in range(WRITES_A_MINUTE + 1):
            await until(embedded_server, lambda stored: stored is not None and stored["webhooks"])
            await embedded_server.cluster.patch(RESOURCE, NAME, {"webhooks": []}, PatchType.MERGE)
        await asyncio.sleep(0.2)
        assert (await embedded_server.cluster.get(RESOURCE, NAME))["webhooks"] == [], (
            "it waits for the end of the minute"
        )


def bundle(configuration: Object) -> str:
    return str(configuration["webhooks"][0]["clientConfig"]["caBundle"]) if configuration["webhooks"] else ""


async def until(embedded: Embedded, holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds(next((configuration for configuration in (await embedded.cluster.list(RESOURCE)).items), None)):  # noqa: ASYNC110  # a server
            await asyncio.sleep(0.02)


async def test_a_review_that_anybody_could_have_sent_puts_nobody_on_the_record(embedded_server: Embedded) -> None:
    """Whoever reaches the port may name any user; only the API server knows the path where that counts."""
    image = {"metadata": {"name": "p", "uid": "u"}, "spec": {"image": "example.com/x"}}
    question = review_of(image, "approvedimages", "ApprovedImage", "trusted-execution-clusters.io")
    question["request"]["userInfo"] = {"username": "bob"}
    question["request"]["namespace"] = NAMESPACE
    trial = {**question, "request": {**question["request"], "dryRun": True}}
    async with webhook(embedded_server) as (_, client):
        stored = await embedded_server.cluster.get(RESOURCE, NAME)
        (entry,) = [hook for hook in stored["webhooks"] if hook["name"] == "acts.fastness.dev"]
        path = "/" + entry["clientConfig"]["url"].split("/", 3)[3]
        assert path.startswith("/review/")
        assert (await client.post("/review", json=question)).json()["response"]["allowed"]
        assert (await client.post(f"{path[:-1]}x", json=question)).status_code == 404
        assert (await client.post(path, json=trial)).json()["response"]["allowed"]
        assert await recorded(embedded_server) == []
        assert (await client.post(path, json=question)).json()["response"]["allowed"]
    assert [(act["what"], act["who"]) for act in await recorded(embedded_server)] == [("act-approve-image", "bob")]
