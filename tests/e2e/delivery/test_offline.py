"""The first control plane: pointers are made before there is a cluster, and real Ignition is led to its config by one of them.

The API, the controllers with the doors, the command line and Ignition are processes or servers of their own; the doors run
outside the cluster that they guard, as they do where a control plane installs itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import signal
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kubernetes.core import EVENT, SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from tests.differential.peer import embedded_peer
from tests.e2e.delivery.ignition import Ignition
from tests.e2e.live import FASTNESS, KUBECTL, Outcome, environment, run
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/install-the-first-control-plane.md"
ADDRESS = "configs.example:22624"


def documented(beginning: str, port: int) -> list[str]:
    """A command as the page has it, with the port of this test in place of the name that only a real installation has."""
    lines = [line.removeprefix("$ ") for line in PAGE.read_text().splitlines()]
    [line] = [line for line in lines if line.startswith(beginning)]
    return shlex.split(line.replace(ADDRESS, f"127.0.0.1:{port}").replace("0.0.0.0", "127.0.0.1"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def command(home: Path, *words: str | Path, **env: str) -> Outcome:
    """Run a program; the API of the test is in this process, so nothing may block it."""
    return await asyncio.to_thread(run, words, environment(home, **env), cwd=home)


@asynccontextmanager
async def doors_outside(kubeconfig: Path, home: Path, port: int) -> AsyncIterator[None]:
    """`fastness serve` with controllers and config server, until the config server says where it is."""
    words = [
        FASTNESS, *documented("fastness serve", port)[1:], "--kubeconfig", kubeconfig, "--metrics-port", "0",
        "--config-port", port, "--internal-port", "0", "--log-level", "warning",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *map(str, words), env=environment(home), stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            lines = [await process.stderr.readline()]
            while lines[-1] and not lines[-1].startswith(b"configs on "):
                lines.append(await process.stderr.readline())
        assert lines[-1], b"".join(lines).decode()
        yield
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def eventually(
    ask: Callable[[], Awaitable[dict[str, Any]]], holds: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """An object as soon as it is there and something holds of it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(NotFound):
                if holds(obj := await ask()):
                    return obj
            await asyncio.sleep(0.1)


async def adopted(cluster: Cluster, pool: str) -> dict[str, Any]:
    """The managed Secret of a pool, once the controllers have taken it over."""
    name = f"{pool}{names.USER_DATA_SUFFIX}"
    return await eventually(
        lambda: cluster.get(SECRET.resource, name, names.USER_DATA_NAMESPACE),
        lambda secret: secret["metadata"].get("ownerReferences"),
    )


async def rendered(cluster: Cluster, pool: str) -> str:
    """The rendered config of a pool: before there is one, nobody is served."""
    obj = await eventually(
        lambda: cluster.get(MACHINE_CONFIG_POOL.resource, pool),
        lambda obj: (obj["status"].get("configuration") or {}).get("name") if obj.get("status") else "",
    )
    return str(obj["status"]["configuration"]["name"])


async def fetched(ignition: Ignition, pointer: bytes) -> str:
    """The config that Ignition fetched with a pointer."""
    (ignition.place / "user-data").write_bytes(pointer)
    async with asyncio.timeout(PATIENCE):
        stage = await ignition.stage("fetch")
    assert stage.status == 0, stage.log
    return (ignition.place / "cache").read_text()


@pytest.mark.row("002-33")
@pytest.mark.row("002-35")
async def test_a_machine_with_a_pointer_that_is_older_than_the_cluster_gets_its_config(tmp_path: Path) -> None:
    # 1. No API anywhere: pointers of master and worker, and what the cluster will need to know of them.
    port = free_port()
    made = await command(tmp_path, FASTNESS, *documented("fastness userdata --offline", port)[1:])
    assert made.code == 0, made.err
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "first").iterdir()}
    assert files == {"master.ign": 0o600, "worker.ign": 0o600, "bundle.yaml": 0o600}
    pointer = (tmp_path / "first/master.ign").read_bytes()
    ticket = json.loads(pointer)["ignition"]["config"]["merge"][0]["httpHeaders"][0]["value"].removeprefix("Bearer ")
    # 2. The API comes up, with what Kubernetes runs beside it (without its authority in every namespace nobody is told how to
    #    join), and is given the bundle; then the doors open, outside of it.
    async with embedded_peer(tmp_path / "api", simulated=False) as server:
        api = Embedded(server, tmp_path / "api")
        words = documented("kubectl apply", port)[1:]
        applied = await command(tmp_path, KUBECTL, *words, KUBECONFIG=str(api.kubeconfig))
        assert applied.code == 0, applied.err
        tickets = (await api.cluster.list(JOIN_TICKET.resource)).items
        assert sorted(entry["spec"]["pool"] for entry in tickets) == ["master", "worker"]
        assert ticket not in json.dumps(tickets), "the objects hold a hash"
        async with doors_outside(api.kubeconfig, tmp_path, port):
            # 3. The Secrets are the cluster's own from now on, and still let in whoever has the pointers of before.
            secret = await adopted(api.cluster, "master")
            events = (await api.cluster.list(EVENT.resource)).items
            assert {event["involvedObject"]["name"] for event in events if event["reason"] == "UserDataAdopted"} >= {
                "master"
            }
            head = json.loads(base64.b64decode(secret["data"]["userData"]))["ignition"]
            assert head["security"] == json.loads(pointer)["ignition"]["security"], (
                "the authority is that of the bundle"
            )
            # 4. Real Ignition boots the first control plane with the file that was made first.
            assert (await rendered(api.cluster, "master")).startswith("rendered-master-")
            config = json.loads(await fetched(Ignition(tmp_path), pointer))
            assert "kubelet.service" in {unit["name"] for unit in config["systemd"]["units"]}


async def test_files_that_machines_may_have_are_not_overwritten_and_an_authority_is_used_again(tmp_path: Path) -> None:
    words = (FASTNESS, "userdata", "--config-url", "https://configs.example:22624", "--offline")
    assert (await command(tmp_path, *words, "a")).code == 0
    again = await command(tmp_path, *words, "a")
    assert (again.code, "master.ign exists" in again.err) == (1, True)
    more = await command(
        tmp_path, *words, "b", "--pool", "infra", "--bundle", "a/bundle.yaml", "--pointer-version", "3.4"
    )
    assert more.code == 0, more.err
    heads = [json.loads((tmp_path / name).read_text())["ignition"] for name in ("a/worker.ign", "b/infra.ign")]
    assert heads[0]["security"] == heads[1]["security"]
    assert heads[1]["version"] == "3.4.0"
    assert heads[1]["config"]["merge"][0]["source"] == "https://configs.example:22624/config/infra"
