"""One way from the images that a runtime has to those that it should keep: look, pull, verify, pin, verify.

Nothing is pinned before everything is there, and nothing is said to be pinned before the runtime says so. What was pulled stays
when the rest fails: the next attempt has less to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fastness.agent.apply.pins import plan
from fastness.agent.apply.pins.plan import Pace
from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.errors import PinsRefused
from fastness.agent.host.errors import DriverError
from fastness.runtime.clock import Clock, Entropy

Object = Mapping[str, Any]


class Prefetch:
    """Brings images of one runtime where they should be."""

    def __init__(self, images: ContainerImages, clock: Clock, entropy: Entropy, pace: Pace) -> None:
        self._images = images
        self._clock = clock
        self._entropy = entropy
        self._pace = pace
        self.absent: frozenset[str] = frozenset()
        """The images that were not here when the runtime was asked last."""

    async def run(self, node: Object, images: Sequence[str]) -> None:
        """Have exactly these images pinned; raises PinsRefused, DriverError."""
        if images:
            if why := plan.unready(node) or await self._images.obstacle():
                raise PinsRefused(why)
            await self._pull_missing(node, images)
        await self._images.pin(images)
        if images:
            await self._until_pinned(images)

    async def settled(self, images: Sequence[str]) -> bool:
        """Whether all of them are here and pinned, so that nothing has to be done; raises DriverError."""
        present = await self._look(images)
        return bool(images) and all(present.get(image) for image in images) and not await self._images.obstacle()

    async def _pull_missing(self, node: Object, images: Sequence[str]) -> None:
        missing = await self._missing(images)
        failures: dict[str, str] = {}
        sizes = {image: await self._tried(self._images.size, image, failures) for image in missing}
        if failures:
            raise PinsRefused(f"images cannot be had: {plan.summary(failures)}")
        if why := plan.lacks_room(node, (size or 0 for size in sizes.values())):
            raise PinsRefused(why)
        waiting = list(reversed(missing))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(waiting), plan.workers(node, self._pace.workers))):
                group.create_task(self._work(waiting, failures))
        # Asked of the runtime and not taken from what the pulls said: that something was pulled does not say that it stayed.
        left = await self._missing(images)
        if left:
            why = plan.summary({image: failures.get(image, "it was pulled and is not there") for image in left})
            raise PinsRefused(f"images cannot be had: {why}")

    async def _missing(self, images: Sequence[str]) -> list[str]:
        present = await self._look(images)
        return [image for image in images if image not in present]

    async def _look(self, images: Sequence[str]) -> Mapping[str, bool]:
        present = await self._images.look(images)
        self.absent = frozenset(images) - present.keys()
        return present

    async def _work(self, waiting: list[str], failures: dict[str, str]) -> None:
        while waiting:
            await self._tried(self._images.pull, waiting.pop(), failures)
            if waiting:
                await self._clock.sleep(self._pace.pause)

    async def _tried(self, ask: Any, image: str, failures: dict[str, str]) -> int | None:
        """What the runtime answers for an image, asked a few times; why it does not is noted."""
        for attempt in range(self._pace.tries):
            if attempt:
                await self._clock.sleep(self._pace.between.delay(attempt - 1, self._entropy.fraction()))
            try:
                answer: int | None = await ask(image)
            except DriverError as error:
                failures[image] = error.message
                continue
            failures.pop(image, None)
            return answer
        return None

    async def _until_pinned(self, images: Sequence[str]) -> None:
        """Until the runtime says of each image that it keeps it: one that was told to read its file again takes a moment."""
        loose = list(images)
        for attempt in range(self._pace.tries):
            if attempt:
                await self._clock.sleep(self._pace.between.delay(attempt - 1, self._entropy.fraction()))
            present = await self._look(images)
            loose = [image for image in images if not present.get(image)]
            if not loose:
                return
        why = plan.summary(dict.fromkeys(loose, "the container runtime does not keep it"))
        raise PinsRefused(f"images are not pinned: {why}")
