"""Stubs of an older installer: what the gate serves under their server name, where such stubs are switched on.

    ClientHello with that name → its own certificate and this application → pool of model None, listed for the name
      → the config server, which decides again and puts a token in → record → bytes

A stub of spec 2 carries no ticket, so anybody who reaches the gate under the name gets what it gets. That is why it is off, why
switching it on is a lowering (`ConfidentialCluster.spec.join.legacyStubs`), and why nothing but these pools is reachable here:
the connection never comes to the gate's own application, whatever it asks for.

* The names of now are those that the ConfidentialCluster lists and the controllers have issued a certificate for.
* Who asks is a stranger: the limits of strangers hold, and each release is on the record with the address.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from fastness.http import Answer, Request
from fastness.http.certificates import load
from fastness.http.edge import Door, application
from fastness.http.faces import Face, Faces
from fastness.http.freshness import Touch
from fastness.http.limits import Limits, RateLimiter
from fastness.http.listener import server_context
from fastness.http.route import Auth, Limit, Route, Routes
from fastness.keys.authorities import SECRETS, named
from fastness.keys.legacy_stubs import ISSUED, credentials
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import legacy_stubs
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.kube.informers import Informers
from fastness.observe import metrics
from fastness.protocol.kbs_path import pool_config
from fastness.record.entry import Record, RecordEntry
from fastness.release.configs import Config, ConfigService
from fastness.release.door.gate.app import DOOR, ERRORS
from fastness.release.live.releases import demand, grant_here, written
from fastness.release.live.settings import Settings
from fastness.release.live.signed_configs import STUB_SECONDS
from fastness.runtime.clock import Clock, Entropy

STUB_DOOR: Final = Door("gate-stubs", DOOR.answered, DOOR.refused)


class LegacyDesk:
    """Decides about stubs, and writes down what they get."""

    def __init__(self, configs: ConfigService, record: Record, touch: Touch, settings: Settings, clock: Clock) -> None:
        self._configs = configs
        self._record = record
        self._touch = touch
        self._settings = settings
        self._clock = clock

    def grant(self, server_name: str, pool: str) -> Grant:
        """Leave for whoever came under a name to have the configuration of a pool; raises Refusal."""
        now = self._clock.now()
        caller = ProvenCaller(Subject("", server_name, server_name, pool), "", {}, now + STUB_SECONDS, Basis.STUB)
        return grant_here(caller, pool_config(pool), self._settings.current.rules, now)

    async def release(self, request: Request, server_name: str, pool: str) -> Config:
        """The configuration, on the record before it leaves; raises Refusal, ApiError, RecordError."""
        demand(self._touch)
        config = await self._configs.stub(pool, request.header(b"accept"), server_name)
        detail = {"basis": str(Basis.STUB), "address": request.address, **config.described()}
        await written(self._record, RecordEntry("release", f"stub:{server_name}", f"pool/{pool}/config", detail=detail))
        # Once more: writing takes time, and somebody may have switched the name off.
        self.grant(server_name, pool)
        demand(self._touch)
        metrics.RELEASES.inc(str(Basis.STUB))
        return config


class StubGate:
    """What the gate is under one name: `app` is its application."""

    def __init__(self, server_name: str, desk: LegacyDesk, limiter: RateLimiter, entropy: Entropy) -> None:
        self._server_name = server_name
        self._desk = desk
        self._limiter = limiter
        asker = Auth("nothing: the server name", self._recognise)
        # No HEAD: whoever does not read the answer must not use up a token of the pool.
        self.routes: Routes = (
            Route("stub-config", ("GET",), "/config/<pool>", asker, Limit(self._lane), self._deliver),
        )
        self.app = application(STUB_DOOR, self.routes, ERRORS, entropy)

    async def _recognise(self, request: Request) -> Grant:
        return self._desk.grant(self._server_name, request.values[0])

    def _lane(self, request: Request, _grant: Grant) -> AbstractContextManager[None]:
        return self._limiter.stranger(request.address)

    async def _deliver(self, request: Request, _grant: Grant) -> Answer:
        config = await self._desk.release(request, self._server_name, request.values[0])
        return Answer(200, config.body, headers=((b"etag", config.etag), (b"vary", b"Accept")))


class LegacyFaces:
    """The further names of the gate, as ConfidentialCluster and certificates have them now."""

    def __init__(self, informers: Informers, desk: LegacyDesk, limits: Limits, clock: Clock, entropy: Entropy) -> None:
        self.faces = Faces()
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._issued = informers.of(SECRETS, named(ISSUED))
        self._desk = desk
        self._limiter = RateLimiter(limits, clock)
        self._entropy = entropy

    async def synced(self) -> None:
        """Wait until both were read."""
        await self._clusters.synced()
        await self._issued.synced()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Answer to the names of now, for the time of the block."""
        ends = [informer.subscribe(self._changed) for informer in (self._clusters, self._issued)]
        self._changed(None, None)
        try:
            yield
        finally:
            for end in ends:
                end()

    def _changed(self, _old: Any, _new: Any) -> None:
        listed = {name for name, pools in legacy_stubs(self._clusters.get("", NAME)).items() if pools}
        issued = credentials(self._issued.get(NAMESPACE, ISSUED))
        for name in self.faces.names - (listed & issued.keys()):
            self.faces.hide(name)
        for name in listed & issued.keys():
            # TLS 1.2, under this name alone: the Ignition of such stubs (0.35) knows no other.
            context = server_context(oldest=ssl.TLSVersion.TLSv1_2)
            load(context, issued[name])
            self.faces.show(name, Face(context, StubGate(name, self._desk, self._limiter, self._entropy).app))
