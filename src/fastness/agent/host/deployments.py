"""What an image-based host boots: an image, and what was changed about it for this machine."""

from __future__ import annotations

from typing import NamedTuple


class Deployment(NamedTuple):
    """An image by its pull specification (empty: whatever was installed), kernel arguments in order, kernel, package sets."""

    image: str = ""
    arguments: tuple[str, ...] = ()
    kernel: str = ""
    extensions: tuple[str, ...] = ()
