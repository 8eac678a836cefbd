"""The agent's wheel in an environment of its own: installed with what it declares, it brings a directory to its config.

The environment is clean. Dependencies come from wherever pip on this machine gets packages; where that cannot be reached, exactly
the declared ones, and what those declare, are taken from the environment that runs the tests. Either way nothing of the server
is there, so an import of it would end the run.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.e2e.agent.test_agent_process import admit, notes
from tests.e2e.agent.test_virtual_machines import MOTD
from tests.e2e.live import Live, environment
from tests.patience import PATIENCE, eventually
from tools import agent_wheel

SERVER = ("uvicorn", "granian", "jsonschema-rs", "cel-expr-python", "regopy", "fastness")
INSTALL_SECONDS = 40
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel in it; the path of its programs."""
    directory = tmp_path_factory.mktemp("alone")
    wheel = agent_wheel.build(directory)
    venv.create(directory / "venv", with_pip=True, symlinks=True)
    programs = directory / "venv" / "bin"
    try:
        install(programs, str(wheel), "--retries", "0")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        install(programs, str(wheel), "--no-deps", "--no-index")
        target = directory / "venv/lib" / f"python3.{sys.version_info[1]}" / "site-packages"
        for name in declared("fastness-agent", wheel_requirements()):
            transplant(name, target)
    return programs


def install(programs: Path, *words: str) -> None:
    command = [programs / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *words]
    subprocess.run(
        [str(word) for word in command], check=True, timeout=INSTALL_SECONDS, capture_output=True, env=outside()
    )


def outside() -> dict[str, str]:
    """The environment of the machine without what points into this one."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON") and key != "VIRTUAL_ENV"}


def wheel_requirements() -> list[str]:
    dependencies: list[str] = tomllib.loads(agent_wheel.RECIPE.read_text())["project"]["dependencies"]
    return dependencies


def declared(root: str, requirements: list[str]) -> list[str]:
    """All distributions that follow from some requirements, extras and other platforms left out."""
    closure: dict[str, None] = {}
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        match = _NAME.match(requirement)
        name = match[0] if match else ""
        if not name or name in closure or name == root or "extra ==" in requirement:
            continue
        try:
            waiting += importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or version
        closure[name] = None
    return list(closure)


def transplant(name: str, target: Path) -> None:
    for file in importlib.metadata.files(name) or ():
        if ".." not in file.parts:
            place = target.joinpath(*file.parts)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), place)


def test_nothing_of_the_server_came_along_and_nothing_is_missing(alone: Path) -> None:
    listed = subprocess.run(
        [str(alone / "python"), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
        capture_output=True, text=True, check=True, timeout=30, env=outside(),
    ).stdout.lower()  # fmt: skip
    present = {line.partition("==")[0].replace("_", "-") for line in listed.splitlines()}
    assert "fastness-agent" in present
    assert present.isdisjoint(SERVER)
    checked = subprocess.run(
        [str(alone / "python"), "-m", "pip", "check"],
        capture_output=True,
        text=True,
        timeout=30,
        env=outside(),
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_it_says_how_to_use_it(alone: Path) -> None:
    usage = subprocess.run(
        [str(alone / "fastness-agent"), "run", "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        env=outside(),
        check=False,
    )
    assert usage.returncode == 0, usage.stderr
    assert "--root" in usage.stdout


def test_it_brings_a_directory_to_its_config_and_ends_when_asked(alone: Path, tmp_path: Path) -> None:
    root = tmp_path / "machine"
    root.mkdir()
    with Live.start(tmp_path) as live:
        assert live.kubectl("apply", "-f", "-", stdin=MOTD).code == 0
        admit(live)
        words = [
            alone / "fastness-agent",
            "run",
            "--node",
            "byhand",
            "--root",
            root,
            "--fast",
            "--kubeconfig",
            live.kubeconfig,
        ]
        with (tmp_path / "agent.log").open("w") as log:
            agent = subprocess.Popen([str(word) for word in words], env=environment(tmp_path), stderr=log)
            try:
                eventually(
                    lambda: notes(live).get("state") == "Done" and (root / "etc/motd").exists(),
                    "a machine that is Done",
                )
                assert (root / "etc/motd").read_text() == "hello\n"
                agent.send_signal(signal.SIGTERM)
                assert agent.wait(timeout=PATIENCE) == 0, (tmp_path / "agent.log").read_text()
            finally:
                if agent.poll() is None:
                    agent.kill()
                    agent.wait(timeout=PATIENCE)
