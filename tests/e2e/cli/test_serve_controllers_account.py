"""`fastness serve --roles controllers` with the account that we print and no more: it works, and is refused nothing."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from fastness.attestation.machine.signed_status import vouched_digest
from fastness.kinds.machineconfiguration import names
from tests.e2e.live import FASTNESS, environment, run
from tests.e2e.machineconfig.enforcing import installed
from tests.node_facts import post_node_facts
from tests.patience import PATIENCE, eventually
from tests.realkube import RealKube

MCO = "/apis/machineconfiguration.openshift.io/v1"
CONFIG = "/apis/config.openshift.io/v1"
F = "/apis/fastness.dev/v1alpha1"
MACHINES = "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/fastness-system/machines"
HOME = "/api/v1/namespaces/fastness-system"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = {"content-type": "application/merge-patch+json"}
REFUSED = re.compile(r"^apiserver_request_total\{.*code=\"403\".*\} (\d+)", re.MULTILINE)


@pytest.fixture
def fresh_kube(real_kube_binaries: Path, tmp_path: Path) -> Iterator[RealKube]:
    """A server with our kinds and accounts for each try: it counts what it refuses, and a second story would find the first."""
    with RealKube.start(tmp_path / "kube", real_kube_binaries, unsafe_no_fsync=True) as kube:
        installed(kube)
        yield kube


@pytest.fixture
def admin(fresh_kube: RealKube) -> Iterator[httpx.Client]:
    with fresh_kube.client() as client:
        yield client


@pytest.fixture
def log(fresh_kube: RealKube, tmp_path: Path) -> Iterator[Path]:
    """The controllers with their own token; what they wrote so far."""
    person = environment(tmp_path, KUBECONFIG=str(fresh_kube.kubeconfig))
    config = yaml.safe_load(fresh_kube.kubeconfig.read_text())
    words = ["kubectl", "create", "token", "fastness-controllers", "-n", "fastness-system"]
    config["users"][0]["user"] = {"token": run(words, person).out.strip()}
    (tmp_path / "account.kubeconfig").write_text(yaml.safe_dump(config))
    command = [
        FASTNESS, "serve", "--roles", "controllers", "--kubeconfig", tmp_path / "account.kubeconfig", "--metrics-port", "0",
        "--lease-seconds", "30", "--config-url", "https://127.0.0.1:22624",
    ]  # fmt: skip
    output = tmp_path / "controllers.log"
    with output.open("wb") as sink:
        child = subprocess.Popen([str(word) for word in command], env=environment(tmp_path), stdout=sink, stderr=sink)
        try:
            yield output
            child.send_signal(signal.SIGTERM)
            assert child.wait(timeout=PATIENCE) == 0, output.read_text()
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            print(output.read_text())


def made(admin: httpx.Client, path: str, api: str, kind: str, meta: dict[str, Any], **parts: Any) -> None:
    """Create an object as an administrator does."""
    answer = admin.post(path, json={"apiVersion": api, "kind": kind, "metadata": meta, **parts})
    assert answer.status_code == 201, answer.text


def changed(admin: httpx.Client, path: str, patch: dict[str, Any]) -> None:
    answer = admin.patch(path, json=patch, headers=MERGE)
    assert answer.status_code == 200, answer.text


def read(admin: httpx.Client, path: str) -> dict[str, Any]:
    answer = admin.get(path)
    return dict(answer.json()) if answer.is_success else {}


def refused(admin: httpx.Client) -> int:
    """How many requests the API server has answered with 403 since it started."""
    return sum(int(count) for count in REFUSED.findall(admin.get("/metrics").text))


def test_the_controllers_do_their_work_with_their_account_and_are_refused_nothing(
    log: Path, admin: httpx.Client, fresh_kube: RealKube
) -> None:
    before = refused(admin)
    post_node_facts(admin, fresh_kube.url)
    pools = [{"name": "worker", "trustModel": "None"}, {"name": "kata-oc", "trustModel": "ContainersHost"}]
    spec = {"mode": "Enforce", "simulated": True, "pools": pools}
    made(
        admin,
        f"{F}/confidentialclusters",
        "fastness.dev/v1alpha1",
        "ConfidentialCluster",
        {"name": "cluster"},
        spec=spec,
    )
    _rolls_out(admin)
    _sets_up_kubelets(admin)
    _follows_an_approval_and_records_it(admin)
    _issues_certificates_to_a_door(admin)
    _installs_a_runtime(admin)
    status = eventually(
        lambda: read(admin, f"{F}/confidentialclusters/cluster").get("status"), "a status of the ConfidentialCluster"
    )
    assert {"Enforcing", "Verifying"} <= {condition["type"] for condition in status["conditions"]}
    binding = eventually(
        lambda: read(admin, f"{RBAC}/clusterrolebindings/fastness:node-bootstrapper"),
        "a binding for machines that join",
    )
    assert binding["roleRef"]["name"] == "system:node-bootstrapper"
    assert not [line for line in log.read_text().splitlines() if "forbidden" in line.lower()]
    assert refused(admin) == before


def _rolls_out(admin: httpx.Client) -> None:
    """A pool renders, its user-data is made, and its node is told of a new config."""

    def goal() -> str:
        pool = read(admin, f"{MCO}/machineconfigpools/worker")
        return str(((pool.get("spec") or {}).get("configuration") or {}).get("name") or "")

    first = eventually(goal, "a rendered config")
    secret = "/api/v1/namespaces/openshift-machine-api/secrets/worker-user-data-managed"
    eventually(lambda: read(admin, secret), "user-data")
    notes = {names.DESIRED_CONFIG: first, names.CURRENT_CONFIG: first, names.STATE: names.NodeState.DONE.value}
    labels = {f"{names.NODE_ROLE_PREFIX}worker": ""}
    made(admin, "/api/v1/nodes", "v1", "Node", {"name": "one", "labels": labels, "annotations": notes})
    ready = {"type": "Ready", "status": "True", "reason": "Told", "message": ""}
    changed(admin, "/api/v1/nodes/one/status", {"status": {"conditions": [ready]}})
    spec = {"config": {"ignition": {"version": "3.4.0"}}, "kernelArguments": ["quiet"]}
    meta = {"name": "50-worker-quiet", "labels": {names.ROLE_LABEL: "worker"}}
    made(admin, f"{MCO}/machineconfigs", "machineconfiguration.openshift.io/v1", "MachineConfig", meta, spec=spec)
    second = eventually(lambda: (now := goal()) != first and now, "a second rendered config")

    def desired_is_set() -> bool:
        annotations = read(admin, "/api/v1/nodes/one")["metadata"]["annotations"]
        return bool(annotations[names.DESIRED_CONFIG] == second)

    eventually(desired_is_set, "the node told of it")


def _sets_up_kubelets(admin: httpx.Client) -> None:
    """The cluster's own settings become configs, and say so; what no kubelet gets is an event."""
    gates = {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": ["EventedPLEG"]}}
    tls = {"tlsSecurityProfile": {"type": "Custom", "custom": {"ciphers": ["AES128-SHA", "nonsense"]}}}
    for kind, plural, spec in (
        ("Node", "nodes", {"cgroupMode": "v2"}), ("FeatureGate", "featuregates", gates), ("APIServer", "apiservers", tls),
    ):  # fmt: skip
        made(admin, f"{CONFIG}/{plural}", "config.openshift.io/v1", kind, {"name": "cluster"}, spec=spec)

    def followed(plural: str, number: int) -> bool:
        status = read(admin, f"{CONFIG}/{plural}/cluster").get("status") or {}
        config = read(admin, f"{MCO}/machineconfigs/{number}-worker-generated-kubelet")
        return bool(status.get("conditions") and config)

    for plural, number in (("nodes", 97), ("featuregates", 98)):
        eventually(partial(followed, plural, number), f"an answer to {plural}, and a config")

    def reasons() -> set[str]:
        return {event["reason"] for event in read(admin, "/api/v1/namespaces/default/events").get("items", ())}

    eventually(lambda: "SettingsLeftOut" in reasons(), "an event about the cipher")


def _follows_an_approval_and_records_it(admin: httpx.Client) -> None:
    api, name = "trusted-execution-clusters.io/v1alpha1", "machine-one"
    spec = {"id": "00000000-0000-4000-8000-000000000001", "approval": "Pending"}
    made(admin, MACHINES, api, "Machine", {"name": name, "namespace": "fastness-system"}, spec=spec)
    status = {"pool": "worker", "keyThumbprint": "a" * 43, "tee": "tpm", "nodeName": "other"}
    changed(admin, f"{MACHINES}/{name}/status", {"status": status})
    vouched = {"vouched": vouched_digest(read(admin, f"{MACHINES}/{name}")), "vouchedReason": "made by hand"}
    changed(admin, f"{MACHINES}/{name}", {"spec": vouched})
    changed(admin, f"{MACHINES}/{name}", {"spec": {"approval": "Approved", "approvalReason": "it is ours"}})

    def approved() -> bool:
        conditions = (read(admin, f"{MACHINES}/{name}").get("status") or {}).get("conditions") or []
        return ("Approved", "True") in {(condition["type"], condition["status"]) for condition in conditions}

    eventually(approved, "the approval followed")
    eventually(lambda: read(admin, f"{F}/auditcheckpoints").get("items"), "a checkpoint of the record")


def _issues_certificates_to_a_door(admin: httpx.Client) -> None:
    secret = f"{HOME}/secrets/gate-certificates"
    changed(admin, secret, {"metadata": {"annotations": {"fastness.dev/door-names": "gate.example"}}})
    eventually(lambda: "tls.crt" in (read(admin, secret).get("data") or {}), "a certificate for the gate")


def _installs_a_runtime(admin: httpx.Client) -> None:
    """In pods of an installer: with an account, and a role that the controllers make and bind without `escalate`."""
    api = "kataconfiguration.openshift.io/v1"
    maps = "/api/v1/namespaces/openshift-sandboxed-containers-operator/configmaps"
    made(admin, maps, "v1", "ConfigMap", {"name": "osc-feature-gates"}, data={"deploymentMode": "DaemonSet"})
    made(admin, f"/apis/{api}/kataconfigs", api, "KataConfig", {"name": "example"}, spec={})
    eventually(lambda: read(admin, f"{RBAC}/clusterroles/kata-install"), "the role of the installer")
    eventually(lambda: read(admin, f"{RBAC}/clusterrolebindings/kata-install"), "its binding")
