"""`fastness features` and `fastness agent features`: recorded machines, directories, this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import recorded, recorded_names
from fastness.cli.main import cli
from fastness.formats.yaml import load_documents
from fastness.workloads.features.book import RuleBook
from fastness.workloads.features.rules import in_order

RULES = Path(__file__).parent / "data" / "tee-rules.yaml"
KATA = {"feature.node.kubernetes.io/runtime.kata": "true"}
SGX = {"intel.feature.node.kubernetes.io/sgx": "true"}
TDX = {"intel.feature.node.kubernetes.io/tdx": "true"}
EPC = {"sgx.intel.com/epc": "4261412864"}
KEYS = {"tdx.intel.com/keys": "31"}
NVIDIA = {f"nvidia.com/{name}.capable": "true" for name in ("gdrcopy", "gds", "peermem")}


@pytest.mark.parametrize(
    ("machine", "labels", "resources"),
    [
        ("tdx-host", KATA | SGX | TDX, EPC | KEYS),
        ("snp-host", KATA | {"amd.feature.node.kubernetes.io/snp": "true"}, {"sev-snp.amd.com/esids": "99"}),
        ("sgx-host", KATA | SGX, EPC),
        ("h100-host", KATA | SGX | TDX | NVIDIA, EPC | KEYS),
        ("tdx-host-without-keys", KATA | TDX, {}),
        ("plain-vm", {}, {}),
        ("nested-vm", KATA, {}),
    ],
)
def test_recorded_machines_get_exactly_their_labels_and_resources(
    machine: str, labels: dict[str, str], resources: dict[str, str]
) -> None:
    objects = [document.value for document in load_documents(RULES.read_bytes())]
    outcome = RuleBook(in_order(objects)).run(discover(recorded(machine)))
    assert (outcome.labels, outcome.resources, outcome.errors) == (labels, resources, {})
    assert machine in recorded_names()


def test_a_rule_is_explained_expression_by_expression() -> None:
    done = CliRunner().invoke(cli, ["features", "test", str(RULES), "--node", "tdx-host-without-keys"])
    assert done.exit_code == 0, done.output
    assert "runtime.kata: match" in done.output
    assert "no  SVM Exists: saw (absent)" in done.output
    assert "yes tdx.enabled Exists: saw true" in done.output
    assert "dropped     extended resource tdx.intel.com/keys" in done.output
    assert "amd.sev-snp: no match" in done.output


def test_the_explanation_is_also_json() -> None:
    done = CliRunner().invoke(cli, ["features", "test", str(RULES), "--node", "snp-host", "-o", "json"])
    rules = {rule["name"]: rule for rule in json.loads(done.output)["rules"]}
    assert rules["amd.sev-snp"]["extendedResources"] == {"sev-snp.amd.com/esids": "99"}
    assert not rules["intel.tdx"]["matched"]
    assert {check["element"] for term in rules["intel.tdx"]["trace"] for check in term["checks"]} == {
        "VMX",
        "tdx.enabled",
    }


def test_a_wrong_rule_ends_with_one_and_the_others_are_still_told(tmp_path: Path) -> None:
    rule = tmp_path / "rule.yaml"
    rule.write_text(
        "kind: NodeFeatureRule\nmetadata: {name: x}\nspec:\n  rules:\n"
        "  - {name: bad, matchFeatures: [{feature: cpu.cpuid, matchExpressions: {VMX: {op: Exist}}}]}\n"
        "  - {name: odd, label: {a: b}}\n"
        '  - {name: good, labels: {a: "1"}, taints: [{key: a.com/b, effect: NoSchedule}]}\n'
    )
    done = CliRunner().invoke(cli, ["features", "test", str(rule), "--node", "plain-vm", "--taints"])
    assert done.exit_code == 1
    assert "there is no operator 'Exist'" in done.output
    assert "Did you mean labels?" in done.output
    assert "label       feature.node.kubernetes.io/a=1" in done.output
    assert "taint       a.com/b=:NoSchedule" in done.output


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        ("a: [", "line"),
        ("[]", "neither"),
        ('{"files": {"relative": "x"}}', "absolute"),
        ('{"files": 5}', "mapping"),
        ('{"spec": {"features": {"flags": 5}}}', "not a mapping"),
        ('{"spec": {"features": {"flag": {}}}}', "not a part"),
    ],
)
def test_a_node_that_cannot_be_read_is_wrong_use(tmp_path: Path, content: str | None, complaint: str) -> None:
    node = tmp_path / "node.json"
    if content is not None:
        node.write_text(content)
    done = CliRunner().invoke(cli, ["features", "test", str(RULES), "--node", str(node)])
    assert done.exit_code == 2
    assert complaint in done.output


def test_discovery_runs_on_the_machine_of_the_test() -> None:
    done = CliRunner().invoke(cli, ["agent", "features", "--print", "--node", "here"])
    assert done.exit_code == 0, done.output
    features = json.loads(done.output)["spec"]["features"]
    assert features["attributes"]["kernel.version"]["elements"]["full"] == os.uname().release
    assert features["flags"]["cpu.cpuid"]["elements"]


def test_what_one_verb_prints_another_reads(tmp_path: Path) -> None:
    printed = CliRunner().invoke(cli, ["agent", "features", "--print", "--node", "here"]).output
    (tmp_path / "found.json").write_text(printed)
    result = CliRunner().invoke(cli, ["features", "show", "--node", str(tmp_path / "found.json"), "-o", "json"])
    assert json.loads(result.output)["features"] == json.loads(printed)["spec"]["features"]
    assert "kernel.version" in CliRunner().invoke(cli, ["features", "show", "--node", "h100-host"]).output
