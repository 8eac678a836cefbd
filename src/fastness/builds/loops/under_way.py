"""One build while it runs: its log is kept, its progress told, and it ends when nobody wants it any more.

    outcome = await UnderWay(…).follow(build, order, goes_on)

Cancelling it, as a restart does, is no word about the build: whoever builds goes on or begins anew when he is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from fastness.builds.errors import BuildError, BuildFailed, TransferFailed
from fastness.builds.live.builder import Builder, Order
from fastness.builds.live.image_signer import ImageSigner
from fastness.builds.live.transfers import Way
from fastness.builds.log import BuildLog, forms_of
from fastness.builds.loops.logs import KeptLog
from fastness.builds.loops.statuses import AS, BuildStatuses
from fastness.keys.errors import TrustError
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.observe import metrics
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

TRIES: Final = 4
LOOK_EVERY: Final = 0.2
KEEP_EVERY: Final = 5
"""A log is written at every so manieth look: once in a second while it grows."""
_log = logger("builds")


class Outcome(NamedTuple):
    """How a build ended; `pushed` is None where it did not come so far."""

    phase: BuildPhase
    text: str = ""
    image: str = ""
    pushed: bool | None = None


class UnderWay:
    """Follows builds, one at a time."""

    def __init__(
        self, cluster: Cluster, clock: Clock, builder: Builder, statuses: BuildStatuses, retry: float,
        signer: ImageSigner | None = None,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._clock = clock
        self._builder = builder
        self._statuses = statuses
        self._retry = retry
        self._signer = signer

    async def follow(self, build: JsonObject, order: Order, goes_on: Callable[[], bool]) -> Outcome:
        """Have an image built, as long as somebody wants it."""
        log = BuildLog(forms_of((
            *Way.to_read(order.pull, order.inputs.base).logins, *Way.to_write(order.push, order.target).logins,
        )))  # fmt: skip
        written = KeptLog(self._cluster, build, log, AS)
        work = asyncio.ensure_future(self._tried(order, log))
        try:
            looks, last = 0, ""
            while not (await asyncio.wait((work,), timeout=LOOK_EVERY))[0]:
                if not goes_on():
                    return Outcome(BuildPhase.INTERRUPTED, "nobody wants it any more")
                looks += 1
                if looks % KEEP_EVERY == 0:
                    await written.write()
                    last = await self._tell(build, log, last)
        finally:
            work.cancel()
            await asyncio.wait((work,))
            if not work.cancelled() and (error := work.exception()) is not None:
                log.add(f"\n{error}\n".encode())
            await written.write()
        try:
            return Outcome(BuildPhase.SUCCEEDED, "", work.result(), pushed=True)
        except BuildError as error:
            return Outcome(BuildPhase.FAILED, error.message, pushed=False if error.pushing else None)

    async def _tell(self, build: JsonObject, log: BuildLog, last: str) -> str:
        progress = log.progress
        if progress and progress != last:
            await self._statuses.progress(build, f"the image is being built: {progress}")
        return progress

    async def _tried(self, order: Order, log: BuildLog) -> str:
        """Build, again where a registry failed; raises BuildError."""
        for pause in (self._retry * 2**tried for tried in range(TRIES - 1)):
            try:
                return await self._built(order, log)
            except TransferFailed as error:
                _log.warning("build.transfer", build=order.name, error=error.message)
                metrics.BUILDS.retried()
                log.say(f"{error.message}; tried again in {pause:.0f} seconds")
                await self._clock.sleep(pause)
        return await self._built(order, log)

    async def _built(self, order: Order, log: BuildLog) -> str:
        """Build once, and sign what came of it; raises BuildError."""
        image = await self._builder.build(order, log)
        if self._signer is not None:
            try:
                signature = await self._signer.sign(image)
            except (TrustError, ApiError) as error:
                raise BuildFailed(f"{image} was pushed and not signed: {error.message}") from error
            await self._builder.put_beside(image, signature, order.push)
            log.say("signed with the key of this cluster (ConfigMap fastness-system/image-public-keys)")
        return image
