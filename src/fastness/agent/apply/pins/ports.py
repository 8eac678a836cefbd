"""What pinning needs of a container runtime, as small as it can be.

The adapters are `agent/host/crio_images.py`, `agent/host/containerd_images.py` and, for virtual machines,
`agent/host/memory_images.py`; all pass the same contract tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class ContainerImages(Protocol):
    """The images of a container runtime; all raise DriverError, and cancelling ends what was begun."""

    async def obstacle(self) -> str:
        """Why this runtime would not keep an image although it is pinned; empty where it would."""

    async def look(self, images: Sequence[str]) -> Mapping[str, bool]:
        """Those of the images that are here as a whole, each with whether it is pinned."""

    async def size(self, image: str) -> int:
        """The bytes that a pull of an image transfers, as its registry says."""

    async def pull(self, image: str) -> None:
        """Have an image here."""

    async def pin(self, images: Sequence[str]) -> None:
        """Let the runtime keep these, and no others that were pinned here before."""
