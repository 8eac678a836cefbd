"""The pytest side of the bed: one for the whole run, started when a test first asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.bed import name_server
from tests.bed.base import python_base
from tests.bed.bed import Bed
from tests.bed.images import push
from tests.bed.kubectl import Kubectl
from tests.bed.prerequisites import needs_of_kernel, needs_of_user
from tests.realkube.fixtures import binaries_or_skip
from tools.realkube import CHARTS, DNS, cache_root


def require_machine(env: Mapping[str, str], directory: Path) -> None:
    """Skip the test where a bed cannot be; fail it where a run with CI=true should have provided what is missing."""
    need = needs_of_user()
    if need is not None and env.get("CI", "").lower() == "true":
        pytest.fail(need, pytrace=False)
    need = need or needs_of_kernel(directory)
    if need is not None:
        pytest.skip(need)


@pytest.fixture(scope="session")
def bed_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the Kubernetes programs, on a machine where a bed can be."""
    require_machine(os.environ, tmp_path_factory.mktemp("bed-probe"))
    return binaries_or_skip(os.environ)


@pytest.fixture(scope="session")
def bed(bed_machine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A real Kubernetes with two nodes and names, shared by the whole run: tests use names of their own."""
    coredns = binaries_or_skip(os.environ, DNS) / "coredns"
    with Bed.start(tmp_path_factory.mktemp("bed"), bed_machine) as bed:
        name_server.start(Kubectl(bed.kube.kubeconfig, "kube-system"), bed.registry, coredns)
        yield bed


@pytest.fixture(scope="session")
def helm_program() -> Path:
    """helm itself."""
    return binaries_or_skip(os.environ, CHARTS) / "helm"


@pytest.fixture(scope="session")
def python_image(bed: Bed) -> str:
    """The name of an image with Python, which the bed's registry has."""
    image = python_base(cache_root(os.environ))
    push(bed.registry, image)
    return f"ghcr.io/{image.path}:{image.tag}"
