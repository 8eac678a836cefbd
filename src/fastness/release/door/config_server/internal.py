"""The config server's internal port: configurations for gate and broker, which pass them on.

    Authorization      what the machine showed: its token, or a ticket where attestation is only watched
    Fastness-Nonce     the number of the machine's own request, which is signed
    Fastness-Signature, Fastness-Config, Fastness-Overlays, Fastness-Until     the config server's word, and what it is about

    Fastness-Stub      the name under which a stub of an older installer came to the gate, in place of the two

Only the broker may ask without a credential, for a copy, and the gate for a stub. TLS has refused everybody without a certificate
of the internal authority; the certificate is verified once more, against the authorities that are trusted now, because OpenSSL
cannot forget one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.http import Answer, Request
from fastness.http.edge import application, healthy
from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal
from fastness.http.route import READING, UNLIMITED, Auth, Route
from fastness.keys.internal import asking_role
from fastness.protocol.door import DoorRole
from fastness.release.configs import STUB, ConfigRequest, ConfigService
from fastness.release.door.config_server.app import DOOR, ERRORS, config_answer
from fastness.release.door.config_server.day_two import nonce_of
from fastness.release.live.releases import demand, rendered_in
from fastness.runtime.clock import Clock, Entropy

MAX_STUB: Final = 253


class InternalConfigServer:
    """The internal port: `app` is its application."""

    def __init__(
        self,
        served: ConfigService,
        trusted: Callable[[], Sequence[Certificate]],
        touch: Touch,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._served = served
        self._trusted = trusted
        self._touch = touch
        self._clock = clock
        routes = (
            Route("health", READING, "/healthz", Auth("any internal certificate", _peer), UNLIMITED, healthy),
            Route("config", READING, "/config/<pool>", Auth("gate or broker", self._role), UNLIMITED, self._config),
            Route("trust", READING, "/trust/<pool>", Auth("gate or broker", self._role), UNLIMITED, self._trust),
        )
        self.app = application(DOOR, routes, ERRORS, entropy)

    async def _config(self, request: Request, role: DoorRole) -> Answer:
        pool, rendered = request.values[0], rendered_in(request)
        demand(self._touch)
        credential, accept = request.header(b"authorization"), request.header(b"accept")
        stub = request.header(STUB)
        if stub and role is DoorRole.GATE:
            return config_answer(request, await self._served.stub(pool, accept, stub[:MAX_STUB]))
        if not credential:
            # A gate passes on what a machine showed; who asks without it wants to keep the configuration.
            if role is not DoorRole.BROKER:
                raise Refusal(403, "wrong-role", "copies are for the broker alone")
            return config_answer(request, await self._served.copy(pool, accept, rendered))
        forwarded = ConfigRequest(pool, accept, credential, nonce_of(request), rendered)
        return config_answer(request, await self._served.fetch(forwarded))

    async def _trust(self, request: Request, role: DoorRole) -> Answer:
        """What a machine has beside its configuration: for the one whose token is shown, and for nobody to keep."""
        demand(self._touch)
        credential = request.header(b"authorization")
        if not credential:
            raise Refusal(401, "token-required", "forward the token of the machine")
        forwarded = ConfigRequest(request.values[0], "", credential, nonce_of(request), trust=True)
        return config_answer(request, await self._served.fetch(forwarded))

    async def _role(self, request: Request) -> DoorRole:
        peer = await _peer(request)
        try:
            # By the role in the certificate, never by a header: a gate that was taken over must not ask as the broker.
            role = asking_role(Certificate.from_der(peer), self._trusted(), self._clock.now())
        except CryptoError as error:
            raise Refusal(401, "bad-certificate", error.message) from error
        if role is None:
            raise Refusal(403, "wrong-role", "only the gate and the broker ask here")
        return role


async def _peer(request: Request) -> bytes:
    """The certificate (DER) that TLS has accepted; raises Refusal."""
    if request.peer is None:
        raise Refusal(401, "certificate-required", "show the certificate of the gate or the broker")
    return request.peer
