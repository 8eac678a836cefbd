"""A status counts when the control plane wrote it: on a Kubernetes where somebody may patch `machines/status`, and nothing else.

The attacker has the verb `patch` on `machines/status` in fastness-system. What the status of any machine is, or was, it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.live.statuses import Statuses, signed_statuses
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.loops.statuses import MachineStatuses
from fastness.attestation.machine.signed_status import REASON, Doubt, is_disbelieved, signature_of, vouched_digest
from fastness.attestation.verdict.machine_standing import State, machine_standing
from fastness.enrolment.loops.join_tokens import BINDING, BINDINGS, BootstrapTokenController
from fastness.enrolment.loops.kubelet_certificates import Joins
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of, view, with_condition
from fastness.kinds.registry import find
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import AlreadyExists
from fastness.kube.events import EVENTS
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import SystemClock
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, attesting_world, until
from tests.contract.worlds import https, served
from tests.joining import CSRS, JoiningSite, Place, client_request, new_key, outcome
from tests.patience import PATIENCE
from tests.realkube import RealKube

MACHINES = MACHINE.resource
NODES = find("", "v1", "nodes").resource
GROUPS = (
    "fastness.dev",
    "trusted-execution-clusters.io",
    "confidentialcontainers.org",
    "machineconfiguration.openshift.io",
)
MERGE = {"content-type": "application/merge-patch+json"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
STATUS = WriteOptions(subresource="status")
LATER = "2099-01-01T00:00:00Z"
ONCE = ("nodeName", "keyThumbprint", "tee", "endorsedBy", "endorsement", "pool")
SECRET = "pool/worker/secret"


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A server that knows bootstrap tokens and signs, with our definitions, and somebody who may patch statuses of Machines."""
    with RealKube.start(
        tmp_path_factory.mktemp("statuses"), real_kube_binaries, unsafe_no_fsync=True,
        apiserver_flags=["--enable-bootstrap-token-auth=true"], signing=timedelta(hours=1),
    ) as server:  # fmt: skip
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        needed = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
        with server.client() as admin:
            for manifest in needed:
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in needed:
                for _ in range(600):
                    if served(admin, f"{path}/{manifest['metadata']['name']}"):
                        break
            admin.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACE}})
            rule = {"apiGroups": [MACHINE.group], "resources": ["machines/status"], "verbs": ["patch"]}
            role = {"metadata": {"name": "writer"}, "rules": [rule]}
            bound = {
                "metadata": {"name": "writer"}, "subjects": [{"kind": "User", "name": "writer"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
            }  # fmt: skip
            for plural, body in (("roles", role), ("rolebindings", bound)):
                assert admin.post(f"{RBAC}/namespaces/{NAMESPACE}/{plural}", json=body).status_code == 201
        yield server


@dataclass
class Site(JoiningSite):
    """A cluster whose doors and loops sign, somebody who writes into statuses, and the API as it is."""

    raw: Cluster
    writer: httpx.AsyncClient

    async def written(self, name: str, status: JsonObject) -> int:
        """What the API answers when the attacker writes a status."""
        answer = await self.writer.patch(
            MACHINES.path(NAMESPACE, name, "status"), json={"status": status}, headers=MERGE
        )
        return answer.status_code

    async def stored(self, name: str) -> JsonObject:
        """A Machine as it is stored."""
        return await self.raw.get(MACHINES, name, NAMESPACE)

    async def name(self, machine: SimAttester) -> str:
        """The name of a Machine."""
        return str((await self.world.machine_object(machine))["metadata"]["name"])

    async def entries(self, what: str, name: str) -> list[JsonObject]:
        """Entries of the record about a Machine."""
        batches = (await self.raw.list(AUDIT_BATCH.resource)).items
        every = [entry for batch in batches for entry in batch["spec"]["entries"]]
        return [entry for entry in every if entry["what"] == what and entry.get("resource") == f"machine/{name}"]

    async def reported(self, name: str) -> bool:
        """Whether an Event says that a status is not believed."""
        events = (await self.raw.list(EVENTS, Scope(NAMESPACE))).items
        return any(event["involvedObject"]["name"] == name and event["reason"] == REASON for event in events)


@asynccontextmanager
async def opened(kube: RealKube, vendor: SimVendor, *, guarded: bool = True) -> AsyncIterator[Site]:
    """Doors and loops as they are composed, for the time of the block."""
    place = Place.real(kube)
    async with https(place.kubeconfig) as raw:
        signed = signed_statuses("controllers", raw, SystemClock(), ENTROPY)
        async with attesting_world(signed, None, vendor) as world:
            record = ClusterRecord(raw, world.clock, ENTROPY, "controllers")
            loops: list[Controller] = [
                Joins(signed, world.informers, record, world.clock),
                BootstrapTokenController(signed, world.informers, world.clock),
                ProofAge(signed, world.informers, world.clock), Machines(signed, world.informers, record, world.clock),
            ]  # fmt: skip
            if guarded:
                loops.append(MachineStatuses(signed, world.informers, record, world.clock, signed.statuses))
            context = place.trust()
            headers = {**place.admin(context), "impersonate-user": "writer"}
            async with (
                httpx.AsyncClient(base_url=place.url, verify=context, headers=headers, timeout=PATIENCE) as writer,
                asyncio.TaskGroup() as group,
            ):
                running = group.create_task(Runner(loops, world.informers, world.clock, ENTROPY).run())
                site = Site(place, world, raw, writer)
                with suppress(AlreadyExists):
                    await world.approve("tpm")
                await until(lambda: _bound(raw))
                yield site
                running.cancel()


async def _bound(cluster: Cluster) -> bool:
    return any(entry["metadata"]["name"] == BINDING for entry in (await cluster.list(BINDINGS)).items)


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor(ENTROPY)


@pytest.fixture
async def site(kube: RealKube, vendor: SimVendor) -> AsyncIterator[Site]:
    async with opened(kube, vendor) as running_site:
        yield running_site


def proved(status: JsonObject) -> JsonObject:
    """What the status of a machine that proved itself would be, as the attacker imagines it."""
    conditions = [condition for condition in status["conditions"] if condition["type"] not in ("Revoked", "Attested")]
    good = {"type": "Attested", "status": "True", "reason": "Affirmed", "message": "", "lastTransitionTime": LATER}
    facts = {"tee": status["tee"], "endorsement": status["endorsedBy"], "image": "default"}
    return {
        "conditions": [*conditions, good], "lastAttested": LATER, "attestedUntil": LATER, "properties": facts,
        "epoch": 0, "standing": "Proved", "standingReason": "Affirmed", "simulated": False,
    }  # fmt: skip


async def put_back(site: Site, name: str, status: JsonObject) -> None:
    """Wait until a status is ours again and says what it said; loops may have told how the machine stands meanwhile."""

    def summary(status: JsonObject) -> tuple[object, ...]:
        conditions = sorted(
            (condition["type"], condition["status"], condition["reason"]) for condition in status["conditions"]
        )
        return conditions, status.get("properties"), status.get("lastAttested"), status.get("epoch")

    async def same() -> bool:
        current = await site.stored(name)
        judged = await Statuses(None, site.raw, SystemClock(), ENTROPY).judged(current)
        return judged is current and summary(current["status"]) == summary(status)

    await until(same)


async def test_a_machine_whose_trust_ended_gets_nothing_by_a_status_that_says_otherwise(site: Site) -> None:
    machine, key = await site.attested(), new_key()
    name, node = await site.name(machine), await site.node(machine)
    await site.world.keep(SECRET, b"what only members have")
    token = await site.token(machine, key)
    async with site.world.broker(machine) as broker, site.client(token) as http:
        await broker.attest()
        assert (await broker.resource(SECRET)).reveal() == b"what only members have"
        status = (await site.world.machine_object(machine))["status"]
        now = site.world.clock.now()
        ended = with_condition(
            status["conditions"], kind="Revoked", status="True", reason="Superseded", message="x", now=now
        )
        ended = with_condition(ended, kind="Attested", status="False", reason="Superseded", message="x", now=now)
        patch = {"status": {"conditions": ended, "epoch": 7}}
        await site.world.cluster.patch(MACHINES, name, patch, PatchType.MERGE, NAMESPACE, STATUS)
        await until(lambda: _is(site, name, "Revoked"))
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        await site.raw.create(NODES, body)
        before = (await site.stored(name))["status"]

        assert await site.written(name, proved(before)) == 200

        with pytest.raises(BrokerRefused):
            await broker.resource(SECRET)
        made = await http.post(CSRS, json=client_request(key, node))
        if made.status_code == 201:  # else the token is gone already
            request = made.json()["metadata"]["name"]
            await put_back(site, name, before)
            assert outcome(await site.settled(request, decided=False))[0] != "Approved"
        await put_back(site, name, before)
        with pytest.raises(BrokerRefused):
            await broker.resource(SECRET)
    assert not [label for label in labels_of(await site.raw.get(NODES, node)) if "attested." in label]
    assert [entry["detail"]["doubt"] for entry in await site.entries("machine-status-refused", name)] == [Doubt.WRONG]
    await until(lambda: site.reported(name))


async def _is(site: Site, name: str, word: str) -> bool:
    return str((await site.stored(name))["status"].get("standing", "")).startswith(word)


async def test_the_status_of_an_attested_machine_is_of_no_use_to_another(site: Site) -> None:
    good = await site.attested()
    other = await site.world.enrolled("tpm", changed(default_image(), command_line="quiet init=/bin/sh"))
    name = await site.name(other)
    whole, before = (await site.stored(await site.name(good)))["status"], (await site.stored(name))["status"]
    assert await site.written(name, whole) == 422, "what is written once stays"
    assert await site.written(name, {key: value for key, value in whole.items() if key not in ONCE}) == 200
    await put_back(site, name, before)
    assert [entry["detail"]["doubt"] for entry in await site.entries("machine-status-refused", name)] == [Doubt.WRONG]


async def test_a_signature_that_is_taken_away_frees_nobody(site: Site) -> None:
    machine = await site.attested()
    name = await site.name(machine)
    before = (await site.stored(name))["status"]
    assert await site.written(name, {"signed": None}) == 200
    await put_back(site, name, before)
    doubts = [entry["detail"]["doubt"] for entry in await site.entries("machine-status-refused", name)]
    assert doubts == [Doubt.UNSIGNED]


async def test_an_earlier_status_of_its_own_is_put_back_by_whoever_saw_the_later_one(site: Site) -> None:
    """Closed while somebody remembers; after a restart an old proof counts no longer than it would have anyway."""
    machine = await site.attested()
    name = await site.name(machine)
    earlier = await site.stored(name)
    status = earlier["status"]
    now = site.world.clock.now()
    refused = with_condition(
        status["conditions"], kind="Attested", status="False", reason="ValueMismatch", message="x", now=now
    )
    patch = {"status": {"conditions": refused, "standing": "Refused", "standingReason": "ValueMismatch"}}
    await site.world.cluster.patch(MACHINES, name, patch, PatchType.MERGE, NAMESPACE, STATUS)
    later = (await site.stored(name))["status"]

    assert await site.written(name, status) == 200

    await put_back(site, name, later)
    doubts = [entry["detail"]["doubt"] for entry in await site.entries("machine-status-refused", name)]
    assert doubts == [Doubt.ROLLED_BACK]
    forgetful = await Statuses(None, site.raw, SystemClock(), ENTROPY).judged(earlier)
    assert not is_disbelieved(forgetful), "what was true once is signed"
    until_then = view(forgetful, Machine)
    limit = now + timedelta(minutes=31)
    assert machine_standing(until_then, limit, timedelta(minutes=15)).state is State.STALE


async def test_a_person_vouches_for_a_status_once(kube: RealKube, vendor: SimVendor) -> None:
    """As after an upgrade from a version that signed nothing: nobody remembers a status that was believed."""
    async with opened(kube, vendor, guarded=False) as site:
        machine = await site.attested()
        name = await site.name(machine)
        assert await site.written(name, {"signed": None}) == 200
    async with opened(kube, vendor) as site:
        await until(lambda: _shows(site, name))
        current = await site.stored(name)
        assert not current["status"].get("signed")
        spec = {"vouched": vouched_digest(current), "vouchedReason": "upgraded"}
        await site.raw.patch(MACHINES, name, {"spec": spec}, PatchType.MERGE, NAMESPACE)
        await until(lambda: _believed(site, name))
        signed = await site.stored(name)
        assert "vouched" not in signed["spec"]
        assert [entry["detail"]["reason"] for entry in await site.entries("machine-status-vouched", name)] == [
            "upgraded"
        ]
        signature = signature_of(signed)
        assert signature is not None
        assert signature.by == "controllers"
        assert await site.written(name, {"signed": None}) == 200, "the same once more, after it was vouched for"
        await put_back(site, name, signed["status"])
        assert len(await site.entries("machine-status-vouched", name)) == 1


async def _shows(site: Site, name: str) -> bool:
    return bool((await site.stored(name))["status"].get("standingReason") == REASON)


async def _believed(site: Site, name: str) -> bool:
    status = await site.stored(name)
    judged = await Statuses(None, site.raw, SystemClock(), ENTROPY).judged(status)
    return not is_disbelieved(judged) and "vouched" not in status["spec"]
