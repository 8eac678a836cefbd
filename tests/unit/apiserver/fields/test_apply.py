"""Server-side apply: merge, ownership, conflicts, force, removal."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from fastness.apiserver.fields import (
    ApplyConflict,
    BadListItem,
    DamagedOwnership,
    FieldNotDeclared,
    ManagedFieldsGiven,
    apply,
    reset_fields,
)
from tests.unit.apiserver.fields.examples import (
    SCHEMA,
    VERSION,
    applied,
    created,
    owned,
    stored,
    updated,
    widget,
    writer,
)

PORT = 'k:{"port":80,"protocol":"TCP"}'


def refused(live: Any, config: Any, manager: str, **options: Any) -> ApplyConflict:
    with pytest.raises(ApplyConflict) as caught:
        applied(live, config, manager, **options)
    return caught.value


def test_an_apply_may_create() -> None:
    done = applied(None, widget({"replicas": 1, "ports": [{"port": 80}]}), "a")
    assert done.changed
    assert done.obj["spec"] == {"replicas": 1, "ports": [{"port": 80}]}
    (line,) = done.managed
    assert (line["manager"], line["operation"], line["apiVersion"], line["time"]) == (
        "a",
        "Apply",
        VERSION,
        "2026-01-01T12:01:00Z",
    )
    assert line["fieldsV1"] == {"f:spec": {"f:ports": {PORT: {".": {}, "f:port": {}}}, "f:replicas": {}}}


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    first = applied(None, widget({"replicas": 1, "labels": {"a": "1"}}), "a", at=1)
    again = applied(first.obj, widget({"replicas": 1, "labels": {"a": "1"}}), "a", at=2)
    assert not again.changed
    assert again.obj == first.obj


def test_equal_values_are_owned_together() -> None:
    live = applied(None, widget({"replicas": 1}), "a").obj
    both = applied(live, widget({"replicas": 1}), "b", at=2)
    assert owned(both.obj, "a") == owned(both.obj, "b") == {"f:spec": {"f:replicas": {}}}
    assert both.changed
    assert "time" not in both.managed[0]  # as in Kubernetes: the object did not change, so no moment is noted


def test_a_shared_field_stays_until_the_last_owner_lets_go() -> None:
    live = applied(None, widget({"replicas": 1, "image": "i"}), "a").obj
    live = applied(live, widget({"replicas": 1}), "b").obj
    live = applied(live, widget({"image": "i"}), "a").obj
    assert live["spec"] == {"replicas": 1, "image": "i"}
    assert owned(live, "a") == {"f:spec": {"f:image": {}}}
    live = applied(live, widget({}), "b").obj
    assert live["spec"] == {"image": "i"}
    assert owned(live, "b") == {"f:spec": {}}


def test_another_value_for_somebody_elses_field_is_a_conflict() -> None:
    live = applied(None, widget({"replicas": 1, "labels": {"a": "1"}}), "a").obj
    error = refused(live, widget({"replicas": 2, "labels": {"a": "2", "b": "3"}}), "b")
    assert error.message == 'Apply failed with 2 conflicts: conflicts with "a":\n- .spec.replicas\n- .spec.labels.a'
    assert [(each.manager, each.operation, each.path) for each in error.conflicts] == [
        ("a", "Apply", ".spec.replicas"), ("a", "Apply", ".spec.labels.a"),
    ]  # fmt: skip
    assert error.causes[0].to_json() == {
        "reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.replicas",
    }  # fmt: skip
    assert (error.status, error.code) == (409, "ApplyConflict")


def test_a_conflict_with_an_updater_names_its_version_and_subresource() -> None:
    live = created(widget({"ports": [{"port": 80, "protocol": "TCP", "name": "n"}]}), "maker")
    error = refused(live, widget({"ports": [{"port": 80, "name": "m"}]}), "b")
    assert error.message == (
        f'Apply failed with 1 conflict: conflict with "maker" using {VERSION}: .spec.ports[port=80,protocol="TCP"].name'
    )
    live["metadata"]["managedFields"][0]["subresource"] = "scale"
    error = refused(live, widget({"ports": [{"port": 80, "name": "m"}]}), "b")
    assert error.causes[0].message == f'conflict with "maker" with subresource "scale" using {VERSION}'


def test_conflicts_with_several_managers_are_grouped_by_manager() -> None:
    live = created(widget({"replicas": 1}), "z")
    live = applied(live, widget({"image": "i"}), "y").obj
    message = refused(live, widget({"replicas": 2, "image": "j"}), "b").message
    assert message == (
        'Apply failed with 2 conflicts: conflicts with "y":\n- .spec.image\n'
        f'conflicts with "z" using {VERSION}:\n- .spec.replicas'
    )


def test_force_takes_the_field_away() -> None:
    live = applied(None, widget({"replicas": 1, "image": "i"}), "a").obj
    done = applied(live, widget({"replicas": 2}), "b", force=True)
    assert done.obj["spec"] == {"replicas": 2, "image": "i"}
    assert owned(done.obj, "a") == {"f:spec": {"f:image": {}}}
    assert owned(done.obj, "b") == {"f:spec": {"f:replicas": {}}}


def test_force_may_leave_somebody_with_nothing() -> None:
    live = applied(None, widget({"replicas": 1}), "a").obj
    assert [line["manager"] for line in applied(live, widget({"replicas": 2}), "b", force=True).managed] == ["b"]


def test_an_owner_changes_its_own_value_and_is_dated() -> None:
    live = applied(None, widget({"replicas": 1}), "a", at=1).obj
    done = applied(live, widget({"replicas": 2}), "a", at=5)
    assert done.obj["spec"] == {"replicas": 2}
    assert done.managed[0]["time"] == "2026-01-01T12:05:00Z"


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ({"replicas": 1, "image": "i"}, {"image": "i"}, {"image": "i"}),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "1"}}, {"labels": {"a": "1"}}),
        ({"tags": ["a", "b"], "image": "i"}, {"tags": ["b"], "image": "i"}, {"tags": ["b"], "image": "i"}),
        ({"tags": ["a"], "image": "i"}, {"image": "i"}, {"image": "i"}),
        ({"ports": [{"port": 1}, {"port": 2}]}, {"ports": [{"port": 2}]}, {"ports": [{"port": 2}]}),
        ({"ports": [{"port": 1, "name": "n"}]}, {"ports": [{"port": 1}]}, {"ports": [{"port": 1}]}),
        ({"args": ["a"], "image": "i"}, {"image": "i"}, {"image": "i"}),
        ({"selector": {"a": "1"}, "image": "i"}, {"image": "i"}, {"image": "i"}),
        ({"nested": {"a": "1", "deep": {"b": "2"}}}, {"nested": {"a": "1"}}, {"nested": {"a": "1"}}),
        ({"free": {"a": {"b": 1, "c": 2}}}, {"free": {"a": {"c": 2}}}, {"free": {"a": {"c": 2}}}),
    ],
)
def test_what_is_not_applied_any_more_is_removed(first: Any, second: Any, left: Any) -> None:
    live = applied(None, widget(first), "a").obj
    assert applied(live, widget(second), "a").obj["spec"] == left


def test_what_others_added_below_stays_when_its_container_is_given_up() -> None:
    live = applied(None, widget({"labels": {"a": "1"}, "ports": [{"port": 80}]}), "a").obj
    live = applied(live, widget({"labels": {"b": "2"}, "ports": [{"port": 80, "name": "n"}]}), "b").obj
    done = applied(live, widget({}), "a")
    assert done.obj["spec"] == {"labels": {"b": "2"}, "ports": [{"port": 80, "name": "n"}]}


def test_a_field_that_an_updater_wrote_is_not_removed_by_an_applier() -> None:
    live = applied(None, widget({"replicas": 1, "image": "i"}), "a").obj
    live = updated(live, "hpa", spec={"replicas": 5, "image": "i"})
    done = applied(live, widget({"image": "i"}), "a")
    assert done.obj["spec"] == {"replicas": 5, "image": "i"}


def test_giving_up_everything_removes_the_line() -> None:
    live = applied(None, widget({"replicas": 1}, metadata={"labels": {"a": "b"}}), "a").obj
    done = applied(live, widget(), "a")
    assert done.managed == []
    assert "spec" not in done.obj
    assert done.obj["metadata"] == {"name": "w", "uid": "u1"}


def test_fields_of_an_untracked_object_belong_to_nobody_in_particular() -> None:
    live = stored(widget({"replicas": 1}), [])
    done = applied(live, widget({"image": "i"}), "a")
    assert owned(done.obj, "before-first-apply") == {"f:spec": {".": {}, "f:replicas": {}}}
    assert 'conflict with "before-first-apply"' in refused(live, widget({"replicas": 2}), "a").message


def test_the_status_door_applies_status_only() -> None:
    live = created(widget({"replicas": 1}), reset=reset_fields())
    config = widget(
        {"replicas": 9}, status={"conditions": [{"type": "Ready", "status": "True"}]}, metadata={"labels": {"x": "y"}}
    )
    done = apply(live, config, writer("ctl", 1, "status"), SCHEMA, reset=reset_fields("status"))
    assert owned(done.obj, "ctl", "status") == {
        "f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }
    assert owned(done.obj, "maker") == owned(live, "maker")


def test_two_controllers_keep_their_own_conditions() -> None:
    door: dict[str, Any] = {"reset": reset_fields("status")}

    def conditions(kind: str, status: str) -> dict[str, Any]:
        return widget(status={"conditions": [{"type": kind, "status": status}]})

    live = applied(None, conditions("A", "True"), "one", **door).obj
    live = applied(live, conditions("B", "False"), "two", **door).obj
    assert [each["type"] for each in live["status"]["conditions"]] == ["A", "B"]
    assert (
        refused(live, conditions("A", "False"), "two", **door).conflicts[0].path
        == '.status.conditions[type="A"].status'
    )
    live = applied(live, widget(status={}), "one", **door).obj
    assert live["status"]["conditions"] == [{"type": "B", "status": "False"}]


def test_a_configuration_must_not_bring_managed_fields() -> None:
    given: list[list[dict[str, Any]]] = [[], [{}]]
    for lines in given:
        with pytest.raises(ManagedFieldsGiven) as caught:
            applied(None, widget(metadata={"managedFields": lines}), "a")
        assert (caught.value.status, caught.value.message) == (400, "metadata.managedFields must be nil")
    assert applied(None, widget({"replicas": 1}, metadata={"managedFields": None}), "a").managed


def test_a_bad_configuration_is_told_with_object_and_path() -> None:
    with pytest.raises(BadListItem) as caught:
        applied(None, widget({"tags": ["a", "a"]}, metadata={"namespace": "ns"}), "a")
    assert caught.value.message == (
        f"failed to create typed patch object (ns/w; {VERSION}, Kind=Widget): "
        '.spec.tags: duplicate entries for key [="a"]'
    )
    with pytest.raises(FieldNotDeclared, match=r"\(/w; /v1, Kind=Widget\): \.spec\.nope: field not declared in schema"):
        applied(None, {**widget({"nope": 1}), "apiVersion": "v1"}, "a")


def test_nothing_that_goes_in_is_changed_and_what_comes_out_is_fresh() -> None:
    live = applied(None, widget({"labels": {"a": "1"}, "free": {"deep": {"x": [1]}}}), "a").obj
    config = widget({"labels": {"b": "2"}})
    before = deepcopy((live, config))
    done = applied(live, config, "b")
    done.obj["spec"]["free"]["deep"]["x"].append(2)
    done.obj["spec"]["labels"]["c"] = "3"
    assert (live, config) == before


def test_unknown_stored_fields_survive() -> None:
    live = created(widget({"replicas": 1, "unknown": {"a": [1]}}, extra={"x": 1}))
    done = applied(live, widget({"image": "i"}), "a")
    assert done.obj["spec"] == {"replicas": 1, "unknown": {"a": [1]}, "image": "i"}
    assert done.obj["extra"] == {"x": 1}


def test_damaged_stored_lines_stop_an_apply() -> None:
    live = stored(widget({"replicas": 1}), [{"manager": "m"}])
    with pytest.raises(DamagedOwnership) as caught:
        applied(live, widget({"image": "i"}), "a")
    assert "managedFields" in caught.value.hint


def test_fields_that_nobody_owns_stay_where_another_owner_keeps_their_container() -> None:
    live = applied(None, widget({"nested": {"a": "1"}}), "a").obj
    live = applied(live, widget({"nested": {"a": "1"}}), "b").obj
    live["spec"]["nested"]["deep"] = {"b": "defaulted"}
    assert applied(live, widget(), "a").obj["spec"] == {"nested": {"a": "1", "deep": {"b": "defaulted"}}}
