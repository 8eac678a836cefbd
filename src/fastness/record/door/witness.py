"""`POST /add-checkpoint` (C2SP tlog-witness): cosign what continues the last tree of a log, and nothing else.

Nobody has to show a credential: a checkpoint counts by the signature of its log, and strangers learn the size of a public log at
most. Requests are small, bounded and paced by address.

* Weighing a checkpoint and remembering it are one step: two requests at once must not lead to a smaller tree after a larger one.
* A refusal of what a known log signed may be the proof of a second history, so it is logged with the whole checkpoint.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastness.crypto.cosignatures import WitnessSigner
from fastness.crypto.notes import NoteVerifier
from fastness.http import Answer, Request, send_answer
from fastness.http.arrivals import network
from fastness.http.limits import Buckets, Rate
from fastness.http.request import ClientGone
from fastness.http.route import allow_header
from fastness.keys.errors import TrustError
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.protocol.witness import MAX_REQUEST, SIZE_TYPE
from fastness.record.live.witness_memory import WitnessMemory
from fastness.record.witnessing import Declined, Submission, submitted, weigh
from fastness.runtime.clock import Clock

BODY_SECONDS: Final = 10.0
# A log comes once for each checkpoint, which is about once a second.
PER_ADDRESS: Final = Rate(burst=60, per_second=5)
TEXT: Final = b"text/plain; charset=utf-8"
_CONFLICT: Final = 409
_log = logs.logger("witness")


class WitnessDoor:
    """A witness as an application."""

    def __init__(
        self, signer: WitnessSigner, logs: Mapping[str, Sequence[NoteVerifier]], memory: WitnessMemory, clock: Clock
    ) -> None:
        self._signer = signer
        self._logs = logs
        self._memory = memory
        self._clock = clock
        self._addresses = Buckets(PER_ADDRESS)
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, BODY_SECONDS)
        try:
            answer = await self._guarded(request)
        except ClientGone:
            return
        metrics.WITNESS_ANSWERS.inc(str(answer.code))
        await send_answer(answer, send, head=request.method == "HEAD")

    async def _guarded(self, request: Request) -> Answer:
        """The answer, whatever happens."""
        try:
            return await self._answer(request)
        except ApiError as error:
            return _text(error.code, error.message)
        except (TrustError, OSError) as error:
            _log.error("witness.memory", error=error)
            return _text(503, "the memory of this witness cannot be used now")
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            _log.exception("request.failed", method=request.method)
            metrics.DEFECTS.inc("witness")
            return _text(500, "an internal error, see the log")

    async def _answer(self, request: Request) -> Answer:
        if request.path == "/healthz" and request.method in ("GET", "HEAD"):
            return _text(200, "ok")
        if request.path != "/add-checkpoint":
            return _text(404, "there is POST /add-checkpoint")
        if request.method != "POST":
            return Answer(405, b"only POST\n", TEXT, (allow_header(("POST",)),))
        client = request.scope.get("client")
        wait = self._addresses.take(network(str(client[0])) if client else "", self._clock.monotonic())
        if wait:
            return Answer(429, b"too many requests\n", TEXT, ((b"retry-after", b"%d" % math.ceil(wait)),))
        submission = submitted(await request.body(MAX_REQUEST), self._logs)
        if isinstance(submission, Declined):
            return _declined(submission)
        # For all logs together: requests are few, and a lock for each would have to be kept for every origin that is named.
        async with self._one_at_a_time:
            return await self._cosign(submission)

    async def _cosign(self, submission: Submission) -> Answer:
        origin = submission.checkpoint.origin
        remembered = await asyncio.to_thread(self._memory.latest, origin)
        latest = weigh(submission, remembered)
        if isinstance(latest, Declined):
            _log.warning("witness.declined", origin=origin, reason=latest.reason, checkpoint=submission.text)
            return _declined(latest)
        # Durable before the signature exists: a witness that forgets what it cosigned can be led to cosign another history.
        if latest != remembered:
            await asyncio.to_thread(self._memory.remember, origin, latest)
        _log.info("witness.cosigned", origin=origin, size=latest.size)
        line = self._signer.cosign(submission.text, int(self._clock.now().timestamp()))
        return Answer(200, line.encode(), TEXT)


def _declined(declined: Declined) -> Answer:
    if declined.status == _CONFLICT and declined.size is not None:
        return Answer(_CONFLICT, b"%d\n" % declined.size, SIZE_TYPE.encode())
    return _text(declined.status, declined.reason)


def _text(code: int, text: str) -> Answer:
    return Answer(code, f"{text}\n".encode(), TEXT)
