"""The audit log of the API: one line per write.

A line says who (and who was behind them), what, where and the outcome; never a body. Rules:

* A write is a verb that could change something, by somebody who is known: refused ones (403, 409, 422 …) have their line too. A
  request whose credential does not verify (401) has none: there is nobody to name, and strangers must not fill the log.
* The line is written after the outcome is known and before the client hears of it. When it cannot be written (a full disk), the
  outcome stands, the failure is logged once and counted: an acknowledged write is never reported as failed.
* The file is cut at a bound and kept once more under `audit.log.1`. The same line is in the structured log as `audit.write`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fastness.cluster.clock import Clock
from fastness.cluster.embedded.paths import Target
from fastness.domain.access import User
from fastness.formats import json
from fastness.model.objects import rfc3339
from fastness.observe import logs, metrics
from fastness.services.http import Request

MAX_BYTES = 64 * 1024 * 1024
MAX_AGENT = 128
_log = logs.logger("audit")


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one write."""

    id: str
    user: str
    by: str
    verb: str
    target: Target
    agent: str
    dry_run: bool
    code: int

    @classmethod
    def of(cls, request: Request, user: User, by: str, correlation: str, verb: str, target: Target, code: int) -> Entry:
        """The entry of a request; `by` is who acts as `user`, if somebody else."""
        agent = request.header(b"user-agent")[:MAX_AGENT]
        return cls(correlation, user.name, by, verb, target, agent, b"dryRun=" in request.raw_query, code)


class Audit:
    """Writes audit lines to a file, or only to the structured log."""

    def __init__(self, clock: Clock, path: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._path = path
        self._max_bytes = max_bytes
        self._file: IO[bytes] | None = None
        self._size = 0
        self._broken = False

    def write(self, entry: Entry) -> None:
        """One line for one write."""
        where = entry.target
        _log.info(
            "audit.write", user=entry.user, verb=entry.verb, resource=where.plural, name=where.name, code=entry.code
        )
        if self._path is None:
            return
        line = json.encode({
            "time": rfc3339(self._clock.now()), "id": entry.id, "user": entry.user, **({"by": entry.by} if entry.by else {}),
            "verb": entry.verb, "group": where.group, "resource": where.plural, "subresource": where.subresource,
            "namespace": where.namespace, "name": where.name, "agent": entry.agent, "dryRun": entry.dry_run,
            "code": entry.code,
        }) + b"\n"  # fmt: skip
        try:
            self._append(self._path, line)
            self._broken = False
        except OSError as error:
            self._failed(error)

    def _append(self, path: Path, line: bytes) -> None:
        if self._file is None:
            self._file = path.open("ab", buffering=0)
            path.chmod(0o600)
            self._size = path.stat().st_size
        if self._size and self._size + len(line) > self._max_bytes:
            self.close()
            path.replace(path.with_name(f"{path.name}.1"))
            self._append(path, line)
            return
        self._file.write(line)
        self._size += len(line)

    def _failed(self, error: OSError) -> None:
        metrics.AUDIT_LOST.inc()
        self.close()
        if not self._broken:
            _log.error("audit.failed", path=self._path, error=error)
        self._broken = True

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
