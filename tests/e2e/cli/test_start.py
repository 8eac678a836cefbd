"""How much the command costs before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.live import FASTNESS, environment

HELP_SECONDS = 0.120
ROUNDS = 7


def cpu(command: list[str], home: Path) -> float:
    """CPU seconds of one run, children of nobody else counted."""
    before = os.times()
    subprocess.run(command, env=environment(home), check=True, capture_output=True, timeout=30)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_costs_little_more_than_bare_python(tmp_path: Path, words: list[str]) -> None:
    pairs = [(cpu([str(FASTNESS), *words], tmp_path), cpu([sys.executable, "-c", ""], tmp_path)) for _ in range(ROUNDS)]
    assert min(ours for ours, _ in pairs) - min(bare for _, bare in pairs) <= HELP_SECONDS
