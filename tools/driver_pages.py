"""A reference page about what deploys operating systems: tasks of each driver, and what stages and gates of image mode mean."""

from __future__ import annotations

from collections.abc import Iterator

from fastness.agent.host.driver_tasks import TASKS, Task
from fastness.kinds.machineconfiguration.names import OsDriverRule
from fastness.machineconfig.rollout.image_mode import TABLE, Stage
from tools.chart_pages import Table

_INTRO = (
    "What deploys the operating system of a machine, and which of the tasks it does. Each cell is held by the test of its "
    "name, for each driver, in `tests/component/agent/host/test_driver_tasks.py`, "
    "against a program that stands in for the real one."
)
_STAGES = (
    "What the stage of image mode (`fastness.dev/image-mode-stage` of MachineConfiguration `cluster`) and the gates of "
    "FeatureGate `cluster` mean: how changes reach nodes of pools without a MachineOSConfig, and what deploys hosts. A host "
    "with layered packages keeps rpm-ostree and says so; with bootc alone it keeps its image."
)
_DRIVERS = {
    OsDriverRule.BY_HOST: "by the host",
    OsDriverRule.BOOTC_FIRST: "bootc where it can",
    OsDriverRule.BOOTC_ALONE: "bootc alone",
}


def os_drivers(table: Table) -> tuple[str, ...]:
    """The parts of the page; each cell of the first table has a test that holds a driver to it."""
    rows = ((driver, *(does[task].how for task in Task)) for driver, does in TASKS.items())
    ready = (
        (driver, ", ".join(task for task in Task if not does[task].done) or "nothing") for driver, does in TASKS.items()
    )
    return (
        _INTRO,
        table(("Driver", *Task), rows),
        table(("Driver", "Left to the image"), ready),
        "## Stage and gates",
        _STAGES,
        table(("Gates that are on", *(f"Stage {stage}" for stage in Stage)), _stages()),
    )


def _stages() -> Iterator[tuple[str, ...]]:
    for gates in TABLE[Stage.DUAL]:
        cells = (TABLE[stage][gates] for stage in Stage)
        yield ", ".join(sorted(gates)) or "none", *(f"{cell.path}; {_DRIVERS[cell.driver]}" for cell in cells)
