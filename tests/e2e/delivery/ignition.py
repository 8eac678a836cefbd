"""The real Ignition, outside an initial file system: user-data, the two stages that fetch and write, and the root they fill.

An image that carries the pointer has it in the system config directory. There the port of the test stands in place of 22625.
"""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastness.protocol.pointer import image_pointer
from tests.components import require_program

IGNITION = Path("/usr/lib/dracut/modules.d/30ignition/ignition")
SECONDS = 120.0
HOSTILE_FILES = {
    "etc/systemd/system/evil.service", "etc/sudoers.d/evil", "usr/lib/fastness/trust.json",
    "var/lib/kubelet/pki/kubelet-client.key.tmp",
}  # fmt: skip


def pointer_with_ticket(port: int, ticket: str, server: str, pool: str = "worker") -> dict[str, Any]:
    """The pointer that the user-data controller writes."""
    headers = [
        {"name": "Authorization", "value": f"Bearer {ticket}"},
        {"name": "X-Fastness-Server", "value": server},
    ]
    source = {"source": f"http://127.0.0.1:{port}/config/{pool}", "httpHeaders": headers}
    return {"ignition": {"version": "3.2.0", "config": {"merge": [source]}}}


def hostile(pointer: dict[str, Any]) -> bytes:
    """User-data of a host that wants more than to point: a unit, rights, another trust, a key that it knows."""
    files = [
        {"path": f"/{path}", "overwrite": True, "contents": {"source": "data:,the%20host%20was%20here"}}
        for path in sorted(HOSTILE_FILES) if not path.endswith(".service")
    ]  # fmt: skip
    unit = {"name": "evil.service", "enabled": True, "contents": "[Service]\nExecStart=/bin/sh\n"}
    config = {"storage": {"files": files}, "systemd": {"units": [unit]}}
    return json.dumps({"ignition": {"version": "3.2.0"}, **pointer, **config}).encode()


@dataclass
class Installed:
    """What a stage of Ignition left behind."""

    status: int
    log: str


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
        (self.place / "user-data").write_text(json.dumps(pointer_with_ticket(port, ticket, server, pool)))

    def with_image_pointer(self, port: int, platform: bytes) -> None:
        """An image that carries the pointer, at a platform that offers Ignition something else."""
        self.system.mkdir()
        (self.system / "user.ign").write_bytes(image_pointer().replace(b":22625/", f":{port}/".encode()))
        (self.place / "user-data").write_bytes(platform)

    @property
    def system(self) -> Path:
        """Ignition's system config directory."""
        return self.place / "system"

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
                "IGNITION_SYSTEM_CONFIG_DIR": str(self.system),
            },
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        return Installed(process.returncode or 0, output.decode(errors="replace"))

    @property
    def files(self) -> set[str]:
        """What lies in the root beside what was there before."""
        paths = {str(path.relative_to(self.root)) for path in self.root.rglob("*") if not path.is_dir()}
        return paths - {"etc/selinux/config"}
