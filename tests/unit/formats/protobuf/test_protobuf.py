"""Protobuf bodies: what kubectl really sends, every special type, unknown fields, damage and limits."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import ProtobufError
from fastness.formats.protobuf import decode_object, schema, supported_kinds
from fastness.formats.protobuf.kinds import message_of
from fastness.formats.protobuf.tables import MESSAGE_LINES
from tests.unit.formats.protobuf.encoder import block, envelope, number, varint

_BODIES = json.loads((Path(__file__).parents[1] / "data" / "kubectl_1_37_bodies.json").read_text())


def _value(api_version: str, kind: str, raw: bytes) -> dict[str, Any]:
    return decode_object(envelope(api_version, kind, raw)).value


@pytest.mark.parametrize("case", _BODIES, ids=lambda case: case["command"])
def test_a_body_of_kubectl_gives_the_object_that_kubectl_prints(case: dict[str, Any]) -> None:
    decoded = decode_object(base64.b64decode(case["body"]))
    assert decoded.value == case["object"]
    assert decoded.unknown_fields == ()


@pytest.mark.parametrize("case", _BODIES, ids=lambda case: case["command"])
def test_a_cut_body_never_gives_anything_but_a_format_error(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["body"])
    for end in range(len(body)):
        try:
            decode_object(body[:end])
        except ProtobufError:
            continue


def test_the_tables_are_closed_and_well_formed() -> None:
    for name in MESSAGE_LINES:
        fields = schema.message(name)
        names = [field.name for field in fields.values() if not field.inline]
        assert len(names) == len(set(names)), name
        for field in fields.values():
            assert field.type in schema.SCALARS | schema.SPECIAL or field.type in MESSAGE_LINES, (name, field)
            assert not field.inline or field.type in MESSAGE_LINES
            assert field.shape != "map" or field.type not in ("int", "bool")


def test_every_kind_has_a_message_with_metadata() -> None:
    for api_version, kind in supported_kinds():
        assert schema.message(message_of(api_version, kind))[1].name == "metadata"


def test_zero_values_are_left_out_unless_the_field_is_required_or_a_pointer() -> None:
    raw = block(1, [block(1, ""), block(3, ""), number(7, 0)]) + number(4, 0)
    assert _value("v1", "ConfigMap", raw) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {},
        "immutable": False,
    }


def test_a_required_list_that_is_empty_is_there_although_nothing_of_it_is_on_the_wire() -> None:
    """A kubelet writes the CSINode of a node without drivers, and is not Ready before it could."""
    assert _value("storage.k8s.io/v1", "CSINode", block(2, b"")) == {
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": {"drivers": []},
    }  # fmt: skip


def test_metadata_in_full() -> None:
    time = [number(1, 1_700_000_000), number(2, 999)]
    owner = [block(1, "Node"), block(3, "n"), block(4, "u"), block(5, "v1"), number(6, 1), number(7, 0)]
    managed = [
        block(1, "m"),
        block(2, "Apply"),
        block(4, time),
        block(6, "FieldsV1"),
        block(7, [block(1, '{"f:a":{}}')]),
    ]
    metadata = [
        block(1, "n"),
        number(7, 3),
        block(8, time),
        block(9, b""),
        number(10, 0),
        block(11, [block(1, "a"), block(2, "b")]),
        block(11, [block(1, "c")]),
        block(12, [block(2, "only a value")]),
        block(13, owner),
        block(14, "f1"),
        block(14, "f2"),
        block(17, managed),
    ]
    assert _value("v1", "Namespace", block(1, metadata))["metadata"] == {
        "name": "n",
        "generation": 3,
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "deletionGracePeriodSeconds": 0,
        "labels": {"a": "b", "c": ""},
        "annotations": {"": "only a value"},
        "ownerReferences": [
            {
                "kind": "Node",
                "name": "n",
                "uid": "u",
                "apiVersion": "v1",
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
        "finalizers": ["f1", "f2"],
        "managedFields": [
            {
                "manager": "m",
                "operation": "Apply",
                "time": "2023-11-14T22:13:20Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:a": {}},
            }
        ],
    }


def test_bytes_become_base64_and_microseconds_are_kept() -> None:
    assert _value("v1", "Secret", block(2, [block(1, "k"), block(2, b"\x00\xff")]))["data"] == {"k": "AP8="}
    spec = block(2, [block(3, [number(1, -1), number(2, 123_456_789)]), number(2, 40)])
    assert _value("coordination.k8s.io/v1", "Lease", spec)["spec"] == {
        "leaseDurationSeconds": 40,
        "acquireTime": "1969-12-31T23:59:59.123456Z",
    }


def test_quantities_and_int_or_string() -> None:
    hard = block(2, [block(1, [block(1, "cpu"), block(2, [block(1, "1000m")])])])
    assert _value("v1", "ResourceQuota", hard)["spec"] == {"hard": {"cpu": "1"}}
    text = block(2, [block(1, [number(1, 1), number(2, 0), block(3, "50%")])])
    assert _value("policy/v1", "PodDisruptionBudget", text)["spec"] == {"minAvailable": "50%"}
    whole = block(2, [block(1, [number(1, 0), number(2, -3), block(3, "")])])
    assert _value("policy/v1", "PodDisruptionBudget", whole)["spec"] == {"minAvailable": -3}


def test_members_of_an_inline_message_stand_in_the_parent() -> None:
    volume = [block(1, "v"), block(2, [block(19, [block(1, [block(1, "cm")]), number(3, 420)])])]
    assert _value("v1", "Pod", block(2, [block(1, volume)]))["spec"]["volumes"] == [
        {"name": "v", "configMap": {"name": "cm", "defaultMode": 420}}
    ]


def test_lists_of_integers_may_be_packed() -> None:
    packed = block(2, [block(14, [block(4, varint(1) + varint(300))])])
    apart = block(2, [block(14, [number(4, 1), number(4, 300)])])
    assert _value("v1", "Pod", packed)["spec"]["securityContext"] == {"supplementalGroups": [1, 300]}
    assert _value("v1", "Pod", packed) == _value("v1", "Pod", apart)


def test_extra_values_of_a_user_are_lists_of_text() -> None:
    extra = block(5, [block(1, "scopes"), block(2, [block(1, "a"), block(1, "b")])])
    spec = block(2, [block(3, "u"), extra, block(5, [block(1, "none")])])
    assert _value("authorization.k8s.io/v1", "SubjectAccessReview", spec)["spec"] == {
        "user": "u",
        "extra": {"scopes": ["a", "b"], "none": []},
    }


def test_delete_options_belong_to_every_version() -> None:
    raw = number(1, 0) + block(4, "Foreground")
    for api_version in ("v1", "policy/v1", "example.com/v3"):
        value = _value(api_version, "DeleteOptions", raw)
        assert value["gracePeriodSeconds"] == 0
        assert value["propagationPolicy"] == "Foreground"


def test_unknown_fields_are_reported_by_path_and_skipped() -> None:
    raw = (
        block(1, [block(1, "n"), number(99, 1)])
        + block(77, "x")
        + varint(78 << 3 | 1)
        + b"12345678"
        + varint(79 << 3 | 5)
        + b"1234"
    )
    decoded = decode_object(envelope("v1", "ConfigMap", raw))
    assert decoded.value["metadata"] == {"name": "n"}
    assert decoded.unknown_fields == ("metadata.<99>", "<77>", "<78>", "<79>")


def test_reports_of_unknown_fields_are_bounded() -> None:
    assert len(decode_object(envelope("v1", "ConfigMap", number(99, 1) * 5_000)).unknown_fields) == 100


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "protobuf-no-envelope"),
        (b"{}", "protobuf-no-envelope"),
        (b"k8s", "protobuf-no-envelope"),
        (b"k8s\0", "protobuf-unknown-kind"),
        (b"k8s\0\xff", "protobuf-damaged"),
        (b"k8s\0" + number(1, 5), "protobuf-damaged"),
        (b"k8s\0" + block(2, b"") * 2, "protobuf-damaged"),
        (envelope("v1", "Widget", b""), "protobuf-unknown-kind"),
        (envelope("v2", "ConfigMap", b""), "protobuf-unknown-kind"),
        (envelope("v1", "ConfigMap", b"", block(3, "gzip")), "protobuf-content-type"),
        (envelope("v1", "ConfigMap", b"", block(4, "application/json")), "protobuf-content-type"),
        (b"k8s\0" + bytes(3 * 1024 * 1024), "protobuf-too-large"),
    ],
)
def test_bodies_that_are_not_an_envelope_are_refused(body: bytes, code: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode_object(body)
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize(
    "raw",
    [
        b"\x08",
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a" + b"\xff" * 9 + b"\x01",
        b"\x0a" + b"\x80" * 11,
        b"\xff" * 10,
        b"\x80" * 20 + b"\x01",
        b"\x20" + b"\xff" * 9 + b"\x02",
        b"\x00\x00",
        b"\x0b",
        b"\x0c",
        b"\x0f",
        b"\x0d\x00",
        b"\x09\x00",
        number(1, 5),
        block(4, "x"),
        block(1, [block(1, b"\xff")]),
        block(1, [number(1, 1)]),
        block(1, [block(7, "x")]),
        block(1, [block(8, [number(1, 2**62)])]),
        block(1, [block(8, [number(1, 0), number(2, -1)])]),
        block(1, [block(8, [block(1, "x")])]),
        block(1, [block(17, [block(7, [block(1, "{")])])]),
        block(2, [number(1, 1)]),
        number(2, 1),
    ],
)
def test_damaged_messages_are_refused(raw: bytes) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode_object(envelope("v1", "ConfigMap", raw))
    assert caught.value.code == "protobuf-damaged"


def test_a_bad_quantity_is_refused() -> None:
    hard = block(2, [block(1, [block(1, "cpu"), block(2, [block(1, "lots")])])])
    with pytest.raises(ProtobufError):
        _value("v1", "ResourceQuota", hard)


def test_a_field_that_stands_twice_is_refused() -> None:
    with pytest.raises(ProtobufError) as caught:
        _value("v1", "Namespace", block(1, [block(1, "a"), block(1, "b")]))
    assert caught.value.code == "protobuf-repeated-field"
    assert caught.value.path == "metadata.name"


def test_small_bytes_cannot_make_unbounded_objects() -> None:
    with pytest.raises(ProtobufError) as caught:
        _value("v1", "Pod", block(2, [block(2, b"")] * 200_000))
    assert caught.value.code == "protobuf-too-many-values"


# Any message that the tables describe, written by the independent encoder and read back.
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)


@st.composite
def _random_message(draw: st.DrawFn, name: str, depth: int = 0) -> tuple[bytes, dict[str, Any]]:
    wire, value = b"", dict[str, Any]()
    fields = sorted(schema.message(name).items())
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4 if depth < 3 else 0, unique_by=lambda pair: pair[0]))
    for field_number, field in chosen:
        count = 1 if field.shape == "one" else draw(st.integers(1, 2))
        for index in range(count):
            part, item = draw(_random_value(field.type, depth))
            if field.inline:
                if set(item) & set(value):
                    continue
                wire += block(field_number, part)
                value.update(item)
            elif field.shape == "map":
                key = f"k{index}"
                wire += block(field_number, [block(1, key), part if isinstance(item, bool) else block(2, part)])
                value.setdefault(field.name, {})[key] = item
            else:
                wire += varint(field_number << 3) + part if field.type in ("int", "bool") else block(field_number, part)
                if field.shape == "list":
                    value.setdefault(field.name, []).append(item)
                else:
                    value[field.name] = item
    return wire, value


@st.composite
def _random_value(draw: st.DrawFn, type_: str, depth: int) -> tuple[bytes, Any]:
    match type_:
        case "int":
            whole = draw(st.integers(-(2**63), 2**63 - 1).filter(bool))
            return varint(whole), whole
        case "bool":
            return varint(1), True
        case "string":
            text = draw(_TEXT)
            return text.encode(), text
        case "bytes":
            data = draw(st.binary(min_size=1, max_size=5))
            return data, base64.b64encode(data).decode()
        case "time":
            return number(1, 60) + number(2, 0), "1970-01-01T00:01:00Z"
        case "microtime":
            return number(1, 60) + number(2, 5000), "1970-01-01T00:01:00.000005Z"
        case "quantity":
            return block(1, "1500m"), "1500m"
        case "intorstring":
            return number(1, 1) + block(3, "10%"), "10%"
        case "rawjson":
            return block(1, '{"a":[1]}'), {"a": [1]}
        case "strings":
            return block(1, "x") + block(1, "y"), ["x", "y"]
        case _:
            return draw(_random_message(type_, depth + 1))


@given(st.data())
def test_any_message_reads_back_as_it_was_written(data: st.DataObject) -> None:
    api_version, kind = data.draw(st.sampled_from(supported_kinds()))
    wire, value = data.draw(_random_message(message_of(api_version, kind)))
    decoded = decode_object(envelope(api_version, kind, wire))
    assert decoded.value == {"apiVersion": api_version, "kind": kind, **value}
    assert decoded.unknown_fields == ()
