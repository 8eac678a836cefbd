"""`fastness crds --with`: definitions of others on request alone."""

from __future__ import annotations

import yaml
from click.testing import CliRunner

from fastness.cli.run.crds import crds
from fastness.kinds.crd.sets import own_names


def printed(*words: str) -> set[str]:
    outcome = CliRunner().invoke(crds, words)
    assert outcome.exit_code == 0, outcome.stderr
    return {document["metadata"]["name"] for document in yaml.safe_load_all(outcome.stdout)}


def test_our_own_are_printed_and_nobody_elses() -> None:
    assert printed() == own_names()
    assert not any("coreos.com" in name or "nvidia.com" in name or "openshift.io" in name for name in printed())


def test_a_set_is_added_by_name() -> None:
    assert printed("--with", "nfd,kata") - printed() == {
        "kataconfigs.kataconfiguration.openshift.io", "nodefeaturediscoveries.nfd.openshift.io",
        "nodefeaturerules.nfd.k8s-sigs.io", "nodefeaturerules.nfd.openshift.io", "nodefeatures.nfd.k8s-sigs.io",
        "nodefeatures.nfd.openshift.io",
    }  # fmt: skip


def test_a_set_that_there_is_not_is_refused_with_the_nearest() -> None:
    near = CliRunner().invoke(crds, ["--with", "machineconfigs"])
    assert (near.exit_code, "did you mean machineconfig?" in near.stderr) == (2, True)
    far = CliRunner().invoke(crds, ["--with", "zzz"])
    assert (far.exit_code, "there are machineconfig, " in far.stderr) == (2, True)
    both = CliRunner().invoke(crds, ["--with", "kata", "--accounts"])
    assert (both.exit_code, "--with goes with printing" in both.stderr) == (2, True)
