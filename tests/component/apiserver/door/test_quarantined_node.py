"""The credential of a node whose machine is in quarantine, or without a live proof, opens nothing that is secret, at once."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.kinds.registry import find
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.proven import proven_machine

NODE = "worker-" + "a" * 20
RENDERED = f"rendered-worker-{'b' * 32}"
CORE, MCO = "/api/v1", "/apis/machineconfiguration.openshift.io/v1"
NODES, PODS, SECRETS = (find("", "v1", plural).resource for plural in ("nodes", "pods", "secrets"))
CONFIGS = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
READS = (f"{MCO}/machineconfigs/{RENDERED}", f"{CORE}/namespaces/default/secrets/mine")
NOTE = {"metadata": {"annotations": {"a": "b"}}}
MERGE = {"content-type": "application/merge-patch+json"}


def as_node(embedded: Embedded, directory: Path, **headers: str) -> httpx.AsyncClient:
    """A client with the certificate of the node; with headers, the administrator in somebody's name."""
    pki = embedded.server.pki
    credential = pki.admin if headers else pki.issue_node(NODE, datetime.now(UTC))
    pem = directory / "caller.pem"
    pem.write_bytes(credential.key_pem.reveal() + credential.certificate.pem)
    context = ssl.create_default_context(cafile=str(embedded.ca_file))
    context.load_cert_chain(pem)
    return httpx.AsyncClient(base_url=embedded.url, verify=context, headers=headers, timeout=PATIENCE)


@pytest.fixture
async def here(embedded_server: Embedded) -> Embedded:
    """A node with a pod that has a secret, a rendered config that is meant for it, and the Machine that it is."""
    cluster = embedded_server.cluster
    notes = {names.CURRENT_CONFIG: RENDERED, names.DESIRED_CONFIG: RENDERED}
    labels = {f"{names.NODE_ROLE_PREFIX}worker": ""}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": notes, "labels": labels}}
    await cluster.create(NODES, node)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "default"}}
    await cluster.create(SECRETS, secret)
    spec: JsonObject = {
        "nodeName": NODE, "containers": [{"name": "a", "image": "b"}],
        "volumes": [{"name": "v", "secret": {"secretName": "mine"}}],
    }  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    await cluster.create(PODS, pod)
    config = {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": RENDERED},
        "spec": {"config": {"ignition": {"version": "3.4.0"}}},
    }  # fmt: skip
    await cluster.create(CONFIGS, config)
    await proven_machine(cluster, NODE, 1)
    return embedded_server


async def decide(embedded: Embedded, approval: str) -> None:
    name = f"machine-{NODE.rpartition('-')[2]}"
    patch = {"spec": {"approval": approval}}
    await embedded.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)


@pytest.mark.row("000-50")
async def test_a_node_in_quarantine_reads_no_config_and_no_secret_and_writes_nothing_until_it_is_released(
    here: Embedded, tmp_path: Path
) -> None:
    async with as_node(here, tmp_path) as node:

        async def codes() -> list[int]:
            wrote = await node.patch(f"{CORE}/nodes/{NODE}", json=NOTE, headers=MERGE)
            return [*[(await node.get(path)).status_code for path in READS], wrote.status_code]

        assert await codes() == [200, 200, 200]
        await decide(here, "Quarantined")
        assert await codes() == [403, 403, 403]
        refused = (await node.get(READS[1])).json()
        assert "its machine is in quarantine" in refused["message"]
        assert (await node.get(f"{CORE}/nodes/{NODE}")).status_code == 200, "it may see what became of it"
        await decide(here, "Approved")
        assert await codes() == [200, 200, 200]


@pytest.mark.row("000-50")
async def test_impersonation_and_roles_open_nothing_either(here: Embedded, tmp_path: Path) -> None:
    await decide(here, "Quarantined")
    await generous(here)
    acting = {"impersonate-user": f"system:node:{NODE}", "impersonate-group": "system:nodes"}
    for headers in ({}, acting):
        async with as_node(here, tmp_path, **headers) as node:
            assert [(await node.get(path)).status_code for path in READS] == [403, 403]


async def test_a_revoked_machine_is_treated_the_same(here: Embedded, tmp_path: Path) -> None:
    machine = (await here.cluster.list(MACHINE.resource)).items[0]
    revoked = {"type": "Revoked", "status": "True", "reason": "Test", "message": ""}
    conditions = [*machine["status"]["conditions"], {**revoked, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    patch, options = {"status": {"conditions": conditions}}, WriteOptions(subresource="status")
    await here.cluster.patch(MACHINE.resource, machine["metadata"]["name"], patch, PatchType.MERGE, NAMESPACE, options)
    async with as_node(here, tmp_path) as node:
        assert [(await node.get(path)).status_code for path in READS] == [403, 403]


@pytest.mark.parametrize("standing", ["stale", "refused", "never attested"])
async def test_a_machine_without_a_live_proof_reads_no_secret_and_no_config_until_it_proves_itself_again(
    here: Embedded, tmp_path: Path, standing: str
) -> None:
    """Its role gives it everything; it still says how it is, so that it can be drained."""
    await enforce(here)
    machine = (await here.cluster.list(MACHINE.resource)).items[0]
    before = {name: machine["status"].get(name) for name in ("conditions", "attestedUntil", "lastAttested")}
    past = "2026-01-01T00:00:00Z"
    others = [entry for entry in before["conditions"] if entry["type"] != "Attested"]
    refused = {"type": "Attested", "status": "False", "reason": "Refused", "message": "x", "lastTransitionTime": past}
    changes: dict[str, JsonObject] = {
        "stale": {"lastAttested": past, "attestedUntil": past},
        "refused": {"conditions": [*others, refused]},
        "never attested": {"conditions": others, "lastAttested": None, "attestedUntil": None},
    }
    await generous(here)
    async with as_node(here, tmp_path) as node:
        assert [(await node.get(path)).status_code for path in READS] == [200, 200], "by the role, while it is proved"
        await write_status(here, machine["metadata"]["name"], changes[standing])
        refusals = [await node.get(path) for path in READS]
        assert [answer.status_code for answer in refusals] == [403, 403]
        assert "no live proof" in refusals[1].json()["message"]
        assert (await node.patch(f"{CORE}/nodes/{NODE}", json=NOTE, headers=MERGE)).status_code == 200
        await write_status(here, machine["metadata"]["name"], before)
        assert (await node.get(READS[1])).status_code == 200


async def test_an_override_of_two_approvers_counts_for_the_node_while_it_lasts(here: Embedded, tmp_path: Path) -> None:
    await enforce(here)
    name, now = f"machine-{NODE.rpartition('-')[2]}", datetime.now(UTC)
    stale = {moment: rfc3339(now - timedelta(days=2)) for moment in ("lastAttested", "attestedUntil")}
    async with as_node(here, tmp_path) as node:
        await write_status(here, name, {**stale, "overriddenUntil": rfc3339(now + timedelta(hours=1))})
        assert (await node.get(READS[1])).status_code == 200
        await write_status(here, name, {"overriddenUntil": rfc3339(now - timedelta(hours=1))})
        assert (await node.get(READS[1])).status_code == 403


async def test_a_node_without_a_machine_has_what_every_node_has(here: Embedded, tmp_path: Path) -> None:
    await here.cluster.delete(MACHINE.resource, f"machine-{NODE.rpartition('-')[2]}", NAMESPACE)
    async with as_node(here, tmp_path) as node:
        assert (await node.patch(f"{CORE}/nodes/{NODE}", json=NOTE, headers=MERGE)).status_code == 200
        assert (await node.get(READS[1])).status_code == 200


async def generous(embedded: Embedded) -> None:
    """Somebody gave everything to all nodes."""
    binding: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "generous"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
    }  # fmt: skip
    await embedded.cluster.create(find("rbac.authorization.k8s.io", "v1", "clusterrolebindings").resource, binding)


async def write_status(embedded: Embedded, machine: str, status: JsonObject) -> None:
    options = WriteOptions(subresource="status")
    await embedded.cluster.patch(MACHINE.resource, machine, {"status": status}, PatchType.MERGE, NAMESPACE, options)


async def enforce(embedded: Embedded) -> None:
    cluster: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True},
    }  # fmt: skip
    await embedded.cluster.create(CONFIDENTIAL_CLUSTER.resource, cluster)


@pytest.mark.row("000-51")
async def test_where_attestation_is_enforced_no_node_credential_reads_a_config(here: Embedded, tmp_path: Path) -> None:
    await enforce(here)
    async with as_node(here, tmp_path) as node:
        assert [(await node.get(path)).status_code for path in READS] == [403, 200]
        assert (await node.get(READS[0])).json()["reason"] == "Forbidden"
