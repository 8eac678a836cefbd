"""The same loops and the same agents against a real kube-apiserver: a config reaches virtual machines and leaves again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from fastness.app.controllers import product_loops
from fastness.attestation.loops.door_certificates import FAMILY, issuing
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.kinds.crd import manifests
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.registry import find as kind
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.release.door.config_server.server import config_server
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.sim.fleet import machines
from fastness.sim.platform import Fleet
from tests.node_facts import state_node_facts
from tests.patience import PATIENCE
from tests.realkube.cluster import RealKube

MCO = "machineconfiguration.openshift.io"
CONFIG = kind(MCO, "v1", "machineconfigs").resource
POOL = kind(MCO, "v1", "machineconfigpools").resource


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await check():
                return
            await asyncio.sleep(0.1)


def install_definitions(real_kube: RealKube) -> None:
    """Every definition of ours, as an administrator applies them."""
    with real_kube.client("admin") as client:
        for manifest in manifests():
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"
            query = {"fieldManager": "test", "force": "true"}
            headers = {"content-type": "application/apply-patch+yaml"}
            answer = client.patch(path, params=query, headers=headers, content=json.encode(manifest))
            assert answer.status_code in (200, 201), answer.text[:500]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fastness-system"}}
        assert client.post("/api/v1/namespaces", json=namespace).status_code in (201, 409)
        for _ in range(900):
            if (
                client.get("/apis/machineconfiguration.openshift.io/v1/machineconfigpools").status_code
                == httpx.codes.OK
            ):
                return


async def updated(cluster: Cluster, config: str, *, present: bool) -> bool:
    """Whether the worker pool has arrived at a rendered config that has, or has not, this source."""
    pool = next((obj for obj in (await cluster.list(POOL)).items if obj["metadata"]["name"] == "worker"), None)
    if pool is None:
        return False
    desired = pool["spec"].get("configuration") or {}
    sources = [source["name"] for source in desired.get("source") or ()]
    verdict = condition(pool, "Updated")
    arrived = ((pool.get("status") or {}).get("configuration") or {}).get("name") == desired.get("name")
    counted = (pool.get("status") or {}).get("updatedMachineCount") == 2
    return bool(
        desired and (config in sources) == present and verdict and verdict["status"] == "True" and arrived and counted
    )


def laid_down(directory: Path) -> list[str]:
    """What the machines have at the path of the config."""
    return [path.read_text() for path in sorted(directory.glob("worker-*/root/etc/real-motd"))]


async def test_a_config_reaches_virtual_machines_over_a_real_api_and_leaves_again(
    bare_kube: RealKube, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_definitions, bare_kube)
    clock, entropy = SystemClock(), SystemEntropy()
    around = Surroundings({}, tmp_path)
    async with (
        connect(find(around, kubeconfig=bare_kube.kubeconfig)) as cluster,
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        issuing(cluster, informers, clock, entropy),
        config_server(cluster, informers, clock, entropy) as door,
        asyncio.TaskGroup() as tasks,
    ):
        await state_node_facts(cluster, bare_kube.url)
        doors = Doors("", f"https://127.0.0.1:{door.port}", door.doors.bundle)
        loops = product_loops(
            cluster, informers, clock, entropy, timing=SIMULATED, doors=lambda: doors, without=(FAMILY,)
        )
        work = tasks.create_task(Runner(loops, informers, clock, entropy).run())
        async with machines(Fleet(cluster, lambda _name: cluster, tmp_path, clock, entropy), 2):
            await until(lambda: updated(cluster, "50-real-motd", present=False))
            files = [{"path": "/etc/real-motd", "mode": 420, "contents": {"source": "data:,really"}}]
            body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
            meta = {"name": "50-real-motd", "labels": {names.ROLE_LABEL: "worker"}}
            made = {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": meta, "spec": {"config": body}}
            await cluster.patch(CONFIG, "50-real-motd", made, PatchType.APPLY, "", WriteOptions(force=True))
            await until(lambda: updated(cluster, "50-real-motd", present=True))
            assert await asyncio.to_thread(laid_down, tmp_path) == ["really", "really"]
            await cluster.delete(CONFIG, "50-real-motd")
            await until(lambda: updated(cluster, "50-real-motd", present=False))
            assert await asyncio.to_thread(laid_down, tmp_path) == []
        work.cancel()
