"""Keys that a door holds are renewed by that door, while it runs and for as long as it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastness.keys.errors import TrustError
from fastness.kube.errors import ApiError
from fastness.observe import logs
from fastness.runtime.clock import Clock

RENEW_SECONDS: Final = 300.0
# Shorter than the time for which a new key is published before it signs: one failure leaves others time to learn of it.
AGAIN_SECONDS: Final = 20.0
_log = logs.logger("keys")


async def keep_renewed(door: str, clock: Clock, *renewals: Callable[[], Awaitable[None]]) -> None:
    """Begin new keys when they are due, until cancelled; what fails is tried again soon."""
    pause = RENEW_SECONDS
    while True:
        await clock.sleep(pause)
        pause = RENEW_SECONDS
        for renew in renewals:
            try:
                await renew()
            except (ApiError, TrustError) as error:
                pause = AGAIN_SECONDS
                _log.warning("keys.not-renewed", door=door, error=error, hint=error.hint)
