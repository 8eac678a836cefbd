"""Where keys, nonces and serial numbers come from.

The layers above hand in the kernel's generator, or a seeded one in tests and simulations; nothing in this package draws
randomness by itself, except ECDSA signatures and OAEP, whose nonces stay inside the library.
"""

from __future__ import annotations

from typing import Protocol


class RandomBytes(Protocol):
    """A source of unpredictable bytes."""

    def token(self, length: int) -> bytes:
        """That many unpredictable bytes."""
