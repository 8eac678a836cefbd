"""The audit log of the API: one line per write.

A line says who (and who was behind them), what, where and the outcome; never a body. Rules:

* A write is a verb that could change something, by somebody who is known: refused ones (403, 409, 422 …) have their line too. A
  request whose credential does not verify (401) has none: there is nobody to name, and strangers must not fill the log.
* What was refused stands in a file of its own, `audit-refused.log`: whoever may do nothing at all must not be able to push out
  the lines of what was done. There a caller may leave so many lines at once and so many for long; what is more is counted, and
  the next line of that caller says how many were left out.
* Every field is cut at the length that such a thing can have, so that one line costs what a line costs.
* The line is written after the outcome is known and before the client hears of it. When it cannot be written (a full disk), the
  outcome stands, the failure is logged once and counted: an acknowledged write is never reported as failed.
* A file is cut at a bound and kept once more with `.1` behind its name. The same line is in the structured log as `audit.write`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from fastness.apiserver.verbs.paths import Target
from fastness.formats import json
from fastness.http import Request
from fastness.http.limits import Buckets, Rate
from fastness.kinds.objects import rfc3339
from fastness.kube.access import User
from fastness.observe import logs, metrics
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_REFUSED_BYTES: Final = 16 * 1024 * 1024
MAX_AGENT: Final = 128
# The longest name of an object (RFC 1123 subdomain); a path may carry more, and a log line must not.
MAX_NAME: Final = 253
MAX_USER: Final = 256
REFUSED: Final = Rate(burst=200, per_second=1)
MOST_CALLERS: Final = 10_000
_REFUSAL: Final = 400
_log = logs.logger("audit")


@dataclass(frozen=True, slots=True)
class AuditEntry:
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
    def of(
        cls, request: Request, user: User, by: str, correlation: str, verb: str, target: Target, code: int
    ) -> AuditEntry:
        """The entry of a request; `by` is who acts as `user`, if somebody else."""
        agent = request.header(b"user-agent")[:MAX_AGENT]
        return cls(correlation, user.name, by, verb, target, agent, b"dryRun=" in request.raw_query, code)

    @property
    def caller(self) -> str:
        """Who is accountable: the one whose credential it was, not whom they act as."""
        return self.by or self.user


class Audit:
    """Writes audit lines to files, or only to the structured log."""

    def __init__(
        self, clock: Clock, path: Path | None = None, max_bytes: int = MAX_BYTES, refused_bytes: int = MAX_REFUSED_BYTES
    ) -> None:
        self._clock = clock
        self._done = BoundedFile(path, max_bytes) if path is not None else None
        self._refused = BoundedFile(refused_path(path), refused_bytes) if path is not None else None
        self._callers = Buckets(REFUSED, MOST_CALLERS)
        self._left_out = BoundedCache[str, int](MOST_CALLERS)
        self._broken = False

    def write(self, entry: AuditEntry) -> None:
        """One line for one write; a caller of whom too much was refused waits for the next."""
        refused = entry.code >= _REFUSAL
        left_out = 0
        if refused:
            # By the one whose credential it is: counted by the assumed name, one caller would have a bucket for each name it
            # makes up.
            if self._callers.take(entry.caller, self._clock.monotonic()):
                self._leave_out(entry.caller)
                return
            left_out = self._left_out.pop(entry.caller) or 0
        where = entry.target
        _log.info(
            "audit.write", user=entry.user[:MAX_USER], verb=entry.verb, resource=where.plural[:MAX_NAME],
            name=where.name[:MAX_NAME], code=entry.code,
        )  # fmt: skip
        file = self._refused if refused else self._done
        if file is None:
            return
        try:
            file.append(_line(entry, rfc3339(self._clock.now()), left_out))
            self._broken = False
        except OSError as error:
            self._failed(file, error)

    def _leave_out(self, caller: str) -> None:
        metrics.AUDIT_LEFT_OUT.inc()
        self._left_out.put(caller, (self._left_out.get(caller) or 0) + 1)

    def _failed(self, file: BoundedFile, error: OSError) -> None:
        metrics.AUDIT_LOST.inc()
        file.close()
        if not self._broken:
            _log.error("audit.failed", path=file.path, error=error)
        self._broken = True

    def close(self) -> None:
        """Close the files; the next line opens its file again."""
        for file in (self._done, self._refused):
            if file is not None:
                file.close()


class BoundedFile:
    """A private file of lines that is kept once more when it has reached its bound."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._file: IO[bytes] | None = None
        self._size = 0

    def append(self, line: bytes) -> None:
        """Write a line; raises OSError."""
        if self._file is None:
            self._file = self.path.open("ab", buffering=0)
            # Names of users and objects; and a file from before, or made under a loose umask, may be readable by others.
            self.path.chmod(0o600)
            self._size = self.path.stat().st_size
        if self._size and self._size + len(line) > self._max_bytes:
            self.close()
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
            self.append(line)
            return
        self._file.write(line)
        self._size += len(line)

    def close(self) -> None:
        """Close it; the next line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def refused_path(path: Path) -> Path:
    """Where refused writes are kept beside a log of accepted ones."""
    return path.with_name(f"{path.stem}-refused{path.suffix}")


def _line(entry: AuditEntry, time: str, left_out: int) -> bytes:
    where = entry.target
    return json.encode({
        "time": time, "id": entry.id, "user": entry.user[:MAX_USER],
        **({"by": entry.by[:MAX_USER]} if entry.by else {}),
        "verb": entry.verb, "group": where.group[:MAX_NAME], "resource": where.plural[:MAX_NAME],
        "subresource": where.subresource[:MAX_NAME], "namespace": where.namespace[:MAX_NAME],
        "name": where.name[:MAX_NAME], "agent": entry.agent[:MAX_AGENT], "dryRun": entry.dry_run, "code": entry.code,
        **({"leftOut": left_out} if left_out else {}),
    }) + b"\n"  # fmt: skip
