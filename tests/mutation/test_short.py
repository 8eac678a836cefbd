"""The refusals that let somebody in when they were missing are held by tests that fail without them.

The short form of `make mutate`: tests/mutation/checks.yaml names refusals and the tests that must notice when one is gone. Those
that whole flows notice are for `make soak`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.soaking import SOAK
from tools.mutants import mutants
from tools.mutate import PAGE, harmless, page

pytestmark = [pytest.mark.processes, pytest.mark.long("refusals are taken out, each with the tests that must notice")]

ROOT = Path(__file__).resolve().parents[2]


def test_each_of_these_refusals_is_missed_when_it_is_gone() -> None:
    ended = subprocess.run(
        [sys.executable, "tools/mutate.py", "checks" if SOAK else "short"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]


def test_every_survivor_that_is_explained_is_a_refusal_of_the_product() -> None:
    refusals = {mutant.id for mutant in mutants(ROOT)}
    assert [name for name, why in harmless().items() if name not in refusals or len(why) < 20] == []


def test_the_page_lists_exactly_the_survivors_that_are_explained() -> None:
    assert PAGE.read_text() == page(), "python tools/mutate.py page"
