"""What `fastness up` makes of the machines that were asked for, and of those that an earlier run left."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from fastness.agent.boot.attester import Attester
from fastness.app.machines import Simulated, boards
from fastness.attestation.verdict.dispute import Boot, boot_dispute, boot_status
from fastness.cli.output import tell
from fastness.formats.evidence.tpm.attest import parse_quote
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.sim import swtpm
from fastness.sim.hardware import AS_IT_SHOULD, Silicon, Tee
from fastness.sim.inventory import Done, Inventory, Spec, write_inventory
from fastness.sim.tee import SimVendor
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.snp import SnpMachine
from fastness.sim.tee.tpm import TpmMachine
from tests.virtual import START, VirtualClock

KEPT = (Spec("worker-0", 0, "tpm"), Spec("worker-5", 5, "snp"))


def simulated(state: Path, count: int, tpm: str = "software") -> Simulated:
    return Simulated(state, count, "cluster", tpm, VirtualClock(), tell)


def test_without_swtpm_it_says_what_to_install_and_takes_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(swtpm, "missing", lambda: ["swtpm", "tpm2-tools"])
    machines = simulated(tmp_path, 3, "swtpm")
    assert capsys.readouterr().err == (
        "no swtpm here: TPMs are simulated in software instead (apt-get install swtpm tpm2-tools)\n"
    )
    assert (machines.count, machines.simulation.wants_swtpm) == (3, False)


def test_with_swtpm_nothing_needs_to_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(swtpm, "missing", list)
    assert simulated(tmp_path, 3, "swtpm").simulation.wants_swtpm
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("count", "announced"), [(0, False), (2, False), (5, True), (1, True)])
def test_a_directory_with_machines_goes_on_with_them_and_says_so_when_others_were_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, announced: bool
) -> None:
    write_inventory(tmp_path, Inventory("cluster", 6, KEPT))
    assert simulated(tmp_path, count).count == 2
    assert ("has 2 machines and goes on with them" in capsys.readouterr().err) is announced


def test_a_directory_whose_machines_were_all_removed_stays_empty(tmp_path: Path) -> None:
    write_inventory(tmp_path, Inventory("cluster", 6))
    assert simulated(tmp_path, 5).count == 0


def test_the_clock_is_ahead_by_all_leaps_that_were_not_undone(tmp_path: Path) -> None:
    leaps = tuple(Done(f"clock-jump.{number}", "clock-jump", "", START, {"seconds": 60.0}) for number in range(3))
    write_inventory(tmp_path, Inventory("cluster", 6, KEPT, leaps))
    assert simulated(tmp_path, 0).clock.now() == START + timedelta(minutes=3)


def test_a_machine_gets_the_hardware_that_it_had(tmp_path: Path) -> None:
    board = boards(SimVendor(), None, tmp_path)
    for spec in KEPT:
        hardware = board(spec)
        assert isinstance(hardware, Silicon)
        assert hardware.tee == spec.tee


@pytest.mark.parametrize("tee", ["tpm", "snp"])
async def test_a_machine_goes_on_counting_its_boots_after_a_restart(tmp_path: Path, tee: Tee) -> None:
    """Otherwise each start of `fastness up` would look like copies of its machines."""
    stored: JsonObject = {"metadata": {"name": "machine-1"}, "spec": {"id": "i"}, "status": {}}
    spec = Spec("worker-7", 7, tee)
    for restart in range(3):
        board = boards(SimVendor(), None, tmp_path)(spec)
        for _ in range(restart + 1):
            boot = boot_of(await board.power_on(AS_IT_SHOULD))
            assert boot_dispute(view(stored, Machine), boot) is None
            change = boot_status(stored["status"], boot)
            assert change, "each boot is another one"
            stored["status"] |= change
    assert (tmp_path / spec.name / "boots").read_text() == "6\n"
    begun_anew = boot_of(await Silicon(SimVendor(), tee, 7).power_on(AS_IT_SHOULD))
    assert boot_dispute(view(stored, Machine), begun_anew) is not None


def boot_of(attester: Attester) -> Boot:
    """The boot that a machine's evidence is of."""
    assert isinstance(attester, SimAttester)
    machine = attester.machine
    if isinstance(machine, SnpMachine):
        return Boot(machine.report_id.hex())
    assert isinstance(machine, TpmMachine)
    clock = parse_quote(machine.attest(b"x")[0]).clock
    return Boot(resets=clock.resets, restarts=clock.restarts, clock=clock.milliseconds)
