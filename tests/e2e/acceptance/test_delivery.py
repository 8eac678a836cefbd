"""Seed 000, delivery: who gives a machine its configuration, on whose word, and what strangers see."""

from __future__ import annotations

import base64
import json
import re
import shutil
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import yaml

from tests.components import require_program
from tests.e2e.acceptance.cluster import GROUP, Acceptance, a_file, machine_config
from tests.e2e.acceptance.conftest import WORKERS
from tests.e2e.live import environment, run
from tests.patience import eventually
from tools.chart_pages import CHART

ALERTS = CHART / "alerts.yaml"
DOORS = ("configServer", "enrolment", "broker", "gate", "api")


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A machine that was added: its name in the simulation, its Machine, and the release of its first configuration."""

    name: str
    machine: dict[str, Any]
    release: dict[str, Any]

    @property
    def door(self) -> str:
        """The kind of door that released it."""
        return str(self.release["door"].partition("-")[0])


def entries(cluster: Acceptance, who: str, what: str) -> list[dict[str, Any]]:
    """What the record says about a key."""
    listing = cluster.fastness("audit", "show", "--who", who, "--what", what, "-o", "json")
    assert listing.code == 0, listing.err
    return list(json.loads(listing.out))


def deliver(cluster: Acceptance, **delivery: str) -> None:
    """Choose the way of configurations, as an administrator does."""
    patch = json.dumps({"spec": {"delivery": delivery}})
    cluster.kubectl("patch", "confidentialcluster", "cluster", "--type=merge", "-p", patch)


def add(cluster: Acceptance, *options: str) -> Newcomer:
    """One more machine, until its node is Ready."""
    before = set(cluster.ready())
    added = cluster.fastness("sim", "add", "--state", str(cluster.live.state), *options)
    assert added.code == 0, added.err
    eventually(lambda: set(cluster.ready()) - before, "one more node")
    (node,) = set(cluster.ready()) - before
    items = cluster.get("machines.trusted-execution-clusters.io", "-A")["items"]
    machine = next(item for item in items if item["status"].get("nodeName") == node)
    who = machine["status"]["keyThumbprint"]
    eventually(lambda: entries(cluster, who, "release"), "its release on the record")
    release = next(entry for entry in entries(cluster, who, "release") if entry["resource"] == "pool/worker/config")
    return Newcomer(added.out.split()[0], machine, release)


def remove(cluster: Acceptance, newcomer: Newcomer) -> None:
    removed = cluster.fastness("sim", "remove", "--state", str(cluster.live.state), newcomer.name)
    assert removed.code == 0, removed.err
    eventually(lambda: newcomer.machine["status"]["nodeName"] not in cluster.ready(), "its node to go")


def files_of(config: dict[str, Any]) -> dict[str, str]:
    """The plain files of a rendered config that a data URL holds as text: path and text."""
    files = config["spec"]["config"].get("storage", {}).get("files", [])
    texts = {file["path"]: file.get("contents", {}).get("source", "") for file in files}
    return {path: unquote(text.removeprefix("data:,")) for path, text in texts.items() if text.startswith("data:,")}


@pytest.mark.row("000-39")
@pytest.mark.row("000-46")
@pytest.mark.row("000-52")
@pytest.mark.row("000-54")
@pytest.mark.row("000-55")
@pytest.mark.row("000-64")
def test_the_gate_gives_a_machine_its_pools_config_on_a_verdict_of_the_broker(cluster: Acceptance) -> None:
    cluster.apply(machine_config("50-delivery", config=a_file("/etc/delivery", "by%20the%20gate")))
    eventually(lambda: cluster.updated() and cluster.contents("/etc/delivery") == {"by the gate"}, "the config")
    newcomer = add(cluster, "--tee", "tpm")
    machine, release = newcomer.machine, newcomer.release
    # With the operator of trusted execution: its Machine, and the key that the machine enrolled with.
    keys = cluster.get("attestationkeys", "-A")["items"]
    assert machine["metadata"]["name"] in [key["metadata"]["ownerReferences"][0]["name"] for key in keys]
    # Judged by the broker, released by the gate, in this order; the release names the verdict and its grant.
    who = machine["status"]["keyThumbprint"]
    judged = next(entry for entry in entries(cluster, who, "attested") if entry["verdict"] == release["verdict"])
    assert (judged["door"].partition("-")[0], newcomer.door) == ("broker", "gate")
    assert judged["index"] < release["index"]
    assert release["grant"].startswith("grant-")
    assert not [entry for entry in entries(cluster, who, "release") if entry["door"].startswith("broker-")]
    assert cluster.get("verdict", release["verdict"])["spec"]["result"] == "Affirmed"
    # And what lies on the machine is the content of the rendered config that the record names.
    assert release["detail"]["config"] == cluster.rendered()
    root = cluster.live.state / "machines" / newcomer.name / "root"
    files = files_of(cluster.get("mc", cluster.rendered()))
    assert files["/etc/delivery"] == "by the gate"
    assert {path: (root / path.lstrip("/")).read_text() for path in files} == files
    remove(cluster, newcomer)


@pytest.mark.row("000-42")
@pytest.mark.row("000-61")
def test_strangers_get_nothing_at_any_door_and_learn_of_no_pool_and_are_seen(cluster: Acceptance) -> None:
    endpoints = json.loads((cluster.live.state / "endpoints.json").read_text())
    # Whoever scans an address has no authority to verify with, and takes whatever certificate there is.
    with httpx.Client(verify=False, trust_env=False) as stranger:
        for door in DOORS:
            for path in ("/", "/config/{}", "/trust/{}", "/kbs/v0/resource/pool/{}/config", "/v1/enrol"):
                real, made_up = (stranger.get(endpoints[door] + path.format(pool)) for pool in ("worker", "nobody"))
                assert real.status_code in (401, 404, 405), (door, path)
                assert (real.status_code, real.text) == (made_up.status_code, made_up.text), (door, path)
                assert "worker" not in real.text
    eventually(lambda: len(cluster.events("StrangersRefused")) >= 2, "events about strangers")
    doors = {event["message"].split()[1] for event in cluster.events("StrangersRefused")}
    assert {"gate", "broker"} <= doors
    metrics = cluster.kubectl("get", "--raw", "/metrics").out
    assert 'fastness_door_refusals_total{code="token-required",door="gate"}' in metrics


def age_of_copy(cluster: Acceptance) -> float:
    """How old the copy was that the broker handed out last, as its metric tells."""
    lines = cluster.kubectl("get", "--raw", "/metrics").out.splitlines()
    return float(next(line for line in lines if line.startswith("fastness_broker_config_age_seconds ")).split()[1])


@pytest.mark.row("000-70")
@pytest.mark.row("000-71")
@pytest.mark.row("000-72")
@pytest.mark.row("000-73")
@pytest.mark.row("000-74")
@pytest.mark.row("000-76")
@pytest.mark.row("000-79")
def test_the_way_of_configurations_can_be_changed_while_the_cluster_runs(cluster: Acceptance) -> None:
    deliver(cluster, via="Broker", sync="OnDemand")
    on_demand = add(cluster)
    assert on_demand.door == "broker"
    assert on_demand.release["detail"]["config"] == cluster.rendered()

    # The first makes the copy, the second is given it, and its age is told.
    deliver(cluster, via="Broker", sync="Scheduled", interval="2m")
    scheduled = [add(cluster), add(cluster)]
    assert {newcomer.door for newcomer in scheduled} == {"broker"}
    assert age_of_copy(cluster) > 0

    deliver(cluster, via="Broker", sync="OnChange")
    before = cluster.rendered()
    cluster.apply(machine_config("51-delivery", config=a_file("/etc/newer", "newer")))
    # A pool serves what its nodes run: the newer config counts for new machines when the pool has come to it.
    eventually(lambda: cluster.rendered() != before and cluster.updated(), "a newer config")
    on_change = add(cluster)
    assert on_change.door == "broker"
    # What it booted with, not what an update brought later.
    node = cluster.get("node", on_change.machine["status"]["nodeName"])
    assert node["metadata"]["annotations"][f"{GROUP}/firstPivotConfig"] == cluster.rendered() != before

    deliver(cluster, via="Gate", sync="OnDemand")
    by_gate = add(cluster)
    assert by_gate.door == "gate"
    for newcomer in (on_demand, *scheduled, on_change, by_gate):
        remove(cluster, newcomer)


@pytest.mark.row("000-78")
def test_the_gate_gives_nothing_of_what_it_gave_before_once_the_broker_delivers(cluster: Acceptance) -> None:
    """Where attestation is only watched a ticket is enough at the gate, so a person can ask what a machine asks."""
    secret = cluster.get("secret", "worker-user-data-managed", "-n", "openshift-machine-api")
    ignition = json.loads(base64.b64decode(secret["data"]["userData"]))["ignition"]
    (merged,) = ignition["config"]["merge"]
    headers = {entry["name"]: entry["value"] for entry in merged["httpHeaders"] if entry["name"] == "Authorization"}
    url = json.loads((cluster.live.state / "endpoints.json").read_text())["gate"] + "/config/worker"
    doors = cluster.get("secret", "doors-ca", "-n", "fastness-system")["data"]["ca.crt"]
    trust = ssl.create_default_context(cadata=base64.b64decode(doors).decode())

    def watched() -> list[str]:
        entries = cluster.fastness("audit", "show", "--what", "release", "-o", "json").json
        return [entry["grant"] for entry in entries if entry["who"].startswith("ticket:")]

    with httpx.Client(verify=trust, trust_env=False, headers=headers) as machine:
        assert machine.get(url).status_code == 401, "a ticket is nothing where proof is demanded"
        cluster.confirm(mode="Audit")
        eventually(lambda: machine.get(url).status_code == 200, "the configuration for a ticket")
        eventually(watched, "the release on the record, which says that nobody proved anything")
        deliver(cluster, via="Broker", sync="OnDemand")
        eventually(lambda: machine.get(url).status_code == 503, "the gate to be shut")
        before = watched()
        answer = machine.get(url)
        assert answer.json()["code"] == "delivered-by-broker"
        assert "files" not in answer.text
        assert watched() == before
    deliver(cluster, via="Gate", sync="OnDemand")
    cluster.confirm(mode="Enforce")


@pytest.mark.row("000-96")
def test_what_happens_is_counted_and_the_alerts_of_the_chart_ask_for_what_is_counted(cluster: Acceptance) -> None:
    endpoints = json.loads((cluster.live.state / "endpoints.json").read_text())
    with httpx.Client(verify=False, trust_env=False) as stranger:
        assert stranger.get(f"{endpoints['gate']}/config/worker").status_code == 401
    scraped = cluster.kubectl("get", "--raw", "/metrics").out
    samples = {
        line.split("{")[0].split()[0]: float(line.rsplit(" ", 1)[1])
        for line in scraped.splitlines()
        if line.startswith("fastness_") and not line.endswith("NaN")
    }
    refused = re.search(r'^fastness_door_refusals_total{code="token-required",door="gate"} (\S+)', scraped, re.M)
    released = re.search(r'^fastness_config_releases_total{basis="verdict"} (\S+)', scraped, re.M)
    assert refused is not None
    assert released is not None
    assert float(refused[1]) >= 1
    assert float(released[1]) >= WORKERS
    assert 0 <= samples["fastness_door_cache_age_seconds"] < 90
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    series = {name for rule in rules for name in re.findall(r"fastness_[a-z_]+", rule["expr"])}
    exposed = set(re.findall(r"^# TYPE (fastness_[a-z_]+) ", scraped, re.M))
    assert series <= exposed | {f"{name}_total" for name in exposed}
    promtool = require_program(Path(shutil.which("promtool") or "/usr/bin/promtool"), "prometheus")
    checked = run([str(promtool), "check", "rules", str(ALERTS)], environment(cluster.live.home))
    assert (checked.code, f"{len(rules)} rules found" in checked.out) == (0, True), checked.out + checked.err


@pytest.mark.row("000-92")
def test_the_symptom_leads_to_the_register_that_differs_and_to_what_can_be_done(cluster: Acceptance) -> None:
    state = ("--state", str(cluster.live.state))

    def refused() -> list[str]:
        machines = cluster.get("machines", "-n", "fastness-system")["items"]
        return [str(machine["metadata"]["name"]) for machine in machines if _refused(machine)]

    assert cluster.fastness("sim", "tamper", "worker-0", "changed-boot-loader", *state).code == 0
    try:
        eventually(lambda: len(refused()) == 1, "a machine that is refused")
        (name,) = refused()
        explained = cluster.fastness("attest", "explain", name).out
        assert re.match(rf"{name} \(\S+, pool worker\) is refused: value-differs", explained), explained
        assert "FAIL  PCR 4 (boot loader and kernel)" in explained
        assert "What to do:" in explained
        eventually(
            lambda: any(event["involvedObject"]["name"] == name for event in cluster.events("Refused")), "an event"
        )
    finally:
        assert cluster.fastness("sim", "undo", "worker-0", *state).code == 0
    eventually(lambda: not refused(), "the machine is itself again")


def _refused(machine: dict[str, Any]) -> bool:
    return any(
        (condition["type"], condition["status"]) == ("Attested", "False")
        for condition in machine.get("status", {}).get("conditions", [])
    )
