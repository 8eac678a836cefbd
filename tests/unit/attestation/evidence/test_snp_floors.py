"""Firmware under which a report proves nothing is refused in every cluster; a cluster can ask for more and not for less."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.attestation.evidence.roots import minimums
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.snp_floors import DATE, FLOORS, GROWS_OLD, MICROCODE, floor_of, is_old
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.snp.tcb import Generation, Tcb, generation_of_cpu
from fastness.sim.tee.firmware import CURRENT_TCB
from tests.evidence.snp import Chip
from tests.unit.attestation.evidence.test_snp import AT


def judged(chip: Chip, **expected: object) -> Appraisal:
    expectations = SnpExpectations(roots=chip.roots, **expected)  # type: ignore[arg-type]
    return appraise_snp(parse_report(chip.report()), chip.certificates(), expectations, AT)


def at(generation: str, **changes: int) -> Chip:
    """A chip with exactly the least versions, or changed ones."""
    least = FLOORS[Generation(generation)].components() | changes
    return Chip(generation, versions=least)


BELOW = [("Milan", "snp"), ("Milan", "microcode"), ("Genoa", "snp"), ("Genoa", "microcode"), ("Turin", "microcode")]


@pytest.mark.parametrize(("generation", "component"), BELOW)
def test_firmware_below_the_built_in_minimum_is_refused_and_at_it_is_not(generation: str, component: str) -> None:
    assert judged(at(generation)).acceptable
    least = FLOORS[Generation(generation)].components()[component]
    appraisal = judged(at(generation, **{component: least - 1}))
    assert appraisal.authentic
    assert [check.code for check in appraisal.checks if check.refuses] == ["tcb-behind"] * 3
    assert component in next(check.hint for check in appraisal.checks if check.refuses)


@pytest.mark.parametrize(("generation", "component"), BELOW)
def test_a_cluster_raises_the_minimum_and_never_lowers_it(generation: str, component: str) -> None:
    kind = Generation(generation)
    least = FLOORS[kind].components()[component]
    lower, higher = (minimums({"snp": {component: value}}).snp for value in (least - 1, least + 1))
    assert not judged(at(generation, **{component: least - 1}), minimum=lower).acceptable
    assert not judged(at(generation), minimum=higher).acceptable
    assert judged(at(generation, **{component: least + 1}), minimum=higher).acceptable


def test_microcode_is_compared_by_stepping_where_the_report_names_it() -> None:
    milan_x, raised = (0x19, 0x01, 2), Tcb(bootloader=4, tee=0, snp=0, microcode=0)
    assert floor_of(Generation.MILAN, milan_x).microcode == 0x44
    assert floor_of(Generation.MILAN, milan_x, raised) == Tcb(bootloader=4, tee=0, snp=0x18, microcode=0x44)
    # A stepping that nobody knows, and a report that does not say, are held to the ordinary one.
    assert floor_of(Generation.MILAN, (0x19, 0x01, 9)) == floor_of(Generation.MILAN, None) == FLOORS[Generation.MILAN]
    assert {generation_of_cpu(family, model) for family, model, _ in MICROCODE} == set(Generation)


def test_whoever_only_asks_what_evidence_says_gets_a_warning() -> None:
    old = at("Milan", snp=8, microcode=115)
    appraisal = judged(old, refuse_old=False)
    assert appraisal.acceptable
    assert {check.name for check in appraisal.checks if check.result is Result.WARN and check.code == "tcb-behind"} == {
        "tcb-reported", "tcb-committed", "tcb-launch",
    }  # fmt: skip
    minimum = minimums({"snp": {"snp": 9}}).snp
    assert not judged(old, refuse_old=False, minimum=minimum).acceptable


def test_simulated_platforms_are_new_enough() -> None:
    for generation, tcb in CURRENT_TCB.items():
        assert tcb.behind(FLOORS[generation]) == []


def test_the_table_grows_old() -> None:
    assert not is_old(DATE + GROWS_OLD)
    assert is_old(DATE + GROWS_OLD + timedelta(days=1))
