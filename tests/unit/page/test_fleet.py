"""Rows of machines: states, filters, pages, and rows that are made again only when something changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.status.cluster import StandingRules
from fastness.attestation.verdict.breakglass import Override
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.page import fleet
from fastness.page.fleet import PAGE_ROWS, Filter, Row, Rows, row_of, survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RULES = StandingRules(timedelta(minutes=15), None)
OVERRIDE = Override("worker", "values are wrong", NOW, NOW + timedelta(hours=1), ("ada", "grace"))


def machine(name: str = "machine-1", approval: str = "Approved", version: str = "1", **details: Any) -> dict[str, Any]:
    attested = details.get("attested", ("True", "Affirmed", "all good"))
    conditions = [
        {"type": "Approved", "status": "True" if approval == "Approved" and details.get("recorded", True) else "False"},
        {"type": "Attested", "status": attested[0], "reason": attested[1], "message": attested[2]},
        *([{"type": "Revoked", "status": "True"}] if details.get("revoked") else []),
    ]
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version},
        "spec": {"id": "x", "approval": approval, "approvalReason": details.get("reason", "")},
        "status": {
            "conditions": conditions, "keyThumbprint": "sha256:0", "pool": details.get("pool", "worker"), "tee": "tpm",
            "nodeName": f"node-{name}", "properties": {"image": "image@sha256:1"},
            "lastAttested": "2026-03-01T12:00:00Z", "overriddenUntil": "2026-03-01T12:30:00Z",
        },
    }  # fmt: skip


def node(name: str = "node-machine-1", state: str = "Done", version: str = "1", **details: Any) -> dict[str, Any]:
    notes = {
        names.CURRENT_CONFIG: "rendered-1", names.DESIRED_CONFIG: details.get("desired", "rendered-1"), names.STATE: state,
        names.REASON: details.get("reason", ""),
    }  # fmt: skip
    return {"metadata": {"name": name, "uid": name, "resourceVersion": version, "annotations": notes}}


@pytest.mark.parametrize(
    ("machine_object", "beside", "state", "waits"),
    [
        (machine(), node(), "proved", ""),
        (machine(), None, "waiting", "joining the cluster"),
        (machine(), node(state="Degraded", reason="file /etc/a differs"), "degraded", "file /etc/a differs"),
        (machine(), node(state="Working", desired="rendered-2"), "working", "reaching rendered-2"),
        (machine(approval="Pending"), None, "pending", "somebody to approve it"),
        (machine(recorded=False), None, "waiting", "its approval is being recorded"),
        (machine(approval="Quarantined", reason="stolen"), node(), "revoked", "stolen"),
        (machine(revoked=True), node(), "revoked", "the machine is revoked"),
        (machine(attested=("False", "NeverAttested", "x")), None, "waiting", "its first proof"),
        (machine(attested=("False", "value-differs", "PCR 4 differs")), None, "refused", "PCR 4 differs"),
    ],
)
def test_a_machine_stands_in_one_state(machine_object: Any, beside: Any, state: str, waits: str) -> None:
    row = row_of(machine_object, beside, RULES.standing(view(machine_object, Machine), NOW))
    assert (row.state, row.waits) == (state, waits)
    assert row.needs_decision == (state in ("pending", "refused", "degraded"))


def rows_of(machines: list[dict[str, Any]], nodes: list[dict[str, Any]], rows: Rows | None = None) -> list[Row]:
    return (rows or Rows()).of(machines, nodes, RULES, NOW)


def test_a_machine_that_an_override_let_in_is_no_proved_one_neither_during_it_nor_after() -> None:
    let_in, rows = machine(attested=("False", "BreakGlass", "accepted by an override")), Rows()
    overridden = StandingRules(RULES.interval, OVERRIDE)
    (during,) = rows.of([let_in], [node()], overridden, NOW)
    assert (during.state, during.needs_decision, during.standing.word) == ("overridden", True, "Overridden")
    assert survey([during], Filter()).proved == 0
    (after,) = rows.of([let_in], [node()], RULES, NOW)
    assert (after.state, after.standing.reason) == ("stale", "OverrideEnded")
    assert survey([after], Filter()).proved == 0


def test_a_row_grows_old_although_no_object_changed() -> None:
    rows = Rows()
    (young,) = rows.of([machine()], [node()], RULES, NOW)
    (old,) = rows.of([machine()], [node()], RULES, NOW + timedelta(minutes=30))
    assert (young.state, old.state) == ("proved", "stale")


def test_those_who_need_somebody_come_first() -> None:
    rows = rows_of([machine("a"), machine("b", approval="Pending")], [node("node-a")])
    assert [row.state for row in rows] == ["pending", "proved"]
    overview = survey(rows, Filter())
    assert (overview.total, overview.needing, overview.counts["proved"], overview.proved) == (2, 1, 1, 1)


def test_filters_and_pages() -> None:
    rows = rows_of([machine(f"m{number:03}", pool="a" if number % 2 else "b") for number in range(120)], [])
    assert survey(rows, Filter(pool="a")).matching == 60
    assert survey(rows, Filter.of({"q": "M007"})).matching == 1
    assert survey(rows, Filter.of({"state": "inbox"})).matching == 0
    second = survey(rows, Filter(page=2))
    assert (len(second.rows), second.pages, second.rows[0].name) == (PAGE_ROWS, 3, "m050")
    assert survey(rows, Filter(page=99)).page == 3


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "١", "99999999999", "1e3"])
def test_an_address_that_makes_no_sense_shows_the_first_page(page: str) -> None:
    assert Filter.of({"page": page, "state": "<script>"}) == Filter()


def test_a_row_is_made_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    plain = row_of

    def counted(machine: Any, beside: Any, standing: Any) -> Any:
        made.append(machine["metadata"]["name"])
        return plain(machine, beside, standing)

    monkeypatch.setattr(fleet, "row_of", counted)
    rows = Rows()
    rows_of([machine("a"), machine("b")], [node("node-a")], rows)
    rows_of([machine("a"), machine("b")], [node("node-a")], rows)
    assert made == ["a", "b"]
    rows_of([machine("a", version="2"), machine("b")], [node("node-a")], rows)
    rows_of([machine("a", version="2"), machine("b")], [node("node-a", version="2")], rows)
    assert made == ["a", "b", "a", "a"]
    assert len(rows_of([machine("b")], [], rows)) == 1
