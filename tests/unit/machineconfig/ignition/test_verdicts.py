"""Recorded verdicts of releases that no package brings: spec 2.2 by Ignition 0.35, spec 3.4 and 3.5 by Ignition 2.21.

Each line is a config with one doubtful value and whether that release accepted it. Spec 3.0 to 3.3 are compared with the
installed release instead.
"""

import json
from pathlib import Path

import pytest

from fastness.machineconfig import ignition

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", ["spec_2_2_verdicts.jsonl", "spec_3_5_verdicts.jsonl"])
def test_the_recorded_verdict_is_ours_too(name: str) -> None:
    cases = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    accepted = sum(case["accepted"] for case in cases)
    assert 100 < accepted < len(cases) - 100
    wrong = [case for case in cases if case["accepted"] is (ignition.inspect(case["config"]).config is None)]
    assert wrong == []
