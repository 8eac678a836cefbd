"""A door that saw the namespace of ours, and sees it go, knows nothing any more."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal, demand_followed_home
from fastness.keys.authorities import NAMESPACES
from fastness.keys.home import RESTORING
from fastness.release.live.releases import demand


class Namespace:
    """The namespace as an informer shows it."""

    in_touch = True

    def __init__(self, obj: dict[str, Any] | None) -> None:
        self.obj = obj

    def get(self, _namespace: str, _name: str) -> dict[str, Any] | None:
        return self.obj


THERE: dict[str, Any] = {"metadata": {"name": "fastness-system"}}


@pytest.mark.parametrize(
    "after",
    [
        None,
        {"metadata": {**THERE["metadata"], "deletionTimestamp": "2026-11-17T00:00:00Z"}},
        {"metadata": {**THERE["metadata"], "annotations": {RESTORING: "sha256:0"}}},
    ],
    ids=["gone", "going", "being restored"],
)
def test_nothing_is_released_once_the_namespace_goes_until_it_is_back(after: dict[str, Any] | None) -> None:
    home: Any = Namespace(THERE)
    touch = Touch("gate", (), home=home)
    demand(touch)
    home.obj = after
    with pytest.raises(Refusal) as refusal:
        demand(touch)
    assert (refusal.value.status, refusal.value.code) == (503, "home-gone")
    home.obj = THERE
    demand(touch)


def test_enrolment_waits_until_it_hears_of_its_namespace_again() -> None:
    """Tickets may be heard of first: those of an empty cluster would make every machine unknown for good."""
    home: Any = Namespace(THERE)
    home.resource = NAMESPACES
    touch = Touch("enrolment", (), home=home)
    demand_followed_home(touch)
    home.in_touch = False
    with pytest.raises(Refusal) as refusal:
        demand_followed_home(touch)
    assert (refusal.value.status, refusal.value.code) == (503, "cluster-unavailable")


def test_a_cluster_in_which_it_was_never_seen_has_lost_nothing() -> None:
    home: Any = Namespace(None)
    demand(Touch("gate", (), home=home))


def test_a_door_that_was_given_no_home_asks_for_none() -> None:
    demand(Touch("gate", ()))
