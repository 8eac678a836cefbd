"""Seed 002: the user-data of machines is managed, on a cluster whose workers do not attest, as an administrator sees it."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.acceptance.cluster import GROUP, Acceptance, machine_config
from tests.e2e.delivery.ignition import Ignition
from tests.e2e.live import Live
from tests.patience import eventually
from tests.unit.machineconfig.boot_images.sets import OLD_RELEASE, RELEASE, stream_document

NAMESPACE = "openshift-machine-api"
STREAM = "openshift-machine-config-operator"
FOREIGN = "-----BEGIN CERTIFICATE-----\nb2YgYW4gaW5zdGFsbGVy\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptance]:
    """`fastness up --profile containers` with one worker."""
    with Live.start(tmp_path_factory.mktemp("user-data"), "--profile", "containers", "--machines", "1") as live:
        made = Acceptance(live, 1)
        eventually(lambda: len(made.ready()) == 1 and made.updated(), "a node")
        yield made


def secret(cluster: Acceptance, name: str) -> dict[str, Any]:
    return cluster.get("secret", name, "-n", NAMESPACE)


def pointer(cluster: Acceptance, name: str = "worker-user-data-managed") -> dict[str, Any]:
    held = secret(cluster, name)
    return dict(json.loads(base64.b64decode(held["data"]["userData"]))["ignition"]) if held else {}


def source(cluster: Acceptance) -> str:
    return str(pointer(cluster)["config"]["merge"][0]["source"])


def stub(name: str, pool: str) -> dict[str, Any]:
    """What an installer makes: a spec 2 stub with its own address and authority."""
    authority = "data:text/plain;charset=utf-8;base64," + base64.b64encode(FOREIGN.encode()).decode()
    head = {
        "version": "2.2.0",
        "config": {"append": [{"source": f"https://api-int.example:22623/config/{pool}", "verification": {}}]},
        "security": {"tls": {"certificateAuthorities": [{"source": authority, "verification": {}}]}},
    }
    data = {
        "userData": base64.b64encode(json.dumps({"ignition": head}).encode()).decode(),
        "disableTemplating": "dHJ1ZQo=",
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data}


def machine_set(name: str, user_data: str, release: str = "") -> dict[str, Any]:
    labels = {"set": name}
    image = {"bootImage": {"release": release}} if release else {}
    value = {
        "apiVersion": "fastness.dev/v1alpha1", "kind": "VirtualMachineProviderSpec", "userDataSecret": {"name": user_data},
        **image,
    }  # fmt: skip
    return {
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}}},
        },
    }  # fmt: skip


@pytest.mark.row("002-27")
def test_a_fresh_start_is_of_spec_3_and_its_machines_join(cluster: Acceptance) -> None:
    assert pointer(cluster)["version"] == "3.2.0"
    rendered = cluster.get("mc", cluster.rendered())
    assert rendered["spec"]["config"]["ignition"]["version"].startswith("3.")
    assert len(cluster.ready()) == 1


@pytest.mark.row("002-29")
@pytest.mark.row("002-34")
def test_user_data_that_is_printed_leads_stock_ignition_to_the_full_config(cluster: Acceptance, tmp_path: Path) -> None:
    for pool in ("master", "worker"):
        printed = cluster.fastness("userdata", pool)
        assert printed.code == 0, printed.err
        assert printed.json["ignition"]["config"]["merge"][0]["source"].endswith(f"/config/{pool}")
    assert "treat it as a secret" in cluster.fastness("userdata", "--help").out
    ignition = Ignition(tmp_path)
    (tmp_path / "user-data").write_text(printed.out)
    fetched = asyncio.run(ignition.stage("fetch"))
    assert fetched.status == 0, fetched.log
    units = {unit["name"] for unit in json.loads((tmp_path / "cache").read_text())["systemd"]["units"]}
    assert "kubelet.service" in units


@pytest.mark.row("002-24")
def test_a_machine_config_of_spec_2_reaches_the_nodes(cluster: Acceptance) -> None:
    file = {"path": "/etc/of-spec-2", "filesystem": "root", "mode": 420, "contents": {"source": "data:,two"}}
    old = machine_config("99-worker-spec-2")
    old["spec"]["config"] = {"ignition": {"version": "2.2.0"}, "storage": {"files": [file]}}
    cluster.apply(old)
    eventually(
        lambda: cluster.contents("/etc/of-spec-2") == {"two"} and cluster.updated(), "the file of a spec 2 config"
    )
    cluster.kubectl("delete", "mc", "99-worker-spec-2")


@pytest.mark.row("002-08")
@pytest.mark.row("002-20")
@pytest.mark.row("002-21")
def test_secrets_of_an_installer_are_not_touched_before_their_pool_exists_and_the_old_one_never(
    cluster: Acceptance,
) -> None:
    cluster.apply(stub("infra-user-data-managed", "infra"))
    cluster.apply(stub("infra-user-data", "infra"))
    early = {name: secret(cluster, name) for name in ("infra-user-data-managed", "infra-user-data")}
    # A hand edit of another one is put back by the same loops: they have looked at everything that was there before.
    cluster.kubectl("annotate", "secret", "doors-ca", "-n", "fastness-system", "fastness.dev/rotate=now")
    eventually(lambda: _authorities(pointer(cluster)) == 2, "both authorities in the stub")
    assert {name: secret(cluster, name) for name in early} == early
    roles = {"key": f"{GROUP}/role", "operator": "In", "values": ["worker", "infra"]}
    pool = {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfigPool", "metadata": {"name": "infra"}}
    cluster.apply({**pool, "spec": {"machineConfigSelector": {"matchExpressions": [roles]}}})
    eventually(lambda: pointer(cluster, "infra-user-data-managed")["version"] == "3.2.0", "the adoption")
    assert secret(cluster, "infra-user-data") == early["infra-user-data"], "not one byte"
    cluster.kubectl("delete", "mcp", "infra")


def _authorities(head: dict[str, Any]) -> int:
    [entry] = head["security"]["tls"]["certificateAuthorities"]
    return base64.b64decode(entry["source"].partition(",")[2]).count(b"BEGIN CERTIFICATE")


def refused(cluster: Acceptance, reason: str) -> bool:
    condition = cluster.condition("mcp", "worker", "UserDataDegraded")
    return condition.get("status") == "True" and reason in condition["message"]


@pytest.mark.row("002-16")
@pytest.mark.row("002-18")
def test_the_version_can_be_raised_and_one_that_cannot_be_is_refused_where_one_looks(cluster: Acceptance) -> None:
    note = ("annotate", "mcp", "worker", "--overwrite")
    cluster.kubectl(*note, "fastness.dev/pointer-version=3.4.0")
    eventually(lambda: pointer(cluster)["version"] == "3.4.0", "a pointer of 3.4.0")
    for version, reason in (("2.2.0", "shows its ticket in a header"), ("9", "there is no Ignition spec '9'")):
        cluster.kubectl(*note, f"fastness.dev/pointer-version={version}")
        eventually(partial(refused, cluster, reason), f"the refusal of {version}")
    cluster.kubectl(*note, "fastness.dev/pointer-version-")
    eventually(
        lambda: cluster.condition("mcp", "worker", "UserDataDegraded").get("status") != "True", "the pool to heal"
    )


@pytest.mark.row("002-31")
@pytest.mark.row("002-32")
@pytest.mark.row("002-17")
def test_an_upgrade_moves_a_machine_set_to_its_image_and_to_managed_user_data_and_its_machine_joins(
    cluster: Acceptance,
) -> None:
    cluster.apply(stub("worker-user-data", "worker"))
    cluster.apply(machine_set("upgraded", "worker-user-data", OLD_RELEASE))
    everything = {"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": {"mode": "All"}}
    spec = {"spec": {"managedBootImages": {"machineManagers": [everything]}}}
    cluster.kubectl("patch", "machineconfiguration", "cluster", "--type=merge", "-p", json.dumps(spec))
    # What the payload of a new release brings.
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STREAM}})
    meta = {"name": "coreos-bootimages", "namespace": STREAM}
    images = {"stream": json.dumps(stream_document(RELEASE))}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": images})

    def value(name: str) -> dict[str, Any]:
        return dict(
            cluster.get("machineset", name, "-n", NAMESPACE)["spec"]["template"]["spec"]["providerSpec"]["value"]
        )

    eventually(lambda: value("upgraded").get("bootImage") == {"release": RELEASE}, "the new boot image")
    assert value("upgraded")["userDataSecret"] == {"name": "worker-user-data-managed"}
    eventually(lambda: pointer(cluster)["version"] == "3.5.0", "a pointer for the new image")
    progress = "BootImageUpdateProgressing"
    eventually(
        lambda: (
            "Reconciled 2 of 2 MAPI MachineSets"
            in cluster.condition("machineconfiguration", "cluster", progress).get("message", "")
        ),
        "the report",
    )
    cluster.kubectl("scale", "machineset", "upgraded", "-n", NAMESPACE, "--replicas=1")
    eventually(lambda: len(cluster.ready()) == 2, "a machine of the new image")
    cluster.kubectl("scale", "machineset", "upgraded", "-n", NAMESPACE, "--replicas=0")
    eventually(lambda: len(cluster.ready()) == 1, "it to go")


@pytest.mark.row("002-26")
def test_a_stub_that_a_person_lets_go_lets_a_machine_in(cluster: Acceptance) -> None:
    cluster.kubectl("delete", "secret", "worker-user-data", "-n", NAMESPACE, "--ignore-not-found")
    cluster.kubectl("patch", "machineconfiguration", "cluster", "--type=merge", "-p",
                    json.dumps({"spec": {"managedBootImages": {"machineManagers": []}}}))  # fmt: skip
    cluster.apply(stub("worker-user-data", "worker"))
    cluster.apply(machine_set("kept", "worker-user-data"))
    cluster.kubectl("annotate", "machineset", "kept", "-n", NAMESPACE, "fastness.dev/pointer-version=3.2.0")
    eventually(lambda: pointer(cluster, "worker-user-data")["version"] == "3.2.0", "the stub in spec 3")
    notes = secret(cluster, "worker-user-data")["metadata"]["annotations"]
    assert notes[f"{GROUP}/stub-ignition-upgraded-to"] == "3.2.0"
    assert notes[f"{GROUP}/stub-ignition-upgraded-at"].endswith("Z")
    cluster.kubectl("scale", "machineset", "kept", "-n", NAMESPACE, "--replicas=1")
    eventually(lambda: len(cluster.ready()) == 2, "a machine with the old Secret")
    cluster.kubectl("scale", "machineset", "kept", "-n", NAMESPACE, "--replicas=0")
    eventually(lambda: len(cluster.ready()) == 1, "it to go")


@pytest.mark.row("002-14")
def test_the_stub_points_to_the_forwarder_where_machines_attest_and_to_the_server_where_they_do_not(
    cluster: Acceptance,
) -> None:
    assert source(cluster).startswith("https://")
    meta = {"apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"}}
    cluster.apply({**meta, "spec": {"mode": "Enforce", "simulated": True}})
    eventually(lambda: source(cluster) == "http://127.0.0.1:22625/config/worker", "the way through the forwarder")
    words = ("delete", "confidentialcluster", "cluster", "--wait=false")
    confirmation = re.search(r"confirm-lower=([0-9a-f]+)", cluster.live.kubectl(*words).err)
    assert confirmation is not None
    note = f"fastness.dev/confirm-lower={confirmation[1]}"
    cluster.kubectl("annotate", "confidentialcluster", "cluster", note)
    cluster.kubectl(*words)
    eventually(lambda: source(cluster).startswith("https://"), "the way back to the server")
