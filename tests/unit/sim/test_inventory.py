"""The inventory says after a restart what it said before, and is never guessed."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kube.errors import Conflict, Invalid
from fastness.sim.hardware import TEES
from fastness.sim.inventory import FILE, Done, Inventory, Spec, read_inventory, write_inventory
from fastness.sim.simulation import Simulation
from tests.virtual import START

SPECS = (Spec("worker-0", 0, "tpm", swtpm=True), Spec("worker-4", 4, "snp"))
FAULT = Done("worker-4.network-cut", "network-cut", "worker-4", START)
LEAP = Done("clock-jump", "clock-jump", "", START, {"seconds": 90.0})
ROSTER = Inventory("cluster", 5, SPECS, (FAULT, LEAP))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_inventory(tmp_path, ROSTER)
    assert read_inventory(tmp_path) == ROSTER
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@given(
    st.lists(
        st.builds(
            Spec, st.from_regex(r"\Aworker-[0-9]{1,4}\Z"), st.integers(0, 9999), st.sampled_from(TEES), st.booleans()
        )
    )
)
def test_any_machines_survive_the_file(specs: list[Spec]) -> None:
    assert [Spec.of(spec.to_json()) for spec in specs] == specs


def test_a_directory_that_never_had_machines_has_no_roster(tmp_path: Path) -> None:
    assert read_inventory(tmp_path) is None
    assert Simulation(tmp_path / "none", "cluster").kept == 0


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"profile":"cluster","next":1,"machines":[{"name":"../x","number":1,"tee":"tpm"}],"faults":[]}',
        '{"profile":"cluster","next":1,"machines":[{"name":"x","number":1,"tee":"sgx"}],"faults":[]}',
        '{"profile":"cluster","next":1,"machines":[],"faults":[{"id":"x"}]}', "{" * 100,
    ],
)  # fmt: skip
def test_a_damaged_file_stops_with_its_name_and_a_way_out(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(
        Invalid, match=r"simulator\.json cannot be read .*: restore it, or choose another state directory"
    ):
        read_inventory(tmp_path)


def test_what_is_thrown_away_takes_its_faults_along_and_its_number_is_not_given_again() -> None:
    assert ROSTER.without("worker-4") == replace(ROSTER, machines=SPECS[:1], faults=(LEAP,))


def test_a_simulation_knows_what_an_earlier_run_left(tmp_path: Path) -> None:
    write_inventory(tmp_path, ROSTER)
    simulation = Simulation(tmp_path, "cluster")
    assert (simulation.kept, simulation.ahead.total_seconds(), simulation.wants_swtpm) == (2, 90.0, True)
    assert [fault.id for fault in simulation.fleet_faults()] == ["clock-jump"]
    assert simulation.machines() == ()


def test_another_profile_on_the_same_directory_is_a_conflict(tmp_path: Path) -> None:
    write_inventory(tmp_path, ROSTER)
    with pytest.raises(Conflict, match="start with --profile cluster"):
        Simulation(tmp_path, "containers")


def test_hosts_of_containers_are_offered_only_what_means_something_to_them(tmp_path: Path) -> None:
    offered = [kind.id for kind in Simulation(tmp_path, "containers").kinds()]
    assert offered == ["edited-file", "network-cut", "clock-jump"]
