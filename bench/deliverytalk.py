"""What the processes of the delivery benchmark share: pools, kinds of machines, and how they talk."""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from fastness.runtime.clock import SystemEntropy

POOL, BARE = "worker", "master"
TEES = ("tpm", "snp", "tdx")
PATIENCE: Final = 300.0
ENTROPY = SystemEntropy()


def say(message: Any) -> None:
    """Tell the conductor something, in one line."""
    os.write(1, orjson.dumps(message) + b"\n")
