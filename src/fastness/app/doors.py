"""The doors that `fastness serve` can run, each on its own and any number: config server, enrolment, broker, gate, webhook, page.

All state is in the cluster. What differs between replicas is where they listen; what they must share beside the cluster is
the vault key of the broker, which seals what the broker keeps and is never in the cluster.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastness.app.lacking import LacksCluster, LacksOption
from fastness.app.vendor_documents import Documents, opened
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.kube.client.connection import Connection, Impersonation
from fastness.kube.places import AT_HOME, Places
from fastness.protocol.door_role import DoorRole

if TYPE_CHECKING:
    from fastness.app.attestation_doors import Around
    from fastness.http.health import Health
    from fastness.keys.certificates import DoorCertificates, RoleCertificates
    from fastness.kube.informers import Informers
    from fastness.kube.port import Cluster
    from fastness.record.live.door_keys import RecordRole
    from fastness.release.live.resources import Cipher
    from fastness.release.live.sources import RemoteConfigs
    from fastness.runtime.clock import Clock, Entropy

CONFIG_SERVER, ENROLMENT, BROKER, GATE, WEBHOOK, PAGE = "configserver", "enrol", "broker", "gate", "webhook", "page"
DOORS: Final = (CONFIG_SERVER, ENROLMENT, BROKER, GATE, WEBHOOK, PAGE)
CONFIG_PORT, INTERNAL_PORT, ENROL_PORT, BROKER_PORT, GATE_PORT, WEBHOOK_PORT = 22624, 22626, 8000, 8080, 22623, 9443
PAGE_PORT: Final = 8443
# The doors that write statuses of Machines, and whose keys they sign them with.
_SIGNERS: Final[dict[str, RecordRole]] = {ENROLMENT: "enrolment", BROKER: "broker"}


@dataclass(frozen=True, slots=True)
class DoorOptions:
    """Where doors listen, under which names, and where they find each other."""

    host: str
    names: tuple[str, ...]
    config_port: int
    internal_port: int
    enrol_port: int
    broker_port: int
    gate_port: int
    internal_url: str
    broker_url: str
    gate_url: str
    vault: Path | None
    collateral: Path | None = None
    collateral_cache: Path | None = None
    vendor_services: bool = False
    webhook_port: int = WEBHOOK_PORT
    webhook_url: str = ""
    enrol_rate: float = 10.0
    page_port: int = PAGE_PORT
    connection: Connection | None = None
    node_certificates: bool = True
    places: Places = AT_HOME


async def serve_door(
    role: str, cluster: Cluster, options: DoorOptions, health: Health, tell: Callable[[str], None]
) -> None:
    """One door, until cancelled; `tell` hears where it is. Raises LackingError, ApiError, OSError, TrustError."""
    from fastness.attestation.live.statuses import signed_statuses
    from fastness.kube.informers import Informers
    from fastness.runtime.clock import SystemClock, SystemEntropy

    doors: dict[str, Callable[..., AbstractAsyncContextManager[str]]] = {
        CONFIG_SERVER: _configs, ENROLMENT: _enrolment, BROKER: _broker, GATE: _gate,
        WEBHOOK: _webhook, PAGE: _page,
    }  # fmt: skip
    clock, entropy = SystemClock(), SystemEntropy()
    cluster = signed_statuses(_SIGNERS.get(role), cluster, clock, entropy)
    waiting = ["the caches and certificates"]
    health.add(role, lambda: ", ".join(waiting))
    async with (
        Informers(cluster, clock=clock, entropy=entropy, places=options.places) as informers,
        doors[role](cluster, informers, options, clock, entropy) as where,
    ):
        health.add(role, informers.out_of_touch)
        health.warn(f"{role}-set-aside", informers.unused)
        tell(where)
        await asyncio.Event().wait()


@asynccontextmanager
async def _configs(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.http.opening import ListenOptions
    from fastness.keys.client_authorities import ClientAuthorities
    from fastness.release.door.config_server.server import config_server

    listen = ListenOptions(options.host, options.config_port, options.names, options.internal_port, rust=True)
    clients = await ClientAuthorities.open(cluster, informers) if options.node_certificates else None
    async with config_server(cluster, informers, clock, entropy, listen, clients) as door:
        own, inner = (_url(options.host, port) for port in (door.port, door.internal_port))
        yield f"configs on {own}, for gate and broker on {inner}"


@asynccontextmanager
async def _enrolment(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.app.attestation_doors import Around, enrolment_door
    from fastness.enrolment.door.app import Pace
    from fastness.enrolment.live.enrolments import DoorUrls
    from fastness.http.opening import ListenOptions

    around = Around(clock, entropy, NoVault(), urls=lambda: DoorUrls(options.broker_url, options.gate_url))
    listen = ListenOptions(options.host, options.enrol_port, names=options.names)
    async with enrolment_door(cluster, informers, around, listen, Pace.of(options.enrol_rate)) as door:
        yield f"enrolment on {_url(options.host, door.port)}"


@asynccontextmanager
async def _broker(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.app.attestation_doors import Around, broker_door
    from fastness.release.door.broker.server import BrokerOptions

    listen = BrokerOptions(options.host, options.broker_port, options.names)
    documents = Documents(options.collateral, options.collateral_cache, options.vendor_services)
    async with (
        _remote(DoorRole.BROKER, cluster, informers, options, clock) as configs,
        opened(documents, clock) as collateral,
    ):
        cipher = _cipher(options.vault, clock, entropy)
        around: Around = Around(clock, entropy, cipher, collateral=collateral, configs=configs)
        async with broker_door(cluster, informers, around, listen) as (door, _):
            yield f"broker on {_url(options.host, door.port)}"


@asynccontextmanager
async def _gate(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.http.opening import ListenOptions
    from fastness.record.live.record import ClusterRecord
    from fastness.release.door.gate.server import gate

    record = ClusterRecord(cluster, clock, entropy, "gate")
    listen = ListenOptions(options.host, options.gate_port, names=options.names)
    async with _remote(DoorRole.GATE, cluster, informers, options, clock) as configs:
        if configs is None:
            raise LacksOption(
                "the gate does not know where the config server is", "Give --internal-url https://HOST:22626."
            )
        async with gate(cluster, informers, configs, record, clock, entropy, listen) as door:
            yield f"gate on {_url(options.host, door.port)}"


@asynccontextmanager
async def _webhook(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.admission.door.configuration import NAME, Reachable
    from fastness.admission.door.server import webhook_server
    from fastness.http.opening import ListenOptions

    listen = ListenOptions(options.host, options.webhook_port, names=options.names)
    reached = Reachable(options.webhook_url)
    async with webhook_server(cluster, informers, clock, entropy, listen, reached) as door:
        told = f"webhook on {_url(options.host, door.port)}; while it is down confidential workloads are refused"
        yield f"{told} (kubectl delete validatingwebhookconfiguration {NAME} ends that)"


@asynccontextmanager
async def _page(
    cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock, entropy: Entropy
) -> AsyncIterator[str]:
    from fastness.kube.client import connect
    from fastness.page.admission import ReviewDoor
    from fastness.page.server import PageOptions, web_server
    from fastness.record.live.tiles import ConfigMapTiles

    known = options.connection
    if known is None:
        raise LacksCluster("the page does not know the API server", "Give --kubeconfig, or run it in a pod.")
    door = ReviewDoor(cluster, lambda token: connect(as_bearer(known, token)), clock)
    listen = PageOptions(host=options.host, port=options.page_port, names=options.names, tiles=ConfigMapTiles(cluster))
    async with web_server(cluster, informers, door, clock, entropy, listen) as page:
        yield f"page on {page.url}; log in with a token (kubectl create token NAME)"


def as_bearer(connection: Connection, token: SecretText) -> Connection:
    """The same API server with nothing but this token: none of our own rights go along."""
    return replace(
        connection, token=token, token_file=None, certificate=b"", key=SecretBytes(b""), impersonation=Impersonation()
    )


@asynccontextmanager
async def _remote(
    role: DoorRole, cluster: Cluster, informers: Informers, options: DoorOptions, clock: Clock
) -> AsyncIterator[RemoteConfigs | None]:
    """The config server, as a role reaches it; None when nobody said where it is."""
    from fastness.http.opening import Listening
    from fastness.keys.certificates import DoorCertificates
    from fastness.release.live.sources import RemoteConfigs

    if not options.internal_url:
        yield None
        return
    names = Listening(options.host, names=options.names).hosts
    certificates = await DoorCertificates.open(role, cluster, informers, clock, names)
    configs = RemoteConfigs(options.internal_url, Shown(certificates).context)
    try:
        yield configs
    finally:
        await configs.close()


class Shown:
    """What gate and broker show to the config server: the certificate of their role, as the controllers renew it."""

    def __init__(self, certificates: DoorCertificates) -> None:
        self._certificates = certificates
        self._shown: RoleCertificates | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context of now; the same object until the certificate is another one."""
        from fastness.http.certificates import load

        held = self._certificates.current
        if self._context is None or held is not self._shown:
            context = ssl.create_default_context(cadata=held.internal.bundle)
            if held.inner is not None:
                load(context, held.inner)
            self._context, self._shown = context, held
        return self._context


class NoVault:
    """Enrolment keeps nothing that would have to be sealed."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """Never."""
        raise LacksOption("this role has no vault key", "Give --vault.")

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Never."""
        raise LacksOption("this role has no vault key", "Give --vault.")


def _cipher(vault: Path | None, clock: Clock, entropy: Entropy) -> Cipher:
    from fastness.keys.vault import PlainRingFile, Vault

    if vault is None:
        raise LacksOption(
            "the broker has no key for what it keeps", "Give --vault FILE; all replicas need the same one."
        )
    return Vault.open_file(PlainRingFile(vault), clock.now(), entropy, create=not vault.exists())


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
