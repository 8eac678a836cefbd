"""Images in memory: the container runtime of a virtual machine, with a registry that has every image.

`sizes` limits what can be had, and says how large it is. A record below a directory lets images outlive the process that runs the
machine, as a disk does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import File
from fastness.formats import json
from fastness.formats.errors import JsonError

RECORD: Final = "/images.json"
SIZE: Final = 64 * 1024 * 1024


class MemoryImages:
    """The images of a virtual machine."""

    def __init__(self, record: RootedFiles | None = None, sizes: Mapping[str, int] | None = None) -> None:
        self._record = record
        self._sizes = sizes
        self._images: dict[str, bool] = {}
        self._load()

    async def obstacle(self) -> str:
        """None: what is pinned stays."""
        return ""

    async def look(self, images: Sequence[str]) -> Mapping[str, bool]:
        """Those that were pulled, with whether they are pinned."""
        return {image: self._images[image] for image in images if image in self._images}

    async def size(self, image: str) -> int:
        """What the registry says; raises ImageFailure for an image that it does not have."""
        if self._sizes is not None and image not in self._sizes:
            raise ImageFailure(f"{image}: not found")
        return self._sizes[image] if self._sizes is not None else SIZE

    async def pull(self, image: str) -> None:
        """Have an image; raises ImageFailure for one that the registry does not have."""
        await self.size(image)
        self._images.setdefault(image, False)
        self._save()

    async def pin(self, images: Sequence[str]) -> None:
        """Keep these and no others; raises ImageFailure for one that is not here."""
        for image in images:
            if image not in self._images:
                raise ImageFailure(f"{image}: not found")
        self._images = {image: image in images for image in self._images}
        self._save()

    def _save(self) -> None:
        if self._record is not None:
            self._record.put(RECORD, File(json.encode(self._images), 0o600))

    def _load(self) -> None:
        state = self._record.look(RECORD) if self._record is not None else None
        try:
            images: Any = json.decode(state.content) if isinstance(state, File) else {}
        except JsonError:
            images = {}  # cut off by a power failure: pulled again
        self._images = (
            {str(name): pinned is True for name, pinned in images.items()} if isinstance(images, dict) else {}
        )
