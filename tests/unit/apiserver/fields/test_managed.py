"""The list in metadata.managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.fields import DamagedOwnership
from fastness.apiserver.fields.managed import (
    ANCIENT,
    MAX_UPDATERS,
    Managed,
    ManagedFieldsEntry,
    capped,
    is_reset,
    listed,
    parse,
    stored,
)

LINE: dict[str, Any] = {
    "manager": "kubectl", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
    "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:a": {}}}, "subresource": "status",
}  # fmt: skip


def entry(
    manager: str, time: str = "", operation: str = "Update", version: str = "v1", subresource: str = ""
) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(manager, operation, version, time, subresource, {"f:spec": {f"f:{manager}": {}}})


def managed(*entries: ManagedFieldsEntry) -> Managed:
    return {each.identity: each for each in entries}


def test_lines_round_trip() -> None:
    bare = {name: value for name, value in LINE.items() if name not in ("subresource", "time")}
    for line in (LINE, bare):
        assert listed(parse([line])) == [line]
        assert listed(stored([line])) == [line]
    assert listed(stored(None)) == []


def test_appliers_keep_one_line_over_versions_and_updaters_have_one_each() -> None:
    both = [{**LINE, "apiVersion": version} for version in ("v1", "v2")]
    assert len(parse(both)) == 2
    assert [each.api_version for each in parse([{**line, "operation": "Apply"} for line in both]).values()] == ["v2"]


def test_lines_are_ordered_by_operation_time_manager_version_and_subresource() -> None:
    lines = listed(
        managed(
            entry("b", "2026-01-01T00:00:02Z"), entry("c", "2026-01-01T00:00:01Z"), entry("z", "2026-01-01T00:00:09Z", "Apply"),
            entry("a", "2026-01-01T00:00:02Z", subresource="status"), entry("a", "2026-01-01T00:00:02Z"), entry("late"),
            entry("a", "2026-01-01T00:00:02Z", version="v0"),
        )
    )  # fmt: skip
    assert [(line["manager"], line["apiVersion"], line.get("subresource", "")) for line in lines] == [
        ("z", "v1", ""), ("late", "v1", ""), ("c", "v1", ""), ("a", "v0", ""), ("a", "v1", ""), ("a", "v1", "status"),
        ("b", "v1", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "Delete"}, {"operation": None}, {"apiVersion": ""}, {"fieldsType": ""}, {"fieldsType": "FieldsV2"},
        {"fieldsV1": []}, {"fieldsV1": {"bad": {}}}, {"manager": 7}, {"time": "yesterday"}, {"time": "2026-01-01T00:00:00"},
    ],
)  # fmt: skip
def test_damaged_lines_are_refused_with_their_place(change: dict[str, Any]) -> None:
    with pytest.raises(DamagedOwnership, match=r"\.metadata\.managedFields\[1\]"):
        parse([LINE, {**LINE, **change}])


@pytest.mark.parametrize("lines", ["x", {"a": 1}, 7, [[]], [None]])
def test_what_is_not_a_list_of_lines_is_refused(lines: Any) -> None:
    with pytest.raises(DamagedOwnership):
        parse(lines)


def test_times_of_clients_are_brought_to_utc() -> None:
    (line,) = listed(parse([{**LINE, "time": "2026-01-01T02:00:00.5+02:00"}]))
    assert line["time"] == "2026-01-01T00:00:00Z"


def test_reset_is_an_empty_list_or_one_empty_line() -> None:
    no_reset: list[Any] = [None, [{}, {}], [LINE], {}, "x"]
    assert is_reset([])
    assert is_reset([{}])
    assert not any(is_reset(lines) for lines in no_reset)


def test_ten_updaters_stay_as_they_are() -> None:
    ten = managed(*(entry(f"m{n:02}", f"2026-01-01T00:00:{n:02}Z") for n in range(MAX_UPDATERS)))
    assert capped(ten) == ten


def test_the_oldest_updaters_melt_into_one_bucket_and_appliers_do_not_count() -> None:
    many = [entry(f"m{n:02}", f"2026-01-01T00:00:{n:02}Z") for n in range(12)]
    appliers = [entry(f"a{n}", operation="Apply") for n in range(5)]
    out = capped(managed(*many, *appliers))
    (bucket,) = [each for each in out.values() if each.manager == ANCIENT]
    assert bucket.fields == {"f:spec": {"f:m00": {}, "f:m01": {}, "f:m02": {}}}
    assert bucket.time == "2026-01-01T00:00:02Z"
    assert sum(each.operation == "Update" for each in out.values()) == MAX_UPDATERS
    assert sum(each.operation == "Apply" for each in out.values()) == 5


def test_the_bucket_goes_on_to_grow() -> None:
    entries = [
        entry(ANCIENT, "2026-01-01T00:00:00Z"),
        *(entry(f"m{n:02}", f"2026-01-01T00:01:{n:02}Z") for n in range(10)),
    ]
    out = capped(managed(*entries))
    (bucket,) = [each for each in out.values() if each.manager == ANCIENT]
    assert bucket.fields == {"f:spec": {f"f:{ANCIENT}": {}, "f:m00": {}}}
    assert len(out) == MAX_UPDATERS


def test_a_bucket_that_is_younger_than_others_keeps_what_it_has() -> None:
    entries = [
        entry(ANCIENT, "2026-01-01T00:00:01Z"),
        *(entry(f"m{n:02}", f"2026-01-01T00:00:{n:02}Z") for n in range(12)),
    ]
    out = capped(managed(*entries))
    (bucket,) = [each for each in out.values() if each.manager == ANCIENT]
    every = {name for each in out.values() for name in each.fields["f:spec"]}
    assert every == {f"f:{ANCIENT}", *(f"f:m{n:02}" for n in range(12))}
    assert f"f:{ANCIENT}" in bucket.fields["f:spec"]
    assert len(out) == MAX_UPDATERS


def test_versions_melt_apart() -> None:
    many = [entry(f"m{n:02}", f"2026-01-01T00:00:{n:02}Z", version=f"v{n % 2}") for n in range(14)]
    out = capped(managed(*many))
    buckets = {each.api_version: set(each.fields["f:spec"]) for each in out.values() if each.manager == ANCIENT}
    assert buckets == {"v0": {"f:m00", "f:m02", "f:m04"}, "v1": {"f:m01", "f:m03", "f:m05"}}
    assert len(out) == MAX_UPDATERS
