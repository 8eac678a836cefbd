"""Names of a node's keys: read strictly, current once, replaced for good, and an alarm when one comes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import MOST_REPLACED_KEYS, Machine
from fastness.protocol.node_keys import (
    CLIENT,
    KEY_REUSED,
    MEMBER,
    SERVING,
    BadNames,
    KeyUse,
    NamedKeys,
    key_use,
    keys_change,
    named_keys,
    names_replaced,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def key(number: int) -> str:
    return f"sha256:{number:064x}"


def machine(status: JsonObject) -> Machine:
    return view({"metadata": {"name": "m"}, "spec": {"id": "i"}, "status": status}, Machine)


@pytest.mark.parametrize("names", [NamedKeys(), NamedKeys(client=key(1)), NamedKeys(key(1), key(2))])
def test_what_a_machine_names_is_what_is_read(names: NamedKeys) -> None:
    assert named_keys(json.canonical({"fastness-identity": {}, **names.member()}).decode()) == names


@pytest.mark.parametrize(
    "named",
    ["x", [], None, {"other": key(1)}, {"client": "sha256:00"}, {"client": key(1).upper()}, {"client": [key(1)]},
     {"client": key(1) + "\n"}],
)  # fmt: skip
def test_names_of_another_shape_are_refused(named: object) -> None:
    with pytest.raises(BadNames):
        named_keys(json.encode({MEMBER: named}).decode())
    with pytest.raises(BadNames):
        named_keys(f"{MEMBER}, and no JSON")


def test_evidence_that_names_nothing_changes_nothing() -> None:
    assert named_keys("") == named_keys('{"nvidia": []}') == NamedKeys()
    assert keys_change({"nodeKeys": {CLIENT: {"key": key(1), "named": rfc3339(NOW)}}}, NamedKeys(), NOW) == {}


def test_a_new_name_replaces_the_one_before_of_the_same_purpose_and_a_repeated_one_does_nothing() -> None:
    status: JsonObject = keys_change({}, NamedKeys(key(1), key(2)), NOW)
    assert status["nodeKeys"] == {
        "client": {"key": key(1), "named": rfc3339(NOW)},
        "serving": {"key": key(2), "named": rfc3339(NOW)},
    }
    assert keys_change(status, NamedKeys(key(1), key(2)), NOW + timedelta(hours=1)) == {}
    changed = keys_change(status, NamedKeys(client=key(3)), NOW)["nodeKeys"]
    assert changed == {"client": {"key": key(3), "named": rfc3339(NOW)}, "replaced": [key(1)]}
    after = machine({"nodeKeys": {**status["nodeKeys"], **changed}})
    uses = {number: key_use(after, CLIENT, key(number)) for number in (1, 2, 3)}
    assert uses == {1: KeyUse.REPLACED, 2: KeyUse.UNNAMED, 3: KeyUse.CURRENT}
    assert key_use(after, SERVING, key(2)) is KeyUse.CURRENT


def test_a_replaced_key_comes_not_back_and_its_alarm_stands_for_a_day() -> None:
    held: JsonObject = {"nodeKeys": {CLIENT: {"key": key(2), "named": rfc3339(NOW)}, "replaced": [key(1)]}}
    assert names_replaced(machine(held), NamedKeys(serving=key(1)))
    change = keys_change(held, NamedKeys(key(1), key(3)), NOW)
    assert change.keys() == {"conditions"}, "nothing of what came with it is taken either"
    alarmed = {**held, **change}
    assert [entry["type"] for entry in change["conditions"]] == [KEY_REUSED]
    for later, stands in ((timedelta(hours=23), True), (timedelta(days=1), False)):
        renewed = keys_change(alarmed, NamedKeys(client=key(4)), NOW + later)
        assert ("conditions" not in renewed) is stands
        assert renewed.get("conditions", []) == []


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=60))
def test_whatever_is_named_the_list_is_bounded_and_no_replaced_key_is_current(sessions: list[tuple[int, int]]) -> None:
    status: JsonObject = {}
    for client, serving in sessions:
        change = keys_change(status, NamedKeys(key(client), key(serving + 100) if serving else ""), NOW)
        if "nodeKeys" in change:
            change["nodeKeys"] = {**(status.get("nodeKeys") or {}), **change["nodeKeys"]}
        status = {**status, **change}
        keys = status["nodeKeys"]
        current = {keys[purpose]["key"] for purpose in (CLIENT, SERVING) if purpose in keys}
        assert len(keys.get("replaced", ())) <= MOST_REPLACED_KEYS
        assert current.isdisjoint(keys.get("replaced", ()))
