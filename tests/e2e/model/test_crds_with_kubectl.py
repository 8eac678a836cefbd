"""What a user does with `deploy/crds` on any cluster: apply the directory, ask what a field means, look at tables."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from fastness.kinds.kind import JsonObject
from tests.bed import Bed
from tests.unit.kinds.examples import EXAMPLES

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
DIRECTORY = Path(__file__).resolve().parents[3] / "deploy" / "crds"

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kubectl(bed: Bed) -> Kubectl:
    """The real kubectl on a real cluster with nodes that has our definitions, applied as the documentation says."""

    def run(*arguments: str, stdin: JsonObject | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(KUBECTL), "--kubeconfig", str(bed.kube.kubeconfig), *arguments],
            input=orjson.dumps(stdin).decode() if stdin is not None else None,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    applied = run("apply", "-f", str(DIRECTORY))
    assert applied.returncode == 0, applied.stderr
    names = [path.stem for path in DIRECTORY.glob("*.yaml")]
    waited = run("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)
    assert waited.returncode == 0, waited.stderr
    return run


def test_applying_again_changes_nothing(kubectl: Kubectl) -> None:
    again = kubectl("apply", "-f", str(DIRECTORY))
    assert {line.rpartition(" ")[2] for line in again.stdout.splitlines()} == {"unchanged"}


def test_explain_tells_what_a_field_means_and_what_it_may_be(kubectl: Kubectl) -> None:
    explanation = kubectl("explain", "confidentialcluster.spec.mode").stdout
    assert "Enforce: nothing is released without it." in " ".join(explanation.split())
    assert "Disabled" in explanation.partition("ENUM:")[2].partition("\n\n")[0]


def test_short_name_prints_the_table_that_users_know(kubectl: Kubectl) -> None:
    pool = EXAMPLES["machineconfigpools.machineconfiguration.openshift.io"]
    assert kubectl("apply", "-f", "-", stdin=pool).returncode == 0
    heading, row = kubectl("get", "mcp", "infra").stdout.splitlines()
    assert heading.split() == [
        "NAME", "CONFIG", "UPDATED", "UPDATING", "DEGRADED", "MACHINECOUNT", "READYMACHINECOUNT", "UPDATEDMACHINECOUNT",
        "DEGRADEDMACHINECOUNT", "AGE",
    ]  # fmt: skip
    assert row.startswith("infra ")
    assert kubectl("delete", "mcp", "infra").returncode == 0


def test_category_lists_our_own_kinds(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "--categories=fastness", "-o", "name").stdout.split()
    assert sorted(listed) == sorted(name for name in EXAMPLES if name.endswith(".fastness.dev"))


def test_wrong_object_is_refused_with_the_rule_in_words(kubectl: Kubectl) -> None:
    cluster = EXAMPLES["confidentialclusters.fastness.dev"]
    refused = kubectl("create", "-f", "-", stdin={**cluster, "metadata": {"name": "second"}})
    assert refused.returncode == 1
    assert "only one object may exist, named 'cluster'" in refused.stderr


def test_misspelt_field_is_refused_by_its_name(kubectl: Kubectl) -> None:
    ticket = EXAMPLES["jointickets.fastness.dev"]
    refused = kubectl("create", "-f", "-", stdin={**ticket, "spec": {**ticket["spec"], "usees": 3}})
    assert refused.returncode == 1
    assert 'unknown field "spec.usees"' in refused.stderr
