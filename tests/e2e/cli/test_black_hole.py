"""`fastness serve` ends in time when its API takes requests and answers none: Kubernetes gives thirty seconds, then kills."""

from __future__ import annotations

import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.live import FASTNESS, Live, environment
from tests.patience import PATIENCE

GIVEN_SECONDS = 25.0
"""What it may need at most, on a machine that has other things to do; it takes about five."""


class Proxy:
    """Passes bytes on to a server until it becomes a black hole: from then on it takes connections and nothing comes out."""

    def __init__(self, port: int, *, hole: bool = False) -> None:
        self._target = port
        self.hole = threading.Event()
        if hole:
            self.hole.set()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._server.getsockname()[1]
        self.taken: list[socket.socket] = []
        self.connected = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self.taken.append(near)
                self.connected.set()
                if not self.hole.is_set():
                    threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        far = socket.create_connection(("127.0.0.1", self._target))
        self.taken.append(far)
        other = {near: far, far: near}
        with selectors.DefaultSelector() as ready, suppress(OSError):
            for end in other:
                ready.register(end, selectors.EVENT_READ)
            while not self.hole.is_set():
                for key, _ in ready.select(timeout=0.1):
                    source = near if key.fileobj is near else far
                    data = source.recv(65536)
                    if self.hole.is_set():
                        return
                    if not data:
                        other[source].close()
                        return
                    other[source].sendall(data)

    def close(self) -> None:
        """End it with all connections."""
        for open_socket in (self._server, *self.taken):
            open_socket.close()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live.start(tmp_path_factory.mktemp("api"), "--machines", "0") as running:
        yield running


def _serve(live: Live, proxy: Proxy, home: Path, roles: str) -> subprocess.Popen[str]:
    config = home / "config"
    kubeconfig = live.kubeconfig.read_text()
    assert live.url in kubeconfig
    config.write_text(kubeconfig.replace(live.url, f"https://127.0.0.1:{proxy.port}"))
    config.chmod(0o600)
    more = [
        f"--{name}-port=0" for name in ("metrics", "config", "internal", "enrol", "broker", "gate", "webhook", "page")
    ]
    more += ["--vault", str(home / "vault"), "--internal-url", "https://127.0.0.1:1"]
    return subprocess.Popen(
        [str(FASTNESS), "serve", "--kubeconfig", str(config), "--roles", roles, "--log-level", "warning", *more],
        env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _ends(process: subprocess.Popen[str]) -> str:
    """What a process says until it ends by itself after SIGTERM, in the time that it is given."""
    process.send_signal(signal.SIGTERM)
    try:
        _, stderr = process.communicate(timeout=GIVEN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, stderr
    assert "Traceback" not in stderr
    return stderr


@pytest.mark.parametrize("roles", ["controllers", "configserver,enrol", "broker,gate,page"])
def test_a_process_whose_api_became_a_black_hole_ends_in_the_time_that_kubernetes_gives(
    live: Live, tmp_path: Path, roles: str
) -> None:
    proxy = Proxy(urlsplit(live.url).port or 0)
    process = _serve(live, proxy, tmp_path, roles)
    try:
        assert process.stderr is not None
        alarm = threading.Timer(PATIENCE, process.kill)
        alarm.start()
        assert process.stderr.readline().startswith("serving ")
        alarm.cancel()
        proxy.hole.set()
        _ends(process)
    finally:
        process.kill()
        process.communicate()
        proxy.close()


def test_a_process_that_starts_at_a_black_hole_ends_when_asked_to(live: Live, tmp_path: Path) -> None:
    proxy = Proxy(urlsplit(live.url).port or 0, hole=True)
    process = _serve(live, proxy, tmp_path, "controllers")
    try:
        assert proxy.connected.wait(PATIENCE)
        _ends(process)
    finally:
        process.kill()
        process.communicate()
        proxy.close()
