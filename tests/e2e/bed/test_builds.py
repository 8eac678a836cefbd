"""Images of pools, built by Jobs on a real Kubernetes: pods of a kubelet, the image of a release, a registry with a login.

One story, in the order in which it is told: each part begins with what the one before left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import pytest

from fastness.builds.build_objects import LOG, log_name
from fastness.kinds.objects import condition
from tests.bed import Bed
from tests.bed.images import MANIFEST
from tests.e2e.bed.building import LOGIN, BuildSite, building
from tests.release.fixtures import pushed
from tests.soaking import in_soak
from tools.release.layout import Built

pytestmark = [
    pytest.mark.processes, pytest.mark.long("controllers start on a bed, and pods pull, build and push"),
    *in_soak("tests/e2e/builds/test_job_builder.py runs the same entry point as processes, with buildah and a registry"),
]  # fmt: skip


@pytest.fixture(scope="module")
def site(bed: Bed, builder_image: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildSite]:
    with building(bed, pushed(bed, builder_image), tmp_path_factory.mktemp("builds")) as site:
        yield site


def phase(build: dict[str, Any]) -> str:
    """What a build says that it is."""
    conditions = (build.get("status") or {}).get("conditions") or ()
    return next((str(each["type"]) for each in conditions if each["status"] == "True"), "")


def one_build(site: BuildSite) -> dict[str, Any]:
    """The build of now."""
    name = site.read("machineosconfig/worker")["status"]["machineOSBuild"]["name"]
    return site.read(f"machineosbuild/{name}")


def log_of(site: BuildSite, build: dict[str, Any]) -> str:
    return str(site.read(f"configmap/{log_name(build['metadata']['name'])}")["data"][LOG])


def objects_of_builds(site: BuildSite) -> list[str]:
    """Jobs, pods, Secrets and ConfigMaps of builds, but for logs."""
    listed = site.read("jobs,pods,secrets,configmaps", "-l", "machineconfiguration.openshift.io/machine-os-build")[
        "items"
    ]
    return [each["metadata"]["name"] for each in listed if not each["metadata"]["name"].startswith("log-")]


def has(site: BuildSite, image: str) -> bool:
    """Whether the registry has an image."""
    path, digest = image.removeprefix(f"{site.registry.address}/").split("@")
    with site.registry.client() as http:
        return http.head(f"/v2/{path}/manifests/{digest}", headers={"accept": MANIFEST}).is_success


def test_a_machineosconfig_becomes_an_image_by_pods_of_a_kubelet_and_leaves_nothing(site: BuildSite) -> None:
    site.describe("RUN echo built here > /etc/greeting; env; cat /proc/*/environ; ls /way /known /work; true")
    site.until(lambda: site.builds() and phase(site.builds()[0]) == "Building", "a build")
    site.until(lambda: site.read("pods")["items"], "its pod")
    (pod,) = site.read("pods")["items"]
    steps = [each["name"] for each in (*pod["spec"]["initContainers"], *pod["spec"]["containers"])]
    assert steps == ["pull", "build", "push"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not [volume for volume in pod["spec"]["volumes"] if "projected" in volume], "no token of the cluster"
    site.until(site.image, "an image")
    image, build = site.image(), one_build(site)
    assert phase(build) == "Succeeded"
    assert has(site, image)
    text = log_of(site, build)
    assert "STEP 2/2: RUN echo built here" in text
    assert LOGIN[1] not in text
    site.until(lambda: not objects_of_builds(site), "the end of what the build made")


def test_a_registry_that_is_away_while_it_is_pushed_to_is_tried_again(site: BuildSite) -> None:
    before = site.image()
    site.describe(f"RUN echo {token_hex(4)} > /etc/greeting; sleep 5")
    site.until(lambda: "build" in running_steps(site), "the step that builds")
    site.registry.stop()
    site.until(lambda: failed_pods(site) >= 1, "a pod that could not push")
    assert site.image() == before, "the image of before goes on"
    site.registry.start()
    site.until(lambda: site.image() != before, "the image after all")
    assert has(site, site.image())


def test_controllers_that_are_killed_while_a_build_runs_go_on_with_it_and_begin_none(site: BuildSite) -> None:
    before = site.image()
    site.describe(f"RUN echo {token_hex(4)} > /etc/greeting; sleep 8")
    site.until(lambda: "build" in running_steps(site), "the step that builds")
    (job,) = site.read("jobs")["items"]
    build = one_build(site)["metadata"]["uid"]
    site.kill()
    site.start()
    site.until(lambda: site.image() != before, "the image")
    assert one_build(site)["metadata"]["uid"] == build
    made = json.loads(site.kubectl.ok("get", "events", "-o", "json", "--field-selector=reason=SuccessfulCreate"))[
        "items"
    ]
    pods = {event["message"] for event in made if event["involvedObject"]["uid"] == job["metadata"]["uid"]}
    assert len(pods) == 1, "one pod of one Job"


def test_a_containerfile_that_fails_says_so_and_the_image_of_before_goes_on(site: BuildSite) -> None:
    before = site.image()
    site.describe(f"RUN echo oh dear {token_hex(4)}; false")
    site.until(lambda: phase(one_build(site)) == "Failed", "the failure")
    assert "oh dear" in log_of(site, one_build(site))
    assert site.image() == before
    site.until(
        lambda: (condition(site.read("mcp/worker"), "ImageBuildDegraded") or {}).get("status") == "True",
        "the pool says so",
    )
    assert len(site.read("pods")["items"]) == 1, "it is not tried again, and kept for whoever looks"


def test_a_build_that_nobody_wants_any_more_ends_with_its_pod(site: BuildSite) -> None:
    site.describe("RUN sleep 2147483647")
    site.until(lambda: "build" in running_steps(site), "the step that builds")
    site.kubectl.ok("delete", "machineosconfig", "worker", "--wait=false")
    site.until(lambda: not site.builds(), "the end of its builds")
    site.until(lambda: not objects_of_builds(site), "the end of what they made")


def running_steps(site: BuildSite) -> list[str]:
    statuses = [
        each
        for pod in site.read("pods")["items"]
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in pod["status"].get(kind) or ()
    ]
    return [each["name"] for each in statuses if "running" in each["state"]]


def failed_pods(site: BuildSite) -> int:
    return sum((job.get("status") or {}).get("failed", 0) for job in site.read("jobs")["items"])
