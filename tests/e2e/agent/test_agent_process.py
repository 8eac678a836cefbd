"""`fastness agent run` as a process of its own, over HTTPS, killed and started again in the middle of its work."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.e2e.agent.test_virtual_machines import NOTE, machine_config
from tests.e2e.live import FASTNESS, Live, environment
from tests.patience import PATIENCE, eventually

MANY = machine_config(
    "99-worker-many",
    *({"path": f"/etc/many/{number:03d}", "contents": {"source": f"data:,{number}"}} for number in range(100)),
)


def admit(live: Live) -> None:
    """Make the node as whoever admits machines does: with its role, and told which config to begin with."""
    words = ("get", "mcp", "worker", "-o", "jsonpath={.status.configuration.name}")
    eventually(lambda: live.kubectl(*words).out, "a rendered config")
    meta = {
        "name": "byhand", "labels": {"node-role.kubernetes.io/worker": ""},
        "annotations": {f"{NOTE}/desiredConfig": live.kubectl(*words).out},
    }  # fmt: skip
    created = live.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": meta})
    assert created.code == 0, created.err


def start(live: Live, root: Path) -> subprocess.Popen[str]:
    """An agent for the node, on a directory."""
    words = [FASTNESS, "agent", "run", "--node", "byhand", "--root", root, "--fast", "--kubeconfig", live.kubeconfig]
    with (live.home / "agent.log").open("a") as log:
        return subprocess.Popen([str(word) for word in words], env=environment(live.home), stderr=log, text=True)


def notes(live: Live) -> dict[str, Any]:
    """The node's annotations, by their short names."""
    annotations = live.kubectl("get", "node", "byhand", "-o", "json").json["metadata"].get("annotations") or {}
    return {key.removeprefix(f"{NOTE}/"): value for key, value in annotations.items()}


def done(live: Live, root: Path, count: int) -> bool:
    """Whether the node says Done and the directory has so many files."""
    report = notes(live)
    files = len(list((root / "etc/many").glob("*"))) if (root / "etc/many").exists() else 0
    return (
        report.get("state") == "Done" and report.get("currentConfig") == report.get("desiredConfig") and files == count
    )


def test_an_agent_that_is_killed_again_and_again_ends_where_it_should(tmp_path: Path) -> None:
    root = tmp_path / "machine"
    root.mkdir()
    with Live.start(tmp_path) as live:
        admit(live)
        agent = start(live, root)
        try:
            eventually(lambda: done(live, root, 0), "the first config")
            assert live.kubectl("apply", "-f", "-", stdin=MANY).code == 0
            for pause in (0.8, 1.2, 1.6):
                time.sleep(pause)
                agent.kill()
                agent.wait(timeout=PATIENCE)
                agent = start(live, root)
            eventually(lambda: done(live, root, 100), "the new config")
            assert live.kubectl("delete", "mc", "99-worker-many").code == 0
            eventually(lambda: done(live, root, 0), "the way back")
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(timeout=PATIENCE) == 0
        finally:
            if agent.poll() is None:
                agent.kill()
                agent.wait(timeout=PATIENCE)
    assert not (tmp_path / "machine.state/agent/journal").exists()
    assert not (root / "etc/many").exists()
