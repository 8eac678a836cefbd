"""The pytest side of the real cluster: one for the whole run, started when a test first asks for it.

A machine without the programs skips those tests and says how to get them; under CI=true the same is a failure, since a
skip there would hide that nothing was compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.realkube.cluster import RealKube
from tools.realkube import KUBERNETES, Recipe, locate

MISSING = "run `python tools/realkube.py ensure`"


def binaries_or_skip(env: Mapping[str, str], recipe: Recipe = KUBERNETES) -> Path:
    """The directory of the programs; skips the test when there is none, fails it under CI=true."""
    directory = locate(env, recipe)
    if directory is not None:
        return directory
    missing = f"{recipe.title} ({', '.join(recipe.packages)}) cannot be found: {MISSING}"
    if env.get("CI", "").lower() == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


@pytest.fixture(scope="session")
def real_kube_binaries() -> Path:
    """Directory with the programs."""
    return binaries_or_skip(os.environ)


@pytest.fixture(scope="session")
def real_kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A real cluster shared by the whole run: tests use names of their own."""
    with RealKube.start(tmp_path_factory.mktemp("realkube"), real_kube_binaries) as kube:
        yield kube
