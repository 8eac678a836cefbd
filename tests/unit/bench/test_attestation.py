"""The figures of evidence: what is compared is accepted evidence, and the bounds hold from the right side."""

from __future__ import annotations

import pytest

from bench import attestation
from bench.figures import DISK_HEADER, EVENT, SNP_TIMES, TPM_TIMES, Single, Spread, gates


@pytest.mark.parametrize(("name", "bound"), [(TPM_TIMES, 1.5), (SNP_TIMES, 1.3), (EVENT, 6.0), (DISK_HEADER, 2000.0)])
def test_verdicts_are_held_against_their_bounds(name: str, bound: float) -> None:
    def verdict(value: float) -> str:
        all_gates = gates([], [Single(name, Spread.of([value]), "")])
        return next(gate.verdict for gate in all_gates if gate.name == name)

    assert [verdict(bound), verdict(bound + 0.01)] == ["pass", "fail"]


def test_every_figure_is_measured_on_evidence_that_is_accepted() -> None:
    figures = attestation.measured(1)
    assert set(figures) >= {TPM_TIMES, SNP_TIMES, EVENT, DISK_HEADER, attestation.TDX_TIMES, attestation.TPM_RSA_TIMES}
    assert all(value > 0 for values in figures.values() for value in values)
