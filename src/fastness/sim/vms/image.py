"""The image that real machines boot: one unified kernel image for all machines of a cluster.

It carries whom the machines believe, so it is made for the cluster that runs. What a machine measures when it boots it is
computed here, from the file alone, and approved before any machine boots.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import fastness
from fastness.agent.host.process import run
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import Measurement
from fastness.images.uki import write_uki
from fastness.sim.vms import parts
from fastness.sim.vms.initrd import initrd

# Without KVM a busy host keeps the timer back while the kernel looks for it; it would then go on without one, for ever.
COMMAND_LINE: Final = b"console=ttyS0 quiet no_timer_check panic=1"
# Nobody logs in to such a machine: its console is where one sees what its services say.
ROOT_WORDS: Final = b"systemd.journald.forward_to_console=1 systemd.show_status=0"
OS_RELEASE: Final = b'ID=fastness\nPRETTY_NAME="Real machine of fastness up"\n'
SECONDS: Final = 300.0


def image(agent: Path, trust: bytes, command_line: bytes = COMMAND_LINE, volume: str = "") -> bytes:
    """An image with an agent's directory and what it believes, whose machines have a volume or none; raises NoRealMachine."""
    sections = {
        ".osrel": OS_RELEASE, ".cmdline": command_line, ".initrd": initrd(agent, trust, volume), ".linux": parts.kernel(),
    }  # fmt: skip
    return write_uki(parts.STUB.read_bytes(), sections)


def predicted(uki: bytes) -> Measurement:
    """What a machine with our firmware measures when it boots an image."""
    return measure_uki(uki, FirmwareVars.of_store(parts.VARIABLES.read_bytes()), secure_boot=False)


def agent_directory(target: Path) -> Path:
    """The agent as a directory without Python of the system, from this checkout; raises NoRealMachine, CommandFailed."""
    tool = Path(fastness.__file__).parents[2] / "tools" / "agent_image.py"
    if not tool.exists():
        raise parts.NoRealMachine(
            "real machines need the agent as a directory, which is built from a checkout of the repository",
            "Run fastness from a clone, as `make up` does.",
        )
    run([sys.executable, str(tool), str(target)], seconds=SECONDS)
    return target
