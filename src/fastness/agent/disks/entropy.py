"""Randomness of the kernel, and nothing else of a process: an opener starts in half the time without an event loop and TLS."""

from __future__ import annotations

import os


class KernelEntropy:
    """The kernel's generator."""

    def token(self, length: int) -> bytes:
        """That many unpredictable bytes."""
        return os.urandom(length)
