"""The OSImageStream of a cluster: made from what the cluster names, followed by pools, and never in the way without a source."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, NAMESPACE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.openshift.config import CLUSTER_VERSION
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.errors import AlreadyExists, Invalid
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams import sources as where
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.machineconfig.streams.offers import BOOTABLE, EXTENSIONS
from fastness.machineconfig.streams.offers import STREAM as STREAM_LABEL
from tests.component.machineconfig.test_streams import STREAM, render_message
from tests.component.machineconfig.worker_pool import CONFIG, POOL, WorkerPool, config, open_worker_pool, until
from tests.embedded.fixtures import Embedded

RELEASE = "quay.example/release/images@sha256:" + "f" * 64


def image(name: str) -> str:
    return f"quay.example/os/{name}@sha256:{name.encode().hex():0<64}"


class Registry:
    """A registry that has what it is given, and counts what is asked."""

    def __init__(self) -> None:
        self.images: dict[str, Mapping[str, str]] = {}
        self.references: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        self.asked: list[str] = []

    def has(self, *streams: str) -> None:
        for name in streams:
            self.images[image(name)] = {STREAM_LABEL: name, BOOTABLE: "1"}
            self.images[image(f"{name}-extensions")] = {STREAM_LABEL: name, EXTENSIONS: "true"}

    async def resolve(self, image: str, access: RegistryAccess) -> str:
        self.asked.append(image)
        if image not in self.tags:
            raise BadStreams(f"{image} cannot be read: quay.example cannot be asked")
        return self.tags[image]

    async def labels(self, image: str, access: RegistryAccess) -> Mapping[str, str]:
        self.asked.append(image)
        if image not in self.images:
            raise BadStreams(f"{image} cannot be read: quay.example cannot be asked")
        return self.images[image]

    async def file(self, image: str, path: str, access: RegistryAccess) -> bytes:
        assert (image, path) == (RELEASE, where.REFERENCES)
        tags = [{"name": tag, "from": {"kind": "DockerImage", "name": name}} for tag, name in self.references.items()]
        return json.dumps({"kind": "ImageStream", "spec": {"tags": tags}}).encode()


@pytest.fixture
def registry() -> Registry:
    """An empty one."""
    return Registry()


@pytest.fixture
async def workers(embedded_server: Embedded, registry: Registry) -> AsyncIterator[WorkerPool]:
    """Workers of a cluster whose images are in that registry."""
    async with open_worker_pool(embedded_server, images=registry) as opened:
        yield opened


async def name_images(workers: WorkerPool, os_image: str, extensions: str, **data: str) -> None:
    """What somebody who runs a plain Kubernetes writes."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where.NAMESPACE}}
    with suppress(AlreadyExists):
        await workers.cluster.create(NAMESPACE.resource, space)
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": where.CONFIG_MAP, "namespace": where.NAMESPACE},
        "data": {where.OS_IMAGE: os_image, where.EXTENSIONS_IMAGE: extensions, **data},
    }  # fmt: skip
    await workers.cluster.patch(
        CONFIG_MAP.resource,
        where.CONFIG_MAP,
        body,
        PatchType.APPLY,
        where.NAMESPACE,
        WriteOptions(manager="t", force=True),
    )


async def name_stream(workers: WorkerPool, name: str) -> None:
    await name_images(workers, image(name), image(f"{name}-extensions"))


async def release(workers: WorkerPool, version: str, *completed: str) -> None:
    history = [{"version": each, "state": "Completed"} for each in completed]
    status = {"desired": {"version": version, "image": RELEASE}, "history": history}
    body = {"apiVersion": CLUSTER_VERSION.api_version, "kind": "ClusterVersion", "metadata": {"name": "version"}}
    with suppress(AlreadyExists):
        await workers.cluster.create(CLUSTER_VERSION.resource, {**body, "spec": {}})
    options = WriteOptions(subresource="status")
    await workers.cluster.patch(CLUSTER_VERSION.resource, "version", {"status": status}, PatchType.MERGE, "", options)


async def offered(workers: WorkerPool, default: str, *streams: str) -> JsonObject:
    """The OSImageStream, once it has these streams on offer."""

    async def so() -> Any:
        for each in (await workers.cluster.list(STREAM)).items:
            status = each.get("status") or {}
            names_of = {offer["name"] for offer in status.get("availableStreams") or ()}
            if names_of == set(streams) and status.get("defaultStream") == default:
                return each
        return None

    return dict(await until(so, f"{streams} are not on offer"))


async def says(workers: WorkerPool, status: str, reason: str, words: str = "") -> str:
    async def so() -> str:
        for each in (await workers.cluster.list(MACHINE_CONFIGURATION.resource)).items:
            state = condition(each, names.STREAMS_AVAILABLE) or {}
            if (state.get("status"), state.get("reason")) == (status, reason) and words in str(state.get("message")):
                return str(state["message"])
        return ""

    return str(await until(so, f"nobody says {status} {reason} {words!r}"))


async def os_image(workers: WorkerPool) -> str:
    rendered = await workers.cluster.get(CONFIG, await workers.goal())
    return str(rendered["spec"]["osImageURL"])


async def boots(workers: WorkerPool, name: str) -> None:
    async def so() -> bool:
        return bool(await workers.goal()) and await os_image(workers) == name

    await until(so, f"the pool does not render {name}")


async def test_a_cluster_that_names_no_image_renders_and_says_so_once(workers: WorkerPool, registry: Registry) -> None:
    await workers.add_node("a")
    await workers.settled()
    assert "no image of an operating system is named" in await says(workers, "False", "NoSource")
    assert (await workers.cluster.list(STREAM)).items == []
    assert registry.asked == []


async def test_a_preferred_stream_that_nothing_offers_stops_no_pool_and_is_said_to_wait(workers: WorkerPool) -> None:
    body = {"apiVersion": names.API_VERSION, "kind": "OSImageStream", "metadata": {"name": "cluster"}}
    await workers.cluster.create(STREAM, {**body, "spec": {"defaultStream": "rhel-10"}})
    await workers.add_node("a")
    pool = await workers.settled()
    assert "osImageStream" not in pool["status"]
    assert (condition(pool, "RenderDegraded") or {}).get("status") != "True"
    place = "openshift-machine-config-operator/machine-config-osimageurl"

    async def waits() -> bool:
        words = f"defaultStream rhel-10 has no effect before ConfigMap {place} names its images"
        return words in await says(workers, "False", "NoSource")

    await until(waits, "the choice is not said to wait")


async def test_images_of_the_config_map_become_a_stream_that_pools_follow(
    workers: WorkerPool, registry: Registry
) -> None:
    registry.has("rhel-10")
    await name_stream(workers, "rhel-10")
    streams = await offered(workers, "rhel-10", "rhel-10")
    assert streams["spec"] == {"defaultStream": "rhel-10"}
    await workers.add_node("a")
    await boots(workers, image("rhel-10"))
    assert (await workers.settled())["status"]["osImageStream"] == {"name": "rhel-10"}
    assert "by default rhel-10" in await says(workers, "True", "StreamsOffered")
    # What was read once is not read again: an image by digest never changes.
    questions = len(registry.asked)
    await workers.cluster.create(CONFIG, config("99-motd"))
    await workers.settled(goal_is_not=await workers.goal())
    assert len(registry.asked) == questions == 2


async def test_another_default_reaches_the_pools_that_name_no_stream(workers: WorkerPool, registry: Registry) -> None:
    registry.has("rhel-9", "rhel-10")
    for name in ("rhel-9", "rhel-10"):
        registry.references |= {f"{name}-coreos": image(name), f"{name}-coreos-extensions": image(f"{name}-extensions")}
    registry.references["etcd"] = "quay.example/release/etcd@sha256:" + "0" * 64
    await release(workers, "4.21.0", "4.21.0", "4.12.3")
    await offered(workers, "rhel-9", "rhel-9", "rhel-10")
    await boots(workers, image("rhel-9"))
    with pytest.raises(Invalid, match=r"spec.defaultStream must reference an existing stream"):
        await workers.cluster.patch(STREAM, "cluster", {"spec": {"defaultStream": "rhel-11"}}, PatchType.MERGE)
    await workers.cluster.patch(STREAM, "cluster", {"spec": {"defaultStream": "rhel-10"}}, PatchType.MERGE)
    await offered(workers, "rhel-10", "rhel-9", "rhel-10")
    await boots(workers, image("rhel-10"))
    await workers.cluster.patch(POOL, "worker", {"spec": {"osImageStream": {"name": "rhel-9"}}}, PatchType.MERGE)
    await boots(workers, image("rhel-9"))
    assert all("etcd" not in question for question in registry.asked)


async def test_the_release_wins_over_the_config_map_where_both_have_a_stream(
    workers: WorkerPool, registry: Registry
) -> None:
    registry.has("rhel-10")
    newer = "quay.example/os/newer@sha256:" + "a" * 64
    registry.images[newer] = {STREAM_LABEL: "rhel-10", BOOTABLE: "true"}
    registry.references = {"rhel-coreos-10": newer, "rhel-coreos-10-extensions": image("rhel-10-extensions")}
    await name_stream(workers, "rhel-10")
    await release(workers, "5.0.0", "5.0.0")

    async def so() -> bool:
        statuses = [each.get("status") or {} for each in (await workers.cluster.list(STREAM)).items]
        return any(offer["osImage"] == newer for status in statuses for offer in status.get("availableStreams") or ())

    await until(so, "the release does not win")


async def test_a_registry_that_cannot_be_asked_holds_the_first_render_and_later_none(
    workers: WorkerPool, registry: Registry
) -> None:
    await name_stream(workers, "rhel-10")
    assert "cannot be asked" in await says(workers, "False", "SourceUnreadable", "quay.example")
    assert "the streams of operating systems cannot be read" in await render_message(workers)
    registry.has("rhel-10")  # it is back
    await offered(workers, "rhel-10", "rhel-10")
    await boots(workers, image("rhel-10"))
    await says(workers, "True", "StreamsOffered")
    await name_images(workers, image("gone"), image("gone-extensions"))
    await says(workers, "False", "SourceUnreadable", "gone")
    await offered(workers, "rhel-10", "rhel-10")
    await workers.cluster.create(CONFIG, config("99-motd"))
    before = await workers.goal()

    async def rendered() -> bool:
        return await workers.goal() != before

    await until(rendered, "nothing is rendered any more")
    assert await os_image(workers) == image("rhel-10")


@pytest.mark.parametrize(
    ("labels", "extension_labels", "words"),
    [
        ({BOOTABLE: "1"}, {STREAM_LABEL: "x", EXTENSIONS: "true"}, "has no label io.openshift.os.streamclass"),
        ({STREAM_LABEL: "x"}, {STREAM_LABEL: "x", EXTENSIONS: "true"}, "is neither a system"),
        ({STREAM_LABEL: "x", BOOTABLE: "1"}, {STREAM_LABEL: "y", EXTENSIONS: "true"}, "the stream x has no osExtensionsImage"),
        ({STREAM_LABEL: "No Name", BOOTABLE: "1"}, {}, "that is no name: 'No Name'"),
    ],
)  # fmt: skip
async def test_images_with_other_labels_are_named_with_what_they_lack(
    workers: WorkerPool, registry: Registry, labels: dict[str, str], extension_labels: dict[str, str], words: str
) -> None:
    registry.images = {image("a"): labels, image("b"): extension_labels}
    await name_images(workers, image("a"), image("b"))
    await says(workers, "False", "SourceUnreadable", words)


@pytest.mark.parametrize(
    ("os_image", "extensions", "words"),
    [
        (image("a"), "", "data.baseOSExtensionsContainerImage of ConfigMap"),
        ("quay.example/os/a:latest", image("b"), "which is no image by digest"),
    ],
)
async def test_a_config_map_that_is_half_filled_or_names_a_tag_is_told_by_its_field(
    workers: WorkerPool, os_image: str, extensions: str, words: str
) -> None:
    await name_images(workers, os_image, extensions)
    await says(workers, "False", "SourceUnreadable", words)


async def test_while_the_cluster_is_on_its_way_to_another_release_the_offers_stay(
    workers: WorkerPool, registry: Registry
) -> None:
    registry.has("rhel-9", "rhel-10")
    registry.references = {"rhel-coreos": image("rhel-9"), "rhel-coreos-extensions": image("rhel-9-extensions")}
    await release(workers, "4.20.0", "4.20.0")
    await offered(workers, "rhel-9", "rhel-9")
    registry.references |= {
        "rhel-coreos-10": image("rhel-10"),
        "rhel-coreos-10-extensions": image("rhel-10-extensions"),
    }
    await release(workers, "4.21.0", "4.20.0")
    await says(workers, "True", "StreamsOffered", "on its way from 4.20.0 to 4.21.0")
    await name_images(workers, image("rhel-9"), image("rhel-9-extensions"), releaseVersion="4.21.0")
    await offered(workers, "rhel-9", "rhel-9")
    await release(workers, "4.21.0", "4.21.0", "4.20.0")
    await offered(workers, "rhel-9", "rhel-9", "rhel-10")


async def test_offers_that_somebody_edited_are_put_back(workers: WorkerPool, registry: Registry) -> None:
    registry.has("rhel-10")
    await name_stream(workers, "rhel-10")
    await offered(workers, "rhel-10", "rhel-10")
    forged = {"name": "rhel-10", "osImage": image("evil"), "osExtensionsImage": image("evil")}
    status = {"status": {"availableStreams": [forged], "defaultStream": "rhel-10"}}
    await workers.cluster.patch(STREAM, "cluster", status, PatchType.MERGE, "", WriteOptions(subresource="status"))

    async def so() -> bool:
        streams = await workers.cluster.get(STREAM, "cluster")
        return bool(streams["status"]["availableStreams"][0]["osImage"] == image("rhel-10"))

    await until(so, "the offers stay as somebody edited them")


async def test_streams_of_another_version_of_ours_are_made_anew_before_anything_is_rendered(
    workers: WorkerPool, registry: Registry
) -> None:
    registry.has("rhel-10")
    await name_stream(workers, "rhel-10")
    await offered(workers, "rhel-10", "rhel-10")
    questions = len(registry.asked)
    older = {"metadata": {"annotations": {names.CONTROLLER_VERSION: "fastness-0.0.1"}}}
    await workers.cluster.patch(STREAM, "cluster", older, PatchType.MERGE)

    async def so() -> bool:
        notes = annotations_of(await workers.cluster.get(STREAM, "cluster"))
        return notes[names.CONTROLLER_VERSION] != "fastness-0.0.1"

    await until(so, "the OSImageStream is of the other version")
    assert len(registry.asked) > questions


async def test_runc_is_refused_on_a_stream_that_does_not_have_it(workers: WorkerPool, registry: Registry) -> None:
    registry.has("rhel-10")
    await name_stream(workers, "rhel-10")
    await boots(workers, image("rhel-10"))
    drop_in = quote('[crio.runtime]\ndefault_runtime = "runc"\n')
    await workers.cluster.create(CONFIG, config("99-runc", "/etc/crio/crio.conf.d/99-runc", drop_in))
    assert "makes runc the default, which this operating system does not have" in await render_message(workers)


async def test_the_label_of_an_image_that_a_config_names_tells_whether_it_has_runc(
    workers: WorkerPool, registry: Registry
) -> None:
    drop_in = quote('[crio.runtime]\ndefault_runtime = "runc"\n')
    registry.images = {image("nine"): {STREAM_LABEL: "rhel-9"}, image("ten"): {STREAM_LABEL: "centos-10"}}
    nine = config("99-image", "/etc/crio/crio.conf.d/99-runc", drop_in, osImageURL=image("nine"))
    await workers.cluster.create(CONFIG, nine)
    await boots(workers, image("nine"))
    await workers.cluster.patch(CONFIG, "99-image", {"spec": {"osImageURL": image("ten")}}, PatchType.MERGE)
    assert "makes runc the default, which this operating system does not have" in await render_message(workers)
    # Where nobody can tell, the config is taken, as it was before anybody asked.
    await workers.cluster.patch(CONFIG, "99-image", {"spec": {"osImageURL": image("nobody")}}, PatchType.MERGE)
    await boots(workers, image("nobody"))


async def test_a_tag_is_asked_of_its_registry_once_and_rendered_by_digest(
    workers: WorkerPool, registry: Registry
) -> None:
    await workers.settled()
    tagged = "quay.example/os/nine:1"
    await workers.cluster.create(CONFIG, config("99-image", osImageURL=tagged))
    assert f"{tagged} cannot be read: quay.example cannot be asked" in await render_message(workers)
    registry.tags[tagged] = image("nine")
    await workers.cluster.patch(CONFIG, "99-image", {"metadata": {"labels": {"again": ""}}}, PatchType.MERGE)
    await boots(workers, image("nine"))
    # The tag moves, and another config is rendered: machines that boot later get the same system as those before.
    registry.tags[tagged] = image("ten")
    goal = await workers.goal()
    await workers.cluster.create(CONFIG, config("99-more", path="/etc/more"))

    async def rendered_again() -> bool:
        return await workers.goal() != goal

    await until(rendered_again, "nothing is rendered")
    assert await os_image(workers) == image("nine")
