"""The page behind a listener: caches, sessions, certificate and its rotation, for the time of a block.

async with web_server(cluster, informers, visitors, clock, entropy, options) as page:
    page.port, page.link()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fastness.crypto.secret import SecretText
from fastness.http.mounted import LOOK_SECONDS, MountedCertificate
from fastness.http.opening import Listening, ListenOptions, OpenDoor, open_door
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.keys.people import IssuerFollower, PeopleSettings
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.page.acts import AuditAct, unaudited
from fastness.page.admission import Doorkeeper
from fastness.page.app import DOOR, PageApp
from fastness.page.live_updates import News
from fastness.page.provider_login import Provider, ProviderLogins
from fastness.page.record import Reader
from fastness.page.sessions import Credential, Sessions
from fastness.page.simulator import Simulator
from fastness.page.view_scope import Stock
from fastness.protocol.door import DoorRole
from fastness.record.live.reader import grown
from fastness.record.live.tiles import TileStore
from fastness.runtime.clock import Clock, Entropy

Task = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """The identity provider that people log in at; `url` is where they reach the page, as the provider knows it."""

    people: PeopleSettings
    url: str = ""
    secret: SecretText = field(default_factory=lambda: SecretText(""))


@dataclass(frozen=True, slots=True)
class PageOptions(Listening):
    """Where to listen, where the record lies, and who the one-time link logs in.

    `administrator` is the certificate (DER) that a link stands for, where there are links; `names` are those under which people
    reach the page besides the address it listens on; `audit` writes lines about what people do, where no API server does;
    `simulator` has the machines where they are virtual; `certificate` is a directory with one of somebody else's, for browsers.
    """

    administrator: Callable[[], bytes] | None = None
    tiles: TileStore | None = None
    audit: AuditAct = unaudited
    simulator: Simulator | None = None
    certificate: Path | None = None
    provider: ProviderOptions | None = None


@dataclass(frozen=True, slots=True)
class Page(OpenDoor):
    """A running page, and its table."""

    sessions: Sessions
    news: News
    routes: Routes
    _host: str
    _administrator: Callable[[], bytes] | None

    @property
    def url(self) -> str:
        """Where it is."""
        return url_of(self._host, self.port)

    @property
    def bundle(self) -> str:
        """The authorities that its certificate can be checked with, PEM."""
        return self.doors.bundle

    def link(self) -> str:
        """An address that logs an administrator in: once, within five minutes; where there is none, the form."""
        if self._administrator is None:
            return f"{self.url}/login"
        return f"{self.url}/login?key={self.sessions.link(Credential(certificate=self._administrator()))}"


def url_of(host: str, port: int) -> str:
    """Where a page is that listens there."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


@asynccontextmanager
async def web_server(
    cluster: Cluster, informers: Informers, visitors: Doorkeeper, clock: Clock, entropy: Entropy, options: PageOptions
) -> AsyncIterator[Page]:
    """A page that listens for the time of the block; raises BadDoorNames, ApiError, OSError."""
    stock = Stock(informers)
    await stock.synced()
    certificates = await DoorCertificates.open(DoorRole.PAGE, cluster, informers, clock, options.hosts)
    sessions, news = Sessions(clock, entropy), News(clock)
    tasks: dict[str, Task] = {"pulse": partial(news.pulse, cluster)}
    logins = None
    if options.provider is not None:
        issuer = IssuerFollower(options.provider.people, clock)
        tasks["people"] = issuer.follow
        url = options.provider.url or url_of(options.host, options.port)
        logins = ProviderLogins(Provider(issuer, url, options.provider.secret), clock, entropy)
    page = PageApp(
        visitors=visitors, stock=stock, sessions=sessions, news=news, reader=Reader(options.tiles, grown(cluster)),
        audit=options.audit, clock=clock, entropy=entropy, simulator=options.simulator,
        provider=logins,
    )  # fmt: skip
    page.prepare()
    listen = ListenOptions(options.host, options.port)
    with news.follow(stock):
        async with open_door(page.app, listen, _served(certificates, options.certificate), clock, tasks) as port:
            yield Page(port, certificates, sessions, news, page.app.routes, options.host, options.administrator)


def _served(certificates: DoorCertificates, directory: Path | None) -> ServedCertificate:
    """Our own certificate, or the one in a directory, which is looked at more often."""
    if directory is None:
        return ServedCertificate(DOOR, certificates)
    mounted = MountedCertificate(directory)
    return ServedCertificate(DOOR, certificates, lambda own: (mounted.current(), own.doors), LOOK_SECONDS)
