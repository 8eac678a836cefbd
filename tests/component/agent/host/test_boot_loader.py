"""Boot loaders: brought by the image that was staged, where that helps and where the configuration asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.agent.host.os_machines import ASKS, LOST, A, B, boot_loader, machine_at
from tests.standins.os_engine import Machine

LOADERS = {A.partition("@")[2]: "shim 15.8"}
OWN = "bootloader-update.service"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = machine_at(tmp_path / "machine")
    machine.change(loaders=LOADERS)
    return machine


def test_the_loader_of_the_image_replaces_the_old_one_and_the_image_is_not_kept(machine: Machine) -> None:
    assert boot_loader(machine).update(A) == (f"the boot loader is that of {A}", False)
    assert machine.read()["loader"] == "shim 15.8"
    pull, run, removal = (call for call in machine.calls(*ASKS) if call.startswith("podman"))
    assert pull == f"podman pull --quiet --authfile=/var/lib/kubelet/config.json {A}"
    assert "--net=none" in run
    assert removal == f"podman rmi --ignore {A}"


@pytest.mark.parametrize("secure", [None, b"", b"\6\0\0\0\0", b"\6\0\0\0\1\1"])
def test_without_secure_boot_nothing_is_pulled_or_run(machine: Machine, secure: bytes | None) -> None:
    assert boot_loader(machine, secure).update(A) == ("the boot loader is left as it is: Secure Boot is off", False)
    assert machine.calls() == []


def test_processors_that_bootupd_does_not_know_are_left_alone(machine: Machine) -> None:
    text, failed = boot_loader(machine, architecture="s390x").update(A)
    assert (text, failed) == ("the boot loader is left as it is: bootupd does not know s390x", False)
    assert machine.calls() == []


def test_an_image_without_the_program_is_no_failure(machine: Machine) -> None:
    assert boot_loader(machine).update(B) == (f"the boot loader is left as it is: {B} has no bootupctl", False)
    assert machine.read()["loader"] == "shim 15.6"


def test_the_unit_of_the_running_image_goes_first(machine: Machine) -> None:
    machine.change(units={OWN: "shim 15.7"})
    machine.fault("podman", "run", text="error: FAT has no RENAME_EXCHANGE here")
    text, failed = boot_loader(machine).update(A)
    assert failed
    assert "RENAME_EXCHANGE" in text
    assert f"or that of the image that runs ({OWN})" in text
    assert machine.read()["loader"] == "shim 15.7"


def test_whatever_fails_is_told_and_raises_nothing(machine: Machine) -> None:
    machine.change(units={OWN: "shim 15.7"})
    machine.fault("systemctl", "start", text="Job for bootloader-update.service failed")
    text, failed = boot_loader(machine).update(LOST)
    assert failed
    assert "manifest unknown" in text
    assert "Job for bootloader-update.service failed" in text
    assert machine.read()["loader"] == "shim 15.6"
    assert machine.calls(*ASKS)[-1] == f"podman rmi --ignore {LOST}"
