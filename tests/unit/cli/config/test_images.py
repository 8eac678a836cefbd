"""MachineOSConfigs on the command line: checked, planned, and every path with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import API_VERSION, GENERATED_BY, ROLE_LABEL

BASE = f"registry.example.com/os/base@sha256:{'0' * 64}"
CLUSTER = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"}}


def described(text: str = "RUN true", **spec: Any) -> JsonObject:
    return {
        "apiVersion": API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": "worker"},
        "spec": {
            "machineConfigPool": {"name": "worker"}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"}, "renderedImagePushSpec": "registry.example.com/os/worker:latest",
            "containerFile": [{"content": text}], **spec,
        },
    }  # fmt: skip


def config(name: str, *paths: str, text: str = "a", **more: Any) -> JsonObject:
    files = [{"path": path, "contents": {"source": f"data:,{text}"}} for path in paths]
    document = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    meta = {"name": name, "labels": {ROLE_LABEL: "worker"}, "annotations": more.pop("annotations", {})}
    return {"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": {"config": document, **more}}


def run(directory: Path, present: list[JsonObject], change: list[JsonObject], *words: str) -> Result:
    """A verb with the cluster in one file and the change in another, whose names stand for CLUSTER and CHANGE."""
    places = {"CLUSTER": directory / "cluster.yaml", "CHANGE": directory / "change.yaml"}
    for path, objects in zip(places.values(), (present, change), strict=True):
        path.write_text(yaml.safe_dump_all(objects))
    return CliRunner().invoke(cli, [str(places.get(word, word)) for word in words])


PLAN = ("plan", "-f", "CHANGE", "--offline", "CLUSTER", "-o", "json")
BEFORE = config("10-base", "/etc/a", osImageURL=BASE)


def image(result: Result) -> JsonObject:
    (plan,) = json.loads(result.stdout)["images"]
    return dict(plan)


@pytest.mark.row("003-74")
@pytest.mark.parametrize(
    ("present", "change", "builds", "reboots"),
    [
        ([BEFORE], [described()], True, True),
        ([BEFORE, described()], [described("RUN other")], True, True),
        ([BEFORE, described()], [config("20-more", "/etc/b")], True, True),
    ],
)
def test_a_plan_says_whether_an_image_is_built_and_booted(
    tmp_path: Path, present: list[JsonObject], change: list[JsonObject], builds: bool, reboots: bool
) -> None:
    result = run(tmp_path, present, change, *PLAN)
    assert (image(result)["builds"], image(result)["reboots"]) == (builds, reboots)
    assert result.exit_code == 2


@pytest.mark.row("003-74")
def test_a_plan_says_what_builds_nothing(tmp_path: Path) -> None:
    same = run(tmp_path, [BEFORE, described()], [described()], *PLAN)
    assert (image(same)["builds"], image(same)["reboots"], same.exit_code) == (False, False, 0)
    disk = run(tmp_path, [BEFORE, described()], [config("20-more", "/var/b")], *PLAN)
    assert "images" not in json.loads(disk.stdout)
    gone = run(
        tmp_path, [BEFORE, described()], [], "plan", "--delete", "machineosconfig/worker", "--offline", "CLUSTER"
    )
    assert "nothing is built: nodes go back to the image that their config names" in gone.stdout
    assert "every node reboots" in gone.stdout
    unknown = run(tmp_path, [BEFORE], [], "plan", "--delete", "machineosconfig/worker", "--offline", "CLUSTER")
    assert "there is no MachineOSConfig 'worker' to delete" in unknown.stderr


@pytest.mark.row("003-74")
def test_a_plan_of_a_confidential_pool_says_what_will_be_public_and_that_values_change(tmp_path: Path) -> None:
    public = config("20-public", "/etc/banner", annotations={"fastness.dev/public": "true"})
    cluster = {
        **CLUSTER,
        "spec": {"mode": "Enforce", "pools": [{"name": "worker", "trustModel": "ConfidentialCluster"}]},
    }
    result = run(tmp_path, [BEFORE, public, cluster], [described()], *PLAN)
    plan = image(result)
    assert (plan["public"], plan["valuesChange"]) == (["/etc/banner", "field osImageURL"], True)


def policy(path: str) -> JsonObject:
    covered = {"files": [{"path": path, "actions": [{"type": "None"}]}]}
    return {
        "apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"},
        "spec": {"nodeDisruptionPolicy": covered},
    }  # fmt: skip


@pytest.mark.row("003-77")
def test_a_policy_for_a_path_of_the_image_takes_effect_with_the_next_build_and_the_plan_says_so(tmp_path: Path) -> None:
    alone = run(tmp_path, [BEFORE, described()], [policy("/etc/a")], *PLAN)
    assert (image(alone)["builds"], image(alone)["reboots"], image(alone)["leavesWithBuild"]) == (
        False,
        False,
        ["/etc/a"],
    )
    assert alone.exit_code == 0
    text = run(tmp_path, [BEFORE, described()], [policy("/etc/a")], "plan", "-f", "CHANGE", "--offline", "CLUSTER")
    assert "/etc/a leaves the image with the next build: the next change of the pool's config builds" in text.stdout
    changed = config("10-base", "/etc/a", text="b", osImageURL=BASE)
    both = run(tmp_path, [BEFORE, described()], [policy("/etc/a"), changed], *PLAN)
    assert (image(both)["builds"], image(both)["reboots"], image(both)["leavesWithBuild"]) == (True, True, ["/etc/a"])
    elsewhere = run(tmp_path, [BEFORE, described()], [policy("/var/x")], *PLAN)
    assert "images" not in json.loads(elsewhere.stdout)


@pytest.mark.row("003-77")
def test_an_image_that_is_older_than_a_policy_is_built_anew_with_the_next_change(tmp_path: Path) -> None:
    """The build recorded what it was made of before the policy came: the path is in its image still."""
    inside = {**described(), "status": {"machineOSBuild": {"name": "worker-1"}}}
    build = {
        "apiVersion": API_VERSION, "kind": "MachineOSBuild",
        "metadata": {"name": "worker-1", "annotations": {"fastness.dev/image-inputs": f"sha256:{'1' * 64}"}},
    }  # fmt: skip
    changed = config("10-base", "/etc/a", text="b", osImageURL=BASE)
    later = run(tmp_path, [BEFORE, inside, build, policy("/etc/a")], [changed], *PLAN)
    assert (image(later)["builds"], image(later)["reboots"]) == (True, True)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (described("NONSENSE"), "spec.containerFile[0].content: line 1: NONSENSE is no instruction"),
        (described(machineConfigPool={"name": "infra"}), "there is no pool 'infra' (there are: master, worker)"),
        (described(renderedImagePushSpec="x"), "spec.renderedImagePushSpec"),
    ],
)
def test_a_plan_of_what_cannot_be_built_says_why_and_ends_with_no(
    tmp_path: Path, change: JsonObject, sentence: str
) -> None:
    result = run(tmp_path, [BEFORE], [change], "plan", "-f", "CHANGE", "--offline", "CLUSTER")
    assert sentence in result.stdout
    assert result.exit_code == 1


@pytest.mark.row("003-75")
@pytest.mark.row("003-80")
def test_every_path_is_listed_with_its_place_its_owner_and_why(tmp_path: Path) -> None:
    more = config("20-more", "/etc/chrony.conf", "/var/lib/x", "/home/core/x")
    words = ("image", "what-goes-where", "worker", "--offline", "CLUSTER")
    listed = json.loads(run(tmp_path, [BEFORE, more], [], *words, "-o", "json").stdout)
    by_path = {part["path"]: part for part in listed}
    assert (by_path["/etc/chrony.conf"]["where"], by_path["/etc/chrony.conf"]["owner"]) == ("image", "20-more")
    assert (by_path["/var/lib/x"]["where"], by_path["/home/core/x"]["where"]) == ("disk", "disk")
    assert "not there after the boot" in by_path["/home/core/x"]["why"]
    for ours in ("/etc/docker/certs.d", "/var/lib/kubelet/config.json", "/var/lib/fastness"):
        assert (by_path[ours]["where"], by_path[ours]["owner"]) == ("disk", "control plane")
    assert "parts are in the image" in run(tmp_path, [BEFORE, more], [], *words).stdout
    missing = run(tmp_path, [BEFORE], [], "image", "what-goes-where", "infra", "--offline", "CLUSTER")
    assert "there is no pool 'infra'" in missing.stderr


def test_validate_knows_names_of_today_and_of_earlier_times(tmp_path: Path) -> None:
    assert run(tmp_path, [], [described()], "validate", "CHANGE").stdout == "1 MachineOSConfig is good.\n"
    old = described(buildInputs={"baseOSImagePullspec": BASE})
    del old["spec"]["renderedImagePushSpec"]
    result = run(tmp_path, [], [old], "validate", "CHANGE")
    assert (
        "MachineOSConfig worker: spec.buildInputs: is a name of an earlier time (today its members stand"
        in result.stdout
    )
    assert result.exit_code == 1


@pytest.mark.row("003-78")
def test_blame_says_which_of_two_files_counts_where_an_image_is_built(tmp_path: Path) -> None:
    ours = config("00-worker", "/etc/sysctl.d/arp.conf", annotations={GENERATED_BY: "1"})
    mine = config("50-mine", "/etc/sysctl.d/arp.conf", text="b")
    words = ("blame", "worker", "/etc/sysctl.d/arp.conf", "--offline", "CLUSTER")
    wins = (
        "in the image of the pool: /etc/sysctl.d/arp.conf of 50-mine wins over /usr/lib/sysctl.d/arp.conf of 00-worker: "
        "/etc is read in the place of /usr\n"
    )
    assert run(tmp_path, [ours, mine, described()], [], *words).stdout.endswith(wins)
    (part,) = json.loads(run(tmp_path, [ours, mine, described()], [], *words, "-o", "json").stdout)
    assert (part["source"], part["overrode"]) == ("50-mine", ["00-worker"])
    assert (part["image"]["counts"], part["image"]["default"]) == (
        "/etc/sysctl.d/arp.conf",
        "/usr/lib/sysctl.d/arp.conf",
    )
    (alone,) = json.loads(run(tmp_path, [ours, described()], [], *words, "-o", "json").stdout)
    assert alone["image"]["counts"] == "/usr/lib/sysctl.d/arp.conf"
    assert "image" not in run(tmp_path, [ours, mine], [], *words).stdout, "nobody builds one: /etc is all there is"
