"""An edited file: somebody writes into a file that the configuration of the machine holds. The agent sees drift."""

from __future__ import annotations

import base64
from typing import Final

from fastness.agent.apply import disk
from fastness.agent.errors import AgentError
from fastness.agent.host.states import File
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import Conflict
from fastness.page.simulator import FaultKind
from fastness.runtime.tasks import uninterrupted
from fastness.sim.faults.fault import FaultContext, Outcome, needed
from fastness.sim.machines import VirtualMachine

ADDED: Final = b"\n# somebody was here\n"
_OURS: Final = frozenset({names.CURRENT_CONFIG_FILE, names.NODE_ANNOTATIONS_FILE, names.ENCAPSULATED_FILE})


class EditedFile:
    """A line more in a file."""

    kind: FaultKind = FaultKind(
        "edited-file", "Edited file",
        "Somebody adds a line to a file that the configuration holds. The agent reports drift and the node is degraded.",
        "machine",
    )  # fmt: skip
    repeatable = False

    def objection(self, machine: VirtualMachine | None) -> str | None:
        """A machine without a configuration has nothing that could drift."""
        return None if needed(machine).joined else "the machine has no configuration yet"

    async def do(self, context: FaultContext, machine: VirtualMachine | None, argument: str) -> Outcome:
        """Add the line; raises Conflict."""
        target = needed(machine)
        path, before = await uninterrupted(lambda: edit(target))
        return Outcome(
            f"{target.name}: a line was added to {path}",
            {"path": path, "content": base64.b64encode(before.content).decode(), "mode": before.mode},
        )

    async def undo(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> str:
        """Take the line out again, unless the file was replaced meanwhile."""
        target, path, before = needed(machine), str(memory["path"]), base64.b64decode(memory["content"])
        root = target.machine.host.root
        now = root.look(path)
        if not isinstance(now, File) or now.content != before + ADDED:
            return f"{target.name}: {path} was replaced meanwhile and is left as it is"
        restored = File(before, int(memory["mode"]), now.uid, now.gid)
        await uninterrupted(lambda: root.put(path, restored))
        return f"{target.name}: {path} is as it was"

    def resume(self, context: FaultContext, machine: VirtualMachine | None, memory: JsonObject) -> None:
        """The line is on the disk."""


def edit(machine: VirtualMachine) -> tuple[str, File]:
    """Add a line to the first file that the configuration holds; the file before; raises Conflict."""
    root = machine.machine.host.root
    try:
        config = disk.read_current(root)
        paths = disk.goal(root, config).desired.paths if config is not None else {}
    except AgentError as error:
        raise Conflict(f"the configuration of {machine.name} cannot be read: {error.message}") from error
    for path in sorted(paths):
        state = root.look(path)
        if isinstance(state, File) and path not in _OURS and path.startswith("/etc/"):
            root.put(path, File(state.content + ADDED, state.mode, state.uid, state.gid))
            return path, state
    raise Conflict(f"the configuration of {machine.name} holds no file below /etc that could be edited")
