"""A containerd of our own, in a directory, without the part for Kubernetes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.components import require_program, require_root
from tests.patience import PATIENCE
from tests.realkube.process import Program

CONFIG = """version = 2
root = "{0}/root"
state = "{0}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{0}/socket"
[ttrpc]
address = "{0}/ttrpc"
"""


@contextmanager
def running_containerd(directory: Path) -> Iterator[Path]:
    """Where it listens, for the time of the block; raises StartFailed."""
    require_root("containerd")
    program = require_program(Path("/usr/bin/containerd"), "containerd")
    (directory / "config.toml").write_text(CONFIG.format(directory))
    running = Program.start(program, ["--config", str(directory / "config.toml")], directory, os.getpid())
    try:
        deadline = time.monotonic() + PATIENCE
        while ctr(directory / "socket", "version").returncode:
            if running.ended() or time.monotonic() > deadline:
                raise running.failure("is not ready")
            time.sleep(0.05)
        yield directory / "socket"
    finally:
        running.stop()


def ctr(socket: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask containerd for something."""
    command = ["ctr", "--address", str(socket), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
