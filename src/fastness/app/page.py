"""The page of an embedded control plane: put together from the parts of its API.

The API's guard says who somebody is and what they may; a decision is written as that user, and leaves the same line in the audit
log that the same write over the API would leave.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from fastness.apiserver import ApiServer
from fastness.app.audit import page_deeds
from fastness.kube.informers import Informers
from fastness.page.admission import GuardDoor
from fastness.page.server import Page, PageOptions, web_server
from fastness.page.simulator import Simulator
from fastness.record.live.tiles import FileTiles
from fastness.runtime.clock import Clock, Entropy


@dataclass(frozen=True, slots=True)
class PagePlacement:
    """Where the page listens, the state directory of the control plane that it shows, and who holds virtual machines."""

    state: Path
    host: str
    port: int = 0
    simulator: Simulator | None = None


def embedded_page(
    server: ApiServer, informers: Informers, place: PagePlacement, clock: Clock, entropy: Entropy
) -> AbstractAsyncContextManager[Page]:
    """The page, for the time of a block; raises TrustError, ApiError, OSError."""
    options = PageOptions(
        administrator=lambda: server.pki.admin.certificate.der,
        host=place.host,
        port=place.port,
        tiles=FileTiles(place.state / "record"),
        deed=page_deeds(server),
        simulator=place.simulator,
    )
    door = GuardDoor(server.guard, server.acting_as)
    return web_server(server.cluster, informers, door, clock, entropy, options)
