"""The builder of this machine: buildah in a sandbox, transfers outside of it.

    lay out   base and extensions are pulled by digest, the agent's own writer writes the config      network, credentials
    look      arguments of the base that a config takes out: the files that hold them are read        neither
    build     buildah in the sandbox: stages, RUN, an image as a directory                            neither
    collect   what it left is read, compared with digests, put on the layers of the base
    push      to the registry, under the tag of the build; the digest is that of the bytes here       network, credentials

So a credential and a Containerfile never meet, and a log can hold none. Same inputs, same digest: the time is fixed, the storage
driver is, and what could differ (order, names of working containers) is in no layer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastness.builds import containerfile
from fastness.builds.errors import BuildFailed
from fastness.builds.live import transfers, workshop
from fastness.builds.live.builder import Order
from fastness.builds.live.layout import collect
from fastness.builds.live.removal import remove_tree
from fastness.builds.live.seal import LOOK, lay_out_seal, seal_obstacle, write_kernel_image
from fastness.builds.live.transfers import Way
from fastness.builds.live.workshop import BASE, CONTEXT, EXTENSIONS, NO_SANDBOX, OUT, PROGRAM, BuildLimits
from fastness.builds.log import BuildLog
from fastness.builds.signing import Beside
from fastness.formats import oci
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.observe.logs import logger
from fastness.runtime.tasks import uninterrupted

_log = logger("builds")


class Buildah:
    """Builds below a directory that only root can enter."""

    def __init__(self, directory: Path, limits: BuildLimits = BuildLimits()) -> None:  # noqa: B008
        # The process around a build starts in it, so a name that begins here would lead nowhere there.
        self._directory = directory.absolute()
        self._limits = limits
        self._obstacle: str | None = None

    async def obstacle(self) -> str:
        """Why nothing can be built here; asked of the machine until it can."""
        if self._obstacle != "":
            self._obstacle = await self._asked()
        return self._obstacle

    async def _asked(self) -> str:
        if shutil.which(PROGRAM) is None:
            return f"{PROGRAM} is not installed here: install the package {PROGRAM}; nothing is built meanwhile"
        if os.geteuid() != 0:
            return "this control plane does not run as root: builds need users of their own, which only root can give"
        work, log = self._directory / "probe", BuildLog()
        try:
            async with self._working(work):
                workshop.give(work)
                code = await workshop.run(work, workshop.PROBE, self._limits, log.add)
        except (OSError, BuildFailed) as error:
            return f"the sandbox of builds cannot be made here: {error}"
        return "" if code == 0 else f"the sandbox of builds cannot be made here: {log.tail(500)}"

    async def build(self, order: Order, log: BuildLog) -> str:
        """Build and push; the image by digest; raises BuildFailed, TransferFailed."""
        work = self._directory / order.name
        if not oci.reference(order.inputs.base).digest:
            raise BuildFailed(f"{order.inputs.base} is no image by digest")
        look = partial(workshop.require_space, work, self._limits)
        try:
            async with self._working(work):
                log.say(f"pulling the base image {order.inputs.base}")
                base = await transfers.pull(Way.to_read(order.pull, order.inputs.base), work / BASE, look=look)
                if extensions := order.inputs.extensions:
                    log.say(f"pulling the extensions image {extensions}")
                    way = Way.to_read(order.pull, extensions)
                    await transfers.pull(way, work / EXTENSIONS, "extensions image", look)
                await uninterrupted(lambda: workshop.write_context(work / CONTEXT, order))
                log.say("building")
                code = await workshop.build(work, self._limits, log.add)
                if code in NO_SANDBOX:
                    raise BuildFailed(f"the sandbox of builds cannot be made here: {log.tail(500)}")
                if code != 0:
                    raise BuildFailed(workshop.why(log, code))
                if order.inputs.sealed:
                    log.say("sealing")
                    await self._seal(work, log)
                layers = containerfile.layer_names(order.inputs.layer, order.inputs.packages)
                made = await uninterrupted(lambda: collect(work / OUT, work / BASE, base, layers))
                log.say(f"pushing {order.target}")
                image = await transfers.push(Way.to_write(order.push, order.target), made)
        except OSError as error:
            raise BuildFailed(f"{error.filename or self._directory}: {error.strerror}") from error
        log.say(f"pushed {image}")
        _log.info("build.pushed", build=order.name, image=image)
        return image

    async def forget(self, name: str) -> None:
        """Take away what a build left that ended with the process around it; one that came to its end left nothing."""
        if name:
            await uninterrupted(lambda: remove_tree(self._directory / name))

    def runs(self, name: str) -> JsonObject | None:
        """No other object: it runs in this process."""
        return None

    async def seal_obstacle(self) -> str:
        """Why nothing can be sealed here; empty when it can."""
        return seal_obstacle()

    async def _seal(self, work: Path, log: BuildLog) -> None:
        """Give what was made the kernel image that names its root; raises BuildFailed, OSError."""
        look = (("/bin/sh", "-c", LOOK.format(buildah=" ".join(workshop.BUILDAH))),)
        for prepare, commands in ((lay_out_seal, look), (write_kernel_image, workshop.SEAL)):
            # Only what is new is given away: the owners of everything else are those of the image by now.
            made = await uninterrupted(lambda prepare=prepare: prepare(work))  # type: ignore[misc]
            await uninterrupted(lambda made=made: workshop.give(made))  # type: ignore[misc]
            if await workshop.run(work, commands, self._limits, log.add):
                raise BuildFailed(f"the image cannot be sealed: {log.tail()}")

    async def require(self, image: str, access: RegistryAccess) -> None:
        """Have the registry show an image; raises TransferFailed."""
        await transfers.require(image, access)

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Take an image out of its registry; raises TransferFailed."""
        await transfers.delete(image, access)

    async def put_beside(self, image: str, beside: Beside, access: RegistryAccess) -> None:
        """Put what belongs to an image beside it; raises TransferFailed."""
        await transfers.put_beside(Way.to_write(access, image), beside)

    @asynccontextmanager
    async def _working(self, work: Path) -> AsyncIterator[None]:
        """A directory for one build, for the time of the block."""

        def begin() -> None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            workshop.begin(work)

        await uninterrupted(begin)
        try:
            yield
        finally:
            await uninterrupted(lambda: remove_tree(work))
