"""Machines that join a cluster, for tests: what a kubelet does with its bootstrap token, by hand.

async with joining(Place.real(kube)) as site:
    machine = await site.attested()
    token = await site.token(machine, key)
    answer = await site.ask(token, client_request(key, node))
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fastness.agent.boot.prove import BrokerRefused
from fastness.apiserver.loops.signing import NodeSigner, NodeSigning
from fastness.crypto.csr import make_request
from fastness.crypto.digests import sha256
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Subject
from fastness.enrolment.live.approvals import REQUESTS
from fastness.enrolment.loops.join_tokens import BootstrapTokenController
from fastness.enrolment.loops.kubelet_certificates import Joins
from fastness.kinds.kind import JsonObject
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.runner import Runner
from fastness.protocol.node_certificates import CLIENT_SIGNER, SERVING_SIGNER
from fastness.protocol.node_keys import NamedKeys
from fastness.record.live.record import ClusterRecord
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, AttestingWorld, attesting_world
from tests.contract.worlds import https
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.realkube import RealKube

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def new_key() -> PrivateKey:
    """A key as a kubelet makes it."""
    return PrivateKey.generate(ENTROPY)


def name_of(key: PrivateKey) -> str:
    """The key as machines name it to the broker."""
    return str(sha256(key.public_der()))


def client_request(key: PrivateKey, node: str, **changes: Any) -> JsonObject:
    """The CertificateSigningRequest of a kubelet that wants to become a node."""
    subject = Subject(f"system:node:{node}", ("system:nodes",))
    return csr(make_request(key, subject), CLIENT_SIGNER, ("digital signature", "client auth"), **changes)


def serving_request(key: PrivateKey, node: str, hosts: Sequence[str], **changes: Any) -> JsonObject:
    """The CertificateSigningRequest of a kubelet that wants to serve."""
    subject = Subject(f"system:node:{node}", ("system:nodes",))
    return csr(make_request(key, subject, hosts), SERVING_SIGNER, ("digital signature", "server auth"), **changes)


def csr(pem: bytes, signer: str, usages: Sequence[str], **changes: Any) -> JsonObject:
    """A CertificateSigningRequest."""
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **changes}
    return {
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"}, "spec": spec,
    }  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A cluster to join: where it is, whom its clients trust, who its administrator is, and whether we sign ourselves."""

    url: str
    ca: Path
    kubeconfig: Path
    admin: Callable[[ssl.SSLContext], dict[str, str]]
    signer: NodeSigner | None = None

    @classmethod
    def real(cls, kube: RealKube) -> Place:
        """A real kube-apiserver, whose kube-controller-manager signs."""
        header = {"authorization": f"Bearer {kube.users['admin'].token}"}
        return cls(kube.url, kube.ca, kube.kubeconfig, lambda _: header)

    @classmethod
    def embedded(cls, server: Embedded) -> Place:
        """The embedded API, with the signer that it has in Kubernetes' place."""

        def present_admin(context: ssl.SSLContext) -> dict[str, str]:
            context.load_cert_chain(str(server.directory / "pki" / "admin.pem"))
            return {}

        return cls(server.url, server.ca_file, server.kubeconfig, present_admin, server.server.pki)

    def trust(self) -> ssl.SSLContext:
        """TLS that trusts this cluster alone."""
        return ssl.create_default_context(cafile=str(self.ca))


@dataclass
class JoiningSite:
    """A cluster with its doors and the loops of joining."""

    place: Place
    world: AttestingWorld

    async def attested(self, tee: str = "tpm") -> SimAttester:
        """A machine that enrolled and proved itself."""
        machine = await self.world.enrolled(tee)
        async with self.world.broker(machine) as broker:
            await broker.attest()
        return machine

    async def node(self, machine: SimAttester) -> str:
        """The node that a machine may become."""
        return str((await self.world.machine_object(machine))["status"]["nodeName"])

    async def named(
        self, machine: SimAttester, client: PrivateKey | None = None, serving: PrivateKey | None = None
    ) -> None:
        """A machine proves itself and names keys that it is about to ask certificates for."""
        async with self.world.broker(machine) as broker:
            await broker.attest(keys=NamedKeys(*(name_of(key) if key else "" for key in (client, serving))))

    async def token(self, machine: SimAttester, key: PrivateKey, of: SimAttester | None = None) -> str:
        """What the broker gives to a machine that proves itself: its token, or the refusal that another one's is."""
        uid = (await self.world.machine_object(of or machine))["metadata"]["uid"]
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await self._token(machine, key, uid)
                except BrokerRefused as refused:
                    if refused.status != 503:  # a machine comes again, too, when others write the same object
                        raise

    async def _token(self, machine: SimAttester, key: PrivateKey, uid: str) -> str:
        async with self.world.broker(machine) as broker:
            await broker.attest(keys=NamedKeys(client=name_of(key)))
            return (await broker.resource(f"machine/{uid}/bootstrap-token", f"key={name_of(key)}")).reveal().decode()

    def client(self, token: str = "") -> httpx.AsyncClient:
        """The API as the holder of a token."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(base_url=self.place.url, verify=self.place.trust(), headers=headers, trust_env=False)

    def admin(self) -> httpx.AsyncClient:
        """The API as its administrator."""
        context = self.place.trust()
        return httpx.AsyncClient(
            base_url=self.place.url, headers=self.place.admin(context), verify=context, trust_env=False
        )

    def node_client(self, directory: Path, key: PrivateKey, certificate: bytes) -> httpx.AsyncClient:
        """The API as the holder of a certificate."""
        path = directory / f"{name_of(key)[-12:]}.pem"
        path.write_bytes(key.to_pem().reveal() + certificate)
        context = self.place.trust()
        context.load_cert_chain(path)
        return httpx.AsyncClient(base_url=self.place.url, verify=context, trust_env=False)

    async def ask(self, http: httpx.AsyncClient, request: JsonObject) -> JsonObject:
        """Send a request and wait until it is decided, and signed if it was approved."""
        made = await http.post(CSRS, json=request)
        assert made.status_code == 201, made.text
        return await self.settled(made.json()["metadata"]["name"])

    async def settled(self, name: str, *, decided: bool = True) -> JsonObject:
        """A request when it is denied, or approved and signed."""
        async with asyncio.timeout(PATIENCE):
            while True:
                request = await self.world.cluster.get(REQUESTS, name)
                status = request.get("status") or {}
                kinds = {entry["type"] for entry in status.get("conditions") or ()}
                if "Denied" in kinds or status.get("certificate") or not decided:
                    return request
                await asyncio.sleep(0.02)


def outcome(request: JsonObject) -> tuple[str, str]:
    """What became of a request: kind and reason; nothing when it is open."""
    conditions = (request.get("status") or {}).get("conditions") or ()
    return next(((entry["type"], entry["reason"]) for entry in conditions), ("", ""))


def certificate_of(request: JsonObject) -> bytes:
    """The certificate that was signed, PEM."""
    return base64.b64decode(request["status"]["certificate"])


@asynccontextmanager
async def joining(
    place: Place,
    vendor: SimVendor | None = None,
    spec: JsonObject | None = None,
    further: Callable[[AttestingWorld, ClusterRecord], list[Controller]] = lambda _world, _record: [],
) -> AsyncIterator[JoiningSite]:
    """Doors and loops before a cluster, for the time of the block."""
    async with https(place.kubeconfig) as cluster, attesting_world(cluster, spec, vendor) as world:
        record = ClusterRecord(cluster, world.clock, ENTROPY, "controllers")
        loops: list[Controller] = [
            Joins(cluster, world.informers, record, world.clock),
            BootstrapTokenController(cluster, world.informers, world.clock),
            *further(world, record),
        ]
        if place.signer is not None:
            loops.append(NodeSigning(cluster, place.signer, world.clock))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(Runner(loops, world.informers, world.clock, ENTROPY).run())
            try:
                yield JoiningSite(place, world)
            finally:
                running.cancel()
