"""`fastness up --vms 1 --vm-root`: a real machine boots what `fastness machine image` prepared, and becomes a node that is Ready.

Everything is real: firmware that measures, a TPM, Ignition, a systemd, containerd and the kubelet, in a machine that reaches the
doors and the API and nothing else. The test does what a user does: prepare a root, start, wait.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.attestation.machine.proof_age import TAINT_KEY
from fastness.kinds.machineconfiguration import names
from tests.e2e.acceptance.cluster import a_file, machine_config
from tests.e2e.live import FASTNESS, Live, Outcome, environment, run
from tests.measuredboot.kernel import kernel
from tests.measuredboot.machine import require_machine
from tests.measuredboot.node_root import BUSYBOX, node_directory, require_node, unpack
from tests.realkube.fixtures import binaries_or_skip
from tools.realkube import cache_root

ROOT = Path(__file__).resolve().parents[3]
READY_SECONDS = 1800.0
pytestmark = [
    pytest.mark.long("a machine with a kubelet boots under emulation: minutes where the processor is shared"),
    pytest.mark.soak,
    pytest.mark.skipif(not os.environ.get("FASTNESS_SOAK"), reason="the long form: a kubelet under emulation"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root that `fastness machine image` prepared with the programs of a node."""
    require_machine()
    require_node()
    kernel()
    kubelet = binaries_or_skip(os.environ) / "kubelet"
    place = tmp_path_factory.mktemp("image")
    root = unpack(cache_root(os.environ), place / "root")
    node_directory(kubelet, place / "node")
    subprocess.run([sys.executable, ROOT / "tools/agent_image.py", place / "agent"], check=True, timeout=READY_SECONDS)
    with Live.start(place) as live:
        trust = fastness(live, "image", "trust", "--file", "trust.json")
        assert trust.code == 0, trust.err
    words = [
        "--shape",
        "debian",
        "--platform",
        "qemu",
        "--agent",
        "agent",
        "--trust",
        "trust.json",
        "--with-node",
        "node",
    ]
    image = run([FASTNESS, "machine", "image", root, *words, "--strict"], environment(place), cwd=place)
    assert image.code == 0, image.err
    return root


@pytest.fixture(scope="module")
def live(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A control plane with one real machine."""
    with Live.start(tmp_path_factory.mktemp("up"), "--vms", "1", "--vm-root", str(prepared)) as live:
        yield live


def fastness(live: Live, *words: str) -> Outcome:
    """Run a verb against a control plane."""
    return run([FASTNESS, *words], environment(live.home, KUBECONFIG=str(live.kubeconfig)), cwd=live.home)


def until(live: Live, answer: Callable[[], bool], what: str) -> None:
    """Wait for something that a machine under emulation does in its own time."""
    console = live.state / "vms" / "vm-0" / "console.log"
    end = time.monotonic() + READY_SECONDS
    while not answer():
        tail = console.read_text(errors="replace")[-4000:] if console.exists() else "nothing yet"
        assert time.monotonic() < end, f"not {what}; the console says: {tail}"
        time.sleep(2)


def nodes(live: Live) -> list[dict[str, Any]]:
    """The nodes that are Ready."""
    listed = live.kubectl("get", "nodes", "-o", "json").json["items"]
    return [
        node
        for node in listed
        if any(entry["type"] == "Ready" and entry["status"] == "True" for entry in node["status"].get("conditions", ()))
    ]


def test_the_machine_becomes_a_node_that_is_ready_and_proved(live: Live) -> None:
    until(live, lambda: bool(nodes(live)), "a node that is Ready")
    (node,) = nodes(live)
    meta, info = node["metadata"], node["status"]["nodeInfo"]
    assert "Debian" in info["osImage"]
    assert info["containerRuntimeVersion"].startswith("containerd://")
    role = "node-role.kubernetes.io/worker"
    until(live, lambda: role in nodes(live)[0]["metadata"]["labels"], "a worker")
    # The taint that it registered with goes when the proof was looked at, and the proof is the one of this node's Machine.
    until(live, lambda: not tainted(live), "without the taint of the unproved")
    assert machine(live)["nodeName"] == meta["name"]
    assert machine(live)["simulated"] is False


def pool(live: Live) -> dict[str, Any]:
    """The pool of the workers."""
    return dict(live.kubectl("get", "mcp", "worker", "-o", "json").json)


def machine(live: Live) -> dict[str, Any]:
    """The status of the one Machine."""
    listed = live.kubectl("get", "machines.trusted-execution-clusters.io", "-n", "fastness-system", "-o", "json")
    (only,) = listed.json["items"]
    return dict(only["status"])


def tainted(live: Live) -> bool:
    """Whether the node still has the taint that a proof takes away."""
    taints = nodes(live)[0]["spec"].get("taints", ())
    return any(taint["key"] == TAINT_KEY for taint in taints)


def test_its_certificates_came_for_its_proof_and_the_join_is_on_the_record(live: Live) -> None:
    until(live, lambda: bool(nodes(live)), "a node that is Ready")

    def approved() -> bool:
        requests = live.kubectl("get", "csr", "-o", "json").json["items"]
        decided = [request["status"].get("conditions", ()) for request in requests]
        return bool(requests) and all(any(entry["type"] == "Approved" for entry in entries) for entries in decided)

    until(live, approved, "approved")
    assert fastness(live, "audit", "show", "--what", "join", "-o", "json").json


def test_it_stays_attested_by_proofs_that_it_makes_in_its_own_root(live: Live) -> None:
    """Something that adds to a register after the boot, as systemd does by itself, would be seen here first."""
    until(live, lambda: bool(nodes(live)), "a node that is Ready")
    joined = nodes(live)[0]["metadata"]["creationTimestamp"]
    until(live, lambda: machine(live)["lastAttested"] > joined, "attested after it had joined")
    assert {entry["type"]: entry["status"] for entry in machine(live)["conditions"]}["Attested"] == "True"


def test_its_agent_says_what_it_runs_and_the_pool_counts_it(live: Live) -> None:
    """A pool of one: the node waits to be told, and alone would fill the budget of those that may be away."""
    until(live, lambda: pool(live)["status"].get("updatedMachineCount") == 1, "counted as updated")
    notes = nodes(live)[0]["metadata"]["annotations"]
    assert notes[names.CURRENT_CONFIG] == pool(live)["spec"]["configuration"]["name"]
    assert notes[names.STATE] == names.NodeState.DONE


def test_a_config_of_day_two_reaches_it_and_the_pool_says_updated(live: Live) -> None:
    until(live, lambda: pool(live)["status"].get("updatedMachineCount") == 1, "counted as updated")
    before, path = pool(live)["spec"]["configuration"]["name"], "/etc/day-two"
    policy = {"spec": {"nodeDisruptionPolicy": {"files": [{"path": path, "actions": [{"type": "None"}]}]}}}
    patched = live.kubectl("patch", "machineconfiguration", "cluster", "--type=merge", "-p", json.dumps(policy))
    assert patched.code == 0, patched.err
    assert live.kubectl("apply", "-f", "-", stdin=machine_config("50-day-two", config=a_file(path, "hello"))).code == 0
    until(live, lambda: pool(live)["spec"]["configuration"]["name"] != before, "rendered anew")
    rendered = pool(live)["spec"]["configuration"]["name"]
    until(live, lambda: pool(live)["status"]["configuration"]["name"] == rendered, "where its pool is")
    assert nodes(live)[0]["metadata"]["annotations"][names.CURRENT_CONFIG] == rendered


def test_a_pod_that_names_it_runs_to_its_end(live: Live) -> None:
    until(live, lambda: bool(nodes(live)) and not tainted(live), "a node that takes pods")
    name = nodes(live)[0]["metadata"]["name"]
    # There is no scheduler: whoever makes the pod says where it runs. Its image lies in the machine's.
    placed = json.dumps({"spec": {"nodeName": name}})
    words = [f"--image={BUSYBOX}", "--image-pull-policy=Never", "--restart=Never", f"--overrides={placed}"]
    made = live.kubectl("run", "hello", *words, "--", "true")
    assert made.code == 0, made.err

    def succeeded() -> bool:
        return live.kubectl("get", "pod", "hello", "-o", "jsonpath={.status.phase}").out == "Succeeded"

    until(live, succeeded, "a pod that ended well")
