"""Ownership through create, update and patch."""

from __future__ import annotations

from copy import deepcopy

from fastness.apiserver.fields import TypedSchema, reset_fields, track_update
from tests.unit.apiserver.fields.examples import (
    SCHEMA,
    VERSION,
    JsonObject,
    created,
    owned,
    stored,
    updated,
    widget,
    writer,
)


def test_a_creator_owns_what_it_wrote() -> None:
    (line,) = track_update(None, widget({"replicas": 1}), writer("maker"), SCHEMA)
    assert line == {
        "manager": "maker", "operation": "Update", "apiVersion": VERSION, "time": "2026-01-01T12:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:replicas": {}}},
    }  # fmt: skip


def test_a_creator_of_nothing_is_not_listed() -> None:
    assert track_update(None, widget(), writer("maker"), SCHEMA) == []
    assert track_update(None, widget(status={"ready": 1}), writer("maker"), SCHEMA, reset_fields()) == []


def test_nobody_in_particular_is_called_unknown() -> None:
    assert owned(created(widget({"replicas": 1}), ""), "unknown") is not None


def test_a_changed_field_goes_to_who_changed_it() -> None:
    live = created(widget({"replicas": 1, "image": "a"}))
    new = updated(live, "other", spec={"replicas": 2, "image": "a"})
    assert owned(new, "maker") == {"f:spec": {".": {}, "f:image": {}}}
    assert owned(new, "other") == {"f:spec": {"f:replicas": {}}}


def test_removed_fields_leave_everybody_and_who_has_nothing_left_is_not_listed() -> None:
    live = updated(created(widget({"replicas": 1})), "other", spec={"replicas": 1, "image": "a"})
    assert owned(live, "other") == {"f:spec": {"f:image": {}}}
    new = updated(live, "third", spec={"replicas": 1})
    assert [line["manager"] for line in new["metadata"]["managedFields"]] == ["maker"]
    gone = {**deepcopy(new)}
    del gone["spec"]
    assert track_update(new, gone, writer("third"), SCHEMA) == []


def test_a_line_is_dated_when_its_manager_changes_a_field_and_only_then() -> None:
    live = created(widget({"replicas": 1}))
    other = updated(live, "other", at=1, spec={"replicas": 1, "image": "a"})
    same_again = updated(other, "maker", at=2, spec={"replicas": 1, "image": "a"})
    assert same_again["metadata"]["managedFields"] == other["metadata"]["managedFields"]
    own_again = updated(other, "maker", at=3, spec={"replicas": 7, "image": "a"})
    assert {line["manager"]: line["time"][14:16] for line in own_again["metadata"]["managedFields"]} == {
        "other": "01",
        "maker": "03",
    }
    removed = updated(other, "maker", at=4, spec={"replicas": 1})
    assert [line["time"][14:16] for line in removed["metadata"]["managedFields"]] == ["00"]


def test_items_of_sets_and_keyed_lists_are_owned_one_by_one() -> None:
    live = created(widget({"tags": ["a"], "ports": [{"port": 1, "protocol": "TCP"}]}))
    ports = [{"port": 1, "protocol": "TCP"}, {"port": 2, "protocol": "TCP"}]
    new = updated(live, "other", spec={"tags": ["a", "b"], "ports": ports})
    assert owned(new, "other") == {
        "f:spec": {
            "f:ports": {'k:{"port":2,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:tags": {'v:"b"': {}},
        }
    }
    assert owned(new, "maker") == owned(live, "maker")


def test_an_atomic_list_goes_over_as_a_whole() -> None:
    new = updated(created(widget({"args": ["a"]})), "other", spec={"args": ["a", "b"]})
    assert owned(new, "maker") == {"f:spec": {}}
    assert owned(new, "other") == {"f:spec": {"f:args": {}}}


def test_the_status_door_owns_status_only_and_ignores_lines_that_clients_send() -> None:
    live = created(widget({"replicas": 1}), reset=reset_fields())
    new = {**deepcopy(live), "spec": {"replicas": 9}, "status": {"ready": 1}}
    new["metadata"]["managedFields"] = [{}]
    after = stored(new, track_update(live, new, writer("ctl", 1, "status"), SCHEMA, reset_fields("status")))
    assert owned(after, "ctl", "status") == {"f:status": {".": {}, "f:ready": {}}}
    assert owned(after, "maker") == {"f:spec": {".": {}, "f:replicas": {}}}
    assert after["metadata"]["managedFields"][-1]["subresource"] == "status"


def test_one_empty_line_or_none_resets_and_then_nothing_is_tracked() -> None:
    live = created(widget({"replicas": 1}))
    resets: list[list[JsonObject]] = [[{}], []]
    for lines in resets:
        sent = deepcopy(live)
        sent["metadata"]["managedFields"] = lines
        sent["spec"]["replicas"] = 2
        assert track_update(live, sent, writer("other"), SCHEMA) == []
    untracked = stored(widget({"replicas": 1}), [])
    assert track_update(untracked, widget({"replicas": 2}), writer("other"), SCHEMA) == []


def test_a_client_that_leaves_the_lines_out_does_not_lose_them() -> None:
    live = created(widget({"replicas": 1}))
    sent = deepcopy(live)
    del sent["metadata"]["managedFields"]
    assert track_update(live, sent, writer("other"), SCHEMA) == live["metadata"]["managedFields"]
    sent["metadata"]["managedFields"] = None
    assert track_update(live, sent, writer("other"), SCHEMA) == live["metadata"]["managedFields"]


def test_lines_of_a_client_count_when_they_can_be_read() -> None:
    live = created(widget({"replicas": 1, "image": "a"}))
    line = {
        "manager": "own",
        "operation": "Apply",
        "apiVersion": VERSION,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:image": {}}},
    }
    sent = deepcopy(live)
    sent["metadata"]["managedFields"] = [line]
    assert track_update(live, sent, writer("other"), SCHEMA) == [line]
    sent["metadata"]["managedFields"] = [{**line, "operation": "Nonsense"}]
    assert track_update(live, sent, writer("other"), SCHEMA) == live["metadata"]["managedFields"]
    born = widget({"replicas": 1}, metadata={"managedFields": [line]})
    assert [each["manager"] for each in track_update(None, born, writer("maker"), SCHEMA)] == ["own", "maker"]


def test_ownership_under_a_version_that_is_gone_is_forgotten() -> None:
    live = created(widget({"replicas": 1}))
    live["metadata"]["managedFields"][0]["apiVersion"] = "example.dev/v1alpha1"
    lines = track_update(live, {**deepcopy(live), "spec": {"replicas": 2}}, writer("other"), SCHEMA)
    assert [line["manager"] for line in lines] == []
    anywhere = TypedSchema()
    assert [line["manager"] for line in track_update(live, live, writer("other"), anywhere)] == ["maker"]


def test_native_creators_do_not_own_that_a_struct_exists() -> None:
    spec = {"type": "object", "properties": {"replicas": {"type": "integer"}}, "default": {}}
    native = TypedSchema({"type": "object", "properties": {"spec": spec}}, native=True)
    assert owned(created(widget({"replicas": 1}), schema=native), "maker") == {"f:spec": {"f:replicas": {}}}


def test_nothing_that_goes_in_is_changed() -> None:
    live = created(widget({"labels": {"a": "1"}, "tags": ["x"]}))
    new = {**deepcopy(live), "spec": {"labels": {"b": "2"}, "tags": ["y"]}}
    before = deepcopy((live, new))
    track_update(live, new, writer("other"), SCHEMA)
    assert (live, new) == before


def test_damaged_stored_lines_are_forgotten_by_updates() -> None:
    live = stored(widget({"replicas": 1}), [{"manager": "m"}])
    assert track_update(live, widget({"replicas": 2}), writer("other"), SCHEMA) == []
