"""An enforcing cluster on a real kube-apiserver: every door with its own account, the controllers, and machines of three kinds.

    async with enforcing(kube, directory) as world:
        world.machines                       virtual machines of pool worker; they enrol, attest and fetch through the gate
        await world.ordinary("plain-1")      a node of pool plain, which needs no proof; its agent fetches on 22624
        world.as_node(name), world.node_configs(name)      what whoever has the credential of a node can ask

Nodes have certificates that the API server believes, held to their own by its Node authorizer; nobody else has more than its
account. Only the kubelet is played (`sim/kubelet.py`).
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson

from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.node import FAST, Agent
from fastness.agent.boot.configs import NodeConfigs, NodeIdentity
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.host.file_changes import PollingWatcher
from fastness.app.accounts import ACCOUNTS, everything
from fastness.app.controllers import product_loops
from fastness.app.machines import confidential
from fastness.attestation.loops.door_certificates import FAMILY
from fastness.attestation.loops.door_certificates import issuing as certified
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.crypto.x509 import CertificateAuthority, Credential
from fastness.enrolment.door.server import enrolment_door
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.http.opening import ListenOptions
from fastness.keys.client_authorities import ClientAuthorities
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find as kind
from fastness.kube.client.client import KubeCluster
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Connection, context_for
from fastness.kube.client.transport import Transport
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.record.live.record import ClusterRecord
from fastness.release.door.broker.opening import broker_door
from fastness.release.door.config_server.server import ConfigDoor, config_server
from fastness.release.door.gate.server import gate
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.sim.announce import announce_vendor
from fastness.sim.fleet import running_machines
from fastness.sim.hardware import Silicon
from fastness.sim.inventory import Spec
from fastness.sim.kubelet import READY, Kubelet
from fastness.sim.machines import VirtualMachine
from fastness.sim.platform import Fleet, Proofs
from fastness.sim.tee.vendor import SimVendor
from tests.component.realkube.test_accounts import acting, apply
from tests.e2e.live import FASTNESS, environment, run
from tests.node_facts import state_node_facts
from tests.patience import PATIENCE
from tests.realkube import RealKube

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
NODES = kind("", "v1", "nodes").resource
MCO = "machineconfiguration.openshift.io"
CONFIGS, POOLS = kind(MCO, "v1", "machineconfigs").resource, kind(MCO, "v1", "machineconfigpools").resource
PLAIN = "plain"


async def until(check: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first answer that is not nothing."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                if value := await check():
                    return value
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen in time") from None


@dataclass
class Enforcing:
    """The cluster as its administrator sees it, its doors, and those who come to them."""

    kube: RealKube
    directory: Path
    admin: Cluster
    configs: ConfigDoor
    gate: str
    issuing: CertificateAuthority = field(repr=False)
    machines: list[VirtualMachine] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)

    # ------------------------------------------------------------ what nodes have

    def credential(self, node: str) -> Credential:
        """The certificate of a kubelet."""
        return self.issuing.issue_client(f"system:node:{node}", ["system:nodes"], timedelta(hours=1), CLOCK.now())

    def connection(self, credential: Credential) -> Connection:
        """The API server with this certificate and nothing else."""
        admin = find(Surroundings({"KUBECONFIG": str(self.kube.kubeconfig)}, Path("/nonexistent")))
        return replace(admin, certificate=credential.certificate.pem, key=credential.key_pem, token=SecretText(""))

    def as_node(self, node: str) -> Cluster:
        """The API as the credential of a node opens it."""
        transport = Transport(self.connection(self.credential(node)), CLOCK, ENTROPY)
        self._stack.push_async_callback(transport.close)
        return KubeCluster(transport, ENTROPY)

    def trust(self) -> ImageTrust:
        """What `fastness image trust` writes for this cluster."""
        trusted = {"ca": self.configs.doors.bundle, "configKeys": self.configs.served.signer.jwks()}
        return ImageTrust.parse(json.encode(trusted))

    def node_configs(self, node: str) -> NodeConfigs:
        """Port 22624 with the certificate of a node."""
        credential = self.credential(node)
        tls = context_for(replace(self.connection(credential), ca=self.configs.doors.bundle.encode()))
        identity = NodeIdentity(node, str(credential.certificate.fingerprint), tls, self.trust().keys)
        return NodeConfigs(f"https://127.0.0.1:{self.configs.port}", lambda: identity, CLOCK, ENTROPY)

    async def node(self, name: str, pool: str) -> None:
        """A Node that joined by hand; one of the confidential pool says that it is at the config of the pool."""
        current = await self.goal(pool)
        notes = {names.DESIRED_CONFIG: current}
        if pool != PLAIN:
            notes |= {names.CURRENT_CONFIG: current, names.STATE: names.NodeState.DONE.value}
        meta = {"name": name, "labels": {f"{names.NODE_ROLE_PREFIX}{pool}": ""}, "annotations": notes}
        await self.admin.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})

    async def ordinary(self, name: str) -> Path:
        """A node of the pool without attestation, with its agent; the root of the machine."""
        machine = DirectoryMachine(
            self.directory / name, PollingWatcher(self.directory / name / "root", CLOCK), ENTROPY.uid
        )
        await self.node(name, PLAIN)
        await Kubelet(self.admin, CLOCK, Spec(name, 0, "tpm", pool=PLAIN)).tell(name, READY, machine.power.boot_id())
        configs = self.node_configs(name)

        async def live() -> None:
            while True:  # boot by boot, as `fastness agent run` does
                await Agent(self.as_node(name), machine.host, name, CLOCK, ENTROPY, FAST, configs=configs).run()
                machine.reboot()

        task = asyncio.create_task(live())

        async def end() -> None:
            task.cancel()
            await asyncio.wait([task])

        self._stack.push_async_callback(end)
        return machine.root

    # ------------------------------------------------------------ what the administrator does and sees

    async def goal(self, pool: str) -> str:
        """The rendered config of a pool; waits for the first one."""

        async def rendered() -> str:
            pool_object = next(
                (obj for obj in (await self.admin.list(POOLS)).items if obj["metadata"]["name"] == pool), {}
            )
            return str(((pool_object.get("spec") or {}).get("configuration") or {}).get("name", ""))

        return str(await until(rendered, f"a config of pool {pool}"))

    async def change(self, pool: str, text: str) -> str:
        """Put another file on all machines of a pool; the rendered config that says so."""
        before, name = await self.goal(pool), f"50-{pool}-{text}"
        files = [{"path": "/etc/day-two", "mode": 420, "contents": {"source": f"data:,{text}"}}]
        spec = {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}}
        meta = {"name": name, "labels": {names.ROLE_LABEL: pool}}
        body = {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": meta, "spec": spec}
        await self.admin.create(CONFIGS, body)

        async def rendered() -> str:
            now = await self.goal(pool)
            return now if now != before else ""

        return str(await until(rendered, "a new rendered config"))

    async def notes(self, node: str) -> dict[str, str]:
        """The annotations of a Node."""
        return dict((await self.admin.get(NODES, node))["metadata"].get("annotations") or {})

    async def arrived(self, node: str, config: str) -> None:
        """Wait until a node says that it is at a config."""

        async def there() -> bool:
            notes = await self.notes(node)
            return (notes.get(names.CURRENT_CONFIG), notes.get(names.STATE)) == (config, names.NodeState.DONE.value)

        await until(there, f"{node} at {config}")

    async def recorded(self, what: str) -> list[JsonObject]:
        """What the record says, as `fastness audit show` prints it."""
        env = environment(self.directory, KUBECONFIG=str(self.kube.kubeconfig))
        words: list[str | Path] = [FASTNESS, "audit", "show", "--what", what, "--last", "1000", "-o", "json"]
        record = await asyncio.to_thread(run, words, env)
        assert record.code == 0, record.err
        return list(orjson.loads(record.out))


def installed(kube: RealKube) -> None:
    """Our kinds, and the accounts as `fastness crds --accounts` prints them."""
    env = environment(kube.directory, KUBECONFIG=str(kube.kubeconfig))
    applied = run(
        ["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=run([FASTNESS, "crds", "--with", "all"], env).out
    )
    assert applied.code == 0, applied.err
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], env)
    with kube.client() as admin:
        for document in everything():
            apply(admin, document)


async def _furnish(admin: Cluster, vendor: SimVendor) -> None:
    """A cluster that enforces, what its machines boot, and a pool that needs no proof."""
    pools = [{"name": PLAIN, "trustModel": "None"}]
    body = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True, "pools": pools},
    }  # fmt: skip
    await admin.create(CONFIDENTIAL_CLUSTER.resource, body)
    await confidential(admin)
    await announce_vendor(admin, vendor, CLOCK.now())
    roles = [{"key": names.ROLE_LABEL, "operator": "In", "values": [names.WORKER, PLAIN]}]
    spec = {
        "machineConfigSelector": {"matchExpressions": roles},
        "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{PLAIN}": ""}},
    }
    meta = {"name": PLAIN, "labels": {}}
    await admin.create(POOLS, {"apiVersion": f"{MCO}/v1", "kind": "MachineConfigPool", "metadata": meta, "spec": spec})


@asynccontextmanager
async def enforcing(kube: RealKube, directory: Path, count: int = 2) -> AsyncIterator[Enforcing]:
    """The cluster with so many attested machines, for the time of the block."""
    await asyncio.to_thread(installed, kube)
    pair, vendor = kube.credentials, SimVendor(ENTROPY)
    issuing = CertificateAuthority.load(pair.ca.read_bytes(), SecretBytes(pair.ca_key.read_bytes()), ENTROPY)
    cipher = KeyRing([SealKey.generate(ENTROPY)], ENTROPY)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        admin = await enter(acting(kube, None))
        await state_node_facts(admin, kube.url)
        await _furnish(admin, vendor)
        roles = {role.name: await enter(acting(kube, role)) for role in ACCOUNTS}
        caches = {
            name: await enter(Informers(cluster, clock=CLOCK, entropy=ENTROPY)) for name, cluster in roles.items()
        }
        work_of = (roles["controllers"], caches["controllers"])
        await enter(certified(*work_of, CLOCK, ENTROPY))
        clients = await ClientAuthorities.open(roles["configserver"], caches["configserver"])
        assert clients is not None
        configs = await enter(
            config_server(roles["configserver"], caches["configserver"], CLOCK, ENTROPY, ListenOptions(), clients)
        )
        broker, _ = await enter(
            broker_door(roles["broker"], caches["broker"], CLOCK, ENTROPY, cipher=cipher, configs=configs.served)
        )
        record = ClusterRecord(roles["gate"], CLOCK, ENTROPY, "gate")
        keeper = await enter(gate(roles["gate"], caches["gate"], configs.served, record, CLOCK, ENTROPY))
        urls = DoorUrls(f"https://127.0.0.1:{broker.port}", f"https://127.0.0.1:{keeper.port}")
        enrolment = await enter(enrolment_door(roles["enrol"], caches["enrol"], CLOCK, ENTROPY, urls=lambda: urls))
        doors = Doors(f"https://127.0.0.1:{enrolment.port}", f"https://127.0.0.1:{configs.port}", configs.doors.bundle)
        loops = product_loops(*work_of, CLOCK, ENTROPY, timing=SIMULATED, doors=lambda: doors, without=(FAMILY,))
        group = await enter(asyncio.TaskGroup())
        work = group.create_task(Runner(loops, caches["controllers"], CLOCK, ENTROPY).run())
        stack.callback(work.cancel)
        world = Enforcing(kube, directory, admin, configs, urls.gate, issuing)
        await enter(world._stack)
        proofs = Proofs(
            lambda spec: Silicon(vendor, spec.tee, spec.number, counted=directory / spec.name / "boots"),
            world.trust,
            lambda: urls.broker,
            lambda: urls.gate,
        )
        fleet = Fleet(admin, world.as_node, directory, CLOCK, ENTROPY, proofs=proofs)
        opened = await enter(running_machines(fleet))
        for number in range(count):
            opened.place(opened.build(Spec(f"worker-{number}", number, "tpm")))
        world.machines = list(opened)
        yield world


@asynccontextmanager
async def report_on_failure(world: Enforcing) -> AsyncIterator[None]:
    """Print what went wrong in the block, and how machines and nodes stood then: groups of groups hide it."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
        for machine in world.machines:
            print(machine.name, machine.node, machine.console)
        for node in (await world.admin.list(NODES)).items:
            print(node["metadata"]["name"], node["metadata"].get("annotations"), node.get("spec"))
        for pool in (await world.admin.list(POOLS)).items:
            print(
                pool["metadata"]["name"],
                [
                    (condition["type"], condition["status"], condition.get("message"))
                    for condition in pool["status"]["conditions"]
                ],
            )
        raise


async def ask_gate(world: Enforcing, path: str, credential: Credential | None = None) -> httpx.Response:
    """What the gate answers to somebody with a certificate, or without."""
    connection = replace(
        world.connection(credential or world.credential("nobody")), ca=world.configs.doors.bundle.encode()
    )
    async with httpx.AsyncClient(verify=context_for(connection), trust_env=False, timeout=PATIENCE) as client:
        return await client.get(f"{world.gate}{path}")
