"""Tables of custom kinds, and what every table has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.accept import JSON
from fastness.apiserver.catalog import Served
from fastness.apiserver.tables import (
    Include,
    ListMeta,
    TableRequest,
    encode_table,
    partial_object,
    render_table,
    representation,
)
from fastness.apiserver.tables.reader import MISSING
from fastness.kinds.kind import Column
from fastness.kube.errors import BadRequest
from tests.unit.apiserver.samples import MACHINE, NOW

OBJECT: dict[str, Any] = {
    "apiVersion": "fastness.dev/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "m1", "uid": "u", "creationTimestamp": "2026-03-01T11:55:00Z"},
    "spec": {"pool": "worker"},
    "status": {"ready": True},
}


def table(objects: list[Any], request: TableRequest | None = None, **options: Any) -> dict[str, Any]:
    meta = ListMeta("42", "next", 7)
    return render_table(Served(MACHINE).printer, objects, request or TableRequest(), meta, NOW, **options)


def cell(value: Any, kind: Any, path: str = ".spec.x") -> Any:
    served = Served(replace(MACHINE, columns=(Column("X", path, kind),)))
    obj = {"metadata": {"name": "m"}, "spec": {} if value is ... else {"x": value}}
    rendered = render_table(served.printer, [obj], TableRequest(), ListMeta(), NOW)
    return rendered["rows"][0]["cells"][1]


def test_a_table_has_columns_cells_and_metadata() -> None:
    made = table([OBJECT])
    assert (made["kind"], made["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert made["metadata"] == {"resourceVersion": "42", "continue": "next", "remainingItemCount": 7}
    assert [(column["name"], column["type"], column["format"]) for column in made["columnDefinitions"]] == [
        ("Name", "string", "name"), ("Pool", "string", ""), ("Ready", "boolean", ""), ("Age", "date", ""),
    ]  # fmt: skip
    assert made["rows"][0]["cells"] == ["m1", "worker", True, "5m"]


def test_bytes_and_objects_give_the_same_table() -> None:
    assert table([msgspec.json.encode(OBJECT)]) == table([OBJECT])


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_rows_carry_metadata_in_the_version_asked_for(version: str) -> None:
    made = table([OBJECT], TableRequest(version))
    assert made["apiVersion"] == f"meta.k8s.io/{version}"
    assert made["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": OBJECT["metadata"],
    }  # fmt: skip


def test_rows_carry_the_object_or_nothing_on_request() -> None:
    assert table([OBJECT], TableRequest(include=Include.OBJECT))["rows"][0]["object"] == OBJECT
    assert table([OBJECT], TableRequest(include=Include.NONE))["rows"][0]["object"] is None


def test_later_events_of_a_watch_have_no_column_definitions() -> None:
    made = table([OBJECT], headers=False)
    assert made["columnDefinitions"] is None
    assert made["rows"]


def test_an_empty_list_is_a_table_without_rows() -> None:
    made = table([])
    assert made["rows"] == []
    assert len(made["columnDefinitions"]) == 4


@pytest.mark.parametrize(
    ("kind", "value", "printed"),
    [
        ("string", ..., None), ("string", "a", "a"), ("string", "", ""), ("string", 5, "5"), ("string", True, "true"),
        ("string", 0.5, "0.5"), ("string", 2.0, "2"), ("string", 1e20, "1e+20"), ("string", 10**20, "1e+20"),
        ("string", 1234567.5, "1.2345675e+06"), ("string", 123456.5, "123456.5"), ("string", -0.00001234, "-1.234e-05"),
        ("string", 0.0001, "0.0001"), ("integer", 1e20, -(2**63)),
        ("string", {"b": 1, "a": [1, "<"]}, '{"a":[1,"\\u003c"],"b":1}'), ("string", ["x"], '["x"]'),
        ("string", None, "<no value>"),
        ("integer", ..., None), ("integer", 7, 7), ("integer", 7.9, 7), ("integer", "7", None), ("integer", True, None),
        ("number", 1.5, 1.5), ("number", 2, 2), ("number", "1", None),
        ("boolean", False, False), ("boolean", "true", None),
        ("date", "2026-03-01T11:58:00Z", "2m"), ("date", "never", "<invalid>"), ("date", 5, None), ("date", ..., None),
    ],
)  # fmt: skip
def test_cells_follow_the_rules_of_printer_columns(kind: str, value: Any, printed: Any) -> None:
    rendered = cell(value, kind)
    assert rendered == printed
    assert type(rendered) is type(printed) or isinstance(printed, int | float)


def test_the_first_of_several_values_is_shown() -> None:
    assert cell([{"n": "a"}, {"n": "b"}], "string", ".spec.x[*].n") == "a"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "PartialObjectMetadataList"),
        ("application/json", ""),
    ],
)
def test_representation_follows_the_accept_header(accept: str, kind: str) -> None:
    media = representation(accept)
    assert media is not None
    assert media.as_kind == kind


def test_a_table_is_requested_by_its_media_type() -> None:
    media = representation("application/json;as=Table;v=v1beta1;g=meta.k8s.io")
    assert media is not None
    assert TableRequest.of(media, "Object") == TableRequest("v1beta1", Include.OBJECT)
    assert TableRequest.of(JSON) is None
    with pytest.raises(BadRequest, match="includeObject"):
        TableRequest.of(media, "Everything")


def test_partial_object_is_metadata_only() -> None:
    assert partial_object(OBJECT) == {
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"],
    }  # fmt: skip


COLUMNS = (
    Column("Pool", ".spec.pool"),
    Column("Deep", ".spec.a.b.c", "integer"),
    Column("Part", ".spec.a"),
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
    Column("First", ".status.conditions[0].type"),
    Column("Label", r".metadata.labels.app\.io/x"),
    Column("Generation", ".metadata.generation", "integer"),
    Column("Age", ".metadata.creationTimestamp", "date"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e30, 1e30) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["pool", "a", "b", "c", "conditions", "type", "status"]), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip
CONDITIONS = st.lists(
    st.fixed_dictionaries({}, optional={"type": st.sampled_from(["Ready", "Other", 5]), "status": VALUES}), max_size=3
)
METADATA = st.fixed_dictionaries(
    {"name": st.text(max_size=5)},
    optional={
        "labels": st.dictionaries(st.sampled_from(["app.io/x", "y"]), st.text(max_size=3), max_size=2) | st.none(),
        "generation": st.integers(0, 9),
        "creationTimestamp": st.sampled_from(["2026-03-01T11:55:00Z", "2026-03-01T11:55:61Z", "", "soon"]) | st.none(),
    },
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={"spec": VALUES, "status": VALUES | st.fixed_dictionaries({"conditions": CONDITIONS})},
)


@given(objects=st.lists(OBJECTS, max_size=3), include=st.sampled_from(Include))
def test_encoding_stored_bytes_equals_rendering_objects(objects: list[dict[str, Any]], include: Include) -> None:
    served = Served(replace(MACHINE, columns=COLUMNS))
    bodies = [msgspec.json.encode(obj) for obj in objects]
    request = TableRequest(include=include)
    encoded = encode_table(served.printer, bodies, request, ListMeta("1"), NOW)
    rendered = render_table(served.printer, bodies, request, ListMeta("1"), NOW)
    assert msgspec.json.decode(encoded) == msgspec.json.decode(msgspec.json.encode(rendered))


def test_a_column_that_shows_the_whole_object_takes_the_general_way() -> None:
    served = Served(replace(MACHINE, columns=(Column("All", ".metadata"),)))
    assert served.printer.reader is None
    made = msgspec.json.decode(
        encode_table(served.printer, [msgspec.json.encode(OBJECT)], TableRequest(), ListMeta(), NOW)
    )
    assert made["rows"][0]["cells"][1].startswith('{"creationTimestamp"')


def test_stored_bytes_are_not_decoded_beyond_what_is_shown() -> None:
    served = Served(MACHINE)
    reader = served.printer.reader
    assert reader is not None
    row = reader.read(b'{"metadata":{"name":"m","x":1},"spec":{"pool":"p","big":[1,2,3]},"other":{"deep":{}}}')
    assert (row.name, row.values[0], bytes(row.metadata)) == ("m", "p", b'{"name":"m","x":1}')
    assert MISSING in row.values
