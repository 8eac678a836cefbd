"""Reports: the same run as a file, as text and as a page; honest about what is slower."""

from __future__ import annotations

import pytest

from bench.curves import Point
from bench.figures import RENDER, Row, Sample, Single, Spread
from bench.report import Results, as_markdown, as_text, duration, machine, quantity

FAST, SLOW = Sample(1000.0, 900.0, 1800.0, 500.0), Sample(500.0, 2000.0, 4000.0, 2500.0)


def results() -> Results:
    return Results(
        "python -m bench", "2026-11-15", {"cores": "2"}, 1,
        [Row("create-64", "create, 64 clients", [FAST], [SLOW]), Row("get-64", "get, 64 clients", [SLOW], [FAST])],
        [Single("time to ready", Spread.of([1.5]), "s", 2.0), Single("memory, idle", Spread.of([200.0]), "MiB", 150.0)],
        [Point("fastness", 100, FAST, FAST, SLOW, 64 * 1024 * 1024)],
    )  # fmt: skip


def test_a_run_comes_back_from_its_file_as_it_was() -> None:
    assert Results.from_bytes(results().to_bytes()) == results()


def test_text_shows_gates_ratios_targets_and_curves_in_columns() -> None:
    text = as_text(results())
    assert "2.00× (2.00–2.00)" in text
    assert "not measured" in text  # the list was not run
    assert "≤ 2.00 s: met" in text
    assert "≤ 150 MiB: missed" in text
    assert "64 MiB" in text
    starts = [line.index(word) for line in text.splitlines() for word in ("kube-apiserver",) if word in line]
    assert len(set(starts)) == 1


def test_the_page_names_its_command_and_everything_that_is_slower() -> None:
    page = as_markdown(results())
    assert "python -m bench\n" in page
    slower = page[page.index("## Where we are slower") : page.index("## What is compared")]
    assert "get, 64 clients: rate 0.50×" in slower
    assert "get, 64 clients: CPU 5.00×" in slower
    assert "memory, idle: 200 MiB" in slower
    assert "create" not in slower


def test_a_run_in_which_nothing_is_slower_says_so() -> None:
    good = results()
    good.rows, good.singles = good.rows[:1], good.singles[:1]
    assert "Nowhere in this run." in as_markdown(good)


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.50 µs"), (999.4, "999 µs"), (1500, "1.50 ms"), (15_000, "15.0 ms"), (2.5e6, "2.50 s")]
)
def test_times_are_written_in_the_unit_that_fits(value: float, text: str) -> None:
    assert duration(value) == text


def test_numbers_keep_three_digits() -> None:
    assert [quantity(value) for value in (1.234, 12.34, 123.4, 12345.6)] == ["1.23", "12.3", "123", "12,346"]


def test_the_machine_is_described_without_its_name() -> None:
    import platform

    assert platform.node() not in " ".join(machine().values()).split()


def test_a_run_of_some_families_keeps_the_others_of_an_earlier_run() -> None:
    again = Row("get-64", "get, 64 clients", [FAST], [FAST])
    fresh = Single("agent", Spread.of([40.0]), "MiB", 45.0)
    later = Results("python -m bench get agent", "2026-11-16", {"cores": "4"}, 5, [again], [fresh], [])
    both = later.onto(results())
    assert [row.name for row in both.rows] == ["create-64", "get-64"]
    assert both.rows[1] == again
    assert [single.name for single in both.singles] == ["time to ready", "memory, idle", "agent"]
    assert both.points == results().points
    assert both.command.splitlines() == ["python -m bench", "python -m bench get agent"]
    assert later.onto(both).command == both.command


def test_a_row_names_whom_it_is_measured_against_and_a_gate_its_unit() -> None:
    run = results()
    run.rows.append(Row("serve-new", "serve", [FAST], [SLOW], "nginx"))
    run.singles.append(Single(RENDER, Spread.of([13.0]), "ms", 12.0))
    text = as_text(run)
    assert "nginx" in text
    assert "at most 1.0× nginx's" in text
    assert "0.20× (0.20–0.20)" in text
    assert "at most 12.0 ms" in text
    assert "13.00 ms (13.00–13.00)  fail" in text
