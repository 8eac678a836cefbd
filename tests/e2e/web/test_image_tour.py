"""The way of a pool from one operating system image to another, watched in the page: a real build in a real `fastness up`.

With FASTNESS_PICTURES=1 the same walk writes the pictures of docs/how-to/use-the-page.md, as `test_tour` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.components import require_program, require_root
from tests.e2e.builds.registry_images import pushed_busybox
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.e2e.web.browsing import CHROMIUM, SOON, link_of, tab
from tests.e2e.web.test_tour import LATER, picture, show
from tests.patience import eventually

NAMESPACE = "openshift-machine-config-operator"
# It prints for as long as somebody has to read it, and ends by itself.
LAYER = (
    "RUN echo the layer begins; for i in $(seq 60); do echo working on $i; sleep 0.1; done; echo welcome > /etc/motd"
)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry on loopback that anybody may read and write."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    require_program(Path("/usr/bin/buildah"), "buildah")
    require_root("the sandbox of builds")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as started:
        yield started


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    require_program(CHROMIUM, "chromium")
    with Live.start(tmp_path, "--machines", "3", "--profile", "containers") as running:
        arrived = "--for=jsonpath={.status.readyMachineCount}=3"
        assert running.kubectl("wait", "mcp/worker", arrived, "--timeout=90s").code == 0
        yield running


def manifests(registry: LocalRegistry, base: str) -> list[dict[str, Any]]:
    """What an administrator applies: a registry that is known, a secret, the base, the layer."""
    secret = json.dumps({"auths": {registry.address: {"auth": "bWU6c2VjcmV0"}}})
    mco = "machineconfiguration.openshift.io/v1"
    return [
        {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"},
         "spec": {"registrySources": {"insecureRegistries": [registry.address]}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
         "metadata": {"name": "push", "namespace": NAMESPACE}, "stringData": {".dockerconfigjson": secret}},
        {"apiVersion": mco, "kind": "MachineConfig", "spec": {"osImageURL": base},
         "metadata": {"name": "10-base", "labels": {"machineconfiguration.openshift.io/role": "worker"}}},
        {"apiVersion": mco, "kind": "MachineOSConfig", "metadata": {"name": "worker"}, "spec": {
            "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": f"{registry.address}/os/worker:latest",
            "containerFile": [{"content": LAYER}]}},
    ]  # fmt: skip


@pytest.mark.row("003-03")
@pytest.mark.long("a build whose log is read while it runs, and three machines that boot what it made")
async def test_a_build_is_read_while_it_runs_and_every_node_is_seen_to_boot_what_it_made(
    live: Live, registry: LocalRegistry
) -> None:
    base = pushed_busybox(registry)
    async with tab(link_of(live)) as (page, complaints):
        await show(page, "/builds")
        for manifest in manifests(registry, base):
            outcome = live.kubectl("apply", "-f", "-", stdin=manifest)
            assert outcome.code == 0, outcome
        way = page.locator("#image-worker")
        await way.get_by_text("Building", exact=True).wait_for(timeout=LATER)
        await way.locator("a").first.press("Enter")
        log = page.get_by_label("Log of the build")
        await log.get_by_text("the layer begins").wait_for(timeout=SOON)
        before = str(await log.text_content())
        assert "working on 60" not in before, "read while it runs"
        await page.wait_for_function(
            "length => document.querySelector('pre.log')?.textContent.length > length", arg=len(before), timeout=SOON
        )
        await picture(page, "build")
        await page.get_by_role("heading", name="Log").wait_for(timeout=SOON)
        await page.get_by_text("Succeeded", exact=True).first.wait_for(timeout=LATER)

        await show(page, "/builds")
        every = page.get_by_text("worker-0, worker-1, worker-2")
        described = live.kubectl("get", "machineosconfig", "worker", "-o", "jsonpath={.status.currentImagePullSpec}")
        row = page.locator("tr", has=every).filter(has=page.locator(f'code[title="{described.out.strip()}"]'))
        await row.wait_for(timeout=LATER)
        booted = live.kubectl(
            "get", "nodes", "-o", r"jsonpath={.items[*].metadata.annotations.fastness\.dev/booted-image}"
        )
        assert booted.out.split() == [described.out.strip()] * 3
        await picture(page, "images", 900)
        words = [str(FASTNESS), "image", "history", "worker-0", "--kubeconfig", str(live.kubeconfig)]
        eventually(
            lambda: described.out.strip() in run(words, environment(live.home)).out.split(), "the history names it"
        )
        assert complaints == []
