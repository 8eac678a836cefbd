"""`fastness serve` on a real API server as a process of its own, and what its page for machines says of it."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.live import FASTNESS, environment
from tests.patience import PATIENCE
from tests.patience import eventually as in_time
from tests.realkube import RealKube

KUBELET_CONFIGS = "/apis/machineconfiguration.openshift.io/v1/kubeletconfigs"
eventually = partial(in_time, seconds=2 * PATIENCE)  # machines boot, and processes start with much to read


class Served:
    """A process of `fastness serve`."""

    def __init__(self, child: subprocess.Popen[str], url: str) -> None:
        self.child = child
        self._ops = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE)

    def close(self) -> None:
        self._ops.close()

    def ready(self) -> httpx.Response:
        return self._ops.get("/readyz?verbose")

    def followed(self) -> dict[str, float]:
        """The resources that this process follows, each with how many of its objects are set aside."""
        pairs = re.findall(r'fastness_informer_set_aside{resource="(\w+)"} (\S+)', self._ops.get("/metrics").text)
        return {plural: float(count) for plural, count in pairs}

    def aside(self, plural: str) -> float:
        return self.followed().get(plural, 0.0)

    def works(self, admin: httpx.Client, name: str) -> None:
        """A KubeletConfig that is written properly gets its answer."""
        admin.delete(f"{KUBELET_CONFIGS}/{name}")
        eventually(lambda: admin.get(f"{KUBELET_CONFIGS}/{name}").status_code == 404, "the end of an older one")
        admin.post(KUBELET_CONFIGS, json=kubelet_config(name, {"maxPods": 100})).raise_for_status()
        eventually(lambda: admin.get(f"{KUBELET_CONFIGS}/{name}").json().get("status"), "an answer of the controllers")
        assert self.child.poll() is None


@contextmanager
def serving(kube: RealKube, home: Path, roles: str = "controllers", *more: str) -> Iterator[Served]:
    """Roles for the time of the block; at its end the process lives, and ends well when asked to."""
    command: Sequence[str] = [
        str(FASTNESS), "serve", "--roles", roles, "--kubeconfig", str(kube.kubeconfig), "--metrics-port", "0",
        "--log-level", "error", *more,
    ]  # fmt: skip
    child = subprocess.Popen(command, env=environment(home), stderr=subprocess.PIPE, text=True)
    lines: list[str] = []
    assert child.stderr is not None
    reader = threading.Thread(target=lambda source: lines.extend(source), args=(child.stderr,), daemon=True)
    first = child.stderr.readline()
    reader.start()
    address = re.search(r"http://\S+", first)
    assert address, first
    served = Served(child, address[0])
    try:
        yield served
        assert child.poll() is None, "".join(lines)[-3000:]
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=PATIENCE) == 0, "".join(lines)[-3000:]
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        served.close()
        reader.join()
        child.stderr.close()


def kubelet_config(name: str, content: Any) -> dict[str, Any]:
    """A KubeletConfig with this content."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": name},
        "spec": {"kubeletConfig": content},
    }  # fmt: skip
