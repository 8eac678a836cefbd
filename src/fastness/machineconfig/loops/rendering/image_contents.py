"""Images of operating systems, read for attestation as nodes would pull them: mirrors, pull secret, authorities of the cluster.

One image at a time: what matters of one may be hundreds of megabytes, and nobody waits for the second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastness.attestation.live.image_contents import ImageContents, ImageUnreadable
from fastness.formats.cosign import Signature
from fastness.images.boot_files import is_asked_for
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration.names import OPERATOR_NAMESPACE
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.live.image_tree import TreeReader
from fastness.machineconfig.live.registry import RegistryClient
from fastness.machineconfig.loops.rendering.registry_access import asked_access
from fastness.machineconfig.render.errors import MachineConfigError
from fastness.machineconfig.streams.access import RegistryAccess, pull_secret


class RegistryReader:
    """Reads images from registries."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = RegistryClient()
        self._trees = TreeReader(is_asked_for)
        self._turn = asyncio.Lock()

    async def contents(self, image: str, secret: str = "") -> ImageContents:
        """What matters for the boot of an image by digest; raises ImageUnreadable."""
        async with self._turn:
            access = await self._access(secret)
            try:
                read = await self._client.contents(image, access, self._trees)
            except MachineConfigError as error:
                raise ImageUnreadable(error.message) from error
        if read.problem is not None:
            raise ImageUnreadable(f"{image}: {read.problem.message}", read.problem.hint, lasting=True)
        return ImageContents(read.tree, read.labels)

    async def signatures(self, image: str, secret: str = "") -> Sequence[Signature]:
        """The signatures beside an image; raises ImageUnreadable."""
        access = await self._access(secret)
        try:
            return await self._client.signatures(image, access)
        except MachineConfigError as error:
            raise ImageUnreadable(error.message) from error

    async def _access(self, secret: str) -> RegistryAccess:
        """How registries are asked; a secret that is gone is as good as none: the registry says what it thinks of that."""
        try:
            credentials = await self._credentials(secret) if secret else None
            return await asked_access(self._cluster, credentials)
        except (MachineConfigError, ApiError) as error:
            raise ImageUnreadable(f"how registries are asked cannot be told: {error}") from error

    async def _credentials(self, secret: str) -> bytes | None:
        try:
            return pull_secret(await self._cluster.get(SECRET.resource, secret, OPERATOR_NAMESPACE)) or None
        except NotFound:
            return None
