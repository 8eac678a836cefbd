"""Weakening is an order: what a field means decides, nothing is hidden by a detour, and no field of the schema is forgotten."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.admission.lowering import CANNOT_WEAKEN, ORDER, weakenings
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, MODES
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kube.admission import Allowed, Denied
from fastness.kube.confirmation import confirmation, confirmed
from tests.unit.admission.writes import write

Object = dict[str, Any]


def leaves(schema: Object, path: str = "") -> Iterator[str]:
    """The fields of a schema, with [] for the entries of lists of objects."""
    items = schema.get("items") or {}
    if schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif items.get("properties"):
        yield from leaves(items, f"{path}[]")
    else:
        yield path


def test_every_field_of_the_schema_is_in_the_order_or_cannot_weaken() -> None:
    fields = set(leaves(CONFIDENTIAL_CLUSTER.schema["properties"]["spec"]))
    judged = {row.field for row in ORDER}

    def covers(rows: set[str], field: str) -> bool:
        return any(field == row or field.startswith((f"{row}.", f"{row}[]")) for row in rows)

    assert {field for field in fields if not covers(judged | CANNOT_WEAKEN.keys(), field)} == set()
    assert {row for row in judged | CANNOT_WEAKEN.keys() if not any(covers({row}, field) for field in fields)} == set()
    assert not judged & CANNOT_WEAKEN.keys()
    assert all(row.weaker and row.because for row in ORDER)
    assert all(CANNOT_WEAKEN.values())


# Fields of the contract that have no behaviour yet, and are in no schema: whoever adds one cannot forget it here.
TO_COME = (
    ("guests", "accept"), ("guests", "evidence"), ("attestation", "tokenIssuers"),
)  # fmt: skip


@pytest.mark.parametrize("path", TO_COME, ids=".".join)
def test_a_field_that_neither_list_names_weakens_however_it_changes(path: tuple[str, ...]) -> None:
    def spec(value: Any) -> Object:
        for key in reversed(path):
            value = {key: [{"name": "worker", **value}]} if key == "pools" and path[0] == "pools" else {key: value}
        return {"mode": "Enforce", **value}

    values = [True, "Automatic", ["a"], [{"serverName": "a", "pools": ["b"]}], [{"name": "a"}, {"name": "b"}]]
    for value in values:
        assert lowered({"mode": "Enforce"}, spec(value))
        assert lowered(spec(value), {"mode": "Enforce"})
        assert not lowered(spec(value), spec(value))
        assert all(lowered(spec(value), spec(other)) for other in values if other != value)
    assert not lowered({"mode": "Enforce"}, spec([])), "what says nothing is as good as absent"


def samples(schema: Object) -> list[Any]:
    """Two values of a field that mean different things."""
    if schema.get("enum"):
        return [schema["enum"][0], schema["enum"][-1]]
    if schema.get("x-kubernetes-int-or-string"):
        return [1, 2]
    match schema.get("type"):
        case "boolean":
            return [False, True]
        case "integer" | "number":
            return [1, 2]
        case "array":
            return [samples(schema["items"])[:1], samples(schema["items"])]
    return ["1h", "2h"]


def fields(schema: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Object]]:
    """The fields of a schema with what they hold; entries of lists are named `[]`."""
    items = schema.get("items") or {}
    for name, inner in (schema.get("properties") or {}).items():
        yield from fields(inner, (*path, name))
    if items.get("properties"):
        yield from fields(items, (*path, "[]"))
    elif not schema.get("properties"):
        yield path, schema


EVERY_FIELD = [*fields(CONFIDENTIAL_CLUSTER.schema["properties"]["spec"])]


@pytest.mark.parametrize(("path", "schema"), EVERY_FIELD, ids=[".".join(path) for path, _ in EVERY_FIELD])
def test_every_field_of_the_schema_weakens_in_a_direction_unless_it_cannot(
    path: tuple[str, ...], schema: Object
) -> None:
    entry = {"name": "worker", "trustModel": "ConfidentialCluster"}

    def spec(value: Any) -> Object:
        for key in reversed(path):
            value = [{**entry, **value}] if key == "[]" else {key: value}
        return {**({"mode": "Enforce"} if path != ("mode",) else {}), **value}

    first, second = (spec(value) for value in samples(schema))
    name = ".".join(path).replace(".[]", "[]")
    assert (lowered(first, second) or lowered(second, first)) is (name not in CANNOT_WEAKEN)


def optional(values: st.SearchStrategy[Any], name: str) -> st.SearchStrategy[Object]:
    return st.one_of(st.just({}), st.builds(lambda value: {name: value}, values))


def joined(*parts: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    return st.tuples(*parts).map(lambda dicts: {key: value for part in dicts for key, value in part.items()})


EVIDENCE = st.lists(st.sampled_from(EVIDENCE_TYPES[:4]), unique=True, min_size=1, max_size=3)
TIMES = st.sampled_from(["60s", "1m", "10m", "15m", "900s", "1h", "24h", "a while"])
PEOPLE = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["ada", "grace"]), "key": st.sampled_from("kl")}),
    max_size=2, unique_by=lambda entry: entry["name"],
)  # fmt: skip
DISKS = joined(
    optional(st.sampled_from(["none", "var", "root", "swap"]), "volume"), optional(st.sampled_from(["Agent", "Clevis"]), "pin"),
    optional(st.sampled_from(["none", "hmac-sha256"]), "integrity"),
)  # fmt: skip
POOLS = st.lists(
    joined(
        st.fixed_dictionaries({"name": st.sampled_from("ab"), "trustModel": st.sampled_from([str(m) for m in TrustModel])}),
        optional(EVIDENCE, "evidence"), optional(st.booleans(), "evict"), optional(DISKS, "disk"),
    ),
    max_size=2, unique_by=lambda entry: entry["name"],
)  # fmt: skip
BOUNDS = st.dictionaries(
    st.sampled_from("xy"),
    st.one_of(st.integers(0, 2), st.booleans(), st.sampled_from(["1", "2026-01-01", "2026-01-02T00:00:00Z", "z"])),
    max_size=2,
)
ROOTS = st.lists(
    st.fixed_dictionaries({"sha256": st.sampled_from("pq"), "for": st.sampled_from(["tpm", "snp"])}), max_size=2
)
ATTESTATION = joined(
    optional(EVIDENCE, "evidence"), optional(TIMES, "reattestInterval"), optional(TIMES, "tokenLifetime"),
    optional(optional(TIMES, "drainAfter"), "missed"), optional(BOUNDS, "minimumTcb"), optional(ROOTS, "extraRoots"),
    optional(optional(st.booleans(), "allowSeptVe"), "tdx"),
)  # fmt: skip
JOIN = joined(
    optional(st.sampled_from(["Manual", "Automatic"]), "approval"), optional(st.booleans(), "trustOnFirstUse")
)
SPECS = joined(
    optional(st.sampled_from(MODES), "mode"), optional(POOLS, "pools"), optional(ATTESTATION, "attestation"),
    optional(JOIN, "join"), optional(optional(PEOPLE, "approvers"), "breakGlass"),
)  # fmt: skip


def lowered(old: Object, new: Object) -> bool:
    return bool(weakenings({"spec": old}, {"spec": new}))


@given(SPECS)
def test_no_change_weakens_nothing(spec: Object) -> None:
    assert not lowered(spec, copy.deepcopy(spec))


@given(SPECS, SPECS, SPECS)
def test_a_detour_never_hides_a_weakening(first: Object, between: Object, last: Object) -> None:
    if lowered(first, last):
        assert lowered(first, between) or lowered(between, last)


# Equal in meaning though not in letters: defaults that are written out, and one time in two notations.
MEANING = {"60s": "1m", "900s": "15m"}


def meaning(field: str, value: Any) -> Any:
    return MEANING.get(value, value) if isinstance(value, str) else value


@given(
    st.sampled_from([
        (("mode",), "Disabled", st.sampled_from(MODES)),
        (("attestation", "evidence"), frozenset({"tpm", "tdx", "snp"}), EVIDENCE.map(sorted)),
        (("attestation", "reattestInterval"), "15m", TIMES),
        (("attestation", "tdx", "allowSeptVe"), False, st.booleans()),
        (("join", "approval"), "Automatic", st.sampled_from(["Manual", "Automatic"])),
        (("join", "trustOnFirstUse"), False, st.booleans()),
    ]),
    st.data(),
)  # fmt: skip
def test_a_field_that_means_something_else_weakens_in_one_direction_or_both(case: Any, data: st.DataObject) -> None:
    path, default, values = case
    sides = []
    for label in ("before", "after"):
        value = data.draw(st.one_of(st.none(), values), label=label)
        spec: Any = {} if value is None else value
        for key in reversed(path):
            spec = {key: spec} if value is not None else {}
        means = default if value is None else frozenset(value) if isinstance(value, list) else meaning(path[-1], value)
        sides.append((spec, means))
    (old, was), (new, becomes) = sides
    assert (lowered(old, new) or lowered(new, old)) is (was != becomes)


@pytest.mark.parametrize("unset", [{}, {"attestation": {}}, {"attestation": {"evidence": []}}])
def test_unset_evidence_is_three_types_for_ever(unset: Object) -> None:
    """A type that comes with an upgrade is not on by it, and whoever adds it lowers."""
    written_out = {"attestation": {"evidence": ["snp", "tdx", "tpm"]}}
    assert not lowered(unset, written_out)
    assert not lowered(written_out, unset)
    for new_type in set(EVIDENCE_TYPES) - {"tpm", "tdx", "snp"}:
        more = {"attestation": {"evidence": ["snp", "tdx", "tpm", new_type]}}
        assert [weakening.field for weakening in weakenings({"spec": unset}, {"spec": more})] == [
            "attestation.evidence"
        ]
        assert not lowered(more, unset)


def test_a_rule_of_any_kind_can_ask_for_the_confirmation_of_its_change() -> None:
    meta = {"name": "strict", "uid": "u", "generation": 4}
    old: Object = {"metadata": meta, "spec": {"rego": "a"}}
    new: Object = {"metadata": meta, "spec": {"rego": "a", "replaces": True}}
    request = write("UPDATE", "appraisalpolicies.fastness.dev", new, old, kind="AppraisalPolicy")
    refused = confirmed(request, ["the built-in policy judges no more"])
    assert isinstance(refused, Denied)
    word = confirmation(old, new)
    assert f"{CONFIRM_LOWER}={word}" in refused.message
    new["metadata"] = {**meta, "annotations": {CONFIRM_LOWER: word}}
    request = write("UPDATE", "appraisalpolicies.fastness.dev", new, old, kind="AppraisalPolicy")
    assert confirmed(request, ["the built-in policy judges no more"]) == Allowed(
        ("protection lowered: the built-in policy judges no more",)
    )
    assert confirmed(request, []) is None


def test_a_deletion_is_confirmed_on_the_stored_object_also_without_a_generation() -> None:
    namespace: Object = {"metadata": {"name": "ours", "uid": "u"}, "spec": {"finalizers": ["kubernetes"]}}
    refused = confirmed(write("DELETE", "namespaces", None, namespace), ["all machines are forgotten"])
    assert isinstance(refused, Denied)
    namespace["metadata"]["annotations"] = {CONFIRM_LOWER: confirmation(namespace, None)}
    assert isinstance(
        confirmed(write("DELETE", "namespaces", None, namespace), ["all machines are forgotten"]), Allowed
    )
    again = {**namespace, "metadata": {**namespace["metadata"], "uid": "another"}}
    assert isinstance(confirmed(write("DELETE", "namespaces", None, again), ["all machines are forgotten"]), Denied)


def images(**fields: Any) -> Object:
    return {"mode": "Enforce", "images": fields}


PLATFORM = {"name": "rack", "secureBoot": True, "variables": {"db": "AAAA"}}
SIGNER = {"name": "release", "key": "-----BEGIN PUBLIC KEY-----a", "images": ["registry.example/os"]}


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ({}, {"approval": "BuiltHere"}, "images.approval"),
        (
            {"approval": "Manual", "pools": ["worker"]},
            {"approval": "BuiltHere", "pools": ["worker"]},
            "images.approval",
        ),
        (
            {"approval": "BuiltHere", "pools": ["worker"]},
            {"approval": "BuiltHere", "pools": ["worker", "gpu"]},
            "images.pools",
        ),
        ({"signers": [SIGNER]}, {}, "images.signers"),
        ({"signers": [SIGNER]}, {"signers": [{**SIGNER, "key": "-----BEGIN PUBLIC KEY-----b"}]}, "images.signers"),
        ({"signers": [{**SIGNER, "images": []}]}, {"signers": [SIGNER]}, "images.signers"),
        ({"signers": [SIGNER]}, {"signers": [{**SIGNER, "images": ["registry.example/other"]}]}, "images.signers"),
        ({}, {"platforms": [PLATFORM]}, "images.platforms"),
        ({"platforms": [PLATFORM]}, {}, "images.platforms"),
        ({"platforms": [PLATFORM]}, {"platforms": [{**PLATFORM, "secureBoot": False}]}, "images.platforms"),
        ({"platforms": [PLATFORM]}, {"platforms": [{**PLATFORM, "variables": {"db": "BBBB"}}]}, "images.platforms"),
    ],
)
def test_approving_images_unseen_and_asking_for_fewer_signatures_lowers(old: Object, new: Object, field: str) -> None:
    changes = weakenings({"spec": images(**old)}, {"spec": images(**new)})
    assert {change.field for change in changes} == {field}
    assert weakenings({"spec": images(**new)}, {"spec": images(**new)}) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"approval": "BuiltHere", "pools": ["worker", "gpu"]}, {"approval": "BuiltHere", "pools": ["gpu"]}),
        ({"approval": "BuiltHere", "pools": ["worker"]}, {"approval": "Manual"}),
        ({}, {"approval": "Manual"}),
        ({}, {"signers": [SIGNER]}),
        ({"signers": [SIGNER]}, {"signers": [{**SIGNER, "images": []}]}),
        ({"signers": [SIGNER]}, {"signers": [{**SIGNER, "images": ["registry.example/os", "quay.example"]}]}),
    ],
)
def test_what_asks_for_more_of_images_needs_no_confirmation(old: Object, new: Object) -> None:
    assert weakenings({"spec": images(**old)}, {"spec": images(**new)}) == ()
