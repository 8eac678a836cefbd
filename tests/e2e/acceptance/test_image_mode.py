"""Seed 003, its user stories and its workflow, step by step, in a confidential pool: real builder, real registry.

One cluster walks the whole way, since every step begins where the one before it ended. Each helper below is a step that a person
takes; what it looks at is what `kubectl`, the command line and the registry show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_program, require_root
from tests.e2e.acceptance.cluster import GROUP, Acceptance, a_file, machine_config
from tests.e2e.builds.registry_images import pulled, pushed_busybox, pushed_other, tags
from tests.e2e.live import Live
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.patience import eventually

HOME = "openshift-machine-config-operator"
BOOTED = "fastness.dev/booted-image"
CHRONY, SECRET = "/etc/chrony.conf", "/etc/secret.conf"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


class ImageMode(Acceptance):
    """The worker pool, and what its administrator reads of images."""

    def image(self) -> str:
        """What was built last for the pool, by digest; empty before."""
        return str(self.get("machineosconfig", "worker").get("status", {}).get("currentImagePullSpec", ""))

    def booted(self) -> set[str]:
        """What nodes say that they booted."""
        return {node["metadata"]["annotations"].get(BOOTED, "") for node in self.nodes()}

    def arrived(self, image: str) -> bool:
        """Whether every node booted an image and proved it, and the pool says so."""
        updated = self.condition("mcp", "worker", "Updated")
        attested = self.get("confidentialcluster", "cluster")["status"].get("attested")
        return updated.get("status") == "True" and self.booted() == {image} and attested == self.workers

    def waits_for(self, image: str) -> bool:
        """Whether the pool says that it waits until somebody approves an image."""
        message = self.condition("mcp", "worker", "Updating").get("message", "")
        return f"the values of {image} do not count" in message

    def values(self, image: str) -> dict[str, str]:
        """What machines will measure that boot an image, by name; empty before it is known."""
        description = self.fastness("image", "show", image, "-o", "json")
        return {each["name"]: each["value"] for each in description.json["values"]} if description.code == 0 else {}

    def builds(self) -> list[dict[str, Any]]:
        """The builds that succeeded."""
        return [
            build
            for build in self.get("machineosbuilds").get("items", [])
            if {"Succeeded": "True"}.items()
            <= {c["type"]: c["status"] for c in build.get("status", {}).get("conditions", ())}.items()
        ]

    def build_after(self, image: str) -> str:
        """The next image that is built."""
        return str(eventually(lambda: self.image() if self.image() != image else "", "another image"))

    def approved_and_arrived(self, image: str, *, built: bool = True) -> None:
        """Approve an image and follow the pool there; no node went before, and none is on anything else after.

        What was built here has values before anybody approved it.
        """
        before = self.booted()
        eventually(lambda: self.waits_for(image), "a pool that waits for an approval")
        if built:
            eventually(lambda: self.values(image), "values before the first reboot")
        assert self.booted() == before, "no node reboots before somebody approved"
        approved = self.fastness("image", "approve", image)
        assert approved.code == 0, approved.err
        eventually(lambda: self.arrived(image), f"two nodes that booted and proved {image}")


@pytest.fixture
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageMode]:
    """`fastness up` with two workers that have proved themselves; nobody else's, since the way leaves nothing as it was."""
    with Live.start(tmp_path_factory.mktemp("images"), "--machines", "2") as live:
        made = ImageMode(live, 2)
        eventually(lambda: len(made.ready()) == 2 and made.updated(), "two attested nodes")
        yield made


def names_a_base(pool: ImageMode, base: str) -> None:
    """Workflow 2, story 3: the release data of the cluster name an operating system image."""
    eventually(lambda: pool.get("controllerconfig", "machine-config-controller"), "the release data of the cluster")
    spec = json.dumps({"spec": {"baseOSContainerImage": base}})
    pool.kubectl("patch", "controllerconfig", "machine-config-controller", "--type", "merge", "-p", spec)


def describes_a_layer(pool: ImageMode, registry: LocalRegistry) -> None:
    """Workflow 2: where to push, with which secret, and what the administrator adds."""
    pool.live.kubectl("create", "namespace", HOME)
    words = ("create", "secret", "docker-registry", "push", f"--docker-server={registry.address}")
    pool.kubectl("-n", HOME, *words, "--docker-username=me", "--docker-password=any")
    pool.apply({
        "apiVersion": f"{GROUP}/v1", "kind": "MachineOSConfig", "metadata": {"name": "worker"},
        "spec": {
            "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": f"{registry.address}/os/worker:latest",
            "containerFile": [{"content": "RUN echo mine > /etc/mine"}],
        },
    })  # fmt: skip


def is_told_about_tls(pool: ImageMode, registry: LocalRegistry) -> None:
    """Who forgot to say that the registry has no TLS reads what to write, and writes it."""

    def hint() -> bool:
        builds = pool.get("machineosbuilds").get("items", [])
        return any(
            "name it in registrySources.insecureRegistries" in json.dumps(build.get("status")) for build in builds
        )

    eventually(hint, "a build that says what is wrong with the registry")
    lists = {"registrySources": {"insecureRegistries": [registry.address]}}
    pool.apply(
        {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}, "spec": lists}
    )


def config_is_rendered_and_built(pool: ImageMode, registry: LocalRegistry, image: str) -> None:
    """Workflow 4 to 6: a rendered config, a build that names it, an image at the push spec."""
    build = next(each for each in pool.builds() if each["status"]["digestedImagePushSpec"] == image)
    assert build["spec"]["machineConfig"]["name"] == pool.rendered()
    assert build["metadata"]["name"] in tags(registry, "os/worker")


@pytest.mark.row("003-07")
@pytest.mark.row("003-08")
@pytest.mark.row("003-12")
@pytest.mark.row("003-13")
@pytest.mark.row("003-62")
@pytest.mark.row("003-63")
@pytest.mark.long("four rollouts over two nodes, and three builds")
def test_the_stories_of_image_mode_from_the_first_layer_to_the_way_back(
    pool: ImageMode, registry: LocalRegistry, tmp_path: Path
) -> None:
    eventually(lambda: len(pool.booted()) == 1 and all(pool.booted()), "nodes that say what they booted")
    (installed,) = pool.booted()
    pool.apply(machine_config("61-secret", config=a_file(SECRET, "canary")))
    base = pushed_busybox(registry)
    names_a_base(pool, base)
    describes_a_layer(pool, registry)
    is_told_about_tls(pool, registry)
    first = pool.build_after("")

    # Story 1, workflow 7: machines are updated with an image that was built, and each proves it.
    pool.approved_and_arrived(first)
    config_is_rendered_and_built(pool, registry, first)
    assert pulled(registry, first)[0]["etc/mine"] == b"mine\n"

    # Workflow 1, 3: a further MachineConfig, which anybody may read.
    public = machine_config("60-time", config=a_file(CHRONY, "server%20a"))
    public["metadata"]["annotations"] = {"fastness.dev/public": "true"}
    pool.apply(public)
    second = pool.build_after(first)
    assert pool.values(second)["tpm_pcr4"] != pool.values(first)["tpm_pcr4"], "another image, other values"
    pool.approved_and_arrived(second)
    files, _, _ = pulled(registry, second)
    assert files[CHRONY.lstrip("/")] == b"server a"
    assert all(b"canary" not in content for content in files.values())
    assert pool.contents(SECRET) == {"canary"}, "what is confidential came to the disks of proven machines"

    # Story 2, workflow 8: the config is taken back by going back to the image of before; nothing is built.
    builds = len(pool.builds())
    pool.kubectl("delete", "mc", "60-time")
    eventually(lambda: pool.arrived(first), "two nodes on the image of before")
    assert len(pool.builds()) == builds

    # Story 3: the cluster names a new operating system image, and the pool is built on it and goes there.
    names_a_base(pool, other := pushed_other(registry))
    third = pool.build_after(first)
    assert pulled(registry, third)[2][0] == pulled(registry, other)[2][0]
    pool.approved_and_arrived(third)

    support_boots_the_same_sequence(pool, registry, tmp_path, [installed, first, second, first, third])
    nobody_boots_what_is_not_there(pool, registry, third)

    # Workflow 8: without the MachineOSConfig the pool goes to the base, which waits for its own approval.
    pool.kubectl("delete", "machineosconfig", "worker")
    pool.approved_and_arrived(other, built=False)
    assert pool.contents(SECRET) == {"canary"}
    eventually(lambda: not pool.get("machineosbuilds").get("items"), "no builds of a pool without a MachineOSConfig")


def support_boots_the_same_sequence(pool: ImageMode, registry: LocalRegistry, place: Path, queue: list[str]) -> None:
    """Story 4: what a node booted, by digest, with the build and the sources; and the same images elsewhere, in order."""
    node = pool.nodes()[0]["metadata"]["name"]
    boots = pool.fastness("image", "history", node, "-o", "json").json["boots"]
    images = [boot["image"] for boot in boots]
    assert [image for image, before in zip(images, ["", *images], strict=False) if image != before] == queue
    made = {str(build["status"]["digestedImagePushSpec"]): str(build["metadata"]["name"]) for build in pool.builds()}
    assert [boot["build"] for boot in boots if boot["image"] == queue[-1]] == [made[queue[-1]]]
    assert ["60-time" in boot["sources"] for boot in boots if boot["image"] in queue[1:]] == [False, True, False, False]
    words = ("--into", str(place / "queue"), "--insecure-registry", registry.address)
    replayed = pool.fastness("image", "replay", node, *words)
    sequence = json.loads((place / "queue" / "sequence.json").read_text())
    assert [entry["image"] for entry in sequence["images"]] == queue
    # The simulated image that machines are installed with lies in no registry that support could ask, and is named as such.
    assert len(sequence["notFetched"]) == 1
    assert queue[0] in replayed.err


def nobody_boots_what_is_not_there(pool: ImageMode, registry: LocalRegistry, running: str) -> None:
    """An image that no registry has gets no values, whoever approves it, and no node leaves for it."""
    absent = f"{registry.address}/os/worker@sha256:{'0' * 64}"
    refused = pool.fastness("image", "approve", absent, "--wait", "5")
    assert f"{'0' * 64}" in refused.err
    assert not pool.values(absent)
    assert pool.booted() == {running}
    pool.fastness("image", "withdraw", absent)
