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


@pytest.mark.row("000-94")
def test_two_approvers_let_a_machine_in_that_cannot_prove_itself_and_everybody_sees_it(cluster: Acceptance) -> None:
    state = ("--state", str(cluster.live.state))

    def glass(*words: str) -> str:
        done = cluster.fastness("break-glass", *words)
        assert done.code == 0, done.err
        return done.out

    def machines(standing: str) -> list[dict[str, Any]]:
        listed = cluster.fastness("machine", "list", "-o", "json").json
        return [entry for entry in listed if entry["attested"] == standing]

    assert cluster.fastness("sim", "tamper", "worker-0", "changed-boot-loader", *state).code == 0
    eventually(lambda: len(machines("Refused")) == 1, "a machine that is refused")
    (refused,) = machines("Refused")
    approvers = [f"--approver={name}={glass('key', f'{name}.key').strip()}" for name in ("ada", "grace")]
    glass("change", *approvers)
    assert cluster.fastness("sim", "clock", "+1h5m", *state).code == 0
    eventually(
        lambda: cluster.condition("confidentialcluster", "cluster", "ApproversPending").get("reason") == "NoChange",
        "approvers that count",
    )
    statement = cluster.live.home / "statement.json"
    statement.write_text(glass("ask", "--pool", "worker", "--for", "4h", "--reason", "the vendor cannot be reached"))
    glass("agree", str(statement), "--by", "ada", "--key", "ada.key")
    alone = cluster.fastness("break-glass", "apply", str(statement))
    assert (alone.code != 0, "1 of 2 approvers signed" in alone.err) == (True, True), alone.err
    glass("agree", str(statement), "--by", "grace", "--key", "grace.key")
    glass("apply", str(statement))
    assert cluster.fastness("sim", "reboot", "worker-0", *state).code == 0
    eventually(lambda: [entry["name"] for entry in machines("Overridden")] == [refused["name"]], "it to be let in")
    eventually(lambda: refused["node"] in cluster.ready(), "its node")
    words = "pool worker, agreed by ada and grace, until"
    assert words in cluster.condition("confidentialcluster", "cluster", "Overridden")["message"]
    assert any(words in event["message"] for event in cluster.events("OverrideBegins"))
    entries = [entry["what"] for entry in cluster.fastness("audit", "show", "-o", "json").json]
    assert {"break-glass-begins", "overridden"} <= set(entries)
    glass("end")
    eventually(lambda: not machines("Overridden"), "an end to it")
    assert cluster.fastness("sim", "undo", "worker-0", *state).code == 0
