"""One truth on every surface: kubectl, the command line, the cluster's status, metrics, Events and the record say the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from click.testing import CliRunner

from fastness.attestation.loops.confidential import KEY, LOOK_SECONDS, Confidential
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.verdict.breakglass import ANNOTATION
from fastness.cli.trust.attest import attest
from fastness.cli.trust.machine import machine as machine_verbs
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.observe import metrics
from fastness.record.entry import RecordEntry
from fastness.record.live.tiles import FileTiles
from fastness.record.loops.sequencer import KEY as SEQUENCE
from fastness.record.loops.sequencer import Sequencer
from fastness.runtime.clock import SystemEntropy
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.attesting import SIMULATED, AttestingWorld, attesting_world, until
from tests.breakglass import APPROVERS, appointed, override
from tests.embedded.fixtures import Embedded

pytestmark = pytest.mark.processes

OPEN: JsonObject = {**SIMULATED, "breakGlass": {"approvers": APPROVERS}}
NODES = Resource("", "v1", "nodes", "Node", False)


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.entries: list[RecordEntry] = []

    async def append(self, entry: RecordEntry) -> None:
        self.entries.append(entry)


class Surfaces:
    """A cluster with its loops driven by hand, and everything that a person can look at."""

    def __init__(self, world: AttestingWorld, embedded: Embedded, tiles: FileTiles) -> None:
        self.world = world
        self.kubeconfig = str(embedded.kubeconfig)
        self.record = Kept()
        self.sequencer = Sequencer(world.cluster, tiles, world.clock, SystemEntropy())
        self.status = Confidential(world.cluster, world.informers, world.clock, self.record, tiles)
        self.standing = ProofAge(world.cluster, world.informers, world.clock)
        self.machines = Machines(world.cluster, world.informers, self.record, world.clock)

    async def settle(self) -> JsonObject:
        """Let the loops see what there is, and act; the ConfidentialCluster afterwards."""
        for loop in (self.machines, self.standing):
            await self._caught_up()
            for machine in (await self.world.cluster.list(MACHINE.resource)).items:
                await loop.reconcile(ObjectName(NAMESPACE, machine["metadata"]["name"]))
        await self._caught_up()
        await self.sequencer.reconcile(SEQUENCE)
        while (again := (await self.status.reconcile(KEY)).again_after) is not None and again != LOOK_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(again)
        await self._caught_up()
        return await self.world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")

    async def _caught_up(self) -> None:
        for resource in (MACHINE.resource, CONFIDENTIAL_CLUSTER.resource, NODES, MACHINE_CONFIG_POOL.resource):
            informer = self.world.informers.of(resource)
            await informer.synced()
            stored = {obj["metadata"]["resourceVersion"] for obj in (await self.world.cluster.list(resource)).items}

            async def same() -> bool:
                return stored == {obj["metadata"]["resourceVersion"] for obj in informer.list()}  # noqa: B023

            await until(same)

    async def kubectl(self, *words: str) -> str:
        """What kubectl prints, on either stream."""
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            "--kubeconfig",
            self.kubeconfig,
            *words,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return (await process.communicate())[0].decode()

    async def listed(self) -> list[dict[str, str]]:
        words = ["list", "--kubeconfig", self.kubeconfig, "-o", "json"]
        result = await asyncio.to_thread(CliRunner().invoke, machine_verbs, words)
        rows: list[dict[str, str]] = json.loads(result.stdout)
        return rows

    async def explained(self) -> tuple[int, str]:
        words = ["explain", "--kubeconfig", self.kubeconfig]
        result = await asyncio.to_thread(CliRunner().invoke, attest, words)
        return result.exit_code, result.output

    async def annotate(self, text: str | None) -> None:
        patch = {"metadata": {"annotations": {ANNOTATION: text}}}
        await self.world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
        await self._caught_up()

    async def prove(self, machine: SimAttester) -> None:
        async with self.world.broker(machine) as broker:
            await broker.attest()


@pytest.fixture
async def surfaces(embedded_server: Embedded) -> AsyncIterator[Surfaces]:
    await appointed(embedded_server.cluster)
    async with attesting_world(embedded_server.cluster, OPEN) as world:
        yield Surfaces(world, embedded_server, FileTiles(embedded_server.directory / "record"))


def reason(cluster: JsonObject, kind: str) -> tuple[str, str]:
    reported = condition(cluster, kind)
    assert reported is not None
    return reported["status"], reported["reason"]


def machines_metric(standing: str) -> float:
    text = metrics.exposition().decode()
    line = f'fastness_machines{{simulated="true",standing="{standing}"}} '
    return float(next(sample.removeprefix(line) for sample in text.splitlines() if sample.startswith(line)))


async def overridden(surfaces: Surfaces) -> SimAttester:
    """A machine whose values nobody published, let in by an override."""
    world = surfaces.world
    await world.approve("tpm")
    machine = await world.enrolled("tpm", changed(default_image(), command_line="a new kernel"))
    uid = (await world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster"))["metadata"]["uid"]
    await surfaces.annotate(override(uid, world.clock.now()))
    await surfaces.prove(machine)
    return machine


async def test_a_machine_under_break_glass_is_nowhere_counted_as_proved(surfaces: Surfaces) -> None:
    machine = await overridden(surfaces)
    cluster = await surfaces.settle()
    counts = cluster["status"]
    assert (counts["attested"], counts["overridden"], counts["enrolled"]) == (0, 1, 1)
    assert reason(cluster, "Enforcing") == ("False", "Overridden")
    assert reason(cluster, "Degraded") == ("True", "MachinesOverridden")
    table = await surfaces.kubectl("get", "machines", "-n", NAMESPACE)
    assert "Overridden (simulated)   BreakGlass" in table, table
    assert table.split()[:6] == ["NAME", "ID", "POOL", "ATTESTED", "REASON", "LASTVERDICT"]
    assert [(row["attested"], row["why"]) for row in await surfaces.listed()] == [("Overridden", "BreakGlass")]
    code, text = await surfaces.explained()
    assert (code, "is not attested: it was let in without proof by an override" in text) == (1, True), text
    labels = str((await surfaces.world.machine_object(machine)).get("labels"))
    assert (machines_metric("Overridden"), "attested" in labels) == (1, False)
    events = [
        event for event in (await surfaces.world.cluster.list(EVENTS)).items if event["reason"] == "OverrideBegins"
    ]
    assert [(event["type"], event["involvedObject"]["kind"]) for event in events] == [
        ("Warning", "ConfidentialCluster")
    ]
    assert "lastAttested" not in (await surfaces.world.machine_object(machine))["status"]


async def test_nor_is_it_after_the_override_ended_until_it_proves_itself(surfaces: Surfaces) -> None:
    machine = await overridden(surfaces)
    await surfaces.settle()
    await surfaces.annotate(None)
    cluster = await surfaces.settle()
    counts = cluster["status"]
    assert (counts["attested"], counts["overridden"], counts["stale"], counts["refused"]) == (0, 0, 1, 1)
    assert reason(cluster, "Enforcing") == ("True", "Enforce")
    assert "Stale (simulated)   OverrideEnded" in await surfaces.kubectl("get", "machines", "-n", NAMESPACE)
    assert [row["attested"] for row in await surfaces.listed()] == ["Stale"]
    assert [entry.what for entry in surfaces.record.entries][-2:] == ["break-glass-begins", "break-glass-ends"]
    await surfaces.world.approve("tpm", changed(default_image(), command_line="a new kernel"), "later")
    await surfaces.prove(machine)
    cluster = await surfaces.settle()
    assert cluster["status"]["attested"] == 1
    assert "Proved (simulated, host not proved)   Affirmed" in await surfaces.kubectl(
        "get", "machines", "-n", NAMESPACE
    )
    assert "overriddenUntil" not in (await surfaces.world.machine_object(machine))["status"]


async def test_a_revoked_machine_is_revoked_on_every_surface_until_it_is_trusted_again(
    surfaces: Surfaces,
) -> None:
    world = surfaces.world
    await world.approve("snp")
    machine = await world.enrolled("snp")
    await surfaces.prove(machine)
    await surfaces.settle()
    assert "Proved (simulated)   Affirmed" in await surfaces.kubectl("get", "machines", "-n", NAMESPACE)
    name = (await world.machine_object(machine))["metadata"]["name"]
    out = {"spec": {"approval": "Quarantined", "approvalReason": "stolen"}}
    await world.cluster.patch(MACHINE.resource, name, out, PatchType.MERGE, NAMESPACE)
    assert [row["attested"] for row in await surfaces.listed()] == ["Revoked"], "at once"
    cluster = await surfaces.settle()
    assert (cluster["status"]["attested"], cluster["status"]["revoked"]) == (0, 1)
    table = await surfaces.kubectl("get", "machines", "-n", NAMESPACE)
    assert "Revoked (simulated)   Quarantined" in table
    assert "Affirmed" not in table
    assert condition(await world.machine_object(machine), "Attested")["status"] == "False"  # type: ignore[index]
    back = {"spec": {"approval": "Approved"}}
    await world.cluster.patch(MACHINE.resource, name, back, PatchType.MERGE, NAMESPACE)
    cluster = await surfaces.settle()
    assert cluster["status"]["attested"] == 1, "its proof is young still"
    assert condition(await world.machine_object(machine), "Attested")["reason"] == "Affirmed"  # type: ignore[index]


async def test_a_proof_that_grew_old_is_stale_on_every_surface(surfaces: Surfaces) -> None:
    await surfaces.world.approve("snp")
    await surfaces.prove(await surfaces.world.enrolled("snp"))
    await surfaces.settle()
    surfaces.world.clock.ahead = timedelta(hours=1)
    assert (await surfaces.settle())["status"]["stale"] == 1
    assert "Stale (simulated)   ProofExpired" in await surfaces.kubectl("get", "machines", "-n", NAMESPACE)
    # The clock of the command line is an hour behind that of the control plane.
    assert [row["attested"] for row in await surfaces.listed()] == ["Stale"]
    assert (machines_metric("Stale"), machines_metric("Proved")) == (1, 0)


@pytest.mark.row("000-02")
async def test_nodes_that_never_attested_are_named_on_every_surface(surfaces: Surfaces) -> None:
    world = surfaces.world
    selector = {"matchLabels": {"node-role.kubernetes.io/worker": ""}}
    pool = {
        "apiVersion": MACHINE_CONFIG_POOL.api_version, "kind": MACHINE_CONFIG_POOL.kind, "metadata": {"name": "worker"},
        "spec": {"nodeSelector": selector, "machineConfigSelector": {"matchLabels": {names.ROLE_LABEL: "worker"}}},
    }  # fmt: skip
    await world.cluster.create(MACHINE_CONFIG_POOL.resource, pool)
    for node in ("old-1", "old-2"):
        meta = {"name": node, "labels": {"node-role.kubernetes.io/worker": ""}}
        await world.cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    cluster = await surfaces.settle()
    assert cluster["status"]["nodesNeverAttested"] == 2
    assert cluster["status"]["neverAttested"] == ["old-1", "old-2"]
    assert reason(cluster, "Degraded") == ("True", "NodesNeverAttested")
    assert reason(cluster, "Verifying") == ("False", "NodesNeverAttested")
    assert "old-1, old-2" in str(condition(cluster, "Verifying"))
    code, text = await surfaces.explained()
    assert code == 1
    assert all(f"node {name} never attested" in text for name in ("old-1", "old-2"))
    assert "fastness_nodes_never_attested 2.0" in metrics.exposition().decode()


@pytest.mark.row("000-03")
async def test_a_lowering_is_confirmed_once_and_on_the_record_with_the_person(surfaces: Surfaces) -> None:
    await surfaces.settle()
    lower = ("patch", "confidentialcluster", "cluster", "--type", "merge", "-p")
    refused = await surfaces.kubectl(*lower, '{"spec": {"mode": "Audit"}}')
    assert "mode goes from Enforce to Audit" in refused
    word = refused.partition(f"{CONFIRM_LOWER}=")[2].split()[0]
    # Said beforehand, the confirmation waits for its change; with another one it counts for nothing.
    await surfaces.kubectl("annotate", "confidentialcluster", "cluster", f"{CONFIRM_LOWER}={word}")
    waiting = await surfaces.settle()
    assert waiting["metadata"]["annotations"][CONFIRM_LOWER] == word
    assert "confirm this change" in await surfaces.kubectl(*lower, '{"spec": {"mode": "Disabled"}}')
    assert "patched" in await surfaces.kubectl(*lower, '{"spec": {"mode": "Audit"}}')
    after = await surfaces.settle()
    assert reason(after, "Enforcing") == ("False", "Audit")
    assert CONFIRM_LOWER not in (after["metadata"].get("annotations") or {})
    (entry,) = (recorded for recorded in surfaces.record.entries if recorded.what == "protection-lowered")
    assert entry.who == "fastness-admin"
    assert entry.detail["lowered"] == "mode goes from Enforce to Audit"
    events = [
        event for event in (await surfaces.world.cluster.list(EVENTS)).items if event["reason"] == "ProtectionLowered"
    ]
    assert len(events) == 1
    # Back up, and down again: the old word does not fit any more.
    await surfaces.kubectl(*lower, '{"spec": {"mode": "Enforce"}}')
    again = f'{{"metadata": {{"annotations": {{"{CONFIRM_LOWER}": "{word}"}}}}, "spec": {{"mode": "Audit"}}}}'
    assert "confirm this change" in await surfaces.kubectl(*lower, again)
    assert len([recorded for recorded in surfaces.record.entries if recorded.what == "protection-lowered"]) == 1
