"""What doors and config server say to each other: a configuration that was signed, who asks for one, and how it is delivered.

    config = await source.fetch(ConfigRequest(pool, accept, credential, nonce))     # signed for that machine and that nonce
    config = await source.copy(pool, accept)                                        # signed for whoever the broker seals it to

A `ConfigSource` is the config server: in the same process (`configserver.served`) or behind its internal port (`gate.configs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from fastness.formats.duration import duration
from fastness.formats.errors import DurationError
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.objects import view

DEFAULT_INTERVAL: Final = timedelta(minutes=5)
# Headers between gate, broker and config server.
RENDERED: Final = b"fastness-config"
NONCE: Final = b"fastness-nonce"
OVERLAYS: Final = b"fastness-overlays"
UNTIL: Final = b"fastness-until"


class Config(NamedTuple):
    """A configuration as it goes out, the rendered config that it was made from, and the config server's signature.

    `until` is when the signature of a copy ends.
    """

    body: bytes
    etag: bytes
    name: str = ""
    overlays: tuple[str, ...] = ()
    signature: str = ""
    until: datetime | None = None

    def described(self) -> dict[str, str]:
        """Which configuration this is, and which overlays of the machine are in it, for the record."""
        said = {"config": self.name, "overlays": " ".join(self.overlays)}
        return {
            "etag": self.etag.decode("ascii", "replace"),
            **{name: value for name, value in said.items() if value},
        }


class ConfigRequest(NamedTuple):
    """Which configuration a machine asks for, with what it showed (`DPoP <token>` or `Bearer <ticket>`) and its nonce."""

    pool: str
    accept: str
    credential: str
    nonce: str
    rendered: str = ""


class ConfigSource(Protocol):
    """The config server."""

    async def fetch(self, wanted: ConfigRequest) -> Config:
        """The configuration of the machine that showed the credential, signed for its request; raises Refusal, ApiError."""

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool, or a rendered config, for the broker to keep; raises Refusal, ApiError."""


class PlainConfigs(Protocol):
    """Configurations as they were rendered: the same for all machines of a pool."""

    async def fetch(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool, or the rendered config of that name; raises Refusal."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How configurations reach machines now."""

    via: str = "Gate"
    sync: str = "OnDemand"
    interval: timedelta = DEFAULT_INTERVAL

    @property
    def copies(self) -> bool:
        """Whether the broker delivers from copies."""
        return self.via == "Broker" and self.sync != "OnDemand"


def delivery_of(cluster: Mapping[str, object] | None) -> Delivery:
    """What the ConfidentialCluster says."""
    spec = view(cluster or {}, ConfidentialCluster).spec.delivery
    try:
        interval = duration(spec.interval, "interval") if spec.interval else DEFAULT_INTERVAL
    except DurationError:
        interval = DEFAULT_INTERVAL
    return Delivery(spec.via, spec.sync, interval)
