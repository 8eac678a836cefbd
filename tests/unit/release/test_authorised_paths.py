"""Whose a path is: machine A never reads what is machine B's, whatever the path looks like."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.trusted_execution.subject import Subject
from fastness.protocol.kbs_path import STATUS, ResourcePath, parse_path, split_path
from tests.granting import path_denial

A = Subject("aaaaaaaa-0000-4000-8000-000000000000", "machine-a", "sha256:" + "a" * 64, "worker", "red")
B = Subject("bbbbbbbb-0000-4000-8000-000000000000", "machine-b", "sha256:" + "b" * 64, "infra", "blue")

TRICKS = [
    "", "/", "a/b", "a/b/c/d", "a//c", "/a/b/c", "a/b/c/", "a/./c", "a/../c", "../b/c", "a/b/..", "a/b/...", "A/b/c",
    "a/b/c\n", "a/b/c\0", "a/b/%2e%2e", "a/b/c;x", "a/b/c?x", "a/b/c#x", "a\\b\\c", "a/b/ｃ", "a/b/．．", "a/b/c ", " a/b/c",
    "a/b/c%00", "a/b/ⅽ", "a/b/ı", "a/b/" + "c" * 129, "a/b/*", "a/b/c:d", "a/b/~", "a/b/c\u200d", "a/b/\u2024\u2024",
]  # fmt: skip

segments = st.text("abz019._-", min_size=1, max_size=12)
names = st.sampled_from([A.machine, B.machine, A.pool, B.pool, A.tenant, B.tenant, "other", "", "x"])
subjects = st.builds(
    Subject,
    machine=st.sampled_from([A.machine, B.machine]),
    name=st.just("m"),
    thumbprint=st.just("sha256:00"),
    pool=st.sampled_from(["worker", "infra"]),
    tenant=st.sampled_from(["", "red", "blue"]),
)
patterns = st.sampled_from(
    ["*/*/*", "machine/*/*", "pool/*/*", "tenant/*/*", "default/*/*", "default/db/*", "mach*/*/*"]
)
named = {"machines": st.lists(names), "pools": st.lists(names), "tenants": st.lists(names)}
specs = st.fixed_dictionaries({"resource": patterns, "subjects": st.fixed_dictionaries({}, optional=named)})
bindings = st.lists(st.fixed_dictionaries({"spec": specs}), max_size=4)


@pytest.mark.parametrize("text", TRICKS, ids=ascii)
def test_paths_that_play_tricks_are_no_paths(text: str) -> None:
    assert parse_path(text) is None
    assert split_path(text.split("/")) is None


@pytest.mark.parametrize("text", ["default/key/1", "a/.dockerconfigjson/_", "a-b/c_d/e.f", "a/b/" + "c" * 128])
def test_paths_of_the_grammar_are_read_and_written_alike(text: str) -> None:
    assert str(parse_path(text)) == text


@given(st.text(max_size=60))
def test_a_path_has_one_spelling(text: str) -> None:
    path = parse_path(text)
    if path is not None:
        assert str(path) == text
        assert re.fullmatch(r"[a-z0-9._-]+(/[a-z0-9._-]+){2}", text)


@given(subjects, st.sampled_from(["machine", "pool", "tenant"]), names.filter(bool), segments, bindings)
def test_what_belongs_to_somebody_is_read_by_nobody_else(
    who: Subject, space: str, owner: str, tag: str, bound: list[dict[str, Any]]
) -> None:
    own = {"machine": who.machine, "pool": who.pool, "tenant": who.tenant}[space]
    assert path_denial(ResourcePath(space, owner, tag), who, bound) == ("" if owner == own else f"other-{space}")


@given(segments.filter(lambda tag: tag.strip(".")), bindings)
def test_machine_a_never_reads_what_is_machine_b_s(tag: str, bound: list[dict[str, Any]]) -> None:
    assert path_denial(ResourcePath("machine", B.machine, tag), A, bound) == "other-machine"
    assert path_denial(ResourcePath("machine", A.machine, tag), B, bound) == "other-machine"


@given(subjects, segments, segments, segments, bindings)
def test_anything_else_is_read_only_by_whom_a_binding_names(
    who: Subject, repository: str, kind: str, tag: str, bound: list[dict[str, Any]]
) -> None:
    path = ResourcePath(f"r{repository}", kind, tag)
    named = [
        entry
        for entry in bound
        if who.machine in entry["spec"]["subjects"].get("machines", [])
        or who.pool in entry["spec"]["subjects"].get("pools", [])
        or (who.tenant and who.tenant in entry["spec"]["subjects"].get("tenants", []))
    ]
    allowed = any(entry["spec"]["resource"] == "*/*/*" for entry in named)
    assert path_denial(path, who, bound) == ("" if allowed else "not-bound")


@pytest.mark.parametrize(
    ("requires", "readers"),
    [
        (None, {"tpm", "snp", "tdx", ""}),
        ({}, {"tpm", "snp", "tdx", ""}),
        ({"tee": False}, {"tpm", "snp", "tdx", ""}),
        ({"tee": True}, {"snp", "tdx"}),
        ({"evidence": ["tpm"]}, {"tpm"}),
        ({"evidence": ["snp", "tpm"]}, {"tpm", "snp"}),
        ({"tee": True, "evidence": ["snp", "tpm"]}, {"snp"}),
    ],
)
def test_a_binding_opens_to_whom_proved_what_it_requires(requires: Any, readers: set[str]) -> None:
    path, spec = ResourcePath("default", "db", "x"), {"resource": "default/db/*", "subjects": {"pools": [A.pool]}}
    binding = {"spec": {**spec, **({"requires": requires} if requires is not None else {})}}
    for tee in ("tpm", "snp", "tdx", "", "unknown"):
        allowed = tee in readers or (tee == "unknown" and "" in readers)
        assert path_denial(path, replace(A, tee=tee), [binding]) == ("" if allowed else "evidence-too-weak"), tee
    # Another binding may ask for less; a demand of one does not close what another opens.
    assert not path_denial(path, replace(A, tee="tpm"), [binding, {"spec": spec}])
    assert path_denial(path, replace(B, tee="snp"), [binding]) == "not-bound"


def test_whoever_attested_reads_the_status() -> None:
    assert not path_denial(STATUS, A)
    assert path_denial(replace(STATUS, tag="other"), A) == "not-bound"


def test_a_machine_without_a_tenant_belongs_to_no_tenant() -> None:
    nobody = replace(A, tenant="")
    bound = {"spec": {"resource": "default/db/*", "subjects": {"tenants": [""]}}}
    assert path_denial(ResourcePath("default", "db", "x"), nobody, [bound]) == "not-bound"
