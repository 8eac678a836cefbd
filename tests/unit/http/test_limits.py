"""Token buckets and the lanes of callers: a burst, a rate, a share, and a bound on how many are remembered."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.http.arrivals import network
from fastness.http.limits import MAX_BUCKETS, Buckets, Limits, Rate, RateLimiter
from fastness.http.refusals import Refusal
from tests.virtual import VirtualClock


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
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::no", "::no"),
        ("unix", "unix"),
    ],
)
def test_an_address_counts_by_what_one_client_controls(address: str, part: str) -> None:
    assert network(address) == part


def test_looking_into_a_bucket_takes_nothing_and_remembers_nobody() -> None:
    buckets = Buckets(Rate(burst=1, per_second=1))
    assert not buckets.empty("a", 0.0)
    assert len(buckets) == 0
    buckets.charge("a", 0.0)
    assert buckets.empty("a", 0.5)
    assert not buckets.empty("a", 1.0)


def turnstile(clock: VirtualClock | None = None, **limits: object) -> RateLimiter:
    return RateLimiter(Limits(**limits), clock or VirtualClock())  # type: ignore[arg-type]


def refused(raised: pytest.ExceptionInfo[Refusal]) -> None:
    answer = raised.value.answer()
    assert (answer.code, raised.value.code) == (503, "overload")
    assert int(dict(answer.headers)[b"retry-after"]) >= 1


def test_strangers_fill_their_own_share_and_no_other() -> None:
    gates = turnstile(strangers_in_flight=2, reading=1, in_flight=2)
    with ExitStack() as stack:
        for address in ("192.0.2.1", "192.0.2.2"):
            stack.enter_context(gates.stranger(address))
        stack.enter_context(gates.reading("192.0.2.1"))
        for lane in (gates.stranger("192.0.2.3"), gates.reading("192.0.2.3")):
            with pytest.raises(Refusal) as raised:
                stack.enter_context(lane)
            refused(raised)
        with gates.proven("sha256:a"), gates.ours(), pytest.raises(Refusal), gates.proven("sha256:b"):
            pass
    with gates.stranger("192.0.2.3"), gates.reading("192.0.2.3"), gates.proven("sha256:b"):
        pass


def test_one_address_and_one_machine_have_shares_of_their_own() -> None:
    gates = turnstile(address_in_flight=1, machine_in_flight=1)
    with gates.stranger("192.0.2.1"), gates.stranger("192.0.2.2"), pytest.raises(Refusal), gates.stranger("192.0.2.1"):
        pass
    with gates.proven("sha256:a"), gates.proven("sha256:b"), pytest.raises(Refusal), gates.proven("sha256:a"):
        pass
    with gates.proven("sha256:a"), gates.stranger("192.0.2.1"):
        pass


async def test_a_machine_has_a_rate_and_is_told_how_long_to_wait() -> None:
    clock = VirtualClock()
    gates = turnstile(clock, machine=Rate(2, 0.1))
    for _ in range(2):
        with gates.proven("sha256:a"):
            pass
    with pytest.raises(Refusal) as raised, gates.proven("sha256:a"):
        pass
    assert dict(raised.value.answer().headers)[b"retry-after"] == b"10"
    with gates.proven("sha256:b"):
        pass
    await clock.advance(10)
    with gates.proven("sha256:a"):
        pass


def test_a_refused_request_leaves_its_place_free() -> None:
    gates = turnstile(machine=Rate(1, 0.001), machine_in_flight=1)
    with gates.proven("sha256:a"):
        pass
    for _ in range(3):
        with pytest.raises(Refusal), gates.proven("sha256:a"):
            pass
    assert gates._inside["known"] == {}
    assert gates._running["known"] == 0


def test_wrong_credentials_count_against_an_address_all_strangers_and_never_a_machine() -> None:
    gates = turnstile(wrong=Rate(3, 0.001), wrong_of_all=Rate(5, 0.001))
    for _ in range(3):
        gates.doubt("192.0.2.1")
        gates.wrong("192.0.2.1")
    with pytest.raises(Refusal):
        gates.doubt("192.0.2.1")
    gates.doubt("192.0.2.1", "sha256:a")
    for _ in range(2):
        gates.doubt("192.0.2.2")
        gates.wrong("192.0.2.2")
    with pytest.raises(Refusal):
        gates.doubt("192.0.2.3")
    for _ in range(3):
        gates.doubt("192.0.2.2", "sha256:a")
        gates.wrong("192.0.2.2", "sha256:a")
    with pytest.raises(Refusal):
        gates.doubt("192.0.2.2", "sha256:a")
    gates.doubt("192.0.2.1", "sha256:a")
    gates.doubt("192.0.2.2", "sha256:b")


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    gates = turnstile()
    for number in range(MAX_BUCKETS + 500):
        address = f"2001:db8:{number // 65536:x}:{number % 65536:x}::1"
        gates.wrong(address)
        with gates.stranger(address):
            pass
    assert len(gates._wrong) == len(gates._addresses) == MAX_BUCKETS
    assert gates._inside["stranger"] == {}
