"""Token buckets: a burst, a rate, and a bound on how many are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.services.enrol.limits import Buckets, Rate, network


def test_a_burst_passes_and_then_the_rate_decides() -> None:
    buckets = Buckets(Rate(burst=3, per_second=2))
    assert [buckets.take("a", 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.take("a", 0.0) == pytest.approx(0.5)
    assert buckets.take("a", 0.4) > 0
    assert buckets.take("a", 0.5) == 0.0
    assert buckets.take("b", 0.5) == 0.0


def test_a_refusal_costs_nothing() -> None:
    buckets = Buckets(Rate(burst=1, per_second=1))
    buckets.take("a", 0.0)
    for _ in range(100):
        assert buckets.take("a", 0.5) > 0
    assert buckets.take("a", 1.0) == 0.0


def test_a_charge_empties_the_bucket_and_not_more() -> None:
    buckets = Buckets(Rate(burst=10, per_second=1))
    buckets.charge("a", 0.0, 1000)
    assert buckets.take("a", 0.0) == pytest.approx(1.0)
    assert buckets.take("a", 1.0) == 0.0


@given(st.lists(st.floats(min_value=0, max_value=5), max_size=60))
def test_nobody_gets_more_than_burst_and_rate_allow(pauses: list[float]) -> None:
    buckets, now, passed = Buckets(Rate(burst=5, per_second=2)), 0.0, 0
    for pause in pauses:
        now += pause
        passed += buckets.take("a", now) == 0.0
    assert passed <= 5 + 2 * now + 1e-6


def test_the_number_of_buckets_is_bounded_and_the_idle_go_first() -> None:
    buckets = Buckets(Rate(burst=1, per_second=0.001), most=10)
    buckets.take("kept", 0.0)
    for number in range(9):
        buckets.take(str(number), 0.0)
    assert buckets.take("kept", 0.0) > 0
    for number in range(9, 18):
        buckets.take(str(number), 0.0)
    assert len(buckets) == 10
    assert buckets.take("kept", 0.0) > 0


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("unix", "unix"),
    ],
)
def test_an_address_counts_by_what_one_client_controls(address: str, part: str) -> None:
    assert network(address) == part
