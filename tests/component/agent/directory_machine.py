"""A machine in a directory and configs for it, as the agent's tests share them."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import Begin
from fastness.agent.apply.steps import Disk, plan_steps
from fastness.agent.apply.update import Goal
from fastness.agent.host.file_changes import PollingWatcher
from fastness.agent.host.states import File
from fastness.formats import data_url as dataurl
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.runtime.clock import SystemClock

UNIT = "[Unit]\nDescription=a\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"


def file(path: str, content: str | bytes, mode: int | None = None, **more: Any) -> JsonObject:
    """A file entry of an Ignition config."""
    data = content.encode() if isinstance(content, str) else content
    entry: JsonObject = {"path": path, "contents": {"source": dataurl.encode(data)}, "overwrite": True, **more}
    return {**entry, **({"mode": mode} if mode is not None else {})}


def unit(name: str, contents: str | None = UNIT, enabled: bool | None = True, **more: Any) -> JsonObject:
    """A unit entry of an Ignition config."""
    entry: JsonObject = {"name": name, **more}
    if contents is not None:
        entry["contents"] = contents
    return {**entry, **({"enabled": enabled} if enabled is not None else {})}


def rendered(
    name: str,
    *,
    files: list[JsonObject] | None = None,
    units: list[JsonObject] | None = None,
    users: list[JsonObject] | None = None,
    **spec: Any,
) -> JsonObject:
    """A rendered MachineConfig."""
    config: JsonObject = {"ignition": {"version": "3.5.0"}}
    if files:
        config["storage"] = {"files": files}
    if units:
        config["systemd"] = {"units": units}
    if users:
        config["passwd"] = {"users": users}
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {}}, "spec": {"config": config, **spec},
    }  # fmt: skip


def any_image(reference: str) -> str:
    """A registry that has every image."""
    return reference


def make_machine(
    directory: Path, *, installed: str = "", pull: Callable[[str], str] = any_image
) -> DirectoryMachine:  # fmt: skip
    """A machine with accounts and a file of its own."""
    counter = itertools.count()
    machine = DirectoryMachine(
        directory, PollingWatcher(directory / "root", SystemClock(), 0.02), lambda: f"boot-{next(counter)}",
        installed=installed, pull=pull,
    )  # fmt: skip
    files = machine.host.root
    files.put("/etc/passwd", File(b"root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n"))
    files.put("/etc/group", File(b"root:x:0:\ncore:x:1000:\n"))
    files.put("/etc/shadow", File(b"root:*:1::::::\ncore:old:1::::::\n", 0o600))
    files.put("/etc/motd", File(b"of the distribution\n", 0o640))
    return machine


def snapshot(root: Path) -> dict[str, object]:
    """Everything below a directory: kind, mode, content or target."""
    tree: dict[str, object] = {}
    for place, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = Path(place) / name
            key, mode = str(path.relative_to(root)), path.lstat().st_mode
            if stat.S_ISLNK(mode):
                tree[key] = f"-> {path.readlink()}"
            elif stat.S_ISDIR(mode):
                tree[key] = "directory"
            else:
                tree[key] = (stat.S_IMODE(mode), path.read_bytes())
    return tree


def plan(machine: DirectoryMachine, old: Goal, config: JsonObject) -> list[Any]:
    """The steps to a config."""
    host = machine.host
    goal = disk.goal(host.root, config)
    return plan_steps(old.desired, goal.desired, config, Disk(host.root, host.originals, host.units))


def apply(machine: DirectoryMachine, old: Goal, config: JsonObject, applier: Applier | None = None) -> Goal:
    """Bring a machine to a config, without a cluster."""
    worker = applier or Applier(machine.host)
    worker.apply(Begin(old.name, config["metadata"]["name"]), plan(machine, old, config))
    worker.end()
    return disk.goal(machine.host.root, config)


def relevant(tree: Mapping[str, object]) -> dict[str, object]:
    """Without the directories that hold nothing but our records, and without what a boot forgets."""
    return {
        path: what
        for path, what in tree.items()
        if "machine-config-daemon" not in path and path.partition("/")[0] != "run"
    }
