"""What `make soak` runs and `make test` leaves out: second variants, full matrices, long searches.

    @pytest.mark.parametrize("via", ["Gate", soaking("Broker", why="the other way is walked by …")])

The short form keeps a proof of every behaviour; what is left out there names the reason.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

SOAK = bool(os.environ.get("FASTNESS_SOAK"))
"""Whether this is the long form."""


def soaking(*values: Any, why: str) -> Any:
    """Values of a parametrised test that only the long form takes."""
    return pytest.param(*values, marks=in_soak(why))


def in_soak(why: str) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of what only the long form runs; `why` says what the short one has instead."""
    return (pytest.mark.soak, pytest.mark.skipif(not SOAK, reason=f"in `make soak`: {why}"))
