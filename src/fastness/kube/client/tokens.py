"""The bearer token: fixed, or in a file that somebody renews.

A token in a file is read again after a minute, as client-go does, and at once when the server says that it does not accept it.
If the file cannot be read the last token is used on: the server decides what it is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastness.crypto.secret import SecretText
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

# The kubelet renews a projected token at 80 % of its life, an hour by default: a minute is soon enough.
FRESH_SECONDS = 60.0
_log = logger("kube.client")


class Token:
    """The credential of one connection."""

    def __init__(self, fixed: SecretText, file: Path | None, clock: Clock, read: Callable[[Path], bytes]) -> None:
        self._value = fixed
        self._file = file
        self._clock = clock
        self._read = read
        self._read_at: float | None = None

    def current(self) -> SecretText:
        """The token to send now; empty if there is none."""
        if self._file is not None:
            now = self._clock.monotonic()
            if self._read_at is None or now - self._read_at >= FRESH_SECONDS:
                self._read_at = now
                self._reload(self._file)
        return self._value

    def renewed(self) -> bool:
        """Read the file again after a refusal; whether that gave another token."""
        if self._file is None:
            return False
        before = self._value
        self._read_at = self._clock.monotonic()
        self._reload(self._file)
        return self._value != before

    def _reload(self, file: Path) -> None:
        try:
            text = self._read(file).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("cluster.token_unreadable", file=file, error=error)
            return
        # An empty file is one that is being written: without a token we would be an anonymous user, and hear 403 instead of 401.
        if text:
            self._value = SecretText(text)
