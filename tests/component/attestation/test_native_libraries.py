"""The engines of CEL and Rego live in one process, whichever of the two is asked for first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[3]
CEL = """
from fastness.apiserver.schema.compiled import CompiledSchema
from tests.unit.kinds.test_rules_in_process import EXAMPLES, accepted
assert all(accepted(crd, EXAMPLES[crd])[1] == "" for crd in EXAMPLES)
"""
REGO = """
from fastness.attestation.policy.policy import default_policy
from tests.unit.attestation.policyinputs import GOOD_VALUES, book, good_input
assert default_policy("tpm").evaluate(good_input("tpm"), book(GOOD_VALUES["tpm"])).affirms("tpm")
"""


@pytest.mark.parametrize("script", [CEL + REGO + CEL, REGO + CEL + REGO], ids=["cel-first", "rego-first"])
def test_both_engines_work_in_one_process(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
