"""What holds for any object, any configuration and any managers."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from fastness.apiserver.fields import ApplyConflict, FieldsError, FieldSet, apply, fields_of, reset_fields, track_update
from fastness.apiserver.fields.compare import compare
from fastness.apiserver.fields.fieldset import paths
from tests.unit.apiserver.fields.examples import FREE, SCHEMA, applied, created, stored, widget, writer

WORD = st.sampled_from(["a", "b", "c", "<d>"])
WORDS = st.dictionaries(WORD, WORD, max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | WORD,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORD, inner, max_size=2),
    max_leaves=5,
)
PORT = st.fixed_dictionaries(
    {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": WORD}
)
SPEC: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "image": WORD,
        "args": st.lists(WORD, max_size=3),
        "tags": st.lists(WORD, max_size=3, unique=True),
        "ports": st.lists(PORT, max_size=3, unique_by=lambda port: (port["port"], port.get("protocol", "TCP"))),
        "labels": WORDS,
        "selector": WORDS,
        "nested": st.fixed_dictionaries(
            {}, optional={"a": WORD, "deep": st.fixed_dictionaries({}, optional={"b": WORD})}
        ),
        "free": st.dictionaries(WORD, JSON, max_size=2),
    },
)
META = st.fixed_dictionaries({}, optional={"labels": WORDS, "finalizers": st.lists(WORD, max_size=2, unique=True)})
LINES: st.SearchStrategy[list[Any]] = st.lists(
    st.fixed_dictionaries(
        {
            "operation": st.sampled_from(["Apply", "Update", "?"]),
            "apiVersion": st.just("v1"),
            "fieldsType": st.just("FieldsV1"),
        },
        optional={"fieldsV1": st.sampled_from([{}, {"f:spec": {}}, {"x": 1}, None, 7]), "manager": WORD | st.none()},
    )
    | JSON,
    max_size=2,
)
ANY = st.fixed_dictionaries(
    {},
    optional={
        "metadata": JSON
        | st.fixed_dictionaries({}, optional={"managedFields": LINES | JSON, "labels": JSON, "annotations": JSON}),
        "spec": JSON | st.dictionaries(st.sampled_from(["tags", "ports", "labels", "selector", "free", "image"]), JSON),
        "status": JSON,
    },
)
CONFIG = st.builds(lambda spec, meta: widget(spec, metadata=meta), SPEC, META)


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    """The object without its ownership."""
    return {
        **obj,
        "metadata": {name: value for name, value in obj["metadata"].items() if name not in ("managedFields", "uid")},
    }


def owners(obj: dict[str, Any]) -> FieldSet:
    """Everything that anybody owns."""
    everything = FieldSet()
    for line in obj["metadata"].get("managedFields", []):
        everything = everything.union(FieldSet(line["fieldsV1"]))
    return everything


@given(CONFIG)
def test_apply_is_idempotent(config: dict[str, Any]) -> None:
    first = applied(None, config, "a", at=1)
    assume(first.managed)  # an object that nobody owns anything of is taken for untracked by the next apply
    again = applied(first.obj, config, "a", at=2)
    assert again.obj == first.obj
    assert not again.changed


@given(CONFIG, CONFIG)
def test_a_forced_apply_over_anything_is_idempotent_too(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    first = applied(created(theirs), ours, "a", at=1, force=True)
    again = applied(first.obj, ours, "a", at=2)
    assert again.obj == first.obj


@given(CONFIG)
def test_a_creator_owns_every_leaf_and_nothing_else(obj: dict[str, Any]) -> None:
    came = compare({"metadata": {}}, obj, SCHEMA).added or {}
    leaves = {path for path in paths(came) if path[0] == "f:spec" or (path[0] == "f:metadata" and path[1] != "f:name")}
    assert set(owners(created(obj))) == leaves
    assert set(fields_of(obj, SCHEMA)) <= leaves


@given(CONFIG, CONFIG)
def test_after_an_update_every_leaf_has_one_owner(old: dict[str, Any], new: dict[str, Any]) -> None:
    live = created(old)
    after = stored(new, track_update(live, new, writer("other", 1), SCHEMA))
    sets = [set(FieldSet(line["fieldsV1"])) for line in after["metadata"].get("managedFields", [])]
    assert sum(map(len, sets)) == len(set().union(*sets))
    if live["metadata"].get("managedFields"):
        assert set().union(*sets) == set(owners(created(new)))


@given(CONFIG, CONFIG)
def test_appliers_of_different_fields_keep_both(left: dict[str, Any], other: dict[str, Any]) -> None:
    mine = {name: value for name, value in left["spec"].items() if name not in other["spec"]}
    first = widget(mine)
    live = applied(applied(None, first, "a").obj, widget(other["spec"]), "b").obj
    assert live["spec"] == {**mine, **other["spec"]}
    assert fields_of(first, SCHEMA).difference(owners(live)) == FieldSet()


@given(CONFIG, CONFIG)
def test_reapplying_less_is_like_having_applied_less(full: dict[str, Any], less: dict[str, Any]) -> None:
    assume(
        not any(part == [] for part in (*full["spec"].values(), full["metadata"].get("finalizers")))
    )  # nobody owns those
    live = applied(None, full, "a").obj
    after = applied(live, less, "a").obj
    assert fields_of(plain(after), SCHEMA) == fields_of(less, SCHEMA)


@given(CONFIG, CONFIG, CONFIG)
def test_letting_go_removes_exactly_what_nobody_else_owns(
    mine: dict[str, Any], theirs: dict[str, Any], base: dict[str, Any]
) -> None:
    live = created(base)
    live = applied(live, mine, "a", force=True).obj
    live = applied(live, theirs, "b", force=True).obj
    before, after = live, applied(live, widget(), "a").obj
    others = FieldSet()
    for line in before["metadata"].get("managedFields", []):
        if line["manager"] != "a":
            others = others.union(FieldSet(line["fieldsV1"]))
    assert set(others) & set(fields_of(plain(before), SCHEMA)) <= set(fields_of(plain(after), SCHEMA)) | set(others)
    lost = fields_of(plain(before), SCHEMA).difference(fields_of(plain(after), SCHEMA))
    assert not lost.intersection(others)


@given(CONFIG, CONFIG)
def test_nothing_is_written_into_what_goes_in(live: dict[str, Any], config: dict[str, Any]) -> None:
    live_object = created(live)
    before = deepcopy((live_object, config))
    try:
        apply(live_object, config, writer("b"), SCHEMA)
    except ApplyConflict:
        done = apply(live_object, config, writer("b"), SCHEMA, force=True)
        done.obj["spec"] = None
    track_update(live_object, config, writer("b"), SCHEMA)
    assert (live_object, config) == before


@given(CONFIG, CONFIG)
def test_a_configuration_that_only_repeats_the_object_never_conflicts(
    live: dict[str, Any], config: dict[str, Any]
) -> None:
    live_object = applied(created(live), config, "a", force=True).obj
    assert plain(applied(live_object, config, "b").obj) == plain(live_object)


@given(ANY, ANY, st.booleans())
def test_any_json_is_tracked_or_refused_with_an_error_of_ours(
    live: dict[str, Any], sent: dict[str, Any], exists: bool
) -> None:
    """Validation comes later in the pipeline, so anything may arrive here."""
    for schema in (SCHEMA, FREE):
        track_update(live if exists else None, sent, writer("b"), schema, reset_fields())
        with suppress(FieldsError):
            apply(live if exists else None, sent, writer("b"), schema, reset=reset_fields())


@given(CONFIG, CONFIG)
def test_unknown_fields_survive_every_apply(config: dict[str, Any], later: dict[str, Any]) -> None:
    odd = {"odd": {"list": [1, {"x": None}], "text": "ü"}}
    live = created({**widget({**config["spec"], **odd}), "extra": odd})
    after = applied(live, later, "a", force=True).obj
    assert after["spec"]["odd"] == odd["odd"]
    assert after["extra"] == odd
