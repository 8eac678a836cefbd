"""`fastness up` as a real process, with clients that reach it over TLS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.patience import PATIENCE

COMMAND = [sys.executable, "-c", "from fastness.cli.main import main; main()"]
READY_SECONDS = 40.0
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def fastness(*words: object, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=timeout, check=False, env=_environment()
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


class Up:
    """A running `fastness up`; ends with the block, killed if need be."""

    def __init__(self, state: Path, *words: object, before: Callable[[], None] | None = None) -> None:
        self.state = state
        self.errors = state.with_name(f"{state.name}.err")
        self._words = words
        self._before = before
        self.process: subprocess.Popen[bytes]

    async def __aenter__(self) -> Up:
        self.start()
        await self.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)

    def start(self) -> None:
        """Start without waiting."""
        words = [*COMMAND, "up", "--state", str(self.state), "--port", "0", "-o", "json", *map(str, self._words)]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=errors, env=_environment(), preexec_fn=self._before
            )
        (self.state / "endpoints.json").unlink(missing_ok=True)

    async def ready(self) -> None:
        """Wait until it says so; fails with its output when it ends instead."""
        async with asyncio.timeout(READY_SECONDS):
            while True:
                assert self.process.poll() is None, self.stderr_text()
                if (self.state / "endpoints.json").exists():
                    try:
                        async with self.client() as client:
                            if (await client.get("/readyz")).status_code == 200:
                                return
                    except (httpx.TransportError, json.JSONDecodeError):
                        pass
                await asyncio.sleep(0.05)

    def stderr_text(self) -> str:
        """What it wrote to standard error."""
        return self.errors.read_text()

    @property
    def url(self) -> str:
        """Where it listens."""
        return str(json.loads((self.state / "endpoints.json").read_text())["api"])

    def context(self) -> ssl.SSLContext:
        """TLS as the administrator."""
        context = ssl.create_default_context(cafile=str(self.state / "pki" / "ca.crt"))
        context.load_cert_chain(self.state / "pki" / "admin.pem")
        return context

    def client(self) -> httpx.AsyncClient:
        """The administrator."""
        return httpx.AsyncClient(base_url=self.url, verify=self.context(), timeout=PATIENCE)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self, number: int = signal.SIGTERM, seconds: float = PATIENCE) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def rss(self) -> int:
        """Resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def children(self) -> list[str]:
        """Processes that it has started."""
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
