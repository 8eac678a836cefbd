"""The verbs validate, render, blame and plan on files: exit codes, messages, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.formats import data_url
from tests.unit.machineconfig.build import file, ignition, mc, node, pool

Write = Callable[..., str]
GOOD = mc("50-chrony", ignition(file("/etc/chrony.conf", "server a\n")))
BAD = mc("99-bad", ignition({**file("/a"), "mode": 0o4755}), kernelType="x")
SMT = mc("99-smt", kernelArguments=["nosmt"])


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writes(name: str, *objects: Any) -> str:
        target = tmp_path / name
        target.write_text("---\n".join(part if isinstance(part, str) else yaml.safe_dump(part) for part in objects))
        return str(target)

    return writes


def run(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(cli, list(arguments), input=text)


def test_good_files_exit_0(write: Write) -> None:
    result = run("validate", write("a.yaml", GOOD), write("b.yaml", SMT))
    assert (result.exit_code, result.stdout) == (0, "2 MachineConfigs are good.\n")


def test_every_problem_is_listed_with_file_line_config_field_and_exit_1(write: Write) -> None:
    path = write("a.yaml", GOOD, BAD)
    result = run("validate", path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"{path}:") and "error: MachineConfig 99-bad: spec." in line for line in lines)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: [", "line 2"),
        ("a: 1\na: 2\n", "stands twice"),
        ("just text", "no kind"),
        ("", "nothing in it"),
        ("storage: {}\n", "wrap Ignition in a MachineConfig"),
        ("a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
         "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f]\n", "expand to too many"),
    ],
)  # fmt: skip
def test_an_unreadable_file_exits_2_and_is_named_while_the_others_are_judged(
    write: Write, content: str, says: str
) -> None:
    broken, other = write("broken.yaml", content), write("bad.yaml", BAD)
    result = run("validate", broken, other)
    assert result.exit_code == 2
    assert f"{broken}: unreadable:" in result.stdout
    assert says in result.stdout
    assert "99-bad" in result.stdout


@pytest.mark.parametrize(
    "meta",
    [
        [],
        {"name": ["x"]},
        {"name": "x", "labels": ["a"]},
        {"labels": {"a": 1}},
        {"ownerReferences": [1]},
        {"annotations": 3},
    ],
)
@pytest.mark.parametrize(
    "verb", [["validate"], ["render", "--pool", "worker"], ["plan", "-f"], ["blame", "worker", "x", "--offline"]]
)
def test_metadata_of_the_wrong_type_is_unreadable_for_every_verb(write: Write, meta: Any, verb: list[str]) -> None:
    result = run(*verb, write("a.yaml", {"kind": "MachineConfig", "metadata": meta, "spec": {}}))
    assert result.exit_code == 2, result.output
    assert "has the wrong type" in result.output


def test_missing_huge_and_foreign_files_exit_2(write: Write, tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as stream:
        stream.truncate(10 * 1024 * 1024)
    for path, says in ((str(huge), "10485760 bytes"), (str(tmp_path / "no.yaml"), "No such file")):
        result = run("validate", path)
        assert (result.exit_code, path in result.stdout, says in result.stdout) == (2, True, True)
    result = run("validate", write("pool.yaml", pool()))
    assert result.exit_code == 2
    assert "holds no MachineConfig" in result.stdout
    assert "MachineConfigPool is not a MachineConfig" in result.stderr


def test_confidential_refuses_and_suggests_the_layer(write: Write) -> None:
    path = write("a.yaml", SMT)
    assert run("validate", path).exit_code == 0
    result = run("validate", "--confidential", "--suggest", path)
    assert result.exit_code == 1
    assert "spec.kernelArguments" in result.stdout
    assert "bake it into the image" in result.stdout
    assert 'kargs = ["nosmt"]' in result.stdout


def test_json_lists_problems_and_unreadable_files(write: Write) -> None:
    path, broken = write("a.yaml", BAD), write("b.yaml", "a: [")
    result = run("validate", "-o", "json", path, broken)
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["valid"]) == (2, False)
    assert {entry["code"] for entry in answer["problems"]} == {"kernel-type", "file-mode"}
    assert all(entry["file"] == path and entry["line"] == 1 and entry["wayOut"] for entry in answer["problems"])
    assert [entry["file"] for entry in answer["unreadable"]] == [broken]
    assert json.loads(run("validate", "-o", "json", write("c.yaml", GOOD)).stdout)["valid"] is True


def test_two_configs_of_one_name_and_one_without_are_problems(write: Write) -> None:
    nameless = {**GOOD, "metadata": {"labels": GOOD["metadata"]["labels"]}}
    result = run("validate", write("a.yaml", GOOD), write("b.yaml", GOOD, nameless))
    assert result.exit_code == 1
    assert "is also in" in result.stdout
    assert "has no name" in result.stdout


def test_lists_directories_and_standard_input_are_read(write: Write, tmp_path: Path) -> None:
    write("list.yaml", {"apiVersion": "v1", "kind": "List", "items": [GOOD, SMT]})
    assert run("validate", str(tmp_path)).stdout == "2 MachineConfigs are good.\n"
    assert run("validate", "-", text=yaml.safe_dump(BAD)).exit_code == 1


def test_render_prints_what_the_pool_gets(write: Write) -> None:
    path = write("a.yaml", GOOD, SMT, mc("m", ignition(file("/m")), role="master"))
    result = run("render", "--pool", "worker", path)
    assert result.exit_code == 0
    rendered = yaml.safe_load(result.stdout)
    assert rendered["metadata"]["name"].startswith("rendered-worker-")
    assert rendered["spec"]["kernelArguments"] == ["nosmt"]
    assert [file_entry["path"] for file_entry in rendered["spec"]["config"]["storage"]["files"]] == ["/etc/chrony.conf"]
    assert json.loads(run("render", "--pool", "worker", "-o", "json", path).stdout) == rendered


def test_render_uses_settings_in_the_files(write: Write) -> None:
    runtime = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "ContainerRuntimeConfig",
        "metadata": {"name": "c"},
        "spec": {
            "machineConfigPoolSelector": {
                "matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}
            },
            "containerRuntimeConfig": {"logLevel": "debug"},
        },
    }
    result = run("render", "--pool", "worker", write("a.yaml", GOOD, runtime))
    assert "/etc/crio/crio.conf.d/01-ctrcfg-logLevel" in result.stdout
    runtime["spec"]["containerRuntimeConfig"] = {"logLevel": "loud"}  # type: ignore[index]
    failed = run("render", "--pool", "worker", write("b.yaml", GOOD, runtime))
    assert failed.exit_code == 1
    assert 'invalid LogLevel "loud", must be one of' in failed.stderr


def test_render_that_fails_says_why_and_prints_nothing(write: Write) -> None:
    result = run("render", "--pool", "worker", write("a.yaml", GOOD, BAD))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Failed to render configuration for pool worker: MachineConfig 99-bad" in result.stderr
    refused = run("render", "--confidential", "--pool", "worker", write("b.yaml", SMT))
    assert refused.exit_code == 1


def test_blame_names_the_source_and_what_it_overrode(write: Write) -> None:
    later = mc("60-chrony", ignition(file("/etc/chrony.conf", "server b\n")))
    path = write("a.yaml", GOOD, later)
    result = run("blame", "worker", "/etc/chrony.conf", "--offline", path)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].split()[:4] == ["file", "/etc/chrony.conf", "60-chrony", "50-chrony"]
    [origin] = json.loads(run("blame", "worker", "/etc/chrony.conf", "--offline", path, "-o", "json").stdout)
    assert (origin["source"], origin["overrode"]) == ("60-chrony", ["50-chrony"])
    missing = run("blame", "worker", "/etc/chrny.conf", "--offline", path)
    assert missing.exit_code == 1
    assert "Did you mean /etc/chrony.conf?" in missing.stderr


def test_plan_exits_2_when_something_reboots(write: Write) -> None:
    state, new = write("state.yaml", GOOD, pool(), node("n1", "worker")), write("new.yaml", SMT)
    result = run("plan", "-f", new, "--offline", state)
    assert result.exit_code == 2
    assert "kernelArguments changed  [99-smt] -> Reboot" in result.stdout
    assert "n1: drain, then Reboot" in result.stdout
    assert "1 node reboots." in result.stdout


def test_plan_exits_0_when_nothing_goes_down_or_nothing_changes(write: Write) -> None:
    gentle = mc("60-policy", ignition(file("/etc/containers/policy.json")))
    state = write("state.yaml", GOOD, pool(), node("n1", "worker"))
    result = run("plan", "-f", write("new.yaml", gentle), "--offline", state)
    assert result.exit_code == 0
    assert "n1: Reload crio.service" in result.stdout
    assert "Nothing reboots." in result.stdout
    same = run("plan", "-f", write("same.yaml", GOOD), "--offline", state)
    assert (same.exit_code, same.stdout.startswith("Nothing changes")) == (0, True)


def test_plan_of_a_delete_shows_what_goes_as_json_too(write: Write) -> None:
    state = write("state.yaml", GOOD, mc("10-base", ignition(file("/b"))), pool(), node("n1", "worker"))
    result = run("plan", "--delete", "50-chrony", "--offline", state, "-o", "json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["reboots"]) == (2, True)
    [change] = answer["pools"][0]["changes"]
    assert (change["how"], change["path"], change["source"]) == ("removed", "/etc/chrony.conf", "50-chrony")
    assert "-server a" in change["diff"]


def kubelet(name: str = "pods", **settings: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}
    spec = {"machineConfigPoolSelector": selector, "kubeletConfig": settings}
    return {"kind": "KubeletConfig", "metadata": {"name": name}, "spec": spec}


def workers() -> dict[str, Any]:
    worker_pool = pool()
    worker_pool["metadata"]["labels"] = {"pools.operator.machineconfiguration.openshift.io/worker": ""}
    return worker_pool


def test_plan_takes_settings_of_kubelet_and_runtime(write: Write) -> None:
    state = write("state.yaml", GOOD, workers(), node("n1", "worker"))
    result = run("plan", "-f", write("new.yaml", kubelet(maxPods=100)), "--offline", state)
    assert result.exit_code == 2, result.output
    assert "/etc/kubernetes/kubelet.conf added  [99-worker-generated-kubelet] -> Reboot" in result.stdout
    refused = run("plan", "-f", write("bad.yaml", kubelet(cgroupDriver="x")), "--offline", state)
    assert refused.exit_code == 1
    assert "cgroupDriver is not allowed to be set, but contains: x" in refused.stderr


def cluster_object(kind: str, name: str = "cluster", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_plan_takes_the_clusters_own_settings(write: Write) -> None:
    gates = cluster_object("FeatureGate", featureSet="CustomNoUpgrade", customNoUpgrade={"enabled": ["EventedPLEG"]})
    state = write("state.yaml", GOOD, workers(), node("n1", "worker"), kubelet(maxPods=100))
    result = run("plan", "-f", write("gates.yaml", gates), "--offline", state)
    assert result.exit_code == 2, result.output
    assert "/etc/kubernetes/kubelet.conf changed  [99-worker-generated-kubelet] -> Reboot" in result.stdout
    assert "+  EventedPLEG: true" in result.stdout
    nodes = cluster_object("Node", workerLatencyProfile="MediumUpdateAverageReaction")
    result = run("plan", "-f", write("nodes.yaml", nodes), "--offline", state)
    assert "+nodeStatusUpdateFrequency: 20s" in result.stdout
    assert "1 node reboots." in result.stdout, "the object called Node is no node"
    for name, spec in (("mine", {}), ("cluster", {"featureSet": "OKD"})):
        other = run("plan", "-f", write("other.yaml", cluster_object("FeatureGate", name, **spec)), "--offline", state)
        assert ("would be refused: FeatureGate cluster: featureSet OKD" in other.stderr) == (name == "cluster")
        assert other.exit_code == (1 if name == "cluster" else 0)


def test_render_uses_the_clusters_own_settings_in_the_files(write: Write) -> None:
    api = cluster_object("APIServer", tlsSecurityProfile={"type": "Modern"})
    gates = cluster_object("FeatureGate", featureSet="CustomNoUpgrade", customNoUpgrade={"enabled": ["EventedPLEG"]})
    rendered = run("render", "--pool", "worker", write("a.yaml", GOOD, api, gates), "-o", "json")
    files = json.loads(rendered.stdout)["spec"]["config"]["storage"]["files"]
    [source] = [entry["contents"]["source"] for entry in files if entry["path"] == "/etc/kubernetes/kubelet.conf"]
    text = data_url.decode(source).decode()
    assert "EventedPLEG: true" in text
    assert "tlsMinVersion: VersionTLS13" in text
    refused = run("render", "--pool", "worker", write("b.yaml", GOOD, cluster_object("Node", cgroupMode="v1")))
    assert refused.exit_code == 1
    assert "Node cluster: unsupported cgroup mode 'v1'" in refused.stderr


def test_plan_of_deleting_settings(write: Write) -> None:
    state = write("state.yaml", GOOD, workers(), node("n1", "worker"), kubelet(maxPods=100))
    result = run("plan", "--delete", "kubeletconfig/pods", "--offline", state, "-o", "json")
    [change] = json.loads(result.stdout)["pools"][0]["changes"]
    assert (change["how"], change["path"]) == ("removed", "/etc/kubernetes/kubelet.conf")
    unknown = run("plan", "--delete", "kubeletconfig/pod", "--offline", state)
    assert "there is no KubeletConfig 'pod' to delete" in unknown.stderr
    assert "Did you mean pods?" in unknown.stderr


def test_plan_shows_waves_and_what_holds_them(write: Write) -> None:
    spec = {"poolSelector": {}, "waves": [{"count": 1, "soak": "10m"}], "window": {"start": "22:00", "duration": "4h"}}
    policy = {"kind": "RolloutPolicy", "metadata": {"name": "canary"}, "spec": spec}
    state = write("state.yaml", GOOD, workers(), *(node(f"n{n}", "worker") for n in range(3)), policy)
    output = run("plan", "-f", write("new.yaml", SMT), "--offline", state).stdout
    assert "follows RolloutPolicy canary; stops at 1 degraded" in output
    assert "only every day from 22:00 for 4h (UTC)" in output
    assert "wave 1 of 2: until 1 node has it, watched for 0:10:00" in output
    assert output.index("wave 1 of 2") < output.index("n0:") < output.index("wave 2 of 2") < output.index("n1:")


def test_plan_that_would_not_render_exits_1(write: Write) -> None:
    result = run("plan", "-f", write("new.yaml", BAD), "--offline", write("state.yaml", GOOD, pool()))
    assert result.exit_code == 1
    assert "will not render" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["plan"], 2, "nothing to plan"),
        (["plan", "--delete", "50-chron", "--offline", "STATE"], 1, "Did you mean 50-chrony?"),
        (["plan", "--delete", "50-chrony", "--pool", "wrker", "--offline", "POOLS"], 1, "no MachineConfig"),
        (["plan", "-f", "POOLS", "--offline", "STATE"], 2, "holds no MachineConfig"),
        (["plan", "-f", "/nonexistent.yaml", "--offline", "STATE"], 2, "/nonexistent.yaml"),
        (["render", "--pool", "worker", "/nonexistent.yaml"], 2, "/nonexistent.yaml"),
    ],
)
def test_wrong_use_is_told_with_a_way_out(write: Write, arguments: list[str], code: int, says: str) -> None:
    files = {"STATE": write("state.yaml", GOOD), "POOLS": write("pools.yaml", pool())}
    result = run(*(files.get(argument, argument) for argument in arguments))
    assert result.exit_code == code, result.output
    assert says in result.stderr
