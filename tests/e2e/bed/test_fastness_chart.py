"""Fastness on somebody's Kubernetes, by the page: doctor, helm install, helm test, upgrade, rollback, uninstall; on real nodes.

The namespace enforces the `restricted` Pod Security level, so a pod that does not pass it is not made. Every pod runs under the
account of its role: what an account lacks shows here as a pod that does not become ready.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed import Bed
from tests.bed.helm import Helm
from tests.bed.kubectl import Kubectl, pod
from tests.e2e.bed.walking import forget
from tests.e2e.docs.transcript import Shell, Step, blocks, matches, steps
from tests.e2e.live import environment
from tests.soaking import SOAK

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "run-on-kubernetes.md"
AWAY = "## Back, and away"
INSTALL_SECONDS = 330.0  # longer than helm waits: eight pods that start at once on a machine that others use
pytestmark = [pytest.mark.processes, pytest.mark.long("eight pods start, and most of them again with an upgrade")]


class Page:
    """The page as somebody follows it."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def follow(self, text: str) -> None:
        """Run what a part of it says; what is printed is what it shows."""
        for step in steps(text):
            printed = self.shell.run(step)
            pods = (
                "\n".join(self.shell.run(Step("kubectl get pods -n fastness-system")))
                if printed != step.expected
                else ""
            )
            assert matches(step.expected, printed), f"$ {step.command}\n{chr(10).join(printed)}\n{pods}"

    def ask(self, command: str) -> str:
        """What a command prints."""
        return "\n".join(self.shell.run(Step(command)))


@pytest.fixture(scope="module")
def page(bed: Bed, helm_program: Path, fastness_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page up to its upgrade, with the image that `make image` builds."""
    directory = tmp_path_factory.mktemp("chart")
    admin = Kubectl(bed.kube.kubeconfig, "default")
    forget(bed)
    for node in ("bed-0", "bed-1"):  # pulled before anybody waits for a pod
        admin.apply(pod(f"pull-{node}", node, ["/usr/bin/fastness", "version"], fastness_image))
    for node in ("bed-0", "bed-1"):
        admin.wait(f"pod/pull-{node}", "jsonpath={.status.phase}=Succeeded")
        admin.ok("delete", "pod", f"pull-{node}", "--wait=false")
    admin.ok("create", "namespace", "fastness-system")
    admin.ok("label", "namespace", "fastness-system", "pod-security.kubernetes.io/enforce=restricted")
    (directory / "trial.yaml").write_text(next(text for tag, text in blocks(PAGE.read_text()) if tag == "yaml"))
    (directory / "helm").symlink_to(helm_program)
    env = environment(
        directory,
        KUBECONFIG=str(bed.kube.kubeconfig),
        CHART=str(ROOT / "deploy" / "chart"),
        IMAGE=fastness_image.partition(":")[0],
    )
    shell = Shell(directory, {**env, "PATH": f"{directory}:{env['PATH']}"}, patience=INSTALL_SECONDS)
    try:
        yield Page(shell)
    finally:
        Helm(helm_program, bed.kube.kubeconfig, "fastness-system", directory).run("uninstall", "fastness")
        shell.run(Step("kubectl delete validatingwebhookconfiguration fastness --ignore-not-found"))
        shell.close()
        forget(bed)


def test_the_page_installs_tests_and_upgrades_it(page: Page) -> None:
    page.follow(PAGE.read_text().split(AWAY)[0])


def test_a_door_or_a_key_that_is_missing_fails_the_doctor(page: Page) -> None:
    doctor = 'fastness doctor --context "$(kubectl config current-context)"'
    page.ask("kubectl scale deployment/fastness-gate -n fastness-system --replicas=0")
    assert "not ready: gate" in page.ask(f"until {doctor} | grep 'not ready'; do sleep 0.3; done")
    assert page.ask(f"{doctor} > /dev/null; echo $?") == "1"
    page.ask("kubectl scale deployment/fastness-gate -n fastness-system --replicas=1")


@pytest.mark.row("000-58")
def test_the_gate_is_a_service_of_its_own_with_several_replicas_and_one_that_dies_is_replaced(page: Page) -> None:
    gates = "kubectl get pods -n fastness-system -l app.kubernetes.io/component=gate"
    slices = "kubectl get endpointslices -n fastness-system -l kubernetes.io/service-name=fastness-gate"
    ready = "jsonpath='{.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}'"
    page.ask("helm upgrade fastness $CHART -n fastness-system --reuse-values --set gate.replicas=2")
    page.ask("kubectl rollout status deployment/fastness-gate -n fastness-system --timeout=300s")
    two_ready = f'until [ "$({slices} -o {ready} | wc -w)" = 2 ]; do sleep 0.3; done'
    page.ask(two_ready)
    names = page.ask(f"{gates} -o jsonpath='{{.items[*].metadata.name}}'").split()
    assert len(names) == 2
    page.ask(f"kubectl delete pod {names[0]} -n fastness-system --grace-period=0 --force")
    page.ask(two_ready)
    assert names[0] not in page.ask(f"{gates} -o name"), "another one is there in its place"


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="in `make soak`: the page is followed up to its upgrade, which takes long enough")
def test_it_goes_back_and_away_and_what_it_leaves_opens_again(page: Page) -> None:
    before = json.loads(page.ask("kubectl get secret broker-vault doors-ca -n fastness-system -o json"))
    page.follow(AWAY + PAGE.read_text().split(AWAY)[1])
    after = json.loads(page.ask("kubectl get secret broker-vault doors-ca -n fastness-system -o json"))
    assert [entry["data"] for entry in before["items"]] == [entry["data"] for entry in after["items"]]
    assert page.ask("kubectl get deployments -n fastness-system -o name") in (
        "",
        "No resources found in fastness-system namespace.",
    )
    assert "verdicts.fastness.dev" in page.ask("kubectl get crd -o name")
    assert "cluster" in page.ask("kubectl get confidentialclusters -o name")
