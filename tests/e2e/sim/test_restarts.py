"""Machines stay the same over restarts, and nothing is left behind: not of a clean end, an interrupted start, or a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from fastness.sim.control_client import ask_control
from tests.components import require_program
from tests.e2e.docs.transcript import Shell, Step, matches, steps
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.patience import PATIENCE, eventually

STORY = Path(__file__).resolve().parents[3] / "docs/how-to/watch-the-story.md"


def consoles(live: Live) -> dict[str, str]:
    return {machine["name"]: machine["console"] for machine in ask_control(live.state, {"verb": "list"})["machines"]}


def uids(live: Live) -> set[str]:
    return {machine["metadata"]["uid"] for machine in live.kubectl("get", "machines", "-A", "-o", "json").json["items"]}


def disputed(live: Live) -> list[Any]:
    items = live.kubectl("get", "machines", "-A", "-o", "json").json["items"]
    return [entry for machine in items for entry in machine["status"].get("disputes") or ()]


def children(home: Path) -> list[str]:
    """Commands of processes that run in that directory, zombies left out."""
    commands = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve() == home.resolve():
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [command for command in commands if command]


def test_a_restart_goes_on_with_the_same_machines_under_the_same_faults(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--machines", "3") as live:
        eventually(lambda: set(consoles(live).values()) == {"running"}, "three machines")
        ask_control(live.state, {"verb": "do", "kind": "changed-boot-loader", "machine": "worker-0"})
        ask_control(live.state, {"verb": "do", "kind": "network-cut", "machine": "worker-1"})
        ask_control(live.state, {"verb": "remove", "machine": "worker-2"})
        before = uids(live)
        live.process.kill()
        live.process.wait()
    with Live.start(tmp_path, "--machines", "9") as live:
        assert sorted(consoles(live)) == ["worker-0", "worker-1"]
        eventually(lambda: "refused (value-differs)" in consoles(live)["worker-0"], "the refusal")
        assert consoles(live)["worker-1"] == "waiting for the network"
        for fault in ("worker-0.changed-boot-loader", "worker-1.network-cut"):
            ask_control(live.state, {"verb": "undo", "fault": fault})
        eventually(lambda: set(consoles(live).values()) == {"running"}, "machines that are well again")
        assert uids(live) == before
        assert not disputed(live)  # a machine that began to count its boots anew would look like a copy of itself
        assert "state has 2 machines and goes on with them" in live.stop().err
    assert not (tmp_path / "state" / "sim.sock").exists()
    outcome = run([FASTNESS, "up", "--port", "0", "--profile", "containers"], environment(tmp_path), cwd=tmp_path)
    assert (outcome.code, "start with --profile cluster" in outcome.err) == (4, True)
    (tmp_path / "state" / "simulator.json").write_text("{}")
    outcome = run([FASTNESS, "up", "--port", "0"], environment(tmp_path), cwd=tmp_path)
    assert (outcome.code, "simulator.json cannot be read" in outcome.err) == (4, True), outcome


def test_real_tpms_prove_machines_and_no_way_to_end_leaves_one_running(tmp_path: Path) -> None:
    for program, package in {"swtpm": "swtpm", "swtpm_setup": "swtpm-tools", "tpm2_quote": "tpm2-tools"}.items():
        require_program(Path("/usr/bin") / program, package)
    options = ("--machines", "1", "--tpm", "swtpm")
    command = [str(FASTNESS), "up", "--port", "0", *options]
    for delay in (0.4, 1.5, 3.0):  # in the imports, in the works of the TPM, while the machine boots
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            late = threading.Timer(PATIENCE, process.kill)
            late.start()
            # 130: there was nothing to end yet; the signal itself: Python was not that far yet
            assert process.wait() in (0, 130, -signal.SIGINT)
            late.cancel()
        eventually(lambda: children(tmp_path) == [], f"no process after {delay} seconds")
    with Live.start(tmp_path, *options) as live:
        eventually(lambda: consoles(live) == {"worker-0": "running"}, "a machine with a TPM of its own")
        assert any("swtpm socket" in command for command in children(tmp_path))
        machine = live.kubectl("get", "machines", "-A", "-o", "json").json["items"][0]
        assert (machine["status"]["tee"], machine["status"]["simulated"]) == ("tpm", True)
        ask_control(live.state, {"verb": "do", "kind": "changed-boot-loader", "machine": "worker-0"})
        eventually(lambda: "refused (value-differs)" in consoles(live)["worker-0"], "the refusal")
        live.process.kill()
        live.process.wait()
    eventually(lambda: children(tmp_path) == [], "the end of the TPM after a kill")
    with Live.start(tmp_path, *options) as live:
        ask_control(live.state, {"verb": "undo", "fault": "worker-0.changed-boot-loader"})
        eventually(lambda: consoles(live) == {"worker-0": "running"}, "the same machine")
        assert uids(live) == {machine["metadata"]["uid"]}
        assert live.stop().code == 0
    assert children(tmp_path) == []


def test_the_story_is_told_without_a_terminal_as_its_page_shows_and_ends(tmp_path: Path) -> None:
    [step] = steps(STORY.read_text())
    *printed, code = Shell(tmp_path, environment(tmp_path)).run(Step(f"{step.command}; echo $?"))
    assert code == "0", "\n".join(printed)
    assert matches(step.expected, printed), "\n".join(printed)
    chapters = [
        "3 machines boot", "$ fastness machine list", "changed-boot-loader", "is refused: value-differs [simulated]",
        "What to do:", "is attested (tpm) [simulated, host not proved]", "$ fastness plan -f", "3 nodes reboot",
        "root/etc/motd: told at",
        "enrolment said endorsement-refused, the config server 403", "$ fastness audit verify", "good: ",
    ]  # fmt: skip
    story = "\n".join(printed)
    places = [story.find(text) for text in chapters]
    assert places == sorted(places), story
    assert -1 not in places, story
    assert "\x1b[" not in story
    assert children(tmp_path) == []
    assert json.loads((tmp_path / "demo" / "simulator.json").read_bytes())["faults"] == []
