"""Verbs of confidential containers that write to a cluster: published values, reported features."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

from fastness.agent.kata.features import keep_reporting
from fastness.cli.main import cli
from fastness.formats.initdata import write_init_data
from fastness.kinds.nfd.feature import NODE_FEATURE
from fastness.kinds.registry import find
from fastness.workloads.features.discovered import Features
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import VirtualClock

SETS = find("fastness.dev", "v1alpha1", "referencevaluesets").resource
NAMESPACES = find("", "v1", "namespaces").resource


async def _run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, list(arguments))


async def test_published_values_are_replaced_and_other_sets_are_left_alone(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    document, config = tmp_path / "initdata.toml", str(embedded_server.kubeconfig)
    document.write_text(write_init_data("sha256", {"aa.toml": ""}))
    done = await _run("initdata", "digest", str(document), "--publish", "pods", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    first = (await embedded_server.cluster.get(SETS, "pods"))["spec"]["values"]
    assert [reference["register"] for reference in first] == ["hostdata", "mrconfigid", "pcr8"]
    document.write_text(write_init_data("sha384", {"aa.toml": ""}))
    done = await _run("initdata", "digest", str(document), "--publish", "pods", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    again = (await embedded_server.cluster.get(SETS, "pods"))["spec"]["values"]
    assert [reference["register"] for reference in again] == ["hostdata", "mrconfigid"]
    assert again[0]["value"] != first[0]["value"]
    other = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "metadata": {"name": "other"},
             "spec": {"source": "manual", "values": [{"name": "tpm_pcr4", "value": "0" * 64}]}}  # fmt: skip
    await embedded_server.cluster.create(SETS, other)
    done = await _run("initdata", "digest", str(document), "--publish", "other", "--kubeconfig", config)
    assert (done.exit_code, "holds other values" in done.output) == (1, True)


async def test_the_agent_reports_once_and_writes_nothing_when_nothing_changed(embedded_server: Embedded) -> None:
    arguments = ("agent", "features", "--once", "--node", "here", "--kubeconfig", str(embedded_server.kubeconfig))
    first = await _run(*arguments)
    assert (first.exit_code, "written" in first.output) == (0, True), first.output
    feature = await embedded_server.cluster.get(NODE_FEATURE.resource, "here", "openshift-nfd")
    assert feature["spec"]["features"]["flags"]["cpu.cpuid"]["elements"]
    assert "unchanged" in (await _run(*arguments)).output


async def test_what_is_no_longer_found_disappears_at_the_next_look(embedded_server: Embedded) -> None:
    clock, looks = VirtualClock(), iter([Features({"a.b": frozenset({"x"})}), Features({"a.c": frozenset()})])
    task = asyncio.create_task(keep_reporting(embedded_server.cluster, "n", lambda: next(looks), clock, interval=60))
    for _ in range(int(PATIENCE / 0.01)):
        await asyncio.sleep(0.01)
        listed = (await embedded_server.cluster.list(NODE_FEATURE.resource)).items
        if listed and "a.b" in listed[0]["spec"]["features"]["flags"]:
            await clock.advance(60)
        elif listed:
            break
    assert list(listed[0]["spec"]["features"]["flags"]) == ["a.c"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
