"""What the listeners show, kept fresh without a restart.

A `Face` is one listener with the authority that its certificate comes from. Its certificate is replaced when less than a third of
its life is left, when it is not valid yet (the clock was ahead when it was issued, and was set right), when another generation of
the authority issues, and when the set of trusted generations changes. What concerns the authority is told by its Secret, so every
replica follows whoever renewed it, within moments. Dates are looked at every few seconds, which costs nothing: no news tells of a
clock that was set.

The authority itself is renewed here as well, by whichever replica comes first. A Secret that somebody damaged stops nothing: the
last good state is used on, and the log says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fastness.cluster.clock import Clock
from fastness.cluster.errors import ApiError
from fastness.cluster.port import Cluster
from fastness.cluster.waiting import news_or_time
from fastness.crypto.digests import Digest
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Credential
from fastness.model.objects import object_name
from fastness.observe import logs, metrics
from fastness.services.http.showing import Showing
from fastness.trust.authorities import Lineage, LiveAuthority, MayPromote, nobody_objects
from fastness.trust.errors import TrustError
from fastness.trust.internal import is_due

LOOK_SECONDS: Final = 600.0
DATES_SECONDS: Final = 15.0
_log = logs.logger("rotation")


@dataclass(slots=True)
class Face:
    """One listener: its name in metrics, where its certificate comes from, and what it shows now."""

    name: str
    listener: Showing
    authority: LiveAuthority
    issue: Callable[[Lineage, datetime], Credential]
    may_promote: MayPromote = nobody_objects
    shown: Credential | None = None
    generations: tuple[Digest, ...] = field(default=())

    async def refresh(self, now: datetime) -> bool:
        """Show a new certificate if one is due; whether it was."""
        lineage = self.authority.current
        generations = tuple(entry.fingerprint for entry in lineage.trusted)
        if self.shown is not None and not is_due(self.shown, now) and generations == self.generations:
            return False
        credential = self.issue(lineage, now)
        await self.listener.show(credential, lineage.trusted)
        self.shown, self.generations = credential, generations
        return True

    def publish_expiry(self) -> None:
        """Say in the metrics when certificate and authority expire."""
        ends = {self.authority.kind.name: self.authority.current.issuing.certificate.not_after}
        if self.shown is not None:
            ends[self.name] = self.shown.certificate.not_after
        for name, end in ends.items():
            metrics.CERTIFICATE_EXPIRY.labels(name).set(end.timestamp())


class Rotation:
    """Keeps the faces of one process fresh."""

    def __init__(self, cluster: Cluster, faces: Sequence[Face], clock: Clock) -> None:
        self._cluster = cluster
        self._faces = faces
        self._clock = clock
        self._news = asyncio.Event()

    async def begin(self) -> None:
        """Give every listener its first certificate, from then on it accepts; raises CryptoError, OSError."""
        for face in self._faces:
            await face.refresh(self._clock.now())
            face.publish_expiry()

    async def run(self) -> None:
        """Follow the authorities until cancelled."""
        names = {face.authority.kind.name for face in self._faces}

        def tell(_old: Any, new: Any) -> None:
            if new is not None and object_name(new).name in names:
                self._news.set()

        with ExitStack() as stack:
            for informer in {id(face.authority.informer): face.authority.informer for face in self._faces}.values():
                stack.callback(informer.subscribe(tell))
            while True:
                self._news.clear()
                await self._renew()
                await self._dates()

    async def _dates(self) -> None:
        """Keep the certificates fresh until there is news of an authority, or for as long as nobody needs to ask for any."""
        end = self._clock.monotonic() + LOOK_SECONDS
        while (left := end - self._clock.monotonic()) > 0:
            await self._refresh()
            if await news_or_time(self._news, self._clock, min(left, DATES_SECONDS)):
                return

    async def _renew(self) -> None:
        for face in self._faces:
            try:
                await face.authority.renew(self._cluster, face.may_promote)
            except (ApiError, TrustError) as error:
                _log.warning("authority.failed", authority=face.authority.kind.name, error=error, hint=error.hint)

    async def _refresh(self) -> None:
        for face in self._faces:
            try:
                if await face.refresh(self._clock.now()):
                    _log.info("pki.renewed", what=face.name)
            except (CryptoError, OSError) as error:
                # What is shown is good for a while, and the next look tries again.
                _log.warning("authority.failed", authority=face.authority.kind.name, error=error)
            face.publish_expiry()
