"""The walk on a real kube-apiserver: every door a process, two of each, and one killed in the middle of a machine's walk."""

from __future__ import annotations

import asyncio
import base64
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from fastness.agent.boot.boot import BootedConfig, BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import RetryBudget, once_each
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.crypto.secret import SecretText
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.e2e.attestation.balancer import Balancer
from tests.e2e.attestation.test_on_real_kubernetes import DOORS_CA, Door, _objects, free_port
from tests.e2e.live import FASTNESS, environment, run
from tests.patience import PATIENCE, eventually
from tests.realkube import RealKube
from tests.soaking import SOAK, soaking
from tests.swtpm import Maker, Swtpm

ACCEPT = "application/vnd.coreos.ignition+json;version=3.4.0"
CONFIG_KEYS = "/api/v1/namespaces/fastness-system/configmaps/config-public-keys"
PORTS = {"configserver": "--internal-port", "enrol": "--enrol-port", "broker": "--broker-port", "gate": "--gate-port"}


class Site:
    """A cluster with two replicas of everything, and a balancer in front of each pair."""

    def __init__(self, kube: RealKube, home: Path) -> None:
        self.kube, self.home = kube, home
        self.env = environment(home, KUBECONFIG=str(kube.kubeconfig))
        self.ports = {f"{role}-{letter}": free_port() for role in PORTS for letter in "ab"}
        self.fronts = {role: Balancer([self.ports[f"{role}-a"], self.ports[f"{role}-b"]]) for role in PORTS}
        self.doors: dict[str, Door] = {}
        self.user_data = ""
        self.believed: ImageTrust
        self.lines: list[str] = []

    def define(self) -> None:
        """Our definitions, as whoever installs the roles by hand makes them."""
        crds = run([FASTNESS, "crds", "--with", "all"], self.env).out
        assert run(["kubectl", "apply", "--server-side", "-f", "-"], self.env, stdin=crds).code == 0
        run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], self.env)

    def start(self, name: str) -> None:
        """Start a replica, or start it again."""
        role = name.rpartition("-")[0]
        urls = {
            "--internal-url": self.fronts["configserver"].url, "--broker-url": self.fronts["broker"].url,
            "--gate-url": self.fronts["gate"].url,
        }  # fmt: skip
        words = [word for pair in urls.items() for word in pair]
        if role == "controllers":
            words = ["--enrol-url", self.fronts["enrol"].url, "--config-url", self.fronts["configserver"].url]
        else:
            words += [PORTS[role], str(self.ports[name])]
        if role == "configserver":
            words += ["--config-port", "0"]
        if role == "broker":
            words += ["--vault", str(self.home / "vault.json")]
        self.doors[name] = Door(self.kube, self.home, role, *words)

    def kill(self, name: str) -> None:
        """No warning."""
        self.doors[name].end(signal.SIGKILL)

    def close(self) -> None:
        """End everything."""
        for door in self.doors.values():
            door.end()
        for front in self.fronts.values():
            front.close()

    def apply(self, *objects: dict[str, Any]) -> None:
        """Write objects."""
        for obj in objects:
            applied = run(["kubectl", "apply", "--server-side", "-f", "-"], self.env, stdin=orjson.dumps(obj).decode())
            assert applied.code == 0, applied.err

    def deliver_by(self, via: str, sync: str = "OnDemand") -> None:
        """Choose the way to the configurations."""
        patch = f'{{"spec":{{"delivery":{{"via":"{via}","sync":"{sync}"}}}}}}'
        patched = run(["kubectl", "patch", "confidentialcluster", "cluster", "--type=merge", "-p", patch], self.env)
        assert patched.code == 0, patched.err

    def trust(self) -> ImageTrust:
        """What an image for this cluster believes."""
        with self.kube.client() as admin:

            def data(path: str) -> Any:
                return eventually(lambda: (got := admin.get(path)).is_success and got.json()["data"], path)

            ca, keys = data(DOORS_CA)["ca.crt"], data(CONFIG_KEYS)["jwks.json"]
        jwks = orjson.loads(keys)["keys"]
        return ImageTrust.parse(orjson.dumps({"ca": base64.b64decode(ca).decode(), "configKeys": jwks}))

    async def boot(self, tpm: Swtpm, directory: Path) -> BootedConfig:
        """A machine with this TPM walks from its ticket to its configuration."""
        self.believed = self.trust()
        return await self._walk(tpm, directory, self._ticket())

    async def boot_again(self, tpm: Swtpm, directory: Path) -> BootedConfig:
        """The same machine is switched on: its user-data and its image are those of before."""
        return await self._walk(tpm, directory, self.user_data)

    def _ticket(self) -> str:
        created = run([FASTNESS, "ticket", "create", "--pool", "worker", "--uses", "1", "-o", "json"], self.env)
        self.user_data = str(created.json["ticket"])
        return self.user_data

    async def _walk(self, tpm: Swtpm, directory: Path, ticket: str) -> BootedConfig:
        ask = BootRequest("worker", SecretText(ticket), self.fronts["enrol"].url, ACCEPT)
        attester = TpmAttester(TpmTools(tpm.tcti, event_log=directory / "none"), directory / "ak")
        self.lines.clear()
        patience = RetryBudget(
            SystemClock(), SystemEntropy(), 2 * PATIENCE, pause=0.3, tell=once_each(self.lines.append)
        )
        return await boot_once(attester, ask, self.believed, patience)

    async def until_it_says(self, words: str) -> str:
        """What the machine that boots tells on its console about its wait."""
        matching: list[str] = []

        def is_said() -> bool:
            matching[:] = [line for line in list(self.lines) if words in line]
            return bool(matching)

        await asyncio.to_thread(eventually, is_said, f"a wait for {words}")
        return matching[0]


@pytest.fixture(scope="module")
def site(bare_kube: RealKube, tpm_maker: Maker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(bare_kube, tmp_path_factory.mktemp("home"))
    made.define()
    run(["kubectl", "create", "namespace", "fastness-system"], made.env)
    tpm_maker.provision("one")
    with ExitStack() as stack:
        stack.callback(made.close)
        made.apply(*_objects(tpm_maker))
        for role in ("controllers", *PORTS):
            for letter in "ab":
                made.start(f"{role}-{letter}")
        yield made


SHORT = [("Gate", "configserver"), ("Gate", "gate"), ("Broker", "enrol"), ("Broker", "broker")]
WAYS = [(via, role) for via in ("Gate", "Broker") for role in PORTS if (via, role) != ("Broker", "gate")]


@pytest.mark.long("whichever comes first starts a real Kubernetes with every role twice")
@pytest.mark.parametrize(
    ("via", "role"),
    [way if way in SHORT else soaking(*way, why="each door is killed once, and each way walked twice") for way in WAYS],
)
async def test_a_machine_gets_its_configuration_although_a_door_is_killed_in_the_middle_of_its_walk(
    site: Site, swtpm: Swtpm, tmp_path: Path, via: str, role: str
) -> None:
    site.deliver_by(via)
    killed: list[str] = []

    def kill() -> None:
        site.kill(f"{role}-a")
        killed.append(role)

    site.fronts[role].meet = kill
    booted = await site.boot(swtpm, tmp_path)
    assert killed == [role]
    assert orjson.loads(booted.body)["ignition"]["version"].startswith("3.")
    site.start(f"{role}-a")


def both(role: str) -> list[str]:
    return [f"{role}-{letter}" for letter in "ab"]


@pytest.mark.row("000-65")
async def test_machines_that_boot_while_there_is_no_gate_wait_for_it_and_come_again(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    site.deliver_by("Gate")
    for name in both("gate"):
        site.kill(name)
    site.lines.clear()  # of the boots before
    waiting = asyncio.create_task(site.boot(swtpm, tmp_path))
    assert "the gate" in await site.until_it_says("waiting for the configuration (unreachable)")
    assert not waiting.done()
    site.start("gate-b")
    assert orjson.loads((await waiting).body)["ignition"]["version"].startswith("3.")
    site.start("gate-a")


@pytest.mark.row("000-80")
async def test_where_the_broker_delivers_a_machine_gets_its_configuration_without_any_gate(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    for name in both("gate"):
        site.kill(name)
    site.deliver_by("Broker")
    booted = await site.boot(swtpm, tmp_path)
    assert orjson.loads(booted.body)["ignition"]["version"].startswith("3.")
    site.deliver_by("Gate")
    for name in both("gate"):
        site.start(name)


@pytest.mark.row("000-77")
async def test_brokers_that_start_while_the_config_server_is_down_say_what_machines_wait_for(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    site.deliver_by("Broker", sync="OnChange")
    before = await site.boot(swtpm, tmp_path)  # its broker has a copy from now on
    for name in both("configserver"):
        site.kill(name)
    again = await site.boot_again(swtpm, tmp_path)
    assert again.body == before.body, "from the copy: the config server does not run"
    for name in both("broker"):
        site.kill(name)
        site.start(name)
    site.lines.clear()
    waiting = asyncio.create_task(site.boot_again(swtpm, tmp_path))
    line = await site.until_it_says("config-server-unreachable")
    assert "the config server does not answer, and this broker has no copy yet" in line
    about = f"involvedObject.name={before.machine.name},reason=Refused"
    events = ["kubectl", "get", "events", "-A", "--field-selector", about]
    await asyncio.to_thread(
        eventually, lambda: "this broker has no copy yet" in run(events, site.env).out, "an event at its Machine"
    )
    assert not waiting.done()
    site.start("configserver-a")
    assert (await waiting).body == before.body
    site.start("configserver-b")
    site.deliver_by("Gate")


async def test_a_machine_waits_for_the_next_leader_when_the_controllers_are_killed(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    site.kill("controllers-a")
    booted = await site.boot(swtpm, tmp_path)
    assert booted.machine.approved
    site.start("controllers-a")


async def test_with_replicas_killed_and_back_a_changed_machine_still_gets_nothing(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    swtpm.tool("pcrextend", "11:sha256=" + "ab" * 32)
    site.fronts["broker"].meet = lambda: site.kill("broker-a")
    with pytest.raises(BootRefused):
        await site.boot(swtpm, tmp_path)
    site.start("broker-a")


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="in `make soak`: doors and controllers are killed one by one above")
async def test_after_a_power_cut_of_everything_a_known_machine_boots_without_anybody(
    site: Site, swtpm: Swtpm, tmp_path: Path
) -> None:
    """The cold start of contracts §9: doors and their API run outside of the guarded machines, which wait for them."""
    before = await site.boot(swtpm, tmp_path)
    for name in list(site.doors):
        site.kill(name)
    for program in ("kube-controller-manager", "kube-apiserver", "etcd"):
        site.kube.programs[program].child.kill()
    waiting = asyncio.create_task(site.boot_again(swtpm, tmp_path))
    for program in ("etcd", "kube-apiserver", "kube-controller-manager"):
        site.kube.kill_and_restart(program)
    with site.kube.client() as admin:
        await asyncio.to_thread(eventually, lambda: ready(admin), "the API is back")
    for name in list(site.doors):
        await asyncio.to_thread(site.start, name)
    after = await waiting
    assert (after.machine.name, after.body) == (before.machine.name, before.body)


def ready(admin: httpx.Client) -> bool:
    try:
        return admin.get("/readyz").is_success
    except httpx.TransportError:
        return False


def test_every_release_is_on_a_record_that_can_be_proved(site: Site, tmp_path: Path) -> None:
    def releases() -> int:
        record = run([FASTNESS, "audit", "show", "-o", "json"], site.env)
        return [entry["what"] for entry in record.json].count("release") if record.code == 0 else 0

    eventually(lambda: releases() >= 1, "a release on the record")
    assert run([FASTNESS, "audit", "export", str(tmp_path / "record")], site.env).code == 0
    key = run([FASTNESS, "audit", "key"], site.env).out.strip()
    checked = run([FASTNESS, "audit", "verify", str(tmp_path / "record"), "--key", key], site.env)
    assert (checked.code, checked.out[:4]) == (0, "good")
