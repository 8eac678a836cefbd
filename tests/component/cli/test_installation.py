"""What the doctor says of an installation on a Kubernetes, before it and afterwards: yes, no, or that it may not look."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.admission.door.configuration import NAME as WEBHOOK
from fastness.cli.support.finding import Finding
from fastness.cli.support.installation import KEYS, MOST_SKEW, ROLES, installed, preflight
from fastness.cli.support.stored import PAGE, stored
from fastness.kinds.crd.sets import own_names
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.kubernetes.native import DEPLOYMENT, VALIDATING_WEBHOOK_CONFIGURATION
from fastness.kube.errors import ApiError, Forbidden, InternalError, NotFound
from fastness.kube.port import EVERYWHERE, Cluster, Page, PatchType, Scope, WriteOptions
from fastness.record.live.tiles import ConfigMapTiles
from tests.embedded.fixtures import Embedded
from tests.enrolling import settle_cluster

Ask = Callable[[], Any]


class Answering:
    """A cluster that answers some questions with an error, as another one would, and passes everything else on."""

    def __init__(self, cluster: Cluster, errors: dict[tuple[str, str], ApiError]) -> None:
        self._cluster = cluster
        self._errors = errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def _refuse(self, verb: str, resource: Resource) -> None:
        if error := self._errors.get((verb, resource.plural)):
            raise error

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        self._refuse("get", resource)
        return await self._cluster.get(resource, name, namespace)

    async def list(self, resource: Resource, scope: Scope = EVERYWHERE, **more: Any) -> Page:
        self._refuse("list", resource)
        return await self._cluster.list(resource, scope, **more)

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WriteOptions()) -> JsonObject:  # noqa: B008
        self._refuse("create", resource)
        if resource.plural == "selfsubjectaccessreviews":
            denied = obj["spec"]["resourceAttributes"]["resource"] == "secrets" and ("may", "secrets") in self._errors
            return {**obj, "status": {"allowed": not denied}}
        return await self._cluster.create(resource, obj, options)

    async def patch(self, resource: Resource, *words: Any) -> JsonObject:
        self._refuse("patch", resource)
        return await self._cluster.patch(resource, *words)


def finding_of(findings: list[Finding], name: str) -> tuple[str, str]:
    (finding,) = [each for each in findings if each.name == name]
    assert finding.state == "ok" or finding.fix or "not looked at" in finding.found, "who hears no hears what to do"
    return finding.state, finding.found


async def looked(embedded: Embedded, name: str, ahead: float = 0.0, **errors: ApiError) -> tuple[str, str]:
    now = datetime.now(UTC) - timedelta(seconds=ahead)
    cluster: Any = Answering(embedded.cluster, {tuple(key.split("_")): error for key, error in errors.items()})  # type: ignore[misc]
    return finding_of(await preflight(cluster, now), name)


async def after(embedded: Embedded, name: str, **errors: ApiError) -> tuple[str, str]:
    cluster: Any = Answering(embedded.cluster, {tuple(key.split("_")): error for key, error in errors.items()})  # type: ignore[misc]
    return finding_of(await installed(cluster), name)


# ---------------------------------------------------------------- before


async def test_the_version_is_told_by_what_the_api_serves(embedded_server: Embedded) -> None:
    assert (await looked(embedded_server, "version"))[0] == "ok"
    old = await looked(embedded_server, "version", list_validatingadmissionpolicies=NotFound("no such kind"))
    assert old == ("missing", "the API has no ValidatingAdmissionPolicy")
    shy = await looked(embedded_server, "version", list_validatingadmissionpolicies=Forbidden("no"))
    assert shy[0] == "optional"


async def test_rights_that_are_lacking_are_named(embedded_server: Embedded) -> None:
    assert (await looked(embedded_server, "rights"))[0] == "ok"
    lacking = await looked(embedded_server, "rights", may_secrets=Forbidden("no"))
    assert lacking == ("missing", "you may not create secrets")


@pytest.mark.parametrize("ahead", [MOST_SKEW * 4, -MOST_SKEW * 4])
async def test_a_clock_that_differs_is_told_with_its_direction(embedded_server: Embedded, ahead: float) -> None:
    assert (await looked(embedded_server, "clock"))[0] == "ok"
    state, words = await looked(embedded_server, "clock", ahead)
    assert state == "missing"
    assert words.endswith("ahead" if ahead > 0 else "behind")
    assert (await looked(embedded_server, "clock", create_configmaps=Forbidden("no")))[0] == "optional"


async def test_definitions_that_are_there_are_told_with_their_owner(embedded_server: Embedded) -> None:
    state, words = await looked(embedded_server, "definitions")
    assert state == "optional"
    assert words.startswith(f"{len(own_names())} definitions of ours from ")

    def owned(entry: JsonObject) -> JsonObject:
        notes = {"annotations": {"meta.helm.sh/release-name": "theirs"}}
        return {**entry, "metadata": {**entry["metadata"], **notes}}

    cluster = with_definitions(embedded_server, owned)
    assert "from helm release theirs" in finding_of(await preflight(cluster, datetime.now(UTC)), "definitions")[1]
    nothing = with_definitions(embedded_server, lambda _: None)
    assert finding_of(await preflight(nothing, datetime.now(UTC)), "definitions") == ("ok", "none of ours is there yet")


def with_definitions(embedded: Embedded, change: Callable[[JsonObject], JsonObject | None]) -> Any:
    """The cluster with its definitions changed, or taken away: the embedded one does not let anybody do that."""
    cluster: Any = Answering(embedded.cluster, {})

    async def listed(resource: Resource, scope: Scope = EVERYWHERE, **more: Any) -> Page:
        page = await embedded.cluster.list(resource, scope, **more)
        if resource != CUSTOM_RESOURCE_DEFINITION.resource:
            return page
        return replace(page, items=[entry for entry in map(change, page.items) if entry is not None])

    cluster.list = listed
    return cluster


# ---------------------------------------------------------------- afterwards


async def test_definitions_that_are_missing_are_named(embedded_server: Embedded) -> None:
    assert (await after(embedded_server, "definitions"))[0] == "ok"
    gone = "verdicts.fastness.dev"
    cluster = with_definitions(embedded_server, lambda entry: None if entry["metadata"]["name"] == gone else entry)
    assert finding_of(await installed(cluster), "definitions") == ("missing", f"not installed: {gone}")


async def test_each_role_that_is_absent_or_not_ready_is_named(embedded_server: Embedded) -> None:
    assert await after(embedded_server, "roles") == ("optional", "no role is a Deployment here")
    async with deployed(embedded_server) as available:
        assert (await after(embedded_server, "roles"))[1] == f"not ready: {', '.join(ROLES)}"
        for role in ROLES[1:]:
            await available(role)
        assert (await after(embedded_server, "roles")) == ("missing", f"not ready: {ROLES[0]}")
        await available(ROLES[0])
        assert (await after(embedded_server, "roles")) == ("ok", f"{len(ROLES)} run")
        await embedded_server.cluster.delete(DEPLOYMENT.resource, "fastness-gate", NAMESPACE)
        assert (await after(embedded_server, "roles")) == ("missing", "not installed: gate")
        assert (await after(embedded_server, "roles", list_deployments=Forbidden("no")))[0] == "optional"


@asynccontextmanager
async def deployed(embedded: Embedded) -> AsyncIterator[Callable[[str], Any]]:
    """A Deployment for each role; what it yields lets one be available."""
    labels = {"app": "fastness"}
    for role in ROLES:
        meta = {"name": f"fastness-{role}", "namespace": NAMESPACE}
        template = {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": role, "image": "example.com/fastness:1"}]},
        }  # fmt: skip
        spec = {"selector": {"matchLabels": labels}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        await embedded.cluster.create(DEPLOYMENT.resource, body)

    async def available(role: str) -> None:
        status = {"status": {"replicas": 1, "availableReplicas": 1, "readyReplicas": 1}}
        options = WriteOptions(manager="test", subresource="status")
        await embedded.cluster.patch(
            DEPLOYMENT.resource, f"fastness-{role}", status, PatchType.MERGE, NAMESPACE, options
        )

    yield available


async def test_each_key_that_is_empty_or_gone_is_named(embedded_server: Embedded) -> None:
    content = {"data": {"some": base64.b64encode(b"key").decode()}}
    for name in KEYS:
        meta = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
        try:
            await embedded_server.cluster.create(SECRET.resource, {**body, **content})
        except ApiError:
            await embedded_server.cluster.patch(SECRET.resource, name, content, PatchType.MERGE, NAMESPACE)
    assert (await after(embedded_server, "keys"))[0] == "ok"
    await embedded_server.cluster.delete(SECRET.resource, "record-key", NAMESPACE)
    await embedded_server.cluster.patch(SECRET.resource, "token-keys", {"data": None}, PatchType.MERGE, NAMESPACE)
    assert await after(embedded_server, "keys") == ("missing", "empty or gone: record-key, token-keys")
    assert (await after(embedded_server, "keys", get_secrets=Forbidden("no")))[0] == "optional"


async def test_a_webhook_that_is_not_registered_or_not_reached_is_told(embedded_server: Embedded) -> None:
    await settle_cluster(embedded_server.cluster, {"mode": "Enforce", "simulated": True})
    assert await after(embedded_server, "webhook") == ("missing", "not registered")
    meta = {"name": WEBHOOK}
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": meta,
    }
    await embedded_server.cluster.create(VALIDATING_WEBHOOK_CONFIGURATION.resource, body)
    assert (await after(embedded_server, "webhook"))[0] == "ok"
    silent = InternalError("failed calling webhook")
    state, words = await after(embedded_server, "webhook", patch_confidentialclusters=silent)
    assert (state, words) == ("missing", "the API server does not reach it: failed calling webhook")
    assert (await after(embedded_server, "webhook", get_validatingwebhookconfigurations=Forbidden("no")))[
        0
    ] == "optional"


async def test_what_the_record_and_evidence_take_is_told_beside_a_bound(embedded_server: Embedded) -> None:
    assert (await after(embedded_server, "stored"))[1].startswith("0.0 MiB of 1024.0 MiB: 0 tiles of the record")
    tiles = ConfigMapTiles(embedded_server.cluster)
    for number in range(PAGE + 20):
        await tiles.write(f"tile/entries/{number:03}", f"entry {number}".encode())
    assert "120 tiles of the record, 0 verdicts" in (await after(embedded_server, "stored"))[1]
    full = await stored(embedded_server.cluster, bound=4096)
    assert (full.state, "quota-backend-bytes" in full.fix) == ("missing", True)
    assert (await after(embedded_server, "stored", list_verdicts=Forbidden("no")))[0] == "optional"
