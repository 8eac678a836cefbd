"""The path on which reviews count as those of the API server.

An API server shows a webhook no credential of its own, so whoever reaches the port could ask for a review in anybody's name. That
is harmless where only an answer comes of it. Where the person goes on the record it is not: such reviews come on a path that is
derived from the webhook's key of the record and stands in the ValidatingWebhookConfiguration alone, which administrators read. A
review on another path is answered, and nothing is written down.
"""

from __future__ import annotations

from typing import Final

from fastness.admission.door.configuration import REVIEW_PATH
from fastness.crypto.digests import sha256
from fastness.record.live.door_keys import DoorSigner

_CONTEXT: Final = b"fastness.dev/webhook-path/v1\n"
_KEPT: Final = 2  # the API server uses the old path until it has seen the new configuration


class RecordedPath:
    """The path of the moment, and the one before it."""

    def __init__(self, signer: DoorSigner) -> None:
        self._signer = signer
        self._paths: list[str] = []

    async def current(self) -> str:
        """The path for the configuration; changes with the key. Raises DamagedKeys, ApiError."""
        # Ed25519 signatures are deterministic: all replicas, which share the key, find the same path.
        path = f"{REVIEW_PATH}/{sha256((await self._signer.current()).sign(_CONTEXT)).hex}"
        if path not in self._paths:
            self._paths = [path, *self._paths][:_KEPT]
        return path

    def counts(self, path: str) -> bool:
        """Whether a review on this path comes from an API server that has our configuration."""
        return path in self._paths
