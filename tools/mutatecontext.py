"""A pytest plugin for `tools/mutate.py cover`: coverage knows which test is running, and how long each took is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

_seconds: dict[str, float] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """From its first fixture to its last, what runs belongs to the test."""
    running = coverage.Coverage.current()
    if running is not None:
        running.switch_context(item.nodeid)
    yield
    if running is not None:
        running.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up the phases of tests that passed; one that fails anyway notices nothing."""
    if report.passed:
        _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    else:
        _seconds[report.nodeid] = float("inf")


def pytest_sessionfinish() -> None:
    """Keep what was measured."""
    finite = {test: seconds for test, seconds in _seconds.items() if seconds != float("inf")}
    Path(os.environ["FASTNESS_DURATIONS"]).write_text(json.dumps(finite))
