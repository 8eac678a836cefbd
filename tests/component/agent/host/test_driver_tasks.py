"""The tasks of an operating system, by the names that the source document gives them, for each driver.

Which driver does which task stands in `TASKS`; the reference page of drivers is written from it, so a driver that learns a task
or loses one shows there. What a driver does not do it refuses before anything happens, and says where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from fastness.agent.host.driver_tasks import TASKS, Task
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.states import NOTHING, Deployment
from tests.component.agent.host.os_machines import ASKS, BASE, EXTENSIONS, A, bootc, machine_at, rpm_ostree
from tests.standins.os_engine import Machine


class Driver(Protocol):
    def booted(self) -> Deployment: ...
    def staged(self) -> Deployment | None: ...
    def stage(self, deployment: Deployment, old: Deployment = ..., extensions_image: str = ...) -> None: ...


PAGE = Path(__file__).parents[4] / "docs/reference/os-drivers.md"
# A driver that is not here is in TASKS without a test of these: the page says so.
DRIVERS: dict[str, Callable[[Machine], Driver]] = {"rpm-ostree": rpm_ostree, "bootc": bootc}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path / "machine")


@pytest.fixture(params=sorted(DRIVERS))
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def carried_out(machine: Machine, driver: str, deployment: Deployment, old: Deployment = NOTHING) -> Deployment:
    """What runs after a deployment was staged and booted."""
    system = DRIVERS[driver](machine)
    system.stage(deployment, old, EXTENSIONS)
    machine.reboot()
    return system.booted()


def refused(machine: Machine, driver: str, deployment: Deployment) -> None:
    """Nothing happens, and the hint says where it belongs."""
    with pytest.raises(ImageFailure) as caught:
        DRIVERS[driver](machine).stage(deployment, NOTHING, EXTENSIONS)
    assert "image" in caught.value.hint.lower()
    assert machine.calls(*ASKS) == []


@pytest.mark.row("003-85")
def test_the_table_of_the_docs_has_a_line_for_every_driver_that_is_tested() -> None:
    assert set(DRIVERS) <= set(TASKS)
    assert all(set(does) == set(Task) for does in TASKS.values())
    lines = PAGE.read_text().splitlines()
    for name in DRIVERS:
        (line,) = (line for line in lines if line.startswith(f"| {name} | `"))
        assert all(does.how in line for does in TASKS[name].values())


class TestOSImageURL:
    @pytest.mark.row("003-81")
    def test_an_image_is_booted_and_taken_back(self, machine: Machine, driver: str) -> None:
        assert TASKS[driver][Task.OS_IMAGE].done
        assert carried_out(machine, driver, Deployment(A)).image == A
        assert carried_out(machine, driver, Deployment(BASE), Deployment(A)).image == BASE


class TestKernelArguments:
    @pytest.mark.row("003-82")
    def test_arguments_come_with_an_image_and_go_again(self, machine: Machine, driver: str) -> None:
        assert TASKS[driver][Task.KERNEL_ARGUMENTS].done
        with_argument = Deployment(A, ("nosmt", "audit=1"))
        before = machine.read()["booted"]["kargs"]
        assert {"nosmt", "audit=1"} <= {*carried_out(machine, driver, with_argument).arguments}
        carried_out(machine, driver, Deployment(A), with_argument)
        assert machine.read()["booted"]["kargs"] == before


class TestKernelType:
    @pytest.mark.row("003-83")
    def test_another_kernel_runs_or_is_refused_with_the_way(self, machine: Machine, driver: str) -> None:
        realtime = Deployment(BASE, kernel="realtime")
        if not TASKS[driver][Task.KERNEL_TYPE].done:
            refused(machine, driver, realtime)
            return
        assert carried_out(machine, driver, realtime).kernel == "realtime"
        assert carried_out(machine, driver, Deployment(BASE), realtime).kernel == ""


class TestExtensions:
    @pytest.mark.row("003-84")
    def test_packages_are_installed_or_refused_with_the_way(self, machine: Machine, driver: str) -> None:
        usbguard = Deployment(BASE, extensions=("usbguard",))
        if not TASKS[driver][Task.EXTENSIONS].done:
            refused(machine, driver, usbguard)
            return
        assert carried_out(machine, driver, usbguard).extensions == ("usbguard",)
        assert carried_out(machine, driver, Deployment(BASE), usbguard).extensions == ()
