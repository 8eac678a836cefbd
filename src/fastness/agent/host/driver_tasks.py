"""Which driver of an operating system does which task, and what of a task it leaves to the image.

The tests named after these tasks hold every driver to its line (`tests/component/agent/host/test_driver_tasks.py`), and the
reference page of drivers is written from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class Task(StrEnum):
    """What configs ask of an operating system, by the names of the tests."""

    OS_IMAGE = "TestOSImageURL"
    KERNEL_ARGUMENTS = "TestKernelArguments"
    KERNEL_TYPE = "TestKernelType"
    EXTENSIONS = "TestExtensions"


class Does(NamedTuple):
    """Whether a driver does a task, and how, or where it belongs instead."""

    done: bool
    how: str


_BAKED: Final = Does(False, "refused: it belongs into the image of the pool")

TASKS: Final[Mapping[str, Mapping[Task, Does]]] = {
    "rpm-ostree": {
        Task.OS_IMAGE: Does(True, "`rpm-ostree rebase`"),
        Task.KERNEL_ARGUMENTS: Does(True, "`rpm-ostree kargs`"),
        Task.KERNEL_TYPE: Does(True, "`rpm-ostree override remove` with the packages of the extensions image"),
        Task.EXTENSIONS: Does(True, "`rpm-ostree update --install` from the extensions image"),
    },
    "bootc": {
        Task.OS_IMAGE: Does(True, "`bootc switch`"),
        Task.KERNEL_ARGUMENTS: Does(
            True, "`bootc loader-entries`; refused where bootc lacks it, and with a unified kernel image"
        ),
        Task.KERNEL_TYPE: _BAKED,
        Task.EXTENSIONS: _BAKED,
    },
}
