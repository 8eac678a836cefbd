"""What the loops of attestation ask of whoever reaches registries: the files of an image, and the signatures beside it.

The registries' client is machine configuration's (`machineconfig/loops/rendering/image_contents.py` stands behind this port):
it goes by the mirrors, the pull secret and the authorities of the cluster, as nodes do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastness.formats.cosign import Signature
from fastness.formats.tar_stream import Member
from fastness.runtime.errors import FastnessError


class ImageUnreadable(FastnessError):
    """An image cannot be read: for now, or at all (`lasting`), whoever is asked."""

    code = "image-unreadable"
    hint = (
        "Look whether the registry has it and lets the cluster's pull secret in (`skopeo inspect`); it is tried again."
    )

    def __init__(self, message: str, hint: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, hint)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class ImageContents:
    """The paths of an image that matter for its boot, and its labels."""

    tree: Mapping[str, Member] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class ImageReader(Protocol):
    """Somebody who reaches registries. `secret` names the pull secret of one image; without it the cluster's counts."""

    async def contents(self, image: str, secret: str = "") -> ImageContents:
        """What matters of an image by digest; raises ImageUnreadable."""

    async def signatures(self, image: str, secret: str = "") -> Sequence[Signature]:
        """The signatures beside an image; raises ImageUnreadable."""


Simulated = Callable[[str], Awaitable[Mapping[str, Any]]]
"""What simulated machines measure that boot an image, as a manifest; raises ImageUnreadable."""


class NoReader:
    """Nobody who reaches registries."""

    async def contents(self, image: str, secret: str = "") -> ImageContents:
        """Never; raises ImageUnreadable."""
        raise ImageUnreadable(f"{image}: this control plane reaches no registry", lasting=True)

    async def signatures(self, image: str, secret: str = "") -> Sequence[Signature]:
        """Never; raises ImageUnreadable."""
        raise ImageUnreadable(f"{image}: this control plane reaches no registry", lasting=True)
