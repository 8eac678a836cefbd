"""Configurations as resources of the broker: `pool/<name>/config`, sealed to the machine that asks.

Where the bytes come from is a setting of the ConfidentialCluster and changes while the broker runs:

    OnDemand    asked from the config server during the request: always current, and only as available as the config server
    Scheduled   copied every interval: served from memory, at most that old; the age is a metric, and a copy that grew older
                than three intervals is not served any more
    OnChange    copied when a pool's rendered config changes: served from memory, current within the time that a change takes

A copy is the bytes of one pool in one Ignition version, made when it is first asked for and kept up to a bound; from then on
`run` renews it, so that machines do not wait for the config server. Overlays are laid over it for each machine. What is handed
out is the same statement that the gate signs: body, pool, machine, nonce of the request. A machine that runs names the rendered
config that it was told to go to, and gets that one if it is written on its Machine.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer
from fastness.cluster.waiting import news_or_time
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
from fastness.services.assignments import Assignments
from fastness.services.delivery import Overlays
from fastness.services.gate.configs import Config, ConfigSource
from fastness.services.refusals import Refusal
from fastness.trust.configkey import ConfigSigner

MOST_COPIES: Final = 64
DEFAULT_INTERVAL: Final = timedelta(minutes=5)
STALE_AFTER: Final = 3
LOOK_SECONDS: Final = 600.0
AGAIN_SECONDS: Final = 2.0
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
        assignments: Assignments,
        clock: Clock,
    ) -> None:
        self._source = source
        self._signer = signer
        self._confidential = confidential
        self._pools = pools
        self._overlays = overlays
        self._assignments = assignments
        self._clock = clock
        self._copies: OrderedDict[tuple[str, str], Copy] = OrderedDict()
        self._rendered_copies: OrderedDict[str, Config] = OrderedDict()

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
        if question.rendered:
            await self._assignments.check(grant.subject, question.rendered, grant.verdict)
            config = await self._by_name(delivery, pool, question.rendered)
        else:
            config = self._overlays.over(await self._config(delivery, pool, question.accept), who)
        served = Served(config.body, pool, grant.subject.machine, question.nonce, question.rendered)
        signature = self._signer.sign(served, self._clock.now())
        return SecretBytes(envelope(Delivered(config.body, signature))), config

    async def _by_name(self, delivery: Delivery, pool: str, rendered: str) -> Config:
        """A rendered config. Its name follows from what it says, so a copy never grows old."""
        kept = self._rendered_copies.get(rendered) if delivery.sync != "OnDemand" else None
        if kept is not None:
            self._rendered_copies.move_to_end(rendered)
            return kept
        config = self._rendered_copies[rendered] = await self._source.fetch(pool, "", "", rendered)
        while len(self._rendered_copies) > MOST_COPIES:
            self._rendered_copies.popitem(last=False)
        return config

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

    async def run(self) -> None:
        """Keep the copies that machines asked for: renewed when a rendered config changes, or every interval; until cancelled."""
        news = asyncio.Event()
        with ExitStack() as stack:
            for informer in (self._pools, self._confidential):
                stack.callback(informer.subscribe(lambda _old, _new: news.set()))
            while True:
                news.clear()
                await news_or_time(news, self._clock, await self._renewed())

    async def _renewed(self) -> float:
        """Renew what is due; the seconds until the next look. Who cannot be asked now is asked again soon."""
        delivery, soon = delivery_of(self._confidential.get("", NAME)), False
        if delivery.via != "Broker" or delivery.sync == "OnDemand":
            return LOOK_SECONDS
        interval, now = delivery.interval.total_seconds(), self._clock.monotonic()
        for (pool, accept), kept in [*self._copies.items()]:
            if self._good(delivery, pool, kept, now - kept.at):
                continue
            with suppress(Refusal):
                await self._copied(pool, accept)
            soon = soon or not self._good(delivery, pool, self._copies.get((pool, accept), kept), 0.0)
        due = min((kept.at + interval - now for kept in self._copies.values()), default=LOOK_SECONDS)
        ahead = due if delivery.sync == "Scheduled" else LOOK_SECONDS
        return AGAIN_SECONDS if soon else max(AGAIN_SECONDS, min(LOOK_SECONDS, ahead))

    def _good(self, delivery: Delivery, pool: str, kept: Copy, age: float) -> bool:
        """Whether a copy may be handed out as it is."""
        if delivery.sync == "OnChange":
            return kept.rendered == self._rendered(pool)
        return age < delivery.interval.total_seconds()

    async def _copied(self, pool: str, accept: str) -> Config:
        """A fresh copy.

        Its name is the one that the config server gave with the bytes, whose cache may be behind ours: a copy of what was before
        is not kept under the name of what is. Without one, the name from before the bytes: a change in between is not missed.
        """
        rendered = self._rendered(pool)
        config = await self._source.fetch(pool, accept, "")
        self._copies[pool, accept] = Copy(config, self._clock.monotonic(), config.name or rendered)
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
