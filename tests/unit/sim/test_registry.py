"""The simulated registry: what was pushed can be pulled, by digest or by tag, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.host.errors import ImageFailure
from fastness.crypto.digests import sha256
from fastness.sim.registry import INDEX, INSTALLED_VERSION, REPOSITORY, SimRegistry
from fastness.sim.tee.images import default_image


@pytest.fixture
def registry(tmp_path: Path) -> SimRegistry:
    return SimRegistry(tmp_path / "registry")


def test_the_installed_image_is_there_from_the_start(registry: SimRegistry) -> None:
    assert [image.reference for image in registry.images()] == [registry.installed]
    assert registry.pull(registry.installed) == registry.installed
    assert registry.pull(f"{REPOSITORY}:{INSTALLED_VERSION}") == registry.installed


def test_what_was_pushed_is_pulled_by_digest_and_by_tag_and_outlives_the_process(tmp_path: Path) -> None:
    made = SimRegistry(tmp_path).push("43.0")
    again = SimRegistry(tmp_path)
    assert made.reference != again.installed
    assert {again.pull(made.reference), again.pull(made.tagged)} == {made.reference}
    assert again.push("43.0") == made, "the same version is the same image"
    assert again.version(made.reference) == "43.0"


def test_the_digest_is_that_of_what_a_machine_measures(registry: SimRegistry) -> None:
    made = registry.push("registry.example/os:43.0")
    content = registry.manifest(made.reference)
    assert made.reference == f"registry.example/os@{sha256(content)}"
    assert default_image("43.0").measurement.to_manifest()["pcrs"]
    assert default_image("43.0").pcrs != default_image().pcrs


@pytest.mark.parametrize(
    "image",
    [f"{REPOSITORY}@sha256:{'d' * 64}", f"{REPOSITORY}:9", "registry.example/machine:42.1", "nonsense", ""],
)
def test_what_was_never_pushed_cannot_be_pulled(registry: SimRegistry, image: str) -> None:
    with pytest.raises(ImageFailure, match="cannot be pulled"):
        registry.pull(image)


def test_a_withdrawn_image_cannot_be_pulled_and_machines_that_run_it_still_measure_it(registry: SimRegistry) -> None:
    made = registry.push("43.0")
    registry.withdraw("43.0")
    with pytest.raises(ImageFailure, match="no such manifest"):
        registry.pull(made.reference)
    assert registry.version(made.reference) == "43.0"
    with pytest.raises(ImageFailure, match="has no image"):
        registry.withdraw("43.0")
    assert registry.push("43.0") == made


@pytest.mark.parametrize("name", ["", "latest", "43.0@sha256:" + "a" * 64, "../43", "registry.example/os", "43.0;x"])
def test_an_image_is_made_of_a_version(registry: SimRegistry, name: str) -> None:
    with pytest.raises(ImageFailure):
        registry.push(name)


def test_a_manifest_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    registry = SimRegistry(tmp_path)
    made = registry.push("43.0")
    (tmp_path / made.reference.partition("@")[2].replace(":", "-")).write_bytes(b"{}")
    with pytest.raises(ImageFailure, match="other bytes"):
        registry.pull(made.reference)


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text('[{"image": 1}]')
    with pytest.raises(ImageFailure, match=r"index\.json cannot be read"):
        SimRegistry(tmp_path).images()
