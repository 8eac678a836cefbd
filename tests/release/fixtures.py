"""The pytest side of the images: each is built when a test first asks for it."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.bed.bed import Bed
from tools.release import image
from tools.release.layout import Built
from tools.release.registry import push

HOST = "ghcr.io"  # whatever the host: nodes of a bed ask its registry for all of them


def require_debian() -> None:
    """Skip the test where there is no Debian, and fail it there with CI=true."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("images are built on a Debian")


def built(recipe: image.Recipe, factory: pytest.TempPathFactory) -> Built:
    """An image in a layout of its own."""
    require_debian()
    return image.build(recipe, factory.mktemp(recipe.name) / "layout", image.image_cache(os.environ))


@pytest.fixture(scope="session")
def server_image(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image of the control plane."""
    return built(image.SERVER, tmp_path_factory)


@pytest.fixture(scope="session")
def agent_image(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image of the agent."""
    return built(image.AGENT, tmp_path_factory)


@pytest.fixture(scope="session")
def builder_image(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image of Jobs that build."""
    return built(image.BUILDER, tmp_path_factory)


def pushed(bed: Bed, built: Built) -> str:
    """Put an image into a bed's registry; its name with its digest, for pods."""
    repository = f"fastness/{built.name}"
    push(bed.registry, built.layout, repository)
    return f"{HOST}/{repository}:{built.tag}@{built.digest}"


@pytest.fixture(scope="session")
def fastness_image(bed: Bed, server_image: Built) -> str:
    """The name of the control plane's image, which the bed's registry has."""
    return pushed(bed, server_image)
