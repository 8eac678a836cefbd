"""Settings of disks and the objects around them, as a person writes them to an API server that asks our webhook."""

from __future__ import annotations

from typing import Any

import httpx

from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.runtime.clock import SystemEntropy

Object = dict[str, Any]
CLUSTERS = "/apis/fastness.dev/v1alpha1/confidentialclusters"
BINDINGS = "/apis/fastness.dev/v1alpha1/resourcebindings"
MACHINES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/machines"
MERGE = {"content-type": "application/merge-patch+json"}
AGENTS: Object = {"volume": "var", "pin": "Agent", "recovery": "Nobody"}
UNFIT: tuple[tuple[Object, str], ...] = (
    ({"pin": "Clevis", "volume": "var"}, "the Clevis pin opens the root and nothing else"),
    ({"pin": "Clevis", "volume": "root", "integrity": "hmac-sha256"}, "disks of the Clevis pin have none"),
    ({"volume": "data"}, "Unsupported value"),
)
LOWERED: tuple[tuple[Object, str], ...] = (
    ({"volume": "var", "recovery": "Approvers"}, "two approvers can have the keys of disks of pool worker"),
    ({"volume": "root", "pin": "Clevis", "recovery": "Nobody"}, "weaker than the agent"),
    ({"volume": "none", "pin": "Agent", "recovery": "Nobody"}, "protection lowered"),
)


def guarded_disks(admin: httpx.Client) -> None:
    """Write what is refused, what has to be confirmed, and what is told."""
    body = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"}}
    admin.post(CLUSTERS, json={**body, "spec": {"mode": "Enforce"}})  # or it is there from a test before
    _settle(admin)
    for disk, words in UNFIT:
        refused = _patched(admin, disk)
        if refused.status_code == 403:  # it lowers, too; with the word for it, it is looked at whole
            refused = _patched(admin, disk, _word(refused))
        assert (refused.status_code, words in refused.json()["message"]) == (422, True), refused.text
    for disk, words in LOWERED:
        refused = _patched(admin, disk)
        assert (refused.status_code, CONFIRM_LOWER in refused.text) == (403, True), refused.text
        other = _patched(admin, {**disk, "integrity": "hmac-sha256"}, _word(refused))
        assert other.status_code in (403, 422), "the word is for the change that it names"
        lowered = _patched(admin, disk, _word(refused))
        assert (lowered.status_code, words in lowered.headers["warning"]) == (200, True), lowered.text
        _settle(admin)
    _guarded_names(admin, SystemEntropy().uid())


def _guarded_names(admin: httpx.Client, uid: str) -> None:
    """Names of disk keys are nobody's to bind, and who deletes a Machine is told which disks are lost."""
    for resource in (f"machine/{uid}/disk-var", f"default/{uid}/root", "machine/*/disk-var"):
        spec = {"resource": resource, "subjects": {"pools": ["worker"]}}
        binding = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ResourceBinding", "metadata": {"name": "b"}}
        refused = admin.post(BINDINGS, json={**binding, "spec": spec})
        assert (refused.status_code, "this is the name of a disk key" in refused.text) == (422, True), refused.text
    machine = {"apiVersion": "trusted-execution-clusters.io/v1alpha1", "kind": "Machine", "metadata": {"name": "disks"}}
    spec = {"id": uid, "approval": "Approved"}
    assert admin.post(MACHINES, json={**machine, "spec": spec}).status_code == 201
    status = {"status": {"disks": [{"volume": "var", "state": "Open", "keyId": "k1"}]}}
    assert admin.patch(f"{MACHINES}/disks/status", json=status, headers=MERGE).status_code == 200
    gone = admin.delete(f"{MACHINES}/disks")
    assert gone.status_code == 200, gone.text
    assert "what is on var cannot be read again" in gone.headers["warning"]


def _patched(admin: httpx.Client, disk: Object, word: str = "") -> httpx.Response:
    pools = [{"name": "worker", "trustModel": "ConfidentialCluster", "disk": disk}]
    confirmed = {CONFIRM_LOWER: word} if word else {}
    change = {"metadata": {"annotations": confirmed}, "spec": {"mode": "Enforce", "pools": pools}}
    return admin.patch(f"{CLUSTERS}/cluster", json=change, headers=MERGE)


def _settle(admin: httpx.Client) -> None:
    """Where every case begins; from some of them that is a lowering, too."""
    answer = _patched(admin, AGENTS)
    if answer.status_code == 403:
        answer = _patched(admin, AGENTS, _word(answer))
    assert answer.status_code == 200, answer.text


def _word(answer: httpx.Response) -> str:
    return str(answer.json()["message"]).partition(f"{CONFIRM_LOWER}=")[2].split()[0]
