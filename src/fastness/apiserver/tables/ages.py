"""Time for people: how long ago, in two or three significant figures, as Kubernetes prints it.

* Under two minutes in seconds, under ten in minutes and seconds, then ever coarser up to years.
* Up to a second in the future is clock skew between machines and reads `0s`; more is `<invalid>`.
* No time at all is `<unknown>`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"
_USUAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
WHOLE_SECONDS: Final = len("2026-01-01T00:00:00Z")
_HOUR: Final = 60
_FRACTION: Final = re.compile(r"\.(\d{1,9})")


def parse_time(text: object) -> datetime | None:
    """An RFC 3339 time, or None."""
    if not isinstance(text, str) or not _USUAL.fullmatch(text):
        return None
    try:
        if len(text) == WHOLE_SECONDS:
            return datetime.fromisoformat(text)
        return datetime.fromisoformat(_FRACTION.sub(lambda match: "." + match[1][:6].ljust(6, "0"), text))
    except ValueError:
        return None


def age(text: object, now: datetime) -> str:
    """How long ago that time was."""
    if not text:
        return UNKNOWN
    if isinstance(text, str) and len(text) == WHOLE_SECONDS and text[-1] == "Z":
        minute, second = _minute(text[:17]), text[17:19]
        if minute is not None and second.isdecimal() and second.isascii() and second < "60":
            return _human(int(now.timestamp() - minute - int(second)))
    moment = parse_time(text)
    return INVALID if moment is None else human_duration(now - moment)


def human_duration(span: timedelta) -> str:
    """A span of time with two or three significant figures."""
    return _human(int(span.total_seconds()))


@lru_cache(maxsize=4096)
def _minute(text: str) -> float | None:
    """A time without its seconds, `2026-01-01T00:00:`, since the epoch: objects come in bursts, so most were seen before."""
    moment = parse_time(f"{text}00Z")
    return None if moment is None else moment.timestamp()


def _human(seconds: int) -> str:
    if seconds < -1:
        return INVALID
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes = seconds // 60
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 3 * _HOUR:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
