"""The config server and user-data over TLS: row by row of the table that all doors share."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.formats import json
from fastness.keys.doors import NAME, NAMESPACE, SECRETS
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.serving import configuration_of
from fastness.runtime.clock import SystemEntropy
from tests.components import require_program
from tests.patience import PATIENCE

MCO = "machineconfiguration.openshift.io"
CONFIG = find(MCO, "v1", "machineconfigs").resource
POOL = find(MCO, "v1", "machineconfigpools").resource
TICKET = find("fastness.dev", "v1alpha1", "jointickets").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
BASE = 3
ACCEPT = {"accept": "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1"}
IGNITION = Path("/usr/lib/dracut/modules.d/30ignition/ignition")


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something to become true, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await check():
                return
            await asyncio.sleep(0.02)


class World:
    """A control plane and a client of its config server."""

    def __init__(self, plane: ControlPlane, http: httpx.AsyncClient) -> None:
        self.plane = plane
        self.cluster: Cluster = plane.server.cluster
        self.http = http

    async def ticket(self, pool: str = "worker", days: float = 1, uses: int = 0) -> str:
        ticket: SecretText = mint(SystemEntropy())
        name = f"t-{ticket.reveal()[-8:].lower().replace('_', 'x').replace('-', 'x')}"
        made = join_ticket(name, ticket, pool, datetime.now(UTC) + timedelta(days=days), uses)
        await self.cluster.create(TICKET, made)
        await asyncio.sleep(0.05)
        return ticket.reveal()

    async def get(
        self, path: str = "/config/worker", ticket: str = "", method: str = "GET", **headers: str
    ) -> httpx.Response:
        credential = {"authorization": f"Bearer {ticket}"} if ticket else {}
        return await self.http.request(method, path, headers={**ACCEPT, **credential, **headers})

    async def rendered(self) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                pools = (await self.cluster.list(POOL)).items
                for pool in pools:
                    configuration = pool["spec"].get("configuration") or {}
                    # Three base configs come one after the other, and each may be rendered.
                    if pool["metadata"]["name"] == "worker" and len(configuration.get("source") or ()) >= BASE:
                        return str(configuration["name"])
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    # One task holds the plane: task groups must end in the task that began them, and a fixture has two.
    ready: asyncio.Future[ControlPlane] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with running(PlaneOptions(tmp_path / "state")) as plane:
            ready.set_result(plane)
            await over.wait()

    holding = asyncio.create_task(hold())
    plane = await ready
    secret = await plane.server.cluster.get(SECRETS, NAME, NAMESPACE)
    context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["tls.crt"]).decode())
    async with httpx.AsyncClient(base_url=plane.endpoints.config_server, verify=context) as http:
        served = World(plane, http)
        await served.rendered()
        yield served
    over.set()
    await holding


def code(answer: httpx.Response) -> str:
    return str(answer.json()["code"])


async def test_a_machine_with_a_ticket_gets_its_config_and_nobody_else_does(world: World) -> None:
    ticket = await world.ticket()
    good = await world.get(ticket=ticket)
    assert good.status_code == 200
    assert good.headers["content-type"] == "application/json"
    assert good.json()["ignition"]["version"] == "3.3.0"
    for wrong in ("", "fst_wrong", "garbage"):
        refused = await world.get(ticket=wrong)
        assert (refused.status_code, code(refused)) == (401, "ticket-required")
        assert len(refused.content) <= 300
    expired = await world.ticket(days=-1)
    assert (await world.get(ticket=expired)).status_code == 401


async def test_a_ticket_whose_uses_are_counted_fetches_nothing_here(world: World) -> None:
    for uses in (1, 4096):
        refused = await world.get(ticket=await world.ticket(uses=uses))
        assert (refused.status_code, code(refused)) == (403, "limited-ticket")


async def test_a_ticket_is_good_for_its_own_pool_only_and_an_unknown_pool_is_404_for_its_holder(world: World) -> None:
    ticket = await world.ticket("infra")
    other = await world.get(ticket=ticket)
    assert (other.status_code, code(other)) == (403, "wrong-pool")
    unknown = await world.get("/config/infra", ticket=ticket)
    assert (unknown.status_code, code(unknown)) == (404, "unknown-pool")


async def test_a_pool_without_a_config_asks_the_machine_to_come_back(world: World) -> None:
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "x"]}]}
    pool = {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "odd"},
        "spec": {"machineConfigSelector": {**selector, "matchLabels": {"no": "such"}}},
    }  # fmt: skip
    await world.cluster.create(POOL, pool)
    ticket = await world.ticket("odd")
    waiting = await world.get("/config/odd", ticket=ticket)
    assert (waiting.status_code, code(waiting)) == (503, "not-rendered")
    assert int(waiting.headers["retry-after"]) > 0


async def test_a_confidential_pool_is_served_to_nobody_here(world: World) -> None:
    ticket = await world.ticket()
    cluster = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
        "spec": {"mode": "Enforce", "simulated": True},
    }  # fmt: skip
    await world.cluster.create(CONFIDENTIAL, cluster)

    async def refused() -> bool:
        answer = await world.get(ticket=ticket)
        return (answer.status_code, code(answer)) == (403, "attestation-required")

    await until(refused)


async def test_methods_paths_and_versions(world: World) -> None:
    ticket = await world.ticket()
    assert (await world.get("/healthz")).status_code == 200
    assert (await world.get(ticket=ticket, method="POST")).status_code == 405
    assert (await world.get("/config/worker/x", ticket=ticket)).status_code == 404
    assert (await world.get("/config/%2e%2e", ticket=ticket)).status_code == 404
    head = await world.get(ticket=ticket, method="HEAD")
    full = await world.get(ticket=ticket)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == full.headers["content-length"]
    bad = await world.get(ticket=ticket, accept="application/vnd.coreos.ignition+json;version=4.0.0")
    assert (bad.status_code, code(bad)) == (400, "unsupported-accept")
    again = await world.get(ticket=ticket, **{"if-none-match": full.headers["etag"]})
    assert again.status_code == 304


async def secret_of(world: World, pool: str = "worker") -> JsonObject:
    async with asyncio.timeout(PATIENCE):
        while True:
            secrets = (await world.cluster.list(SECRETS)).items
            for secret in secrets:
                if secret["metadata"]["name"] == f"{pool}{names.USER_DATA_SUFFIX}":
                    return secret
            await asyncio.sleep(0.02)


def pointer_of(secret: JsonObject) -> Any:
    return json.decode(base64.b64decode(secret["data"]["userData"]))


async def test_user_data_points_to_the_server_with_a_ticket_and_hand_edits_are_put_back(world: World) -> None:
    secret = await secret_of(world)
    pointer = pointer_of(secret)
    merge = pointer["ignition"]["config"]["merge"][0]
    assert merge["source"] == f"{world.plane.endpoints.config_server}/config/worker"
    ticket = merge["httpHeaders"][0]["value"].removeprefix("Bearer ")
    assert (await world.get(ticket=ticket)).status_code == 200
    edited = {"data": {"userData": base64.b64encode(b"mine").decode()}}
    await world.cluster.patch(SECRETS, secret["metadata"]["name"], edited, PatchType.MERGE, names.USER_DATA_NAMESPACE)

    async def put_back() -> bool:
        return bool((await secret_of(world))["data"]["userData"] != edited["data"]["userData"])

    await until(put_back)
    assert pointer_of(await secret_of(world))["ignition"]["config"]["merge"][0]["source"] == merge["source"]


@pytest.mark.processes
@pytest.mark.row("000-38")
@pytest.mark.row("002-05")
async def test_the_real_ignition_lays_down_the_served_config(world: World, tmp_path: Path) -> None:
    require_program(IGNITION, "ignition")
    files = [{"path": "/etc/motd", "mode": 384, "contents": {"source": "data:,attested%20or%20not"}}]
    body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    labels = {names.ROLE_LABEL: "worker"}
    made = {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": {"name": "50-motd", "labels": labels}}
    before = await world.rendered()
    await world.cluster.create(CONFIG, {**made, "spec": {"config": body}})

    async def handed_out() -> bool:
        pool = await world.cluster.get(POOL, "worker")
        return configuration_of(pool) not in ("", before)

    await until(handed_out)
    root = tmp_path / "root"
    (root / "etc/selinux").mkdir(parents=True)
    (root / "etc/selinux/config").write_text("SELINUXTYPE=targeted\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "setfiles").write_text("#!/bin/sh\nexit 0\n")
    (tools / "setfiles").chmod(0o755)
    pointer = tmp_path / "boot.ign"
    pointer.write_bytes(json.encode(pointer_of(await secret_of(world))))
    for stage in ("fetch", "files"):
        command = [
            str(IGNITION), "-platform", "file", "-stage", stage, "-root", str(root), "-config-cache", str(tmp_path / "cache"),
            "-state-file", str(tmp_path / "st"), "-neednet", str(tmp_path / "nn"), "-log-to-stdout",
        ]  # fmt: skip
        environment = {"IGNITION_CONFIG_FILE": str(pointer), "PATH": f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin"}
        ran = await asyncio.to_thread(
            subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stdout[-3000:]
    motd = root / "etc/motd"
    assert motd.read_text() == "attested or not"
    assert motd.stat().st_mode & 0o777 == 0o600
    notes = json.decode((root / names.NODE_ANNOTATIONS_FILE.lstrip("/")).read_bytes())
    assert notes[names.CURRENT_CONFIG] == await world.rendered()
