"""hosts.toml in the hands of a real containerd, with a real registry as the mirror."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.machineconfig.render.registries.files import containerd_files
from tests.components import require_program
from tests.e2e.machineconfig.local_containerd import ctr, running_containerd
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.unit.machineconfig.render.registries.build import idms, image, itms, settings

Fetch = Callable[..., str]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a containerd of our own listens."""
    with running_containerd(tmp_path_factory.mktemp("containerd")) as address:
        yield address


@pytest.fixture
def fetch(tmp_path: Path, socket: Path) -> Fetch:
    """Fetches an image with the files that follow from objects; why that failed, empty if it did not."""

    def fetched(reference: str, *objects: Any) -> str:
        root = tmp_path / "machine"
        shutil.rmtree(root, ignore_errors=True)
        for path, text in containerd_files(settings(*objects)):
            place = root / path.removeprefix("/")
            place.parent.mkdir(parents=True)
            place.write_text(text)
        hosts = str(root / "etc/containerd/certs.d")
        done = ctr(socket, "content", "fetch", "--hosts-dir", hosts, reference)
        return "" if done.returncode == 0 else done.stderr

    return fetched


@pytest.fixture
def insecure(registry: LocalRegistry) -> dict[str, Any]:
    """The Image of a cluster whose mirror has no TLS."""
    return image(insecure=[registry.address])


def test_a_mirror_for_digests_serves_digests_alone(fetch: Fetch, registry: LocalRegistry, insecure: Any) -> None:
    made = registry.push("team/digests", "1", "a")
    mirrored = idms("a", {"quay.example/team": [f"{registry.address}/team"]})
    assert "quay.example" in fetch("quay.example/team/digests:1", insecure, mirrored)
    assert fetch(f"quay.example/team/digests@{made}", insecure, mirrored) == ""


def test_a_mirror_for_both_serves_tags(fetch: Fetch, registry: LocalRegistry, insecure: Any) -> None:
    registry.push("team/tags", "1", "b")
    places = {"quay.example": [registry.address]}
    assert fetch("quay.example/team/tags:1", insecure, idms("a", places), itms("b", places)) == ""


def test_a_mirror_below_a_path_of_its_own(fetch: Fetch, registry: LocalRegistry, insecure: Any) -> None:
    made = registry.push("pre/fix/team/paths", "1", "c")
    mirrored = idms("a", {"quay.example/team": [f"{registry.address}/pre/fix/team"]})
    assert fetch(f"quay.example/team/paths@{made}", insecure, mirrored) == ""


def test_a_registry_that_is_insecure_itself(fetch: Fetch, registry: LocalRegistry, insecure: Any) -> None:
    registry.push("team/plain", "1", "d")
    assert fetch(f"{registry.address}/team/plain:1", insecure) == ""


def test_a_mirror_that_nobody_called_insecure_is_asked_with_tls_alone(fetch: Fetch, registry: LocalRegistry) -> None:
    made = registry.push("team/secure", "1", "e")
    refusal = fetch(f"quay.example/team/secure@{made}", None, idms("a", {"quay.example": [registry.address]}))
    assert f"https://{registry.address}" in refusal
    assert f"http://{registry.address}" not in refusal
