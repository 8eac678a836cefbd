"""What people read when they get it wrong: every message names the field, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map, machine_config, pod, pool


def changed(obj: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**obj, **fields}


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        (config_map("Upper"), "metadata.name"),
        (config_map("c", {"bad key": "x"}), "data[bad key]"),
        (config_map("c", labls={"a": "b"}), 'unknown field "metadata.labls"'),
        (changed(config_map("c"), dta={}), 'unknown field "dta"'),
        (changed(config_map("c"), data=["a"]), "data"),
        (changed(config_map("c"), apiVersion="v2"), 'no matches for kind "ConfigMap" in version "v2"'),
        (pod("p", labels={"a": "no spaces"}), "metadata.labels"),
        (changed(pod("p"), spec={}), "spec.containers: Required value"),
        (changed(pod("p"), spec={"containers": [{"image": "i"}]}), "spec.containers[0].name: Required value"),
    ],
)
def test_bad_objects_of_kubernetes(kubectl: Kubectl, obj: dict[str, Any], complaint: str) -> None:
    assert complaint in kubectl.refused("create", "-f", "-", stdin=obj)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"pausd": True}, 'unknown field "spec.pausd"'),
        ({"paused": "yes"}, 'spec.paused: Invalid value: "yes": spec.paused must be of type boolean'),
        ({"configuration": {"source": [{"name": 7}]}}, "spec.configuration.source[0].name"),
        ({"machineConfigSelector": {"matchLabels": {"a": "b"}}}, "must have a machineConfigSelector that matches"),
    ],
)
def test_bad_pools(kubectl: Kubectl, unique: str, spec: dict[str, Any], complaint: str) -> None:
    assert complaint in kubectl.refused("create", "-f", "-", stdin=pool(unique, **spec))


def test_a_resource_beside_its_kind_is_suggested_by_nobody_but_named(kubectl: Kubectl, unique: str) -> None:
    wrong = changed(machine_config(unique), kind="MachineConfg")
    refusal = kubectl.refused("create", "-f", "-", stdin=wrong)
    assert 'no matches for kind "MachineConfg" in version "machineconfiguration.openshift.io/v1"' in refusal


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "error parsing STDIN"),
        ("just text", "invalid object to validate"),
        ("kind: ConfigMap\n", "apiVersion not set"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [{a: 1}]\n", "data"),
    ],
)
def test_text_that_is_no_object(kubectl: Kubectl, text: str, complaint: str) -> None:
    assert complaint in kubectl.refused("create", "-f", "-", stdin=text)


def test_a_bad_selector_is_quoted(kubectl: Kubectl) -> None:
    assert "unable to parse the selector" in kubectl.refused("get", "cm", "-l", "a in b")
    assert "bogus" in kubectl.refused("get", "cm", "--field-selector", "bogus=1")


def test_a_bad_patch_is_explained(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert "not valid JSON" in kubectl.refused("patch", "cm", "c", "--type", "json", "-p", "{")
    assert "/data/none" in kubectl.refused(
        "patch", "cm", "c", "--type", "json", "-p", '[{"op":"remove","path":"/data/none"}]'
    )


def test_an_object_beyond_the_limit_is_refused_with_the_limit(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("create", "-f", "-", stdin=config_map("c", {"k": "x" * (1 << 20) + "y"}))
    assert "Too long" in refusal


def test_a_template_that_cannot_be_read_is_refused_with_field_line_and_column(kubectl: Kubectl, unique: str) -> None:
    rule = {"name": "vendors", "labelsTemplate": "{{ range .pci.device }}\nvendor-{{ .vendor | uper }}=true\n{{ end }}"}
    made = {
        "apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureRule", "metadata": {"name": unique}, "spec": {"rules": [rule]},
    }  # fmt: skip
    refusal = kubectl.refused("apply", "-f", "-", stdin=made)
    assert "spec.rules[0].labelsTemplate: Invalid value: line 2, column 21: there is no function uper" in refusal
    rule["labelsTemplate"] = rule["labelsTemplate"].replace("uper", "upper")
    assert kubectl.ok("apply", "-f", "-", stdin=made).err == ""
