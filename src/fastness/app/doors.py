"""Opens the doors of a process, each with what stands behind it: config server, enrolment, broker, gate, webhook, page.

All state is in the cluster. What differs between replicas is where they listen; what they must share beside the cluster is
the vault key of the broker, which seals what the broker keeps and is never in the cluster.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

from fastness.app.parts import DOORS, LacksCluster, LacksOption, Part
from fastness.app.settings import Addresses, ClusterKeys, PlaneSettings, open_documents
from fastness.http.certificates import load
from fastness.http.opening import Authorities
from fastness.keys.certificates import DoorCertificates, RoleCertificates
from fastness.keys.client_authorities import ClientAuthorities
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import Clock, Entropy

if TYPE_CHECKING:
    from fastness.admission.door.server import WebhookServer
    from fastness.app.settings import AnyDoor
    from fastness.enrolment.door.server import EnrolServer
    from fastness.page.server import Page
    from fastness.release.configs import ConfigService
    from fastness.release.door.broker.server import BrokerDoor
    from fastness.release.door.config_server.server import ConfigDoor
    from fastness.release.door.gate.server import GateDoor

# What a part loads when it starts. The processes of the chart are roles of one program: each that loaded all of them took twice
# the CPU until it was ready, and a third more memory for as long as it ran.
ROOMS: Final[dict[Part, str]] = {
    Part.CONFIG_SERVER: "fastness.release.door.config_server.server", Part.ENROLMENT: "fastness.enrolment.door.server",
    Part.BROKER: "fastness.release.door.broker.opening", Part.GATE: "fastness.release.door.gate.server",
    Part.WEBHOOK: "fastness.admission.door.server", Part.PAGE: "fastness.page.server",
    Part.CONTROLLERS: "fastness.app.controllers",
}  # fmt: skip


def load_rooms(parts: Iterable[Part]) -> None:
    """Load what these parts run, before anything is served."""
    for part in parts:
        import_module(ROOMS[part])


class OpenDoors:
    """The doors of a process as they open; whoever needs one that is not open yet waits for it."""

    def __init__(self, parts: Iterable[Part], settings: PlaneSettings) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._doors: dict[Part, asyncio.Future[AnyDoor]] = {
            part: loop.create_future() for part in parts if part in DOORS
        }

    def add(self, part: Part, door: AnyDoor) -> None:
        """A door opened."""
        self._doors[part].set_result(door)
        self._settings.opened(part, door)

    async def all(self) -> dict[Part, AnyDoor]:
        """Every door, when the last one is open."""
        return {part: await asyncio.shield(door) for part, door in self._doors.items()}

    async def config_server(self) -> ConfigDoor:
        """The config server of this process."""
        from fastness.release.door.config_server.server import ConfigDoor

        door = await asyncio.shield(self._doors[Part.CONFIG_SERVER])
        assert isinstance(door, ConfigDoor)  # noqa: S101  # by its part
        return door

    async def page(self) -> Page:
        """The page of this process."""
        from fastness.page.server import Page

        door = await asyncio.shield(self._doors[Part.PAGE])
        assert isinstance(door, Page)  # noqa: S101  # by its part
        return door

    def addresses(self) -> Addresses:
        """Where machines and other parts reach the doors now."""
        if not self._settings.alone:
            return self._settings.addresses
        return Addresses(*(self.url(part) for part in (Part.CONFIG_SERVER, Part.ENROLMENT, Part.BROKER, Part.GATE)))

    def url(self, part: Part) -> str:
        """Where a door of this process listens; empty until it does."""
        door = self._doors.get(part)
        return url_of(self._settings.listen[part].host, door.result().port) if door is not None and door.done() else ""


class DoorOpener:
    """Opens the doors of a process over a cluster."""

    def __init__(
        self, keys: ClusterKeys, settings: PlaneSettings, doors: OpenDoors, clock: Clock, entropy: Entropy
    ) -> None:
        self._keys = keys
        self._settings = settings
        self._doors = doors
        self._clock = clock
        self._entropy = entropy

    def open(self, part: Part, cluster: Cluster, informers: Informers) -> AbstractAsyncContextManager[AnyDoor]:
        """A door for the time of a block; raises LackingError, ApiError, OSError, TrustError."""
        match part:
            case Part.CONFIG_SERVER:
                return self._config_server(cluster, informers)
            case Part.ENROLMENT:
                return self._enrolment(cluster, informers)
            case Part.BROKER:
                return self._broker(cluster, informers)
            case Part.GATE:
                return self._gate(cluster, informers)
            case Part.WEBHOOK:
                return self._webhook(cluster, informers)
            case Part.PAGE:
                return self._page(cluster, informers)
            case Part.CONTROLLERS:
                raise ValueError("the controllers are no door")

    @asynccontextmanager
    async def _config_server(self, cluster: Cluster, informers: Informers) -> AsyncIterator[ConfigDoor]:
        from fastness.release.door.config_server.server import config_server

        clients: Authorities | None = None
        if self._settings.node_certificates:
            clients = self._keys.nodes or await ClientAuthorities.open(cluster, informers)
        listen = self._settings.listen[Part.CONFIG_SERVER]
        tokens = self._settings.join_tokens
        async with config_server(
            cluster, informers, self._clock, self._entropy, listen, clients, join_tokens=tokens
        ) as door:
            yield door

    def _enrolment(self, cluster: Cluster, informers: Informers) -> AbstractAsyncContextManager[EnrolServer]:
        from fastness.enrolment.door.server import enrolment_door
        from fastness.enrolment.live.enrolments import DoorUrls

        def urls() -> DoorUrls:
            """Where machines go next; asked for each, because those doors may open later."""
            addresses = self._doors.addresses()
            return DoorUrls(addresses.broker, addresses.gate)

        listen, pace = self._settings.listen[Part.ENROLMENT], self._settings.pace
        return enrolment_door(cluster, informers, self._clock, self._entropy, listen, urls=urls, pace=pace)

    @asynccontextmanager
    async def _broker(self, cluster: Cluster, informers: Informers) -> AsyncIterator[BrokerDoor]:
        from fastness.release.door.broker.opening import broker_door
        from fastness.release.door.broker.server import BrokerOptions

        vault, listen = self._keys.vault, self._settings.listen[Part.BROKER]
        if vault is None:
            raise LacksOption(
                "the broker has no key for what it keeps", "Give --vault FILE; all replicas need the same one."
            )
        options = BrokerOptions(listen.host, listen.port, listen.names)
        async with (
            self._configs(Part.BROKER, cluster, informers) as configs,
            open_documents(self._settings.documents, self._clock) as collateral,
            broker_door(
                cluster, informers, self._clock, self._entropy, options,
                cipher=vault, collateral=collateral, configs=configs,
            ) as (door, _),
        ):  # fmt: skip
            yield door

    @asynccontextmanager
    async def _gate(self, cluster: Cluster, informers: Informers) -> AsyncIterator[GateDoor]:
        from fastness.release.door.gate.server import gate

        record = ClusterRecord(cluster, self._clock, self._entropy, "gate")
        async with self._configs(Part.GATE, cluster, informers) as configs:
            if configs is None:
                raise LacksOption(
                    "the gate does not know where the config server is", "Give --internal-url https://HOST:22626."
                )
            listen = self._settings.listen[Part.GATE]
            async with gate(cluster, informers, configs, record, self._clock, self._entropy, listen) as door:
                yield door

    def _webhook(self, cluster: Cluster, informers: Informers) -> AbstractAsyncContextManager[WebhookServer]:
        from fastness.admission.door.configuration import Reachable
        from fastness.admission.door.server import webhook_server

        listen, reached = self._settings.listen[Part.WEBHOOK], Reachable(self._settings.webhook_url)
        return webhook_server(cluster, informers, self._clock, self._entropy, listen, reached)

    def _page(self, cluster: Cluster, informers: Informers) -> AbstractAsyncContextManager[Page]:
        from fastness.page.server import PageOptions, web_server

        visitors, options = self._settings.visitors, self._settings.page or PageOptions()
        if visitors is None:
            raise LacksCluster("the page does not know the API server", "Give --kubeconfig, or run it in a pod.")
        return web_server(cluster, informers, visitors, self._clock, self._entropy, options)

    @asynccontextmanager
    async def _configs(self, part: Part, cluster: Cluster, informers: Informers) -> AsyncIterator[ConfigService | None]:
        """The config server as gate and broker reach it: in this process, or by its URL; None when nobody said where it is."""
        if self._settings.alone:
            yield (await self._doors.config_server()).served
            return
        from fastness.release.live.configs import RemoteConfigs

        url = self._settings.addresses.internal
        if not url:
            yield None
            return
        names = self._settings.listen[part].hosts
        certificates = await DoorCertificates.open(DoorRole(part), cluster, informers, self._clock, names)
        configs = RemoteConfigs(url, _RoleContext(certificates).context)
        try:
            yield configs
        finally:
            await configs.close()


class _RoleContext:
    """What gate and broker show to the config server: the certificate of their role, as the controllers renew it."""

    def __init__(self, certificates: DoorCertificates) -> None:
        self._certificates = certificates
        self._loaded: RoleCertificates | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The context of now; the same object until the certificate is another one."""
        current = self._certificates.current
        if self._context is None or current is not self._loaded:
            context = ssl.create_default_context(cadata=current.internal.bundle)
            if current.inner is not None:
                load(context, current.inner)
            self._context, self._loaded = context, current
        return self._context


def url_of(host: str, port: int, scheme: str = "https") -> str:
    """The address of a door that listens there."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
