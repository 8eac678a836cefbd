"""Which program deploys a machine that two could: by the rule of the cluster, by the command line, and by what the machine is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fastness.agent.apply.hosts import Deployed
from fastness.agent.apply.ruled_os import RuledOs, ruled_choice
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.image_host import Choice, detect
from fastness.agent.host.states import Deployment
from fastness.kinds.machineconfiguration.names import OsDriverRule
from tests.component.agent.host.os_machines import BASE, A, Pauses, bootc, commands, machine_at, rpm_ostree
from tests.standins.os_engine import Machine


def look(machine: Machine, preferred: bool) -> Choice:
    return detect(
        commands(machine, Pauses()), bootc_program=machine.program("bootc"), rpm_ostree_program=machine.program("rpm-ostree"),
        prefer_bootc=preferred, cmdline=machine.cmdline,
    )  # fmt: skip


def ruled(machine: Machine, option: str = "auto") -> RuledOs:
    def made(driver: str) -> Deployed:
        return bootc(machine) if driver == "bootc" else rpm_ostree(machine)

    return RuledOs(lambda rule: ruled_choice(option, rule, partial(look, machine)), made)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path / "engine")


def layered(machine: Machine, *packages: str) -> None:
    machine.change(booted={**machine.read()["booted"], "packages": list(packages)})


@pytest.mark.row("003-92")
@pytest.mark.parametrize(
    ("rule", "packages", "says"),
    [
        (OsDriverRule.BY_HOST, (), "rpm-ostree: rpm-ostree knows images here, and bootc is not preferred"),
        (OsDriverRule.BOOTC_FIRST, (), "bootc: bootc booted this machine and is preferred"),
        (OsDriverRule.BOOTC_ALONE, (), "bootc: bootc booted this machine and is preferred"),
        (OsDriverRule.BOOTC_FIRST, ("strace", "vim"),
         "rpm-ostree: this machine has layered packages (strace, vim), which bootc refuses"),
        (OsDriverRule.BOOTC_ALONE, ("strace",),
         "rpm-ostree: this machine has layered packages (strace), which bootc refuses; this cluster has bootc alone (stage 3 of "
         "image mode), so it deploys nothing here any more"),
    ],
)  # fmt: skip
def test_the_rule_and_the_machine_choose_the_driver(
    machine: Machine, rule: OsDriverRule, packages: tuple[str, ...], says: str
) -> None:
    layered(machine, *packages)
    assert ruled(machine).follow(rule) == says


def test_what_the_command_line_names_stays_whatever_the_rule(machine: Machine) -> None:
    assert ruled(machine, "rpm-ostree").follow(OsDriverRule.BOOTC_ALONE) == "rpm-ostree: --os says so"


def test_the_next_change_is_made_by_the_other_program_and_what_rpm_ostree_set_goes_with_it(machine: Machine) -> None:
    system = ruled(machine)
    system.stage(Deployment(A, ("nosmt",)))
    machine.reboot()
    system.follow(OsDriverRule.BOOTC_FIRST)
    system.stage(Deployment(BASE), Deployment(A, ("nosmt",)))
    machine.reboot()
    assert (machine.read()["booted"]["image"], machine.cmdline()) == (BASE, "root=UUID=1\n")
    assert [line for line in machine.calls() if line.startswith(("rpm-ostree rebase", "bootc switch"))] == [
        f"rpm-ostree rebase --experimental ostree-unverified-registry:{A}", f"bootc switch {BASE}",
    ]  # fmt: skip
    system.follow(OsDriverRule.BY_HOST)
    system.stage(Deployment(A))
    assert machine.read()["staged"]["image"] == A


def test_with_bootc_alone_a_machine_with_packages_keeps_its_image_and_says_why(machine: Machine) -> None:
    layered(machine, "strace")
    system = ruled(machine)
    system.follow(OsDriverRule.BOOTC_ALONE)
    with pytest.raises(ImageFailure, match=r"layered packages \(strace\).*bootc alone") as refused:
        system.stage(Deployment(A))
    assert "rpm-ostree uninstall" in refused.value.hint
    assert machine.read()["staged"] is None
    system.stage(Deployment(BASE), Deployment(BASE))
    system.follow(OsDriverRule.BOOTC_FIRST)
    system.stage(Deployment(A))
    assert machine.read()["staged"] == {**machine.read()["booted"], "image": A}, "an earlier stage: packages are kept"
