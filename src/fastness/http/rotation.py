"""The certificate that a listener shows, kept fresh without a restart.

A `ServedCertificate` says whose certificates a listener shows, and which of them. The controllers issue and renew certificates
(`attestation.loops.door_certificates`): in time, when the clock was ahead, and when another generation of an authority issues.
The Secret of the role tells of it, so every replica shows the new one within moments.

A Secret that somebody damaged stops nothing: the last good state is shown on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import Digest
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Credential
from fastness.http.certificates import TlsListener
from fastness.keys.certificates import DoorCertificates, Generations, RoleCertificates
from fastness.keys.errors import TrustError
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import news_or_time

# The informer tells of news; this look is for what no event tells, a clock that was set or names that somebody took out.
LOOK_SECONDS: Final = 600.0
AGAIN_SECONDS: Final = 15.0
Chosen = tuple[Credential, Generations]
_log = logs.logger("rotation")


def to_machines(certificates: RoleCertificates) -> Chosen:
    """What a door shows to machines and people, none of whom it knows by a certificate of ours."""
    return certificates.serving, certificates.doors


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """What a listener shows: its name in metrics and log, whose certificates these are, and which of them it takes.

    `look_seconds` is how often it looks without having heard of anything.
    """

    name: str
    certificates: DoorCertificates
    choose: Callable[[RoleCertificates], Chosen] = to_machines
    look_seconds: float = LOOK_SECONDS

    def current(self) -> Chosen:
        """The certificate of now, and the authorities whose peers may come; raises CryptoError."""
        return self.choose(self.certificates.current)


class Rotation:
    """Keeps what one listener shows fresh."""

    def __init__(self, listener: TlsListener, served: ServedCertificate, clock: Clock) -> None:
        self._listener = listener
        self._served = served
        self._clock = clock
        self._news = asyncio.Event()
        self._shown: tuple[Digest, tuple[str, ...]] | None = None

    async def begin(self) -> None:
        """Give the listener its first certificate, from then on it accepts; raises CryptoError, OSError."""
        await self._show()

    async def run(self) -> None:
        """Follow the certificates until cancelled."""

        def tell(_old: Any, _new: Any) -> None:
            self._news.set()

        unsubscribe = self._served.certificates.informer.subscribe(tell)
        try:
            while True:
                self._news.clear()
                well = await self._refresh()
                await news_or_time(self._news, self._clock, self._served.look_seconds if well else AGAIN_SECONDS)
        finally:
            unsubscribe()

    async def _show(self) -> bool:
        """Show the certificate of now if it is another one; whether it is."""
        credential, believed = self._served.current()
        shows = (credential.certificate.fingerprint, believed.fingerprints)
        if shows == self._shown:
            return False
        await self._listener.show(credential, believed.trusted)
        self._shown = shows
        metrics.CERTIFICATE_EXPIRY.labels(self._served.name).set(credential.certificate.not_after.timestamp())
        return True

    async def _refresh(self) -> bool:
        """Show what is new; whether all went well. What is shown is good for a while, and the next look tries again."""
        try:
            if await self._show():
                _log.info("pki.renewed", what=self._served.name)
            # Somebody may have taken the names of this door out of the Secret.
            await self._served.certificates.ask()
        except (CryptoError, OSError, ApiError, TrustError) as error:
            _log.warning("certificates.failed", what=self._served.name, error=error)
            return False
        return True
