"""Trying mutants: what counts as noticed, what does not, and what is left of a test that never ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutatefork import FOUND, SURVIVED, UNREACHED

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
TESTS = """
import builtins, os, pathlib, subprocess, sys, time

def switch():
    return getattr(builtins, "removed_refusal", 0)

def test_notices_the_first():
    assert switch() != 1

def test_of_a_program_notices_the_second():
    assert subprocess.run([sys.executable, "-c", "import os; print(os.environ['FASTNESS_REMOVED'])"],
                          capture_output=True, text=True).stdout != "2\\n"

def test_fails_with_the_refusal_in_place_too():
    assert False

def test_fails_once(tmp_path_factory):
    mark = pathlib.Path(__file__).with_name("mark")
    if switch() == 4 and not mark.exists():
        mark.touch()
        assert False

def test_hangs_without_the_fifth():
    while switch() == 5:
        time.sleep(0.1)
"""
NAMES = [line.split()[1].partition("(")[0] for line in TESTS.splitlines() if line.startswith("def test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    place = tmp_path_factory.mktemp("tree")
    (place / "test_it.py").write_text(TESTS)
    (place / "pytest.ini").write_text("[pytest]\n")
    every = [f"test_it.py::{name}" for name in NAMES]
    trials = [
        (1, "first", every), (2, "second", every), (3, "nobody", every), (4, "once", every[3:]), (5, "hangs", every),
        (6, "whole file", ["test_it.py"]), (7, "no such test", ["test_it.py::test_gone"]),
    ]  # fmt: skip
    (place / "trials").write_text(json.dumps(trials))
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "FASTNESS_TRIALS": str(place / "trials"),
        "FASTNESS_OUTCOMES": str(place / "outcomes"), "FASTNESS_HANGS": "2",
    }  # fmt: skip
    words = ["-q", "-s", "-p", "tools.mutatefork", "-p", "no:cacheprovider", f"--basetemp={place}/run", "test_it.py"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=place,
        env=environment,
        check=False,
        capture_output=True,
        timeout=120,
    )
    lines = (place / "outcomes").read_text().splitlines()
    return {name: [state, by.rpartition("::")[2]] for name, state, by in map(json.loads, lines)}


def test_a_test_that_fails_without_a_refusal_has_noticed(outcomes: dict[str, list[str]]) -> None:
    assert outcomes["first"] == [FOUND, "test_notices_the_first"]


def test_programs_that_a_test_starts_lack_the_refusal_too(outcomes: dict[str, list[str]]) -> None:
    assert outcomes["second"] == [FOUND, "test_of_a_program_notices_the_second"]


def test_a_test_that_fails_anyway_or_only_once_has_noticed_nothing(outcomes: dict[str, list[str]]) -> None:
    assert [outcomes["nobody"], outcomes["once"], outcomes["whole file"]] == [[SURVIVED, ""]] * 3


def test_a_test_that_does_not_end_has_noticed(outcomes: dict[str, list[str]]) -> None:
    assert outcomes["hangs"] == [FOUND, "test_hangs_without_the_fifth"]


def test_a_refusal_whose_tests_are_gone_is_unreached(outcomes: dict[str, list[str]]) -> None:
    assert outcomes["no such test"] == [UNREACHED, ""]
