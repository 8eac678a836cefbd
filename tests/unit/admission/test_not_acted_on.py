"""Who reads that nothing acts on what they wrote: whoever sets it, once, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.admission.not_acted_on import MOST
from fastness.admission.table import BEHIND_WEBHOOK, TABLE
from fastness.kinds.not_acted_on import ENTRIES
from fastness.kube.access.user import User
from fastness.kube.admission import AdmissionRequest, Allowed, Operation
from fastness.kube.admission_rules import RuleTable
from fastness.kube.places import HOME
from tests.unit.admission.writes import ADMIN, World

EMBEDDED = RuleTable(TABLE)
SETTINGS = ("operator.openshift.io", "MachineConfiguration", "machineconfigurations")
BROKER = ("confidentialcontainers.org", "KbsConfig", "kbsconfigs")
LOUD = {"metadata": {"name": "cluster"}, "spec": {"logLevel": "Debug"}}
QUIET = {"metadata": {"name": "cluster"}, "spec": {"logLevel": "Normal"}}


def warnings(
    new: Any, old: Any = None, about: tuple[str, str, str] = SETTINGS, table: RuleTable = EMBEDDED, **more: Any
) -> tuple[str, ...]:
    """What the writer reads."""
    group, kind, plural = about
    settings: dict[str, Any] = {"user": ADMIN, "namespace": "", **more}
    request = AdmissionRequest(
        operation=Operation.CREATE if old is None else Operation.UPDATE, group=group, version="v1", kind=kind,
        resource=plural, name="cluster", object=new, old=old, **settings,
    )  # fmt: skip
    answer = table.review(request, World())
    assert isinstance(answer, Allowed)
    return answer.warnings


@pytest.mark.parametrize("table", [EMBEDDED, BEHIND_WEBHOOK], ids=["embedded", "webhook"])
def test_setting_a_field_is_warned_of_with_what_to_do(table: RuleTable) -> None:
    (text,) = warnings(LOUD, table=table)
    assert text.startswith("MachineConfiguration spec.logLevel: stored, and Fastness does not act on it: ")
    assert text.endswith("Start with --log-level.")


def test_a_write_that_leaves_the_field_as_it_was_is_not_warned_of() -> None:
    labelled = {**LOUD, "metadata": {"name": "cluster", "labels": {"a": "b"}}}
    assert warnings(labelled, LOUD) == ()
    assert len(warnings({**LOUD, "spec": {"logLevel": "Trace"}}, LOUD)) == 1
    assert warnings(QUIET, LOUD) == ()


def test_a_status_is_not_warned_of() -> None:
    assert warnings({**LOUD, "status": {}}, QUIET, subresource="status") == ()


@pytest.mark.parametrize("name", ["system:fastness", "system:serviceaccount:fastness-system:fastness-controllers"])
def test_the_control_plane_is_not_warned(name: str) -> None:
    assert warnings(LOUD, user=User(name, ())) == ()


def test_an_object_that_does_not_count_where_it_is_gets_no_second_word() -> None:
    broker = {"metadata": {"name": "k"}, "spec": {"kbsServiceType": "NodePort"}}
    assert len(warnings(broker, about=BROKER, namespace=HOME)) == 1
    assert warnings(broker, about=BROKER, namespace="elsewhere") == ()
    assert len(warnings(broker, about=BROKER, namespace="trustee-operator-system")) == 1
    assert warnings(broker, about=BROKER, namespace="trustee-operator-system", table=BEHIND_WEBHOOK) == ()


def test_one_write_gets_a_bounded_number_of_warnings() -> None:
    fields = [entry.field.removeprefix("spec.") for entry in ENTRIES if entry.kind.kind == "KbsConfig"]
    assert len(fields) > MOST
    texts = warnings({"metadata": {"name": "k"}, "spec": dict.fromkeys(fields, "x")}, about=BROKER, namespace=HOME)
    assert len(texts) == MOST
    assert texts[-1].startswith(f"KbsConfig: {len(fields) - MOST + 1} more fields are stored")


def test_kinds_that_others_act_on_are_warned_of_in_the_embedded_api_alone() -> None:
    route = ("route.openshift.io", "Route", "routes")
    made = {"metadata": {"name": "r"}, "spec": {"host": "a.example"}}
    assert len(warnings(made, about=route, namespace="d")) == 1
    assert warnings(made, about=route, namespace="d", table=BEHIND_WEBHOOK) == ()
