"""A renewal that fails leaves what is shown and is tried again; the first one must not fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from fastness.attestation.loops.door_certificates import DATES_SECONDS, issuing
from fastness.crypto.errors import BadCertificate
from fastness.crypto.x509 import Certificate, Credential
from fastness.http.rotation import AGAIN_SECONDS, LOOK_SECONDS, Rotation, ServedCertificate
from fastness.keys.certificates import DoorCertificates
from fastness.kube.informers import Informers
from fastness.protocol.door import DoorRole
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import VirtualClock, settle


class Balking:
    """A listener that refuses certificates when it is told to."""

    port = 1

    def __init__(self) -> None:
        self.shown: list[Credential] = []
        self.asked = 0
        self.refuses = False

    async def show(self, credential: Credential, trusted: Sequence[Certificate] = ()) -> None:
        self.asked += 1
        if self.refuses:
            raise OSError("no descriptors are left")
        self.shown.append(credential)

    async def stop(self) -> None:
        """Nothing to stop."""


async def test_a_renewal_that_fails_is_tried_again_at_the_next_look(embedded_server: Embedded) -> None:
    clock, entropy, listener = VirtualClock(datetime.now(UTC)), SystemEntropy(), Balking()
    cluster = embedded_server.cluster
    async with (
        Informers(cluster, clock=SystemClock(), entropy=entropy) as informers,
        issuing(cluster, informers, clock, entropy),
    ):
        certificates = await DoorCertificates.open(DoorRole.GATE, cluster, informers, clock, ["localhost"])
        rotation = Rotation(listener, ServedCertificate("some", certificates), clock)
        listener.refuses = True
        with pytest.raises(OSError, match="descriptors"):
            await rotation.begin()
        listener.refuses = False
        await rotation.begin()
        following = asyncio.create_task(rotation.run())
        await clock.advance(LOOK_SECONDS)
        assert len(listener.shown) == 1
        listener.refuses = True
        clock._start += timedelta(days=80)
        async with asyncio.timeout(PATIENCE):
            while listener.asked < 4:
                await clock.advance(DATES_SECONDS)
                await asyncio.sleep(0.02)
        assert len(listener.shown) == 1
        listener.refuses = False
        await clock.advance(AGAIN_SECONDS)
        assert len(listener.shown) == 2
        assert not following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


class Unissued:
    """A door whose certificate nobody has issued; its Secret tells nothing."""

    current = None

    @property
    def informer(self) -> Unissued:
        return self

    def subscribe(self, _handler: Any) -> Callable[[], None]:
        return lambda: None


def _none(_certificates: Any) -> Any:
    raise BadCertificate("nobody has issued one")


async def test_a_rotation_that_is_ended_while_it_hears_news_ends() -> None:
    """At whatever turn of the loop: a door that closes must not wait for the next look."""
    served = ServedCertificate("some", cast("DoorCertificates", Unissued()), _none)
    for turns in range(12):
        rotation = Rotation(Balking(), served, VirtualClock())
        following = asyncio.create_task(rotation.run())
        await settle()
        rotation._news.set()
        await settle(turns)
        following.cancel()
        await settle()
        assert following.cancelled(), f"cancelled {turns} turns after the news, and it went on"
