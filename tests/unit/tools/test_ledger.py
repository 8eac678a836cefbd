"""What a lane notes while it runs, on files of a few tests: pytest runs them as it runs the tree's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CONFTEST = """
import os

import pytest

@pytest.fixture(scope="session")
def real_kube():
    yield "a server"
    begun = os.times().user
    while os.times().user - begun < 0.1:
        pass
"""
TESTS = """
import pathlib
import pytest

def first_time(name):
    mark = pathlib.Path(__file__).with_name(name)
    return not mark.exists() and not mark.write_text("")

@pytest.mark.processes
def test_marked():
    assert not first_time("marked"), "the program was late"

def test_by_its_fixture(real_kube):
    assert not first_time("fixture"), "the server was late"

def test_in_process():
    assert not first_time("in process"), "no excuse"
"""


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The ledger of three tests that fail when they run first."""
    place = tmp_path_factory.mktemp("lane")
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_it.py").write_text(TESTS)
    options = ["-p", "tests.processes", "-p", "tests.ledger", "-p", "no:cacheprovider", f"--ledger={place}/ledger.json"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={place}", *options, str(place)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 2 passed, 2 rerun" in done.stdout, done.stdout + done.stderr
    books: dict[str, Any] = json.loads((place / "ledger.json").read_text())
    return books


def test_tests_of_real_programs_get_a_second_chance_and_others_do_not(ledger: dict[str, Any]) -> None:
    assert [entry["test"] for entry in ledger["second_chances"]] == [
        "test_it.py::test_marked", "test_it.py::test_by_its_fixture",
    ]  # fmt: skip


def test_a_second_chance_is_noted_with_the_first_failure(ledger: dict[str, Any]) -> None:
    assert ledger["second_chances"][0]["failure"] == "test_it.py:11: AssertionError: the program was late"


def test_the_seconds_of_each_file_are_noted(ledger: dict[str, Any]) -> None:
    assert list(ledger["seconds"]) == ["test_it.py"]
    assert ledger["seconds"]["test_it.py"] > 0
    assert ledger["long"] == []


def test_what_the_end_of_a_shared_server_takes_is_the_servers_and_not_of_the_file_that_is_last(
    ledger: dict[str, Any],
) -> None:
    processor = ledger["processor"]
    assert processor["the fixture real_kube"] >= 0.1
    assert "test_it.py" in processor
