"""Configurations as resources of the broker: `pool/<name>/config`, sealed to the machine that asks.

Where the bytes come from is a setting of the ConfidentialCluster and changes while the broker runs:

    OnDemand    asked from the config server during the request: always current, and only as available as the config server
    Scheduled   copied every interval: served from memory, at most that old; the age is a metric, and a copy that grew older
    than three intervals is not served any more OnChange    copied when a pool's rendered config changes: served from
    memory, current within the time that a change takes

A copy is the bytes of one pool in one Ignition version, made when it is first asked for and kept up to a bound; overlays are
laid over it for each machine. What is handed out is the same statement that the gate signs: body, pool, machine, nonce of the
request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer
from fastness.crypto.secret import SecretBytes
from fastness.domain.attestation.configproof import Served
from fastness.domain.attestation.resources import ResourcePath
from fastness.domain.attestation.subject import Grant
from fastness.domain.machineconfig.errors import BadPolicy
from fastness.domain.machineconfig.overlay import Recipient
from fastness.domain.machineconfig.serving import configuration_of
from fastness.domain.machineconfig.waves import duration
from fastness.formats.delivered import Delivered, envelope, parse_question
from fastness.model.fastness_dev.cluster import NAME, ConfidentialCluster
from fastness.model.objects import view
from fastness.observe import metrics
from fastness.services.delivery import Overlays
from fastness.services.gate.configs import Config, ConfigSource
from fastness.services.refusals import Refusal
from fastness.trust.configkey import ConfigSigner

MOST_COPIES: Final = 64
DEFAULT_INTERVAL: Final = timedelta(minutes=5)
STALE_AFTER: Final = 3
REPOSITORY, TAG = "pool", "config"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How configurations reach machines now."""

    via: str = "Gate"
    sync: str = "OnDemand"
    interval: timedelta = DEFAULT_INTERVAL


def delivery_of(cluster: Mapping[str, object] | None) -> Delivery:
    """What the ConfidentialCluster says."""
    spec = view(cluster or {}, ConfidentialCluster).spec.delivery
    try:
        interval = duration(spec.interval, "interval") if spec.interval else DEFAULT_INTERVAL
    except BadPolicy:
        interval = DEFAULT_INTERVAL
    return Delivery(spec.via, spec.sync, interval)


@dataclass(frozen=True, slots=True)
class Copy:
    """A configuration that was fetched, when, and which rendered config the pool had then."""

    config: Config
    at: float
    rendered: str


def is_config(path: ResourcePath) -> bool:
    """Whether a path is the configuration of a pool."""
    return path.segments[0] == REPOSITORY and path.segments[2] == TAG


class PoolConfigs:
    """Delivers configurations of pools."""

    def __init__(
        self,
        source: ConfigSource,
        signer: ConfigSigner,
        confidential: Informer,
        pools: Informer,
        overlays: Overlays,
        clock: Clock,
    ) -> None:
        self._source = source
        self._signer = signer
        self._confidential = confidential
        self._pools = pools
        self._overlays = overlays
        self._clock = clock
        self._copies: OrderedDict[tuple[str, str], Copy] = OrderedDict()

    async def deliver(
        self, grant: Grant, who: Recipient, pool: str, query: Mapping[str, str]
    ) -> tuple[SecretBytes, Config]:
        """The signed configuration in its envelope, and what it is; raises Refusal, DeliveredError."""
        delivery = delivery_of(self._confidential.get("", NAME))
        if delivery.via != "Broker":
            raise Refusal(
                503, "delivered-by-gate", "configurations are handed out by the gate: enrol again to learn where"
            )
        question = parse_question(query)
        config = self._overlays.over(await self._config(delivery, pool, question.accept), who)
        served = Served(config.body, pool, grant.subject.machine, question.nonce)
        signature = self._signer.sign(served, self._clock.now())
        return SecretBytes(envelope(Delivered(config.body, signature))), config

    async def _config(self, delivery: Delivery, pool: str, accept: str) -> Config:
        if delivery.sync == "OnDemand":
            return _fresh(await self._source.fetch(pool, accept, ""))
        kept = self._copies.get((pool, accept))
        age = self._clock.monotonic() - kept.at if kept else 0.0
        if kept is not None and self._good(delivery, pool, kept, age):
            metrics.CONFIG_COPY_AGE.set(age)
            return kept.config
        try:
            return _fresh(await self._copied(pool, accept))
        except Refusal as refusal:
            still = kept is not None and age < delivery.interval.total_seconds() * STALE_AFTER
            if refusal.status != 503 or kept is None or not still or delivery.sync != "Scheduled":
                raise
            metrics.CONFIG_COPY_AGE.set(age)
            return kept.config

    def _good(self, delivery: Delivery, pool: str, kept: Copy, age: float) -> bool:
        """Whether a copy may be handed out as it is."""
        if delivery.sync == "OnChange":
            return kept.rendered == self._rendered(pool)
        return age < delivery.interval.total_seconds()

    async def _copied(self, pool: str, accept: str) -> Config:
        """A fresh copy. The name is taken before the bytes: a change in between is fetched again, never missed."""
        rendered = self._rendered(pool)
        config = await self._source.fetch(pool, accept, "")
        self._copies[pool, accept] = Copy(config, self._clock.monotonic(), rendered)
        self._copies.move_to_end((pool, accept))
        while len(self._copies) > MOST_COPIES:
            self._copies.popitem(last=False)
        return config

    def _rendered(self, pool: str) -> str:
        found = self._pools.get("", pool)
        return configuration_of(found) if found else ""


def _fresh(config: Config) -> Config:
    """What was asked for just now: the age that is shown must not stay that of a copy from before."""
    metrics.CONFIG_COPY_AGE.set(0)
    return config
