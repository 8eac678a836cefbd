"""Configurations as resources of the broker: `pool/<name>/config`, sealed to the machine that asks.

Where the bytes come from is a setting of the ConfidentialCluster and changes while the broker runs:

    OnDemand    asked from the config server during the request: always current, and only as available as the config server
    Scheduled   copied every interval: served from memory, at most that old; the age is a metric, and a copy that grew older
                than three intervals is not served any more
    OnChange    copied when a pool's rendered config changes: served from memory, current within the time that a change takes

On demand, the broker forwards a token of the machine and passes on what the config server signed for it. A copy is the bytes of
one pool in one Ignition version, made when it is first asked for and kept up to a bound; from then on `run` renews it, so that
machines do not wait for the config server. It is signed for a pool, a rendered config and a time; the machine and its nonce are
in the envelope that is sealed to it. Copies are in memory: a broker that starts while the config server is down says so (503)
until it has been asked once. A machine with overlays cannot have a copy: it waits (503). A machine that runs names the
rendered config that it was told to go to, and gets that one if it is written on its Machine.

`pool/<name>/trust`, what nodes have beside their configuration, is always asked from the config server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from fastness.crypto.secret import SecretBytes, SecretText
from fastness.http.refusals import Refusal
from fastness.keys.errors import BadToken
from fastness.kinds.fastness_dev.cluster import NAME
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.informers import Informer
from fastness.machineconfig.overlay.overlay import Recipient
from fastness.machineconfig.serving import configuration_of
from fastness.observe import metrics
from fastness.protocol.delivered import Delivered, Question, Sealed, envelope, parse_question
from fastness.protocol.kbs_path import ResourcePath, is_pool_config, is_pool_trust
from fastness.release.configs import Config, ConfigRequest, ConfigService, Delivery, delivery_of
from fastness.release.live.overlays import Overlays, recipient
from fastness.release.live.releases import Assignments
from fastness.release.source import Content, Query
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import news_or_time

MOST_COPIES: Final = 64
RENEW_AHEAD: Final = timedelta(minutes=30)  # of the end of a copy's signature, which is an hour at least
STALE_AFTER: Final = 3
LOOK_SECONDS: Final = 600.0
AGAIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Copy:
    """A configuration that was fetched, when, and which rendered config the pool had then."""

    config: Config
    at: float
    rendered: str


class TokenSigner(Protocol):
    """Signs tokens of what a session proved; `release.live.tokens.TokenIssuer` is one."""

    def sign(self, claims: dict[str, Any]) -> SecretText:
        """A token with these claims; raises BadToken."""


class PoolConfigs:
    """Delivers configurations of pools: a ResourceSource of the broker."""

    def __init__(
        self,
        service: ConfigService,
        tokens: TokenSigner,
        confidential: Informer,
        pools: Informer,
        overlays: Overlays,
        assignments: Assignments,
        clock: Clock,
    ) -> None:
        self._service = service
        self._tokens = tokens
        self._confidential = confidential
        self._pools = pools
        self._overlays = overlays
        self._assignments = assignments
        self._clock = clock
        self._copies = BoundedCache[tuple[str, str], Copy](MOST_COPIES)
        self._rendered_copies = BoundedCache[str, Config](MOST_COPIES)

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is the configuration of a pool, or what its nodes have beside it."""
        return is_pool_config(path) or is_pool_trust(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content:
        """The signed configuration in its envelope; raises Refusal, DeliveredError, ApiError."""
        delivery = delivery_of(self._confidential.get("", NAME))
        if delivery.via != "Broker":
            raise Refusal(
                503, "delivered-by-gate", "configurations are handed out by the gate: enrol again to learn where"
            )
        question, trust = parse_question(query), is_pool_trust(path)
        if trust and (question.rendered or question.accept):
            raise Refusal(400, "bad-query", "whom a node believes has no versions and no names to ask for")
        if question.rendered:
            # At the API and for each request: a cache may not have heard that a config was taken back.
            await self._assignments.check(grant.subject, question.rendered, grant.verdict)
        # Whom to believe is never handed out from a copy: an authority that was taken out ends with the next question.
        if delivery.copies and not trust:
            config = await self._copy(delivery, recipient(grant.caller.claims), path.type, question)
            delivered = Delivered(
                config.body, config.signature, Sealed(config.name, grant.subject.machine, question.nonce)
            )
        else:
            config = await self._on_demand(grant, path.type, question, trust=trust)
            delivered = Delivered(config.body, config.signature)
        return Content(SecretBytes(envelope(delivered)), config.described(), is_config=True, rendered=question.rendered)

    async def _on_demand(self, grant: Grant, pool: str, question: Question, *, trust: bool) -> Config:
        """What the config server signs for the machine now, which wants to see a token of it."""
        accept = "" if question.rendered or trust else question.accept
        credential = f"DPoP {self._token(grant.caller.claims)}"
        request = ConfigRequest(pool, accept, credential, question.nonce, question.rendered, trust)
        config = await self._service.fetch(request)
        return config if trust else _fresh(config)

    def _token(self, claims: Mapping[str, Any]) -> str:
        """A token for what the session proved: whoever comes with a cookie shows none."""
        try:
            return self._tokens.sign(dict(claims)).reveal()
        except BadToken as error:
            raise Refusal(400, error.code, error.message) from error

    async def _copy(self, delivery: Delivery, who: Recipient, pool: str, question: Question) -> Config:
        # A copy of the pool without them would be a good signature under a configuration that is not this machine's.
        if self._overlays.concern(who) or names.split_target(question.rendered)[1]:
            raise Refusal(
                503, "overlaid", "this machine has NodeOverlays, which copies do not: set delivery.sync to OnDemand"
            )
        if question.rendered:
            return await self._by_name(pool, question.rendered)
        return await self._config(delivery, pool, question.accept)

    async def _by_name(self, pool: str, rendered: str) -> Config:
        """A rendered config. Its name follows from what it says, so a copy grows old only by its signature."""
        last = self._rendered_copies.use(rendered)
        if last is not None and self._signed(last):
            return last
        config = await self._service.copy(pool, "", rendered)
        self._rendered_copies.put(rendered, config)
        return config

    def _signed(self, config: Config, ahead: timedelta = timedelta()) -> bool:
        """Whether the signature of a copy counts, and for so long still."""
        return config.until is not None and self._clock.now() + ahead < config.until

    async def _config(self, delivery: Delivery, pool: str, accept: str) -> Config:
        copy = self._copies.get((pool, accept))
        age = self._clock.monotonic() - copy.at if copy else 0.0
        if copy is not None and self._good(delivery, pool, copy, age):
            metrics.CONFIG_COPY_AGE.set(age)
            return copy.config
        try:
            return _fresh(await self._copied(pool, accept))
        except Refusal as refusal:
            if copy is None and refusal.status == 503:
                # A broker that has just started: whoever reads this looks at the config server, and not at the copies.
                raise Refusal(503, refusal.code, f"{refusal.detail}, and this broker has no copy yet") from refusal
            still = copy is not None and age < delivery.interval.total_seconds() * STALE_AFTER
            # Only an outage lets an older copy out: a refusal is a decision, and an old copy must not stand against it.
            if refusal.status != 503 or copy is None or not still or delivery.sync != "Scheduled":
                raise
            # The machine looks at the end of the signature too; handing out what it refuses would only hide the outage.
            if not self._signed(copy.config):
                raise
            metrics.CONFIG_COPY_AGE.set(age)
            return copy.config

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
        if not delivery.copies:
            return LOOK_SECONDS
        interval, now = delivery.interval.total_seconds(), self._clock.monotonic()
        for (pool, accept), copy in [*self._copies.items()]:
            if self._good(delivery, pool, copy, now - copy.at):
                continue
            with suppress(Refusal):
                await self._copied(pool, accept)
            soon = soon or not self._good(delivery, pool, self._copies.get((pool, accept)) or copy, 0.0)
        due = min((copy.at + interval - now for copy in self._copies.values()), default=LOOK_SECONDS)
        ahead = due if delivery.sync == "Scheduled" else LOOK_SECONDS
        return AGAIN_SECONDS if soon else max(AGAIN_SECONDS, min(LOOK_SECONDS, ahead))

    def _good(self, delivery: Delivery, pool: str, copy: Copy, age: float) -> bool:
        """Whether a copy may be handed out as it is."""
        if not self._signed(copy.config, RENEW_AHEAD):
            return False
        if delivery.sync == "OnChange":
            return copy.rendered == self._rendered(pool)
        return age < delivery.interval.total_seconds()

    async def _copied(self, pool: str, accept: str) -> Config:
        """A fresh copy.

        Its name is the one that the config server gave with the bytes, whose cache may be behind ours: a copy of what was before
        is not kept under the name of what is. Without one, the name from before the bytes: a change in between is not missed.
        """
        rendered = self._rendered(pool)
        config = await self._service.copy(pool, accept)
        self._copies.put((pool, accept), Copy(config, self._clock.monotonic(), config.name or rendered))
        return config

    def _rendered(self, pool: str) -> str:
        pool_object = self._pools.get("", pool)
        return configuration_of(pool_object) if pool_object else ""


def _fresh(config: Config) -> Config:
    """What was asked for just now: the age that is shown must not stay that of a copy from before."""
    metrics.CONFIG_COPY_AGE.set(0)
    return config
