"""Figures: medians, ratios of rounds that belong together, gates that can fail."""

from __future__ import annotations

import pytest

from bench.figures import RENDER, Gate, Row, Sample, Single, Spread, gates, per_operation


def sample(rate: float, cpu: float = 100.0) -> Sample:
    return Sample(rate, 1000.0, 2000.0, cpu)


def test_a_ratio_is_the_median_of_the_rounds_not_the_ratio_of_medians() -> None:
    row = Row("r", "r", [sample(10), sample(100), sample(30)], [sample(5), sample(200), sample(10)])
    assert row.ratio("rate") == Spread(2.0, 0.5, 3.0)
    assert row.spread(row.ours, "rate").median / row.spread(row.peer, "rate").median == 3.0


def test_a_row_without_a_peer_has_no_ratio() -> None:
    assert Row("r", "r", [sample(10)]).ratio("rate") is None
    assert Row("r", "r", [sample(10)], [sample(0)]).ratio("rate") is None


def test_there_is_no_median_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        Spread.of([])


def test_a_row_comes_back_from_its_file_as_it_was() -> None:
    row = Row("create-64", "create, 64 clients", [sample(1), sample(2)], [sample(3)])
    assert Row.from_json(row.to_json()) == row
    beside = Row("serve-new", "serve", [sample(1)], [sample(3)], "nginx")
    assert Row.from_json(beside.to_json()) == beside


@pytest.mark.parametrize(
    ("create", "listing", "verdicts"),
    [
        (1.0, 0.5, ["pass", "pass"]),
        (0.99, 0.49, ["fail", "pass"]),
        (1.5, 0.51, ["pass", "fail"]),
    ],
)
def test_gates_hold_at_their_bound_and_fail_beyond_it(create: float, listing: float, verdicts: list[str]) -> None:
    rows = [
        Row("create-64", "", [sample(create * 100)], [sample(100)]),
        Row("list-5000", "", [sample(1, listing * 1000)], [sample(1, 1000)]),
    ]
    assert [gate.verdict for gate in gates(rows)][:2] == verdicts


@pytest.mark.parametrize(
    ("serving", "rendering", "verdicts"),
    [(1.0, 12.0, ["pass", "pass"]), (1.01, 11.9, ["fail", "pass"]), (0.7, 12.1, ["pass", "fail"])],
)
def test_serving_is_held_against_nginx_and_rendering_against_a_time(
    serving: float, rendering: float, verdicts: list[str]
) -> None:
    rows = [Row("serve-new", "", [sample(1, serving * 1000)], [sample(1, 1000)], "nginx")]
    singles = [Single("something else", Spread.of([99.0]), "ms"), Single(RENDER, Spread.of([rendering]), "ms")]
    outcomes = gates(rows, singles)
    assert [gate.verdict for gate in outcomes[2:4]] == verdicts
    assert [gate.unit for gate in outcomes[2:4]] == ["× nginx's", " ms"]


def test_a_gate_that_was_not_measured_says_so() -> None:
    assert [gate.verdict for gate in gates([])] == ["not measured"] * len(gates([]))
    assert Gate("g", 1.0, True, None).verdict == "not measured"


@pytest.mark.parametrize(("at_most", "value", "met"), [(True, 2.0, True), (True, 2.1, False), (False, 1.9, False)])
def test_a_figure_meets_its_target_from_the_right_side(at_most: bool, value: float, met: bool) -> None:
    assert Single("s", Spread.of([value]), "s", 2.0, at_most).met is met
    assert Single("s", Spread.of([value]), "s").met is None


def test_a_job_becomes_rate_quantiles_and_cpu_per_operation() -> None:
    assert per_operation(2.0, 100, (10.0, 20.0, 30.0, 40.0), 0.05) == Sample(50.0, 10.0, 30.0, 500.0)


def test_a_gate_says_when_its_rounds_disagree() -> None:
    assert Gate("g", 1.0, True, Spread(1.5, 0.6, 1.6)).disputed
    assert not Gate("g", 1.0, True, Spread(1.5, 1.1, 1.6)).disputed
    assert not Gate("g", 1.0, True, None).disputed
