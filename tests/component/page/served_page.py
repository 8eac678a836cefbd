"""The page over TLS, in front of an embedded API, with browsers that follow the rules of cookies.

`Browser` is an HTTP client that keeps cookies as a browser does (only over TLS, only for this host) and fills in forms that it
was shown, so a test does what a person does.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from typing import Any

import httpx

from fastness.apiserver import LocalCluster
from fastness.attestation.loops.door_certificates import issuing
from fastness.http import Request
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access import User
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.page.acts import Act
from fastness.page.admission import Doorkeeper, GuardDoor
from fastness.page.server import Page, PageOptions, ProviderOptions, web_server
from fastness.record.live.tiles import FileTiles
from tests.component.page.simulated import MemorySimulator
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, MovedClock, settle_cluster
from tests.patience import PATIENCE

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
NODES = Resource("", "v1", "nodes", "Node", False)
THUMBPRINT = "sha256:" + "ab" * 32
_HIDDEN = re.compile(r'<input type="hidden" name="([a-z]+)" value="([^"]*)">')


class Shaky(LocalCluster):
    """The cluster in process, which can stop to answer."""

    down = False

    async def list(self, *args: Any, **kwargs: Any) -> Any:
        """A list, or what a client gets from an API that restarts."""
        if self.down:
            from fastness.kube.errors import Unavailable

            raise Unavailable("connection refused")
        return await super().list(*args, **kwargs)


class Browser:
    """Somebody who looks at the page."""

    def __init__(self, page: Page) -> None:
        context = ssl.create_default_context(cadata=page.bundle)
        self.http = httpx.AsyncClient(base_url=page.url, verify=context, timeout=PATIENCE)
        self.origin = page.url

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """A page, without following where it leads."""
        return await self.http.get(path, **more)

    async def post(self, path: str, fields: dict[str, str], **more: Any) -> httpx.Response:
        """A form, sent as a browser sends it."""
        headers = {"origin": self.origin, "sec-fetch-site": "same-origin", **more.pop("headers", {})}
        return await self.http.post(path, data=fields, headers=headers, **more)

    async def log_in(self, token: str, then: str = "/") -> httpx.Response:
        """With a bearer token."""
        form = await self.get("/login", params={"then": then})
        return await self.post("/login", {**fields_of(form.text), "bearer": token})

    async def follow_link(self, link: str) -> httpx.Response:
        """With a one-time link."""
        form = await self.get(link)
        return await self.post("/login", fields_of(form.text))

    async def token(self, path: str = "/") -> str:
        """The token of the forms of this session."""
        return fields_of((await self.get(path)).text)["token"]

    async def decide(self, name: str, decision: str, reason: str = "", token: str | None = None) -> httpx.Response:
        """Decide about a machine."""
        carried = await self.token() if token is None else token
        return await self.post(f"/machines/{name}/decision", {"token": carried, "decision": decision, "reason": reason})


def fields_of(html: str) -> dict[str, str]:
    """What the forms of a page carry along."""
    return {name: unescape(value) for name, value in _HIDDEN.findall(html)}


async def account_token(embedded: Embedded, name: str, role: str = "") -> str:
    """The token of a new service account, which may have a role."""
    cluster = embedded.cluster
    await cluster.create(ACCOUNTS, {"metadata": {"name": name, "namespace": "default"}})
    if role:
        await cluster.create(BINDINGS, {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        })  # fmt: skip
    async with embedded.client() as client:
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        answer = await client.post(path, json={"spec": {"expirationSeconds": 3600}})
    return str(answer.json()["status"]["token"])


async def viewer_token(embedded: Embedded) -> str:
    """The token of somebody who may read machines, and nothing else."""
    await embedded.cluster.create(ROLES, {"metadata": {"name": "machine-viewer"}, "rules": [
        {"apiGroups": ["trusted-execution-clusters.io"], "resources": ["machines"], "verbs": ["get", "list"]},
    ]})  # fmt: skip
    return await account_token(embedded, "viewer", "machine-viewer")


@dataclass
class ServedPage:
    """A cluster with its page."""

    embedded: Embedded
    cluster: Shaky
    informers: Informers
    page: Page
    clock: MovedClock
    deeds: list[tuple[str, str, int]] = field(default_factory=list)
    simulator: MemorySimulator = field(default_factory=MemorySimulator)
    tiles: FileTiles | None = None
    browsers: list[Browser] = field(default_factory=list)

    def browser(self) -> Browser:
        """A fresh one, without cookies."""
        self.browsers.append(Browser(self.page))
        return self.browsers[-1]

    async def administrator(self) -> Browser:
        """Logged in by a link."""
        browser = self.browser()
        assert (await browser.follow_link(self.page.link())).status_code == 303
        return browser

    async def account(self, name: str, role: str = "") -> str:
        """The token of a service account, which may have a role."""
        return await account_token(self.embedded, name, role)

    async def viewer(self) -> Browser:
        """Somebody who may read machines, and nothing else."""
        browser = self.browser()
        assert (await browser.log_in(await viewer_token(self.embedded))).status_code == 303
        return browser

    async def machine(self, name: str = "machine-one", approval: str = "Pending", **status: Any) -> JsonObject:
        """A machine, known to the page."""
        body = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"id": ENTROPY.uid(), "approval": approval},
        }  # fmt: skip
        await self.cluster.create(MACHINE.resource, body)
        reported = {
            "pool": "worker", "nodeName": f"node-{name}", "keyThumbprint": THUMBPRINT, "tee": "tpm",
            "conditions": [_condition("Approved", "True" if approval == "Approved" else "False")], **status,
        }  # fmt: skip
        return await self.cluster.patch(
            MACHINE.resource, name, {"status": reported}, PatchType.MERGE, NAMESPACE, WriteOptions(subresource="status")
        )

    async def verdict(self, name: str, machine: JsonObject, checks: list[JsonObject], result: str = "Refused") -> None:
        """A verdict about a machine."""
        await self.cluster.create(VERDICT.resource, {
            "apiVersion": VERDICT.api_version, "kind": VERDICT.kind, "metadata": {"name": name},
            "spec": {
                "subject": {"machine": machine["metadata"]["uid"], "keyThumbprint": THUMBPRINT},
                "evidence": {"type": "tpm", "digest": "sha256:" + "cd" * 32}, "result": result,
                "reason": "value-differs", "checks": checks,
            },
        })  # fmt: skip


def _condition(kind: str, status: str, reason: str = "Because", message: str = "") -> JsonObject:
    return {
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip


condition = _condition


@asynccontextmanager
async def served_page(
    embedded: Embedded,
    clock: MovedClock,
    *,
    virtual: bool = True,
    door: Doorkeeper | None = None,
    provider: ProviderOptions | None = None,
) -> AsyncIterator[ServedPage]:
    """A page for the time of the block, with a simulator behind it or without; the API should have the same clock."""
    server = embedded.server
    cluster = Shaky(server.api)
    await settle_cluster(cluster, {"mode": "Enforce", "simulated": True})
    deeds: list[tuple[str, str, int]] = []

    def audit(_request: Request, user: User, act: Act, code: int) -> None:
        deed = f"{act.verb} {act.name} (simulator)" if act.simulator else act.name
        deeds.append((user.name, deed, code))

    simulator, tiles = MemorySimulator(), FileTiles(embedded.directory / "record")
    options = PageOptions(
        administrator=lambda: server.pki.admin.certificate.der,
        tiles=tiles,
        audit=audit,
        simulator=simulator if virtual else None,
        provider=provider,
    )
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        issuing(cluster, informers, clock, ENTROPY),
        web_server(
            cluster,
            informers,
            door or GuardDoor(server.guard, lambda user: LocalCluster(server.api, user)),
            clock,
            ENTROPY,
            options,
        ) as page,
    ):
        world = ServedPage(embedded, cluster, informers, page, clock, deeds, simulator, tiles)
        try:
            yield world
        finally:
            for browser in world.browsers:
                await browser.http.aclose()
