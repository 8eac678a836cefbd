"""The audit log of the API: one line per write.

A line says who (and as whom), what, where and the outcome; never a body. It goes to the structured log under `audit.write`
and, in embedded mode, to `audit.log` in the state directory, which is cut at a bound and kept once more under
`audit.log.1`.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from fastness.cluster.clock import Clock
from fastness.cluster.embedded.call import Call
from fastness.cluster.embedded.paths import Target
from fastness.formats import json
from fastness.model.objects import rfc3339

MAX_BYTES = 64 * 1024 * 1024


class Audit:
    """Writes audit lines to a file, or nowhere."""

    def __init__(self, clock: Clock, path: Path | None = None) -> None:
        self._clock = clock
        self._path = path
        self._file: IO[bytes] | None = None
        self._size = 0

    def write(self, call: Call, verb: str, target: Target, code: int) -> None:
        """One line for one write."""
        if self._path is None:
            return
        line = json.encode({
            "time": rfc3339(self._clock.now()), "id": call.correlation, "user": call.user.name, "verb": verb,
            "group": target.group, "resource": target.plural, "subresource": target.subresource,
            "namespace": target.namespace, "name": target.name, "manager": call.manager, "dryRun": call.dry_run, "code": code,
        }) + b"\n"  # fmt: skip
        self._append(line)

    def _append(self, line: bytes) -> None:
        if self._path is None:
            return
        if self._file is None:
            self._file = self._path.open("ab", buffering=0)
            self._path.chmod(0o600)
            self._size = self._path.stat().st_size
        self._file.write(line)
        self._size += len(line)
        if self._size > MAX_BYTES:
            self.close()
            self._path.replace(self._path.with_suffix(".log.1"))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
