"""Who holds a connection when many want one: places are counted by address and in all, and silence loses against speech."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.http.arrivals import Arrival, Arrivals, ConnectionState
from fastness.http.bounds import Bounds
from fastness.observe.metrics import REGISTRY

BOUNDS = Bounds(connections=20, handshakes=8, address_handshakes=4, reserve=3, known_reserve=2)
A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


class Port:
    """A listener's arrivals, and who was cut."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self.arrivals = Arrivals(bounds, lambda: bounds.within(bounds.descriptors))
        self.cut: list[Arrival] = []

    def come(self, address: str, *, done: bool = False) -> Arrival:
        arrival = self.arrivals.come(address, lambda: self.cut.append(arrival))
        if done:
            arrival.finished()
        return arrival


@pytest.fixture
def port() -> Port:
    return Port()


def test_an_address_that_says_nothing_takes_places_from_itself(port: Port) -> None:
    other = port.come(B)
    silent = [port.come(A) for _ in range(50)]
    assert port.cut == silent[:46]
    assert port.arrivals.unfinished == 5
    assert other.here


def test_many_silent_addresses_give_way_to_whoever_comes_the_heaviest_first(port: Port) -> None:
    heavy = [port.come(A) for _ in range(3)]
    light = [port.come(f"10.0.1.{number}") for number in range(5)]
    port.come(B)
    port.come(C)
    assert port.cut == heavy[:2]
    assert all(connection.here for connection in light)
    assert port.arrivals.unfinished == 8


def test_known_addresses_keep_their_handshakes_while_strangers_have_any(port: Port) -> None:
    port.come(A, done=True).recognised()
    ours = [port.come(A) for _ in range(3)]
    strangers = [port.come(f"10.0.1.{number}") for number in range(20)]
    assert all(connection.here for connection in ours)
    assert port.cut == strangers[:15]


def test_a_handshake_that_is_done_is_nobodys_to_take(port: Port) -> None:
    done = [port.come(A, done=True) for _ in range(4)]
    for _ in range(100):
        port.come(A)
    assert all(connection.here for connection in done)


def test_one_address_holds_no_more_than_half_and_the_others_have_theirs(port: Port) -> None:
    places = [port.come(A, done=True).place for _ in range(12)]
    assert places == [ConnectionState.OPEN] * 10 + [ConnectionState.LATE] * 2
    assert [port.come(B, done=True).place for _ in range(10)] == [ConnectionState.OPEN] * 10
    assert port.come(C, done=True).place is ConnectionState.LATE


def test_above_the_bound_newcomers_are_answered_once_and_the_oldest_of_them_gives_way(port: Port) -> None:
    for number in range(20):
        port.come(f"10.0.1.{number}", done=True)
    late = [port.come(f"10.0.2.{number}", done=True) for number in range(5)]
    assert all(connection.brief for connection in late)
    assert port.cut == late[:2]
    assert len(port.arrivals) == 23
    late[4].gone()
    assert port.come(C).brief
    assert port.cut == late[:2]


def test_above_the_bound_known_addresses_have_places_as_any_other(port: Port) -> None:
    port.come(A, done=True).recognised()
    for number in range(19):
        port.come(f"10.0.1.{number}", done=True)
    ours = [port.come(A, done=True) for _ in range(3)]
    assert [connection.place for connection in ours] == [
        ConnectionState.KNOWN,
        ConnectionState.KNOWN,
        ConnectionState.LATE,
    ]


def test_who_gives_way_is_counted(port: Port) -> None:
    before = REGISTRY.value("fastness_turned_away_total", {"lane": "handshake"}) or 0
    for _ in range(6):
        port.come(A)
    assert REGISTRY.value("fastness_turned_away_total", {"lane": "handshake"}) == before + 2


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["come", "done", "known", "gone"])), max_size=200)
)
def test_whatever_comes_and_goes_the_bounds_hold_and_nobody_is_left_behind(steps: list[tuple[str, str]]) -> None:
    port, here = Port(), list[Arrival]()
    for address, step in steps:
        mine = [connection for connection in here if connection.network == address]
        match step:
            case "come":
                here.append(port.come(address))
            case "done" if mine:
                mine[0].finished()
            case "known" if mine:
                mine[-1].recognised()
            case "gone" if mine:
                mine[0].gone()
        here = [connection for connection in here if connection.here]
        assert len(port.arrivals) == len(here) <= BOUNDS.descriptors
        assert port.arrivals.unfinished == sum(connection.unfinished for connection in here) <= BOUNDS.handshakes
    for connection in here:
        connection.gone()
        connection.gone()
    assert (len(port.arrivals), port.arrivals.unfinished) == (0, 0)
