"""A broker that has served for long is no larger than one that has just warmed up; `make soak` follows 100,000 handshakes.

What is kept by intention is kept for seconds here (`bench.broker`), so whatever still grows after the first stretches is a leak.
"""

from __future__ import annotations

import os

import pytest

from bench.broker import VERY_LONG, followed

STRETCHES = 20
WARM = 4
MOST_PER_HANDSHAKE = 0.25  # KiB; an object that stays in the store or in a cache takes several times that


@pytest.mark.skipif(not os.environ.get("FASTNESS_SOAK"), reason="takes half an hour: it runs in `make soak`")
def test_memory_stays_flat_over_a_hundred_thousand_handshakes() -> None:
    curve = followed(VERY_LONG, STRETCHES)
    warm = curve[WARM:]
    gained = (warm[-1] - warm[0]) / (VERY_LONG / STRETCHES * (len(warm) - 1))
    assert gained < MOST_PER_HANDSHAKE, [round(kib / 1024, 1) for kib in curve]
