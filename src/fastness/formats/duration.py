"""Durations as people write them in a spec: `90s`, `15m`, `1h30m`, `250ms`.

Hours, minutes, seconds and milliseconds, each with or without a fraction; no sign and no space, because no field of ours can mean
less than nothing. What the reader of a bad one does (a default, a refusal) is the caller's decision.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from fastness.formats.errors import DurationError

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_HINT: Final = "write it as 90s, 15m or 1h30m"


def duration(text: object, field: str) -> timedelta:
    """The duration that a field holds; raises DurationError."""
    parts = _PART.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise DurationError("duration-syntax", f"{text!r} is not a duration", field, _HINT)
    try:
        return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))
    except OverflowError as error:
        # 32 digits fit into every field; a timedelta ends at 999,999,999 days.
        raise DurationError("duration-range", f"{text!r} is longer than can be counted", field, _HINT) from error
