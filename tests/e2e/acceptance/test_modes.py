"""Seed 000, the mode itself: what is so without it, what turning it on finds, and what a pool's machines are given with it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.e2e.acceptance.cluster import Acceptance, machine_config
from tests.patience import eventually

OFFENDERS: dict[str, dict[str, Any]] = {
    "91-worker-arguments": {"kernelArguments": ["quiet"]},
    "92-worker-kernel": {"kernelType": "realtime"},
    "93-worker-packages": {"extensions": ["usbguard"]},
}


def options(cluster: Acceptance) -> dict[str, Any]:
    """What the rendered config of the workers asks of their operating system."""
    return dict(cluster.get("mc", cluster.rendered()).get("spec", {}))


@pytest.mark.row("000-37")
def test_the_user_data_of_a_pool_leads_to_its_server_with_a_ticket(cluster: Acceptance) -> None:
    secret = cluster.get("secret", "worker-user-data-managed", "-n", "openshift-machine-api")
    ignition = json.loads(base64.b64decode(secret["data"]["userData"]))["ignition"]
    assert ignition["version"].startswith("3.")
    [merged] = ignition["config"]["merge"]
    headers = {header["name"]: header["value"] for header in merged["httpHeaders"]}
    assert merged["source"].endswith("/config/worker")
    assert headers["Authorization"].startswith("Bearer fst_")
    endpoints = json.loads((cluster.live.state / "endpoints.json").read_text())
    assert headers["X-Fastness-Server"] in endpoints.values(), "where the machine goes with its proof"


@pytest.mark.row("000-01")
@pytest.mark.row("000-33")
@pytest.mark.row("000-34")
def test_options_go_out_as_ever_without_the_mode_and_turning_it_on_names_every_config_with_one(
    cluster: Acceptance,
) -> None:
    cluster.confirm(mode="Disabled")
    for name, spec in OFFENDERS.items():
        cluster.apply(
            machine_config(name, baseOSExtensionsContainerImage=f"registry.example/x@sha256:{'e' * 64}", **spec)
        )
    eventually(lambda: options(cluster).get("extensions") and cluster.updated(), "the options on all nodes")
    rendered = options(cluster)
    assert (rendered["kernelArguments"], rendered["kernelType"]) == (["quiet"], "realtime")
    assert rendered["extensions"] == ["usbguard"]
    assert not cluster.degraded()
    cluster.confirm(mode="Enforce")
    eventually(lambda: all(name in cluster.degraded() for name in OFFENDERS), "every config that offends")
    assert all(field in cluster.degraded() for spec in OFFENDERS.values() for field in spec)
    printed = cluster.kubectl("get", "confidentialcluster", "cluster").rows
    assert dict(zip(printed[0], printed[1], strict=False))["MODE"] == "Enforce"
    promise = "nothing is released without attestation"
    eventually(
        lambda: any(
            promise in condition["message"]
            for condition in cluster.get("confidentialcluster", "cluster")["status"]["conditions"]
        ),
        "the condition that says what is enforced",
    )
    cluster.kubectl("delete", "mc", *OFFENDERS)
    eventually(lambda: not cluster.degraded(), "the pool to heal")
