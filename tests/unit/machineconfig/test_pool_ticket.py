"""The ticket in user-data: for how many machines, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.machineconfig.pool_ticket import (
    LIFETIME,
    ROTATION,
    changed_uses,
    is_due,
    rotates_at,
    uses_for,
    wanted_machines,
)
from fastness.machineconfig.render.errors import BadPointer

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def pool(machine_count: str | None = None) -> JsonObject:
    annotations = {"fastness.dev/wanted-machines": machine_count} if machine_count is not None else {}
    return {"metadata": {"name": "worker", "annotations": annotations}}


def maker(replicas: Any, secret: str = "worker-user-data-managed") -> JsonObject:
    value = {"userDataSecret": {"name": secret}}
    return {"spec": {"replicas": replicas, "template": {"spec": {"providerSpec": {"value": value}}}}}


def test_machine_sets_and_the_annotation_count_whichever_is_more_then_the_machines() -> None:
    assert wanted_machines(pool("7"), [maker(3), maker(4), maker(50, "infra-user-data-managed")], 2) == 7
    assert wanted_machines(pool("9"), [maker(0)], 2) == 9
    assert wanted_machines(pool(None), [maker(None)], 2) == 1
    assert wanted_machines(pool("9"), [maker(50, "infra-user-data-managed")], 2) == 9
    assert wanted_machines(pool(), [], 2) == 2


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "²", "1" * 7])
def test_an_annotation_that_is_no_number_is_told(text: str) -> None:
    with pytest.raises(BadPointer) as refused:
        wanted_machines(pool(text), [], 2)
    assert "fastness.dev/wanted-machines" in refused.value.message


@pytest.mark.parametrize(("machine_count", "uses"), [(0, 10), (5, 10), (6, 12), (500, 1000), (5000, 4096)])
def test_where_machines_enrol_a_ticket_is_good_for_twice_what_the_pool_wants(machine_count: int, uses: int) -> None:
    assert uses_for(TrustModel.CONFIDENTIAL_CLUSTER, machine_count) == uses
    assert uses_for(TrustModel.NONE, machine_count) == uses_for(TrustModel.CONTAINERS_HOST, machine_count) == 0


def test_the_limit_of_the_current_ticket_grows_and_none_shrinks() -> None:
    assert changed_uses(10, 20, current=True) == 20
    assert changed_uses(10, 20, current=False) == 10
    assert changed_uses(20, 10, current=True) == 20
    assert changed_uses(0, 10, current=False) == 10
    assert changed_uses(10, 0, current=False) == 0


def test_a_ticket_is_replaced_after_a_day_and_stays_good_for_another() -> None:
    ticket = {"spec": {"expires": rfc3339(NOW + LIFETIME)}}
    assert rotates_at(ticket) == NOW + ROTATION == NOW + timedelta(hours=24)
    assert not is_due(ticket, NOW)
    assert not is_due(ticket, NOW + ROTATION - timedelta(seconds=1))
    assert is_due(ticket, NOW + ROTATION)
    assert is_due(ticket, NOW - timedelta(days=20))
