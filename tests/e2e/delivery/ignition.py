"""The real Ignition, outside an initial file system: user-data, the two stages that fetch and write, and the root they fill."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path

from tests.components import require_program

IGNITION = Path("/usr/lib/dracut/modules.d/30ignition/ignition")
SECONDS = 120.0


@dataclass
class Installed:
    """What a stage of Ignition left behind."""

    status: int
    said: str


@dataclass
class Ignition:
    """One machine's Ignition in a directory."""

    place: Path

    def __post_init__(self) -> None:
        require_program(IGNITION, "ignition")
        selinux = self.root / "etc/selinux"
        selinux.mkdir(parents=True)
        (selinux / "config").write_text("SELINUXTYPE=targeted\n")
        programs = self.place / "bin"
        programs.mkdir()
        # Labels are not what is tested, and the machine that runs the tests may have none.
        (programs / "setfiles").write_text("#!/bin/sh\nexit 0\n")
        (programs / "setfiles").chmod(0o755)

    @property
    def root(self) -> Path:
        """The root file system that it fills."""
        return self.place / "root"

    def user_data(self, port: int, ticket: str, server: str, pool: str = "worker") -> None:
        """What the cloud gives to the machine: the pointer to the forwarder."""
        headers = [
            {"name": "Authorization", "value": f"Bearer {ticket}"},
            {"name": "X-Fastness-Server", "value": server},
        ]
        source = {"source": f"http://127.0.0.1:{port}/config/{pool}", "httpHeaders": headers}
        pointer = {"ignition": {"version": "3.2.0", "config": {"merge": [source]}}}
        (self.place / "user-data").write_text(json.dumps(pointer))

    async def run(self) -> Installed:
        """Fetch, and write if there was something to fetch."""
        fetched = await self.stage("fetch")
        return fetched if fetched.status else await self.stage("files")

    async def stage(self, name: str) -> Installed:
        """One stage."""
        process = await asyncio.create_subprocess_exec(
            str(IGNITION), "-platform", "file", "-stage", name, "-root", str(self.root), "-log-to-stdout",
            "-config-cache", str(self.place / "cache"), "-state-file", str(self.place / "state"),
            "-neednet", str(self.place / "neednet"),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={
                "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
                "IGNITION_CONFIG_FILE": str(self.place / "user-data"),
            },
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        return Installed(process.returncode or 0, said.decode(errors="replace"))

    @property
    def files(self) -> set[str]:
        """What lies in the root beside what was there before."""
        found = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}
        return found - {"etc/selinux/config"}
