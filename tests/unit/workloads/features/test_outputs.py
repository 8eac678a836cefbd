"""Outputs: prefixes, namespaces, references and values; each violation drops one thing alone."""

from __future__ import annotations

import pytest

from fastness.workloads.features.discovered import Features
from fastness.workloads.features.outputs import (
    Settings,
    allowed_annotations,
    allowed_labels,
    allowed_resources,
    allowed_taints,
    resolved,
)
from fastness.workloads.features.rules import Taint

NODE = Features(
    {"cpu.cpuid": frozenset({"VMX"})},
    {"cpu.security": {"sev.encrypted_state_ids": "99", "text": "a b"}},
    {"pci.device": ()},
)


@pytest.mark.parametrize(
    ("written", "settings", "name"),
    [
        ("x", Settings(), "feature.node.kubernetes.io/x"),
        ("feature.node.kubernetes.io/x", Settings(), "feature.node.kubernetes.io/x"),
        ("amd.feature.node.kubernetes.io/snp", Settings(), "amd.feature.node.kubernetes.io/snp"),
        ("profile.node.kubernetes.io/x", Settings(), "profile.node.kubernetes.io/x"),
        ("example.com/x", Settings(), "example.com/x"),
        ("node.kubernetes.io/x", Settings(), None),
        ("kubernetes.io/x", Settings(), None),
        ("notkubernetes.io/x", Settings(), "notkubernetes.io/x"),
        ("node-role.kubernetes.io/master", Settings(), None),
        ("attested.fastness.dev/tee", Settings(), None),
        ("fastness.dev/attested", Settings(), None),
        ("attested.fastness.dev/tee", Settings(extra_label_ns=("attested.fastness.dev", "*")), None),
        ("node.kubernetes.io/x", Settings(extra_label_ns=("node.kubernetes.io",)), "node.kubernetes.io/x"),
        ("a.example.com/x", Settings(deny_label_ns=("*.example.com",)), None),
        ("example.com/x", Settings(deny_label_ns=("*.example.com",)), "example.com/x"),
        (
            "a.example.com/x",
            Settings(extra_label_ns=("a.example.com",), deny_label_ns=("*.example.com",)),
            "a.example.com/x",
        ),
        ("x", Settings(auto_prefix=False), None),
        ("example.com/abc", Settings(label_white_list="^b"), None),
        ("example.com/bc", Settings(label_white_list="^b"), "example.com/bc"),
        ("example.com/", Settings(), None),
        ("example.com/a b", Settings(), None),
    ],
)
def test_a_label_is_kept_or_dropped_by_its_namespace(written: str, settings: Settings, name: str | None) -> None:
    judged = allowed_labels({written: "true", "example.org/other": "1"}, NODE, settings)
    expected = {} if name is None else {name: "true"}
    if not settings.label_white_list:
        expected["example.org/other"] = "1"
    assert judged.entries == expected
    assert all(dropped.reason for dropped in judged.dropped)


def test_a_reference_takes_the_value_of_an_attribute_split_at_the_first_two_dots() -> None:
    assert resolved("@cpu.security.sev.encrypted_state_ids", NODE.attributes) == "99"
    for wrong in ("@cpu.cpuid.VMX", "@cpu.security", "@", "@cpu.security.none", "@pci.device.vendor"):
        assert resolved(wrong, NODE.attributes) is None


def test_an_unresolvable_reference_drops_that_entry_and_no_other() -> None:
    judged = allowed_resources(
        {"a.com/x": "@cpu.security.none", "a.com/y": "@cpu.security.sev.encrypted_state_ids", "z": "2k"}, NODE
    )
    assert judged.entries == {"a.com/y": "99", "feature.node.kubernetes.io/z": "2k"}
    assert [dropped.name for dropped in judged.dropped] == ["a.com/x"]


def test_values_are_checked_after_references_are_resolved() -> None:
    assert allowed_labels({"a.com/x": "@cpu.security.text"}, NODE).entries == {}
    assert allowed_resources({"a.com/x": "@cpu.security.text", "a.com/y": "many"}, NODE).entries == {}


def test_annotations_are_bounded_never_resolved_and_not_allowed_in_profiles() -> None:
    judged = allowed_annotations(
        {"a.com/x": "@cpu.security.none", "b": "y" * 1025, "profile.node.kubernetes.io/c": "1"}
    )
    assert judged.entries == {"a.com/x": "@cpu.security.none"}
    assert len(judged.dropped) == 2


def test_taints_need_to_be_enabled_and_have_their_own_namespace() -> None:
    taints = [
        Taint("a.com/x", "NoSchedule"),
        Taint("plain", "NoSchedule"),
        Taint("a.com/y", ""),
        Taint("kubernetes.io/z", "NoExecute"),
    ]
    assert allowed_taints(taints)[0] == []
    passed, dropped = allowed_taints(taints, Settings(enable_taints=True))
    assert passed == [Taint("a.com/x", "NoSchedule")]
    assert len(dropped) == 3
