"""`fastness attest explain` says what differs, whose it is, and what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result

from fastness.agent.boot.prove import BrokerRefused
from fastness.cli.trust.attest import attest
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, changed, default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        yield world


async def explain(embedded: Embedded, machine: SimAttester, *more: str) -> Result:
    words = [
        "explain",
        machine.machine.thumbprint.removeprefix("sha256:")[:12],
        "--kubeconfig",
        str(embedded.kubeconfig),
    ]
    return await asyncio.to_thread(CliRunner().invoke, attest, [*words, *more])


async def refused(world: AttestingWorld, tee: str, image: BootImage) -> SimAttester:
    machine = await world.enrolled(tee, image)
    async with world.broker(machine) as broker:
        with pytest.raises(BrokerRefused):
            await broker.attest()
    return machine


async def test_a_good_machine_is_attested_and_says_that_it_is_simulated(
    here: AttestingWorld, embedded_server: Embedded
) -> None:
    await here.approve("tpm")
    machine = await here.enrolled("tpm")
    before = await explain(embedded_server, machine)
    assert (before.exit_code, "has enrolled and not attested yet" in before.stdout) == (1, True)
    async with here.broker(machine) as broker:
        await broker.attest()
    after = await explain(embedded_server, machine)
    assert after.exit_code == 0, after.output
    assert "is attested (tpm) [simulated, host not proved]" in after.stdout


async def test_an_image_whose_approval_was_removed_is_named_with_the_day(
    here: AttestingWorld, embedded_server: Embedded
) -> None:
    await here.approve("tpm")
    old = changed(default_image(), command_line="console=ttyS0 old")
    name = await here.approve("tpm", old, "values-old")
    withdrawn = {"spec": {"withdrawn": {"at": "2026-10-03T10:00:00Z", "reason": "CVE in the kernel"}}}
    await here.cluster.patch(REFERENCE_VALUE_SET.resource, name, withdrawn, PatchType.MERGE)
    sets = here.informers.of(REFERENCE_VALUE_SET.resource)
    await until(lambda: _withdrawn(sets.get("", name)))
    machine = await refused(here, "tpm", old)
    result = await explain(embedded_server, machine)
    assert result.exit_code == 1
    assert "FAIL  PCR 11" in result.stdout, result.stdout
    assert "the set values-old" in result.stdout
    assert "whose approval ended on 2026-10-03: CVE in the kernel" in result.stdout
    assert "fastness image approve" in result.stdout


async def _withdrawn(stored: object) -> bool:
    return isinstance(stored, dict) and "withdrawn" in stored["spec"]


@pytest.mark.parametrize(("tee", "title"), [("snp", "launch measurement"), ("tdx", "RTMR")])
async def test_other_evidence_says_which_register_differs(
    here: AttestingWorld, embedded_server: Embedded, tee: str, title: str
) -> None:
    await here.approve(tee)
    machine = await refused(here, tee, changed(default_image(), command_line="init=/bin/sh"))
    result = await explain(embedded_server, machine)
    assert f"FAIL  {title}" in result.stdout, result.stdout
    assert "Update the machine" in result.stdout


async def test_json_carries_the_same_and_all_shows_what_passed(here: AttestingWorld, embedded_server: Embedded) -> None:
    await here.approve("tpm")
    machine = await refused(here, "tpm", changed(default_image(), command_line="init=/bin/sh"))
    explanation = await explain(embedded_server, machine, "-o", "json")
    assert '"attested": false' in explanation.stdout
    assert '"code": "value-differs"' in explanation.stdout
    everything = await explain(embedded_server, machine, "--all")
    assert "pass  signature: ok" in everything.stdout


async def test_without_a_name_all_are_explained_that_are_not_attested_and_no_other(
    here: AttestingWorld, embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def everybody(*more: str) -> Result:
        words = ["explain", "--kubeconfig", str(embedded_server.kubeconfig), *more]
        return await asyncio.to_thread(CliRunner().invoke, attest, words)

    empty = await everybody()
    assert (empty.exit_code, empty.stderr) == (1, "no machine has enrolled: nothing is attested\n"), empty.output
    await here.approve("tpm")
    good = await here.enrolled("tpm")
    async with here.broker(good) as broker:
        await broker.attest()
    nobody = await everybody()
    notice = "every machine that enrolled is attested\n"
    assert (nobody.exit_code, nobody.stdout, nobody.stderr) == (0, "", notice), nobody.output
    for option in ("init=/bin/sh", "init=/bin/bash"):
        await refused(here, "tpm", changed(default_image(), command_line=option))
    both = await everybody()
    assert both.exit_code == 1
    assert both.stdout.count("is refused: value-differs [simulated]") == 2
    assert good.machine.thumbprint.removeprefix("sha256:")[:12] not in both.stdout
    assert len(json.loads((await everybody("-o", "json")).stdout)["machines"]) == 2
    monkeypatch.setattr("fastness.cli.trust.explain.MOST", 1)
    capped = await everybody()
    assert capped.stdout.count("is refused") == 1
    assert "1 more is not attested" in capped.stderr
    taken_out = {"spec": {"approval": "Quarantined"}}
    name = f"machine-{good.machine.thumbprint.removeprefix('sha256:')[:20]}"
    await here.cluster.patch(MACHINE.resource, name, taken_out, PatchType.MERGE, NAMESPACE)
    monkeypatch.undo()
    assert "is quarantined: nothing is released to it" in (await everybody()).stdout
