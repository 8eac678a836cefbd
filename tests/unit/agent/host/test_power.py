"""Power and programs: what is asked of the host, and what is said when it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastness.agent.apply.hosts import PlainSystem
from fastness.agent.host.errors import CommandFailed, DriverError, FileFailure, ImageFailure, UnitFailure, UnsafePath
from fastness.agent.host.power import HostPower, VirtualPower
from fastness.agent.host.process import run
from fastness.agent.host.states import Deployment


def test_a_reboot_is_a_unit_of_its_own_after_the_staged_deployment(tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def answer(command: Sequence[str]) -> str:
        commands.append(list(command))
        return ""

    (tmp_path / "boot_id").write_text("abc\n")
    power = HostPower(answer, tmp_path / "boot_id", lambda: "ostree-finalize-staged.service")
    power.reboot("update to x")
    assert power.boot_id() == "abc"
    [command] = commands
    assert command[0] == "systemd-run"
    assert command[-2:] == ["systemctl", "reboot"]
    assert "--property=Requires=ostree-finalize-staged.service" in command
    assert "--property=After=ostree-finalize-staged.service" in command
    assert "--description=update to x" in command


def test_a_virtual_machine_has_another_id_after_each_boot() -> None:
    counter = itertools.count()
    power = VirtualPower(lambda: str(next(counter)))
    first = power.boot_id()
    power.reboot("why")
    assert (power.boot_id(), power.reasons) == (first, ["why"])
    power.booted()
    assert power.boot_id() != first


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(CommandFailed, match="ended with 3: sorry") as raised:
        run(["sh", "-c", "echo out; echo sorry >&2; exit 3"])
    assert (raised.value.status, raised.value.output) == (3, "out\n")


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(CommandFailed, match="did not end within") as raised:
        run(["sleep", "5"], seconds=0.05)
    assert raised.value.status is None


def test_a_program_that_hangs_is_ended_with_what_it_started() -> None:
    """A pull that hangs has children which hold its output open: the wait must not be for them."""
    with pytest.raises(CommandFailed, match="did not end within"):
        run(["sh", "-c", "sleep 30 & sleep 30"], seconds=0.1)


def test_a_program_gets_what_it_is_given_and_nothing_of_ours() -> None:
    assert run(["sh", "-c", 'echo "$A $HOME"'], environment={"A": "1"}).split() == ["1"]


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandFailed, match="no-such-program") as raised:
        run(["no-such-program"])
    assert raised.value.hint == "Install no-such-program."


def test_a_machine_without_managed_system_refuses_to_deploy() -> None:
    system = PlainSystem()
    assert (system.booted(), system.staged()) == (Deployment(), None)  # type: ignore[func-returns-value]
    with pytest.raises(ImageFailure, match="cannot apply an OS image: this machine is a package host"):
        system.stage(Deployment("image"))
    with pytest.raises(ImageFailure, match="cannot apply kernel arguments"):
        system.stage(Deployment("", ("nosmt",)))
    system.discard()
    system.booted_well()
    assert (system.last_boot_log(), system.finalizer) == ("", "")


@pytest.mark.parametrize("kind", [DriverError, UnsafePath, FileFailure, CommandFailed, UnitFailure, ImageFailure])
def test_every_error_has_a_code_and_a_hint(kind: type[DriverError]) -> None:
    error = kind("what happened")
    assert (str(error), error.message) == ("what happened", "what happened")
    assert error.code
    assert error.hint
    assert kind("x", "do that").hint == "do that"
