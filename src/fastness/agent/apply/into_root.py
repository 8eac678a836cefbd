"""A config written into a directory that is no machine yet: the root of an image that is being built.

The states of paths come from `desired`, as on a node, and are written by the same hands (`host/files`, `host/unit_links`), so a
file of an image is what the agent would have made of it. There is no journal: nothing runs here, and a directory that was half
written is thrown away by whoever made it.

What only a running machine can do is not done: no password (its account file is the machine's), no deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastness.agent.apply.accounts import GROUP, PASSWD, read_accounts
from fastness.agent.apply.desired import Desired, Unit, desired
from fastness.agent.errors import BadConfig
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import Absent
from fastness.agent.host.unit_links import UnitLinks

Object = Mapping[str, Any]


def apply_into(root: Path, config: Object) -> tuple[str, ...]:
    """Write the files, links and units of a MachineConfig below a directory; the paths that were written, in order.

    Raises BadConfig, DriverError.
    """
    files = RootedFiles(root)
    goal = desired(config, read_accounts(files.look(PASSWD), files.look(GROUP)))
    if goal.password is not None:
        raise BadConfig("a password belongs to a machine, not to an image", "The agent sets it on every machine.")
    written = []
    for path, target in goal.paths.items():
        if isinstance(target.state, Absent) and isinstance(files.look(path), Absent):
            continue
        files.put(
            path, target.state, directory_mode=target.directory_mode, own_directories=target.own_directories
        )  # fmt: skip
        written.append(path)
    _start_at_boot(files, goal)
    return tuple(written)


def _start_at_boot(files: RootedFiles, goal: Desired) -> None:
    """Enable and disable units whose file is there; of others nobody knows yet what they are wanted by."""
    units = UnitLinks(files)
    for name, unit in goal.units.items():
        if not _is_there(name, unit, units):
            continue
        if unit.enabled:
            units.enable([name])
        elif unit.enabled is False:
            units.disable([name])


def _is_there(name: str, unit: Unit, units: UnitLinks) -> bool:
    return not unit.masked and units.is_enabled(name) not in ("not-found", "masked")
