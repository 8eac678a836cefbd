"""What this cluster signed, as others verify it: the library of container runtimes, with the key from the ConfigMap."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fastness.app.keeping.key_rotation import BY_NAME, rotate_keys
from fastness.builds.live.image_signer import ImageSigner
from fastness.builds.live.transfers import Way, put_beside
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import Cluster
from fastness.runtime.clock import SystemEntropy
from tests.components import require_program
from tests.e2e.builds.registry_images import pushed_busybox
from tests.e2e.builds.test_buildah import access
from tests.e2e.machineconfig.local_registry import LocalRegistry, Machine, running_registry
from tests.embedded.fixtures import Embedded
from tests.enrolling import MovedClock
from tests.realkube.fixtures import binaries_or_skip
from tools.realkube import IMAGES

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


async def published(cluster: Cluster) -> dict[str, str]:
    return dict((await cluster.get(CONFIG_MAP.resource, "image-public-keys", "fastness-system"))["data"])


def refusal(place: Path, registry: LocalRegistry, image: str, key: str) -> str:
    """Why a machine that asks for signatures by this key does not pull an image; empty when it does."""
    identity = {"type": "exactRepository", "dockerRepository": image.partition("@")[0]}
    demand = {"type": "sigstoreSigned", "keyPath": str(place / "cosign.pub"), "signedIdentity": identity}
    # Debian's skopeo knows these signatures and refuses to look at them.
    machine = Machine(place, binaries_or_skip(os.environ, IMAGES) / "ask-image")
    machine.write({
        "/cosign.pub": key, "/etc/containers/policy.json": json.dumps({"default": [demand]}),
        "/etc/containers/registries.conf": f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n',
        "/etc/containers/registries.d/default.yaml": "default-docker:\n  use-sigstore-attachments: true\n",
    })  # fmt: skip
    return machine.pull(image)


async def test_others_verify_what_was_signed_here_and_a_rotation_begins_another_key(
    embedded_server: Embedded, registry: LocalRegistry, tmp_path: Path
) -> None:
    cluster, clock, image = embedded_server.cluster, MovedClock(), pushed_busybox(registry)
    signer = ImageSigner(cluster, clock, SystemEntropy())
    await put_beside(Way.to_write(access(registry), image), await signer.sign(image))
    first = (await published(cluster))["cosign.pub"]
    assert refusal(tmp_path / "a", registry, image, first) == ""

    now = clock.now()
    async for _ in rotate_keys(cluster, [BY_NAME["image-signing-keys"]], "a laptop was stolen", SystemEntropy(), now):
        pass
    keys = await published(cluster)
    assert keys["before.pub"] == first != keys["cosign.pub"]
    assert "verification failed" in refusal(tmp_path / "b", registry, image, keys["cosign.pub"])
    await put_beside(Way.to_write(access(registry), image), await signer.sign(image))
    assert refusal(tmp_path / "c", registry, image, first) == "", "a new key is told before it signs"
    clock.ahead += timedelta(minutes=3)
    await put_beside(Way.to_write(access(registry), image), await signer.sign(image))
    assert refusal(tmp_path / "d", registry, image, keys["cosign.pub"]) == ""
