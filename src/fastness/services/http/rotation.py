"""What the listeners show, kept fresh without a restart.

A `Face` is one listener with the certificate of its role that it shows. The controllers issue and renew certificates
(`controllers.attestation.certificates`): in time, when the clock was ahead, and when another generation of an authority issues.
The Secret of the role tells of it, so every replica shows the new one within moments.

A Secret that somebody damaged stops nothing: the last good state is shown on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.cluster.clock import Clock
from fastness.cluster.errors import ApiError
from fastness.cluster.waiting import news_or_time
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Credential
from fastness.observe import logs, metrics
from fastness.services.http.showing import Showing
from fastness.trust.certificates import DoorCertificates, Generations, RoleCertificates
from fastness.trust.errors import TrustError

LOOK_SECONDS: Final = 600.0
AGAIN_SECONDS: Final = 15.0
Chosen = tuple[Credential, Generations]
_log = logs.logger("rotation")


def to_machines(certificates: RoleCertificates) -> Chosen:
    """What a door shows to machines and people, none of whom it knows by a certificate of ours."""
    return certificates.serving, certificates.doors


@dataclass(slots=True)
class Face:
    """One listener: its name in metrics, whose certificates it shows, which of them, and what it shows now."""

    name: str
    listener: Showing
    certificates: DoorCertificates
    choose: Callable[[RoleCertificates], Chosen] = to_machines
    shown: Credential | None = None
    generations: tuple[str, ...] = field(default=())

    async def refresh(self) -> bool:
        """Show the certificate of now if it is another one; whether it is."""
        credential, believed = self.choose(self.certificates.current)
        same = self.shown is not None and self.shown.certificate.fingerprint == credential.certificate.fingerprint
        if same and believed.fingerprints == self.generations:
            return False
        await self.listener.show(credential, believed.trusted)
        self.shown, self.generations = credential, believed.fingerprints
        metrics.CERTIFICATE_EXPIRY.labels(self.name).set(credential.certificate.not_after.timestamp())
        return True


class Rotation:
    """Keeps the faces of one process fresh."""

    def __init__(self, faces: Sequence[Face], clock: Clock) -> None:
        self._faces = faces
        self._clock = clock
        self._news = asyncio.Event()

    async def begin(self) -> None:
        """Give every listener its first certificate, from then on it accepts; raises CryptoError, OSError."""
        for face in self._faces:
            await face.refresh()

    async def run(self) -> None:
        """Follow the certificates until cancelled."""

        def tell(_old: Any, _new: Any) -> None:
            self._news.set()

        with ExitStack() as stack:
            for face in self._faces:
                stack.callback(face.certificates.informer.subscribe(tell))
            while True:
                self._news.clear()
                await news_or_time(self._news, self._clock, LOOK_SECONDS if await self._refresh() else AGAIN_SECONDS)

    async def _refresh(self) -> bool:
        """Show what is new; whether all went well. What is shown is good for a while, and the next look tries again."""
        well = True
        for face in self._faces:
            try:
                if await face.refresh():
                    _log.info("pki.renewed", what=face.name)
                # Somebody may have taken the names of this door out of the Secret.
                await face.certificates.ask()
            except (CryptoError, OSError, ApiError, TrustError) as error:
                well = False
                _log.warning("certificates.failed", what=face.name, error=error)
        return well
