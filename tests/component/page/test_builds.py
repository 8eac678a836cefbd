"""The page of builds: a pool's way to its image, the log while it grows, and which node boots what."""

from __future__ import annotations

from fastness.builds.build_objects import NAMESPACE, log_name, metadata_of
from fastness.builds.life import manifest
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.kubernetes.core import NAMESPACE as NAMESPACES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kube.port import PatchType, WriteOptions
from tests.component.page.scan import shows
from tests.component.page.served_page import NODES, ServedPage

STATUS = WriteOptions(subresource="status")
BUILD = "worker-0123456789abcdef0123456789abcdef"
IMAGE = f"registry.example.com/os/worker@sha256:{'ab' * 32}"
TIME = "2026-01-01T00:00:00Z"


def conditions(phase: str, message: str) -> list[JsonObject]:
    kinds = {
        "Prepared": "Prepared",
        "Building": "Building",
        "Failed": "Failed",
        "Interrupted": "Interrupted",
        "Succeeded": "Ready",
    }
    return [
        {"type": kind, "status": "True" if kind == phase else "False", "reason": reason, "lastTransitionTime": TIME,
         "message": message if kind == phase else ""}
        for kind, reason in kinds.items()
    ]  # fmt: skip


async def describe(web: ServedPage) -> None:
    """A pool whose image is being built, and its log so far."""
    spec = {
        "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
        "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": "registry.example.com/os/worker:latest",
    }  # fmt: skip
    api = {"apiVersion": names.API_VERSION, "kind": "MachineOSConfig"}
    config = await web.cluster.create(MACHINE_OS_CONFIG.resource, {**api, "metadata": {"name": "worker"}, "spec": spec})
    built = manifest(BUILD, config, "rendered-worker-1", "sha256:0")
    made = await web.cluster.create(MACHINE_OS_BUILD.resource, built)
    status: JsonObject = {
        "machineOSBuild": {"name": BUILD, "group": "machineconfiguration.openshift.io", "resource": "machineosbuilds"}
    }
    await web.cluster.patch(MACHINE_OS_CONFIG.resource, "worker", {"status": status}, PatchType.MERGE, "", STATUS)
    status = {
        "conditions": conditions("Building", "the image is being built: step 2 of 3: RUN make"),
        "buildStart": TIME,
    }
    await web.cluster.patch(MACHINE_OS_BUILD.resource, BUILD, {"status": status}, PatchType.MERGE, "", STATUS)
    await web.cluster.create(
        NAMESPACES.resource, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )
    meta = metadata_of(log_name(BUILD), BUILD, made["metadata"]["uid"])
    log = {"log": "STEP 2/3: RUN make\n<script>alert(1)</script>\n"}
    await web.cluster.create(
        CONFIG_MAP.resource, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": log}
    )


async def test_a_build_that_runs_shows_its_step_and_its_log_and_asks_again(web: ServedPage) -> None:
    await describe(web)
    visitor = await web.administrator()
    html = await shows(visitor, "/builds", BUILD)
    assert "step 2 of 3: RUN make" in html
    html = await shows(visitor, f"/builds/{BUILD}", "STEP 2/3: RUN make")
    assert "&lt;script&gt;alert(1)" in html, "what a build prints is text"
    assert "data-live" in html
    grown = {"data": {"log": "STEP 2/3: RUN make\nSTEP 3/3: RUN more\n"}}
    await web.cluster.patch(CONFIG_MAP.resource, log_name(BUILD), grown, PatchType.MERGE, NAMESPACE)
    assert "RUN more" in await shows(visitor, f"/builds/{BUILD}", "STEP 3/3")
    status = {"conditions": conditions("Failed", "buildah ended with 1"), "buildEnd": "2026-01-01T00:01:00Z"}
    await web.cluster.patch(MACHINE_OS_BUILD.resource, BUILD, {"status": status}, PatchType.MERGE, "", STATUS)
    html = await shows(visitor, f"/builds/{BUILD}", "buildah ended with 1")
    assert "data-live" not in html, "a build that ended prints no more"
    assert "STEP 3/3" in html, "its log is kept"
    assert "fastness image log worker" in await shows(visitor, "/builds", "Failed")


async def test_every_image_is_shown_with_the_nodes_that_boot_it(web: ServedPage) -> None:
    await describe(web)
    status = {
        "conditions": conditions("Succeeded", ""),
        "digestedImagePushSpec": IMAGE,
        "buildEnd": "2026-01-01T00:01:00Z",
    }
    await web.cluster.patch(MACHINE_OS_BUILD.resource, BUILD, {"status": status}, PatchType.MERGE, "", STATUS)
    for name, booted in (("node-a", IMAGE), ("node-b", "quay.io/stock@sha256:" + "cd" * 32)):
        notes = {names.BOOTED_IMAGE: booted, names.DESIRED_IMAGE: IMAGE}
        await web.cluster.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": notes}}
        )
    html = await shows(await web.administrator(), "/builds", "node-b")
    assert "worker@abababab" in html
    assert "built elsewhere" in html
    assert "2 nodes" in html, "were told to boot it"
    assert "1 node" in html, "boots it"
