"""Signed images in a real registry: the library of container runtimes finds and verifies what we signed, and refuses the rest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.components import require_program
from tests.e2e.machineconfig.local_registry import LocalRegistry, Machine, running_registry
from tests.realkube.fixtures import binaries_or_skip
from tests.release.small import small_image
from tools.realkube import IMAGES
from tools.release import layout, registry, signing

pytestmark = pytest.mark.processes

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
NAME = "registry.example/fastness/fastness"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    program = require_program(Path(shutil.which("docker-registry") or "/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


def machine(place: Path, local: LocalRegistry, key: signing.PrivateKey) -> Machine:
    """A machine that runs what this key signed under our name, and nothing else."""
    identity = {"type": "exactRepository", "dockerRepository": NAME}
    demand = {"type": "sigstoreSigned", "keyPath": str(place / "release.pub"), "signedIdentity": identity}
    # Debian's skopeo knows these signatures and refuses to look at them.
    made = Machine(place, binaries_or_skip(os.environ, IMAGES) / "ask-image")
    made.write(
        {
            "/release.pub": signing.public_pem(key).decode(),
            "/etc/containers/policy.json": json.dumps({"default": [demand]}),
            "/etc/containers/registries.conf": f'[[registry]]\nlocation = "{local.address}"\ninsecure = true\n',
            "/etc/containers/registries.d/default.yaml": "default-docker:\n  use-sigstore-attachments: true\n",
        }
    )
    return made


def test_what_we_signed_is_pulled_and_under_another_key_refused(local: LocalRegistry, tmp_path: Path) -> None:
    image = small_image(tmp_path / "image")
    signing.sign_image(image.layout, image.digest, KEY, NAME)
    pushed = registry.push(local.url, image.layout, "fastness/fastness")
    assert pushed == {"1": image.digest, signing.signature_tag(image.digest): layout.entries(image.layout)[1]["digest"]}
    assert machine(tmp_path / "a", local, KEY).pull(f"{local.address}/fastness/fastness:1") == ""
    refusal = machine(tmp_path / "b", local, OTHER).pull(f"{local.address}/fastness/fastness:1")
    assert "cryptographic signature verification failed" in refusal


def test_what_nobody_signed_is_refused(local: LocalRegistry, tmp_path: Path) -> None:
    image = small_image(tmp_path / "image", "unsigned")
    registry.push(local.url, image.layout, "fastness/unsigned")
    refusal = machine(tmp_path / "a", local, KEY).pull(f"{local.address}/fastness/unsigned:1")
    assert "no signature exists" in refusal


def test_an_image_is_pushed_once_and_again_without_sending_it(local: LocalRegistry, tmp_path: Path) -> None:
    image = small_image(tmp_path / "image", "twice")
    first = registry.push(local.url, image.layout, "fastness/twice")
    image.layers[0].blob.unlink()
    layout.blob_path(image.layout, image.layers[0].digest).write_bytes(b"never read")
    assert registry.push(local.url, image.layout, "fastness/twice") == first
