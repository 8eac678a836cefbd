"""The wheel of the agent: complete, alone, and without the server."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tools import agent_wheel

pytestmark = pytest.mark.processes

SERVER_PACKAGES = ("uvicorn", "cel_expr_python", "jsonschema_rs", "dcap_qvl", "regopy", "sqlite3")
PROBE = """
import sys, importlib, pkgutil
import fastness, fastness.cli.machine.agent, fastness.agent, fastness.agent.apply.hosts, fastness.kube.client
for name in sys.argv[2:]:
    importlib.import_module(name)
print(fastness.__file__)
print(",".join(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel, unpacked."""
    directory = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(agent_wheel.build(directory)) as archive:
        archive.extractall(directory / "unpacked")
    return directory / "unpacked"


def test_every_module_of_the_wheel_imports_without_the_server(wheel: Path) -> None:
    modules = sorted(agent_wheel.closure()[0])
    done = subprocess.run(
        [sys.executable, "-c", PROBE, ",".join(SERVER_PACKAGES), *modules], env={**os.environ, "PYTHONPATH": str(wheel)},
        cwd=wheel, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    place, loaded = done.stdout.splitlines()
    assert place.startswith(str(wheel))
    assert loaded == ""


def test_the_wheel_holds_the_agent_and_nothing_of_the_server(wheel: Path) -> None:
    names = {path.name for path in (wheel / "fastness").iterdir()}
    assert {"agent", "formats", "kinds", "kube", "observe", "protocol", "runtime"} <= names
    assert names.isdisjoint(
        {"apiserver", "keys", "http", "record", "attestation", "enrolment", "release", "app", "sim"}
    )
    assert not (wheel / "fastness/machineconfig/loops").exists()


def test_its_command_is_the_agents(wheel: Path) -> None:
    [entry] = list(wheel.glob("*.dist-info/entry_points.txt"))
    assert "fastness-agent = fastness.cli.machine.agent:agent" in entry.read_text()


def test_the_declared_dependencies_are_those_that_its_modules_import() -> None:
    declared = tomllib.loads(agent_wheel.RECIPE.read_text())["project"]["dependencies"]
    dependencies = {entry.partition(">")[0].lower().replace("_", "-") for entry in declared}
    providers = importlib.metadata.packages_distributions()
    imported = {providers[name][0].lower().replace("_", "-") for name in agent_wheel.closure()[1]}
    assert imported == dependencies


def test_its_version_is_that_of_the_product() -> None:
    recipe = tomllib.loads(agent_wheel.RECIPE.read_text())["project"]["version"]
    product = tomllib.loads((agent_wheel.HOME / "pyproject.toml").read_text())["project"]["version"]
    assert recipe == product
