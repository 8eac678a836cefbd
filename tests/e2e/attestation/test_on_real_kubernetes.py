"""Enrol, challenge, evidence, verdict, secret: a real TPM, a real kube-apiserver, doors as processes, two brokers, one killed.

The cluster has definitions of a later release, as after half an upgrade or after going back (`newer_definitions`): this module
shows what an older program does there. tests/e2e/attestation/test_one_killed.py has the present ones.
"""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml

from fastness.agent.boot.enrol import HttpTransport, RetryBudget, enrol
from fastness.agent.boot.prove import BrokerClient, BrokerRefused
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.crypto.secret import SecretText
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.e2e.attestation.newer_definitions import MEMBER, VERSION, of_tomorrow
from tests.e2e.live import FASTNESS, environment, run
from tests.patience import PATIENCE, eventually
from tests.realkube import RealKube
from tests.swtpm import Maker, Swtpm

QUOTED = (4, 7, 11, 12, 14)
STATUS = "default/attestation-status/status"
DOORS_CA = "/api/v1/namespaces/fastness-system/secrets/doors-ca"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Door:
    """A process of `fastness serve` that said where it listens."""

    def __init__(self, kube: RealKube, home: Path, role: str, *words: str) -> None:
        command = [
            str(FASTNESS), "serve", "--roles", role, "--kubeconfig", str(kube.kubeconfig), "--metrics-port", "0", "--log-level",
            "warning", *words,
        ]  # fmt: skip
        self.child = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
        alarm = threading.Timer(PATIENCE, self.child.kill)
        alarm.start()
        assert self.child.stderr is not None
        self.announced = [self.child.stderr.readline() for _ in range(1 if role == "controllers" else 2)]
        alarm.cancel()

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.child.poll() is None:
            self.child.send_signal(number)
        self.child.communicate(timeout=PATIENCE)


class Doors:
    """The processes of a site by name; whatever was killed is started anew for the next who asks."""

    def __init__(self, start: dict[str, Callable[[], Door]]) -> None:
        self._start = start
        self._running: dict[str, Door] = {}

    def __getitem__(self, name: str) -> Door:
        door = self._running.get(name)
        if door is None or door.child.poll() is not None:
            self._running[name] = self._start[name]()
        return self._running[name]

    def open(self) -> None:
        """Start whatever does not run."""
        for name in self._start:
            assert self[name].child.poll() is None

    def end(self) -> None:
        """End them all."""
        for door in self._running.values():
            door.end()


class Site:
    """A cluster with its doors, and what a machine is given."""

    def __init__(self, kube: RealKube, admin: httpx.Client, env: dict[str, str], ports: dict[str, int]) -> None:
        self.kube, self.admin, self.env, self.ports = kube, admin, env, ports

    def apply(self, *objects: dict[str, Any]) -> None:
        for obj in objects:
            applied = run(["kubectl", "apply", "--server-side", "-f", "-"], self.env, stdin=orjson.dumps(obj).decode())
            assert applied.code == 0, applied.err

    def trust(self) -> ssl.SSLContext:
        secret = eventually(lambda: (got := self.admin.get(DOORS_CA)).is_success and got.json(), "the doors' authority")
        import base64

        return ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())

    def url(self, role: str) -> str:
        return f"https://127.0.0.1:{self.ports[role]}"

    def fastness(self, *words: str) -> Any:
        return run([FASTNESS, *words], self.env)


@pytest.fixture(scope="module")
def site(
    bare_kube: RealKube, tpm_maker: Maker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, Doors]]:
    home = tmp_path_factory.mktemp("home")
    env = environment(home, KUBECONFIG=str(bare_kube.kubeconfig))
    newer = yaml.safe_dump_all(of_tomorrow(yaml.safe_load_all(run([FASTNESS, "crds", "--with", "all"], env).out)))
    applied = run(["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=newer)
    assert applied.code == 0, applied.err
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], env)
    run(["kubectl", "create", "namespace", "fastness-system"], env)
    ports = {role: free_port() for role in ("enrol", "broker-a", "broker-b")}
    with bare_kube.client() as admin, ExitStack() as stack:
        made = Site(bare_kube, admin, env, ports)
        tpm_maker.provision("one")
        made.apply(*_objects(tpm_maker))
        vault = str(home / "vault.json")
        words = {
            "controllers": ("controllers",),
            "enrol": ("enrol", "--enrol-port", str(ports["enrol"])),
            "broker-a": ("broker", "--broker-port", str(ports["broker-a"]), "--vault", vault),
            "broker-b": ("broker", "--broker-port", str(ports["broker-b"]), "--vault", vault),
        }
        doors = Doors({name: partial(Door, bare_kube, home, *arguments) for name, arguments in words.items()})
        stack.callback(doors.end)
        doors.open()
        yield made, doors


def json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def tomorrow(word: str) -> dict[str, Any]:
    """A member that only a later release knows."""
    return {MEMBER: {"word": word}}


def _objects(maker: Maker) -> list[dict[str, Any]]:
    zero = "00" * 32
    return [
        {
            "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
            "spec": {
                "mode": "Enforce",
                "attestation": {
                    "evidence": ["tpm"],
                    "extraRoots": [{"sha256": maker.root, "for": "tpm", "reason": "the TPM of this test"}],
                },
            },
        },
        {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tpm-authorities", "namespace": "fastness-system"},
            "data": {"maker.pem": "".join(certificate.pem.decode() for certificate in maker.certificates)},
        },
        {
            "apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "metadata": {"name": "as-it-left-the-factory"},
            "spec": {
                "source": "manual",
                "values": [
                    {"name": f"tpm_pcr{number}", "value": zero, "register": f"pcr{number}", "algorithm": "sha256"}
                    for number in QUOTED
                ],
            },
        },
    ]  # fmt: skip


@pytest.mark.long("whichever comes first starts a real Kubernetes with every role")
async def test_a_real_machine_walks_from_its_ticket_to_its_secret_whichever_broker_answers(
    site: tuple[Site, Doors], swtpm: Swtpm, tmp_path: Path
) -> None:
    here, doors = site
    doors.open()
    created = here.fastness("ticket", "create", "--pool", "worker", "--uses", "1", "-o", "json")
    ticket = SecretText(created.json["ticket"])
    attester = TpmAttester(TpmTools(swtpm.tcti, event_log=tmp_path / "none"), tmp_path / "ak")
    clock, entropy, trust = SystemClock(), SystemEntropy(), here.trust()
    async with HttpTransport(here.url("enrol"), trust) as transport:
        enrolled = await enrol(transport, attester, ticket, RetryBudget(clock, entropy, 60, pause=0.3))
    assert enrolled.approved
    async with BrokerClient(here.url("broker-a"), trust, attester, entropy) as broker:
        await broker.attest()
        doors["broker-a"].end(signal.SIGKILL)
        broker.go_to(here.url("broker-b"))
        assert (await broker.resource(STATUS)).reveal() == b"success"
        explained = here.fastness("attest", "explain", enrolled.name)
        assert (explained.code, "is attested (tpm)" in explained.out) == (0, True), explained.out + explained.err
        assert "simulated" not in explained.out

        swtpm.tool("pcrextend", "11:sha256=" + "ab" * 32)
        with pytest.raises(BrokerRefused) as refused:
            await broker.attest()
        assert refused.value.status == 403
    explained = here.fastness("attest", "explain", enrolled.name)
    assert explained.code == 1
    assert "FAIL  PCR 11" in explained.out
    assert "FAIL  PCR 4 " not in explained.out


def test_what_was_decided_is_on_the_record_and_can_be_proved(site: tuple[Site, Doors], tmp_path: Path) -> None:
    here, _ = site
    kinds = {"enrol", "attested", "release", "refusal"}

    def written() -> Any:
        record = here.fastness("audit", "show", "-o", "json")
        return record.code == 0 and kinds <= {entry["what"] for entry in record.json}

    eventually(written, "the record")
    assert here.fastness("audit", "export", str(tmp_path / "record")).code == 0
    key = here.fastness("audit", "key").out.strip()
    checked = here.fastness("audit", "verify", str(tmp_path / "record"), "--key", key)
    assert (checked.code, checked.out[:4]) == (0, "good")


def test_what_a_later_release_wrote_outlives_the_older_program(site: tuple[Site, Doors]) -> None:
    """Said of the cluster and of a machine by a newer program; the older one reconciles both, and takes nothing away."""
    here, _ = site
    cluster, machines = f"confidentialclusters.{VERSION}.fastness.dev", "machines.trusted-execution-clusters.io"
    (machine, *_) = run(["kubectl", "get", machines, "-n", "fastness-system", "-o", "name"], here.env).out.split()
    merge = ("--type=merge", "-p")
    for words in (
        (f"{cluster}/cluster", *merge, json_text({"spec": tomorrow("spec")})),
        (f"{cluster}/cluster", "--subresource=status", *merge, json_text({"status": tomorrow("status")})),
        (machine, "-n", "fastness-system", *merge, json_text({"spec": tomorrow("machine")})),
    ):
        patched = run(["kubectl", "patch", *words], here.env)
        assert patched.code == 0, patched.err
    # A change that the older controllers act on: they write the status anew.
    interval = json_text({"spec": {"attestation": {"reattestInterval": "14m"}}})
    changed = run(["kubectl", "patch", "confidentialcluster/cluster", *merge, interval], here.env).code
    get = ["kubectl", "get", f"{cluster}/cluster", "-o", "json"]

    def settled() -> Any:
        cluster = run(get, here.env).json
        return cluster["status"].get("observedGeneration") == cluster["metadata"]["generation"] and cluster

    stored = eventually(settled, "the status of now")
    assert (changed, stored["spec"][MEMBER], stored["status"][MEMBER]) == (0, {"word": "spec"}, {"word": "status"})
    after = run(["kubectl", "get", machine, "-n", "fastness-system", "-o", "json"], here.env).json
    assert after["spec"][MEMBER] == {"word": "machine"}
    assert here.fastness("attest", "explain", machine.rpartition("/")[2]).code in (0, 1), "its reader reads them, too"


def test_definitions_do_not_go_back_over_objects_that_a_later_release_stored(site: tuple[Site, Doors]) -> None:
    here, _ = site
    older = here.fastness("crds").out
    refused = run(["kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-"], here.env, stdin=older)
    assert refused.code == 1, refused.out
    assert "storedVersions" in refused.err, refused.err
    definition = run(["kubectl", "get", "crd", "confidentialclusters.fastness.dev", "-o", "json"], here.env).json
    assert VERSION in [version["name"] for version in definition["spec"]["versions"]]


async def test_a_ticket_for_one_machine_is_used_up(site: tuple[Site, Doors]) -> None:
    here, _ = site
    tickets = run(["kubectl", "get", "jointickets", "-o", "json"], here.env).json
    used = [(ticket["spec"]["uses"], (ticket.get("status") or {}).get("used", 0)) for ticket in tickets["items"]]
    assert (1, 1) in used
    assert all(count <= most for most, count in used)


async def test_without_the_namespace_of_ours_every_door_refuses_and_everybody_says_why(
    site: tuple[Site, Doors], swtpm: Swtpm, tmp_path: Path
) -> None:
    """Somebody who may delete namespaces, on a cluster without the webhook. The last test here: nothing is left afterwards."""
    here, doors = site
    doors.open()
    ticket = SecretText(
        here.fastness("ticket", "create", "--pool", "worker", "--uses", "1", "-o", "json").json["ticket"]
    )
    attester = TpmAttester(TpmTools(swtpm.tcti, event_log=tmp_path / "none"), tmp_path / "ak")
    clock, entropy, trust = SystemClock(), SystemEntropy(), here.trust()
    async with HttpTransport(here.url("enrol"), trust) as transport:
        await enrol(transport, attester, ticket, RetryBudget(clock, entropy, 60, pause=0.3))
    async with (
        BrokerClient(here.url("broker-a"), trust, attester, entropy) as broker,
        httpx.AsyncClient(verify=trust, trust_env=False, timeout=PATIENCE) as stranger,
    ):
        await broker.attest()
        assert (await broker.resource(STATUS)).reveal() == b"success"
        assert run(["kubectl", "delete", "namespace", "fastness-system", "--wait=false"], here.env).code == 0

        async def refused() -> bool:
            answer = await stranger.post(f"{here.url('enrol')}/v1/enrol", json={})
            return (answer.status_code, answer.json().get("code")) == (503, "home-gone")

        async with asyncio.timeout(2 * PATIENCE):
            while not await refused():  # noqa: ASYNC110  # the door hears of it by itself
                await asyncio.sleep(0.2)
            with pytest.raises(BrokerRefused) as withheld:
                while True:
                    await broker.resource(STATUS)
        assert withheld.value.status == 503
    health = re.search(r"http://\S+", doors["enrol"].announced[0])
    assert health is not None
    eventually(
        lambda: "is gone" in httpx.get(f"{health[0]}/readyz?verbose", trust_env=False).text, "readiness to say so"
    )
    gone = eventually(lambda: here.admin.get("/api/v1/namespaces/fastness-system").status_code == 404, "its end")
    doctor = here.fastness("doctor", "--kubeconfig", str(here.kube.kubeconfig))
    assert (gone, doctor.code, "fastness-system is gone" in doctor.out) == (True, 1, True), doctor.out + doctor.err
