"""What doors and config server say to each other: a configuration that was signed, who asks for one, and how it is delivered.

    config = await server.fetch(ConfigRequest(pool, accept, credential, nonce))     # signed for that machine and that nonce
    config = await server.copy(pool, accept)                                        # signed for whoever the broker seals it to

A `ConfigService` is the config server: in the same process (`release.live.signed_configs`) or behind its internal port
(`release.live.configs`). It believes no Grant of another door, and authorises what is forwarded to it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.objects import rfc3339, view
from fastness.protocol.config_proof import HEADER
from fastness.protocol.kbs_path import ResourcePath, pool_config, pool_trust
from fastness.release.source import ResourceSource

DEFAULT_INTERVAL: Final = timedelta(minutes=5)
# Headers between gate, broker and config server.
RENDERED: Final = b"fastness-config"
NONCE: Final = b"fastness-nonce"
OVERLAYS: Final = b"fastness-overlays"
UNTIL: Final = b"fastness-until"
STUB: Final = b"fastness-stub"
SIGNATURE: Final = HEADER.lower().encode()


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
        names = {"config": self.name, "overlays": " ".join(self.overlays)}
        return {
            "etag": self.etag.decode("ascii", "replace"),
            **{name: value for name, value in names.items() if value},
        }

    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """What goes with the bytes between our own parts, as far as it is there."""
        until = rfc3339(self.until) if self.until is not None else ""
        optional = (
            (SIGNATURE, self.signature.encode()), (OVERLAYS, " ".join(self.overlays).encode()), (UNTIL, until.encode())
        )  # fmt: skip
        return (
            (b"etag", self.etag),
            (RENDERED, self.name.encode()),
            *((name, value) for name, value in optional if value),
        )


class ConfigRequest(NamedTuple):
    """Which configuration a machine asks for, with what it showed (`DPoP <token>` or `Bearer <ticket>`) and its nonce.

    `rendered` names a rendered config, for a machine that runs; with `trust` it asks for what it has beside its configuration.
    """

    pool: str
    accept: str
    credential: str
    nonce: str
    rendered: str = ""
    trust: bool = False

    @property
    def path(self) -> ResourcePath:
        """The resource that it asks for."""
        return pool_trust(self.pool) if self.trust else pool_config(self.pool)


class ConfigService(Protocol):
    """The config server."""

    async def fetch(self, request: ConfigRequest) -> Config:
        """The configuration of the machine that showed the credential, signed for its request; raises Refusal, ApiError."""

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        """The configuration of a pool, or a rendered config, for the broker to keep; raises Refusal, ApiError."""

    async def stub(self, pool: str, accept: str, server_name: str) -> Config:
        """The configuration of a pool for a stub that came under a name, with what it joins by; raises Refusal, ApiError."""


# Configurations as they were rendered: the same for all machines of a pool. The query has `accept`, or `rendered`.
PlainConfigs = ResourceSource[Config]


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
