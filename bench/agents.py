"""The memory of one agent: a process of its own on a directory, after it has applied 300 files and come to rest.

It is the agent as images carry it (`tools/agent_image.py`). Started from here it would have what tools for developers install
beside it: httpx alone loads two libraries for terminals where it finds them, 4 MiB that no machine has.

The last figure adds to the first what the modules of an agent that proves itself take more, in the same interpreter: no TPM is
here that a benchmark could give it, and what a conversation with the doors leaves behind is not in it.

The second figure is the most that it had at any moment while two of these files were in the place of others of 100 MB each.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx

from bench import configs
from bench.accounting import peak_bytes, resident_bytes
from bench.figures import AGENT, ATTESTED_AGENT, Progress, Single, Spread
from bench.targets import PATIENCE, TargetError, ours
from fastness.kinds.machineconfiguration import names
from tools import agent_image

NODE = "bench"
MIB = 1024 * 1024
TARGET_MIB = 45.0
LARGE = 100 * MIB
PROVING = """
import os
import fastness.cli.cluster, fastness.cli.machine.agent, fastness.cli.machine.agent_run
pages = lambda: int(open("/proc/self/statm").read().split()[1])
before = pages()
import fastness.cli.machine.agent_attest
print((pages() - before) * os.sysconf("SC_PAGESIZE"))
"""
_MCO = "/apis/machineconfiguration.openshift.io/v1"


def memory(directory: Path, say: Progress, runs: int) -> list[Single]:
    """Resident memory of the agent, over several starts."""
    at_rest, peaks = [], []
    say("an agent as images carry it")
    agent_image.build(directory / "image")
    program = directory / "image" / "bin" / "fastness-agent"
    for number in range(runs):
        say(f"agent {number + 1} of {runs}")
        at_rest.append(_run(program, directory / f"agent-{number}", 0, resident_bytes))
        peaks.append(_run(program, directory / f"agent-large-{number}", LARGE, peak_bytes))
    return [
        Single(AGENT, Spread.of(at_rest), "MiB", TARGET_MIB),
        Single("agent that replaced files of 200 MB by these, most memory", Spread.of(peaks), "MiB", TARGET_MIB),
        Single(
            ATTESTED_AGENT, Spread.of([each + _proving(directory / "image") for each in at_rest]), "MiB", TARGET_MIB
        ),
    ]


def _proving(image: Path) -> float:
    """MiB that the modules take by which an agent proves itself, beside those of one that does not."""
    command = [str(image / "bin" / agent_image.VERSION), "-I", "-B", "-c", PROVING]
    environment = {"LD_LIBRARY_PATH": str(image / "lib" / "native")}
    return int(subprocess.run(command, check=True, capture_output=True, env=environment).stdout) / MIB


def _run(program: Path, directory: Path, replaced_bytes: int, measure: Callable[[Iterable[int]], int]) -> float:
    with ours(directory) as target, target.client() as client:
        for config in configs.machine_configs(20, 300, 60):
            client.post(f"{_MCO}/machineconfigs", json=config).raise_for_status()
        goal = _eventually(lambda: _goal(client))
        labels = {f"{names.NODE_ROLE_PREFIX}{configs.ROLE}": ""}
        meta = {"name": NODE, "labels": labels, "annotations": {names.DESIRED_CONFIG: goal}}
        client.post("/api/v1/nodes", json={"apiVersion": "v1", "kind": "Node", "metadata": meta}).raise_for_status()
        root = directory / "root"
        root.mkdir()
        if replaced_bytes:
            _fill(root, client, goal, replaced_bytes)
        command = [
            str(program), "run", "--node", NODE, "--root", str(root), "--fast",
            "--kubeconfig", str(directory / "state" / "kubeconfig"), "--log-level", "error",
        ]  # fmt: skip
        with subprocess.Popen(command, start_new_session=True) as child:
            try:
                _eventually(lambda: _done(client, goal))
                time.sleep(1.0)
                return measure([child.pid]) / MIB
            finally:
                child.terminate()
                child.wait(PATIENCE)


def _fill(root: Path, client: httpx.Client, goal: str, size: int) -> None:
    """Put large files where the config will have small ones."""
    config = client.get(f"{_MCO}/machineconfigs/{goal}").raise_for_status().json()
    for entry in config["spec"]["config"]["storage"]["files"][:2]:
        path = root / entry["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))


def _goal(client: httpx.Client) -> str:
    """The config of the pool, once all sources are in it."""
    answer = client.get(f"{_MCO}/machineconfigpools/{configs.ROLE}")
    configuration = (answer.json()["spec"].get("configuration") or {}) if answer.is_success else {}
    return str(configuration["name"]) if len(configuration.get("source") or ()) >= 23 else ""


def _done(client: httpx.Client, goal: str) -> str:
    notes: dict[str, Any] = client.get(f"/api/v1/nodes/{NODE}").raise_for_status().json()["metadata"]["annotations"]
    there = notes.get(names.CURRENT_CONFIG) == goal and notes.get(names.STATE) == names.NodeState.DONE.value
    return goal if there else ""


def _eventually(ask: Any) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if answer := ask():
            return str(answer)
        time.sleep(0.1)
    raise TargetError("the agent did not come to rest")
