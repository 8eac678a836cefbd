"""What may be sent twice.

A request that was never sent, and one that the server refused before acting, may be repeated. After that it depends:

| | READ (get, list, watch) | REPEATABLE (delete, merge and apply patches) | ONCE (create, JSON patch, connect) |
| --- | --- | --- | --- |
| not connected | again | again | again |
| broken after sending | again | `Timeout`: read the object | `Timeout`: read the object |
| 429 with Retry-After | again | again | again, except `connect`: a full disruption budget is an answer |
| 503 with Retry-After | again | again | the answer |
| 502, 503 | again | the answer | the answer |
| 504 | the answer: the server has waited already | the answer | the answer |

Waiting is bounded: few attempts, and a server that asks for more patience than `LONGEST` gets its answer passed on.
"""

from __future__ import annotations

from enum import Enum

ATTEMPTS = 4
LONGEST = 10.0
_PASSING = frozenset({502, 503})


class Safety(Enum):
    """How often a request may be sent."""

    READ = "read"
    REPEATABLE = "repeatable"
    ONCE = "once"
    ANSWER = "answer"


def pause_after(code: int, retry_after: float | None, safety: Safety, backoff: float) -> float | None:
    """Seconds to wait before asking again after this answer; None: it is final."""
    # Passed on instead of slept through: the caller has its own patience, and somebody may be waiting for it.
    if retry_after is not None and retry_after > LONGEST:
        return None
    wait = max(backoff, retry_after or 0.0)
    if safety is Safety.READ and code in _PASSING:
        return wait
    # An eviction that a disruption budget refuses is 429: sending it again here would hide the budget from the drain.
    if retry_after is None or safety is Safety.ANSWER:
        return None
    if code == 429 or (code == 503 and safety is not Safety.ONCE):
        return wait
    return None
