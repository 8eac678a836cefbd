"""Going over from `kubectl apply` to `kubectl apply --server-side`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.apiserver.fields import ApplyConflict
from fastness.apiserver.fields.client_side import LAST_APPLIED, MAX_ANNOTATIONS
from tests.unit.apiserver.fields.examples import applied, created, widget


def client_side(spec: dict[str, Any], now: dict[str, Any] | None = None, record: str | None = None) -> dict[str, Any]:
    """An object that client-side apply made, perhaps changed since."""
    note = record if record is not None else json.dumps(widget(spec))
    return created(
        widget(now or spec, metadata={"annotations": {LAST_APPLIED: note, "mine": "kept"}}), "kubectl-client-side-apply"
    )


def test_recorded_fields_are_no_conflict_for_kubectl() -> None:
    live = client_side({"replicas": 1, "image": "i"})
    done = applied(live, widget({"replicas": 2, "image": "i"}), "kubectl")
    assert done.obj["spec"] == {"replicas": 2, "image": "i"}


def test_the_record_helps_nobody_else() -> None:
    with pytest.raises(ApplyConflict):
        applied(client_side({"replicas": 1}), widget({"replicas": 2}), "argocd")


def test_fields_that_changed_since_or_were_never_recorded_stay_conflicts() -> None:
    live = client_side({"replicas": 1, "image": "i"}, now={"replicas": 5, "image": "i", "args": ["x"]})
    with pytest.raises(ApplyConflict) as caught:
        applied(live, widget({"replicas": 2, "image": "j", "args": ["y"]}), "kubectl")
    assert [each.path for each in caught.value.conflicts] == [".spec.args", ".spec.replicas"]


@pytest.mark.parametrize(
    "record", ["", "{", "[]", "7", json.dumps({"apiVersion": "other/v1", "spec": {"replicas": 1}})]
)
def test_a_record_that_cannot_be_used_is_ignored(record: str) -> None:
    with pytest.raises(ApplyConflict):
        applied(client_side({"replicas": 1}, record=record), widget({"replicas": 2}), "kubectl")


def test_the_annotation_follows_server_side_applies() -> None:
    config = widget({"replicas": 1, "image": "<&>"})
    done = applied(client_side({"replicas": 1}), config, "kubectl")
    note = done.obj["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(note) == config
    assert note.endswith("\n")
    assert "\\u003c\\u0026\\u003e" in note
    assert done.obj["metadata"]["annotations"]["mine"] == "kept"


def test_the_annotation_does_not_contain_itself() -> None:
    config = widget({"replicas": 1}, metadata={"annotations": {LAST_APPLIED: "old", "other": "x"}})
    done = applied(client_side({"replicas": 1}), config, "kubectl", force=True)
    record = json.loads(done.obj["metadata"]["annotations"][LAST_APPLIED])
    assert record["metadata"]["annotations"] == {"other": "x"}


def test_objects_without_annotation_and_other_managers_get_none() -> None:
    plain = created(widget({"replicas": 1}))
    assert "annotations" not in applied(plain, widget({"image": "i"}), "kubectl").obj["metadata"]
    live = client_side({"replicas": 1})
    note = applied(live, widget({"image": "i"}), "argocd").obj["metadata"]["annotations"][LAST_APPLIED]
    assert note == live["metadata"]["annotations"][LAST_APPLIED]


def test_an_annotation_that_grows_too_large_is_dropped() -> None:
    done = applied(client_side({"replicas": 1}), widget({"image": "x" * MAX_ANNOTATIONS}), "kubectl")
    assert done.obj["metadata"]["annotations"] == {"mine": "kept"}
