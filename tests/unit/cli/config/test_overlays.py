"""`fastness plan` and `fastness blame` with NodeOverlays, on files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from tests.unit.machineconfig.build import file, ignition, mc, pool

Write = Callable[..., str]


def machine(number: int, tee: str) -> dict[str, Any]:
    name = f"machine-{number}"
    status = {
        "pool": "worker",
        "nodeName": f"worker-{number}",
        "keyThumbprint": f"k{number}",
        "properties": {"tee": tee},
    }
    meta = {"name": name, "uid": f"uid-{number}", "namespace": "fastness-system"}
    return {
        "apiVersion": "trusted-execution-clusters.io/v1alpha1",
        "kind": "Machine",
        "metadata": meta,
        "spec": {},
        "status": status,
    }


def overlay(name: str, match: Any, text: str = "7\n", path: str = "/etc/rack") -> dict[str, Any]:
    return {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": name},
        "spec": {"match": match, "config": ignition(file(path, text))},
    }  # fmt: skip


SNP, TPM = {"properties": {"tee": "snp"}}, {"properties": {"tee": "tpm"}}
RENDERED = mc("rendered-worker-1", ignition(file("/etc/rack", "pool\n"), file("/etc/other", "o\n")))
RENDERED["metadata"]["labels"] = {}
POOL = pool("worker")
POOL["spec"]["configuration"] = {"name": "rendered-worker-1"}
CLUSTER = (POOL, mc("50-rack", ignition(file("/etc/rack", "pool\n"))), RENDERED,
           machine(1, "snp"), machine(2, "snp"), machine(3, "tpm"))  # fmt: skip


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writes(name: str, *objects: Any) -> str:
        target = tmp_path / name
        target.write_text("---\n".join(yaml.safe_dump(document) for document in objects))
        return str(target)

    return writes


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_a_plan_says_which_machines_get_what_and_what_it_overrides(write: Write) -> None:
    result = run("plan", "-f", write("o.yaml", overlay("rack-7", SNP)), "--offline", write("c.yaml", *CLUSTER))
    assert result.exit_code == 0, result.output
    assert "NodeOverlay rack-7: new" in result.stdout
    assert "2 machines of pool worker: machine-1 (node worker-1), machine-2 (node worker-2)" in result.stdout
    assert "overlays: (none) -> rack-7" in result.stdout
    assert "file /etc/rack changed  [overlay:rack-7]" in result.stdout
    assert "-pool" in result.stdout
    assert "+7" in result.stdout
    assert "machine-3" not in result.stdout
    assert "machines that run follow, at most 1 at a time: reboot" in result.stdout


def test_a_changed_and_a_deleted_overlay_are_told_with_what_comes_back(write: Write) -> None:
    cluster = write("c.yaml", *CLUSTER, overlay("rack-7", SNP), overlay("a-tpm", TPM, path="/etc/tpm"))
    result = run("plan", "-f", write("o.yaml", overlay("rack-7", TPM)), "--delete", "nodeoverlay/a-tpm",
                 "--offline", cluster, "-o", "json")  # fmt: skip
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)["overlays"]
    assert report["overlays"] == [{"name": "rack-7", "change": "changed"}, {"name": "a-tpm", "change": "deleted"}]
    by_machines = {tuple(entry["name"] for entry in group["machines"]): group for group in report["groups"]}
    assert by_machines["machine-1", "machine-2"]["to"] == []
    assert "+pool" in by_machines["machine-1", "machine-2"]["changes"][0]["diff"]
    tpm = by_machines[("machine-3",)]
    assert (tpm["from"], tpm["to"]) == (["a-tpm"], ["rack-7"])
    assert {(entry["what"], entry["source"]) for entry in tpm["changes"]} == {
        ("file /etc/rack changed", "overlay:rack-7"),
        ("file /etc/tpm removed", "overlay:a-tpm"),
    }


@pytest.mark.parametrize(
    ("pool_spec", "node", "words"),
    [
        ({"paused": True}, "worker-1", "the pool is paused"),
        ({"maxUnavailable": 2}, "worker-1", "at most 2 at a time"),
        ({"maxUnavailable": "many"}, "worker-1", "the pool is paused"),
        ({}, "", "none of them runs"),
    ],
)
def test_a_plan_says_when_machines_follow_and_how_many_at_a_time(
    write: Write, pool_spec: Any, node: str, words: str
) -> None:
    alone, paced = machine(1, "snp"), {**POOL, "spec": {**POOL["spec"], **pool_spec}}
    alone["status"]["nodeName"] = node
    cluster = write("c.yaml", paced, RENDERED, alone, machine(2, "tpm"))
    result = run("plan", "-f", write("o.yaml", overlay("rack-7", SNP)), "--offline", cluster)
    assert words in result.stdout


def test_where_nothing_is_rendered_yet_the_plan_renders(write: Write) -> None:
    cluster = write("c.yaml", mc("50-rack", ignition(file("/etc/rack", "pool\n"))), machine(1, "snp"))
    result = run("plan", "-f", write("o.yaml", overlay("rack-7", SNP)), "--offline", cluster)
    assert "file /etc/rack changed  [overlay:rack-7]" in result.stdout


def test_an_overlay_that_changes_nothing_for_anybody_says_so(write: Write) -> None:
    cluster = write("c.yaml", *CLUSTER, overlay("rack-7", SNP))
    same = run("plan", "-f", write("o.yaml", overlay("rack-7", SNP)), "--offline", cluster)
    assert (same.exit_code, "nothing changes for any machine; 3 machines are known" in same.stdout) == (0, True)


def test_a_bad_overlay_exits_1_and_names_the_place(write: Write) -> None:
    bad = overlay("rack-7", SNP)
    bad["spec"]["config"]["kernelArguments"] = {"shouldExist": ["debug"]}
    result = run("plan", "-f", write("o.yaml", bad), "--offline", write("c.yaml", *CLUSTER))
    assert result.exit_code == 1
    assert "spec.config.kernelArguments.shouldExist" in result.stdout
    assert "would wait" in result.stdout


def test_a_change_of_configs_and_overlays_is_told_together(write: Write) -> None:
    new = write("n.yaml", mc("60-new", ignition(file("/etc/new", "n\n"))), overlay("rack-7", SNP))
    result = run("plan", "-f", new, "--offline", write("c.yaml", *CLUSTER))
    assert "Pool worker" in result.stdout
    assert "NodeOverlay rack-7: new" in result.stdout


def test_deleting_an_overlay_that_is_not_there_gives_the_closest(write: Write) -> None:
    cluster = write("c.yaml", *CLUSTER, overlay("rack-7", SNP))
    result = run("plan", "--delete", "nodeoverlay/rack-8", "--offline", cluster)
    assert result.exit_code != 0
    assert "rack-7" in result.output


@pytest.mark.parametrize("name", ["machine-1", "worker-1", "uid-1"])
def test_blame_of_a_machine_names_the_overlay_and_what_it_overrode(write: Write, name: str) -> None:
    cluster = write("c.yaml", *CLUSTER, overlay("rack-7", SNP))
    result = run("blame", "--machine", name, "/etc/rack", "--offline", cluster, "-o", "json")
    assert result.exit_code == 0, result.output
    (origin,) = json.loads(result.stdout)
    assert (origin["source"], origin["overrode"]) == ("overlay:rack-7", ["50-rack"])
    other = json.loads(run("blame", "--machine", "machine-3", "/etc/rack", "--offline", cluster, "-o", "json").stdout)
    assert other[0]["source"] == "50-rack"


@pytest.mark.parametrize("arguments", [["worker"], ["--machine", "machine-1", "worker", "/etc/rack"], ["a", "b", "c"]])
def test_blame_wants_a_pool_or_a_machine(write: Write, arguments: list[str]) -> None:
    result = run("blame", *arguments, "--offline", write("c.yaml", *CLUSTER))
    assert result.exit_code == 2
    assert "--machine NAME PATH" in result.output


def test_blame_of_an_unknown_machine_gives_the_closest(write: Write) -> None:
    result = run("blame", "--machine", "machine-9", "/etc/rack", "--offline", write("c.yaml", *CLUSTER))
    assert result.exit_code != 0
    assert "machine-1" in result.output
