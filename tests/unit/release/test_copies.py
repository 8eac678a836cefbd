"""When the broker delivers from copies: only where it delivers at all."""

from __future__ import annotations

import pytest

from fastness.release.configs import delivery_of


@pytest.mark.parametrize(
    ("via", "sync", "copies"),
    [
        ("Broker", "OnChange", True),
        ("Broker", "OnDemand", False),
        ("Gate", "OnChange", False),
        ("Gate", "Scheduled", False),
    ],
)
def test_copies_are_the_brokers_alone(via: str, sync: str, copies: bool) -> None:
    cluster = {"spec": {"mode": "Enforce", "delivery": {"via": via, "sync": sync, "interval": "5m"}}}
    assert delivery_of(cluster).copies is copies
