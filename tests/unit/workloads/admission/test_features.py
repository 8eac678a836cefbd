"""NodeFeatureRules at the write: a template that cannot be read is refused where it stands, other mistakes are told."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.admission.table import BEHIND_WEBHOOK, TABLE
from fastness.kube.admission import AdmissionRequest, Allowed, Answer, Denied, Operation
from fastness.kube.admission_rules import RuleTable
from tests.unit.admission.writes import ADMIN, World

EMBEDDED = RuleTable(TABLE)
GOOD = {
    "name": "good",
    "labels": {"a": "b"},
    "matchFeatures": [{"feature": "cpu.cpuid", "matchExpressions": {"X": {"op": "Exists"}}}],
}


def obj(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"rules": list(rules)}}


def reviewed(new: Any, old: Any = None, table: RuleTable = EMBEDDED, group: str = "nfd.openshift.io") -> Answer:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    return table.review(
        AdmissionRequest(
            operation=operation, user=ADMIN, group=group, version="v1", kind="NodeFeatureRule",
            resource="nodefeaturerules", name="r", object=new, old=old,
        ),
        World(),
    )  # fmt: skip


@pytest.mark.parametrize("group", ["nfd.openshift.io", "nfd.k8s-sigs.io"])
@pytest.mark.parametrize("field", ["labelsTemplate", "varsTemplate"])
def test_a_template_that_cannot_be_read_is_refused_with_field_line_and_column(field: str, group: str) -> None:
    answer = reviewed(obj(GOOD, {"name": "bad", field: "a=1\nb={{ range .x }}"}), group=group)
    assert isinstance(answer, Denied)
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.causes[0].field == f"spec.rules[1].{field}"
    assert "line 2, column 17: a block has no end. Close it with {{ end }}." in answer.message


def test_a_function_that_only_others_have_is_refused_here_and_warned_of_elsewhere() -> None:
    rule = obj({"name": "clock", "labelsTemplate": "t={{ now }}"})
    assert isinstance(reviewed(rule), Denied)
    answer = reviewed(rule, table=BEHIND_WEBHOOK)
    assert isinstance(answer, Allowed)
    assert answer.warnings[0].startswith("spec.rules[0].labelsTemplate: line 1, column 6: there is no function now.")
    assert isinstance(reviewed(obj({"name": "bad", "labelsTemplate": "{{"}), table=BEHIND_WEBHOOK), Denied)


def test_a_template_that_may_fail_on_a_node_is_accepted() -> None:
    assert reviewed(obj({"name": "x", "labelsTemplate": "a={{ .pci.device | len }}"})) == Allowed()
    assert reviewed(obj({"name": "x", "labelsTemplate": "{{ upper .pci }}"})) == Allowed()


def test_what_else_is_wrong_is_told_and_accepted() -> None:
    wrong = {"name": "x", "matchFeatures": [{"feature": "cpu", "matchExpressions": {"a": {"op": "In"}}}]}
    answer = reviewed(obj(GOOD, wrong, {"labels": {"a": "b"}}))
    assert isinstance(answer, Allowed)
    assert [text.split(": ")[0] for text in answer.warnings] == ["spec.rules[1]", "spec.rules[1]", "spec.rules[2]"]
    assert "'cpu' is not <domain>.<feature>. Write for example cpu.cpuid." in answer.warnings[0]


def test_who_did_not_write_the_rules_hears_nothing_of_them() -> None:
    old = obj({"name": "bad", "labelsTemplate": "{{"})
    labelled = {**old, "metadata": {"name": "r", "labels": {"a": "b"}}}
    assert reviewed(labelled, old) == Allowed()
    assert isinstance(reviewed(obj({"name": "bad", "labelsTemplate": "{{ {{"}), old), Denied)


@pytest.mark.parametrize("spec", [None, 5, {}, {"rules": None}, {"rules": "x"}, {"rules": [None, 5, "x", {}]}])
def test_nonsense_is_the_business_of_the_schema(spec: Any) -> None:
    assert isinstance(reviewed({"metadata": {"name": "r"}, "spec": spec}), Allowed)
