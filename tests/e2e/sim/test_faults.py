"""What is done to virtual machines meets the real doors: each fault is refused for its reason, and undone without hands."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.attestation.verdict.explain import Explanation
from fastness.cli.trust.explain import explained
from fastness.kube.errors import ApiError, BadRequest, Conflict, NotFound
from fastness.sim.control_client import ask_control
from tests.e2e.live import FASTNESS, Live, Outcome, environment, run
from tests.patience import eventually

TPM, SNP, TDX = "worker-0", "worker-1", "worker-2"
NOTE = "machineconfiguration.openshift.io"


class Hall:
    """A running simulation, asked through its socket."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def ask(self, verb: str, **words: Any) -> dict[str, Any]:
        return dict(ask_control(self.live.state, {"verb": verb, **words}))

    def do(self, kind: str, machine: str = "", **more: str) -> str:
        return str(self.ask("do", kind=kind, machine=machine, **more)["said"])

    def undo(self, fault: str) -> str:
        return str(self.ask("undo", fault=fault)["said"])

    def machines(self) -> dict[str, dict[str, Any]]:
        return {machine["name"]: machine for machine in self.ask("list")["machines"]}

    def node(self, machine: str) -> str:
        return str(self.machines()[machine]["node"])

    def explain(self, machine: str) -> Explanation:
        return asyncio.run(explained(self.node(machine), self.live.kubeconfig, ""))

    def attested(self, *machines: str) -> bool:
        by_name = self.machines()
        return all(by_name[machine]["running"] and self.explain(machine).attested for machine in machines)

    def codes(self, machine: str) -> set[str]:
        explanation = self.explain(machine)
        return {check.code for check in explanation.why} | {gap.code for gap in explanation.unproved}

    def annotation(self, machine: str, name: str) -> str:
        node = self.live.kubectl("get", "node", self.node(machine), "-o", "json").json
        return str(node["metadata"]["annotations"].get(f"{NOTE}/{name}", ""))

    def ready(self, machine: str) -> str:
        path = '{.status.conditions[?(@.type=="Ready")].status}'
        return self.live.kubectl("get", "node", self.node(machine), "-o", f"jsonpath={path}").out

    def fastness(self, *words: str) -> Outcome:
        env = environment(self.live.home, KUBECONFIG=str(self.live.kubeconfig))
        return run([FASTNESS, *words], env, cwd=self.live.home)


@pytest.fixture
def hall(running: Hall) -> Hall:
    """The simulation with nothing done to it, whatever an earlier test left."""
    listed = running.ask("list")
    for fault in [
        *listed["faults"],
        *(fault_of_machine for machine in listed["machines"] for fault_of_machine in machine["faults"]),
    ]:
        running.undo(fault["id"])
    return running


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    with Live.start(tmp_path_factory.mktemp("faults"), "--machines", "3") as live:
        simulated = Hall(live)
        eventually(lambda: all(machine["running"] for machine in simulated.machines().values()), "three machines")
        eventually(lambda: simulated.attested(TPM, SNP, TDX), "three proofs")
        yield simulated


# Fault of which machine, and the check that stops it. Machines of a round are broken together.
CHANGED, OLD, DEBUG, REPLAYED = (
    ("changed-boot-loader", "value-differs"), ("old-firmware", "tcb-behind"), ("debug-mode", "debug-allowed"),
    ("replayed-evidence", "nonce-differs"),
)  # fmt: skip
ROUNDS = {
    "first": [(TPM, *CHANGED), (SNP, *OLD), (TDX, *DEBUG)],
    "second": [(TPM, *REPLAYED), (SNP, *DEBUG), (TDX, *OLD)],
    "third": [(SNP, *CHANGED), (TDX, *REPLAYED)],
    "fourth": [(SNP, *REPLAYED), (TDX, *CHANGED)],
}


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.row("000-98")
@pytest.mark.row("004-18")
@pytest.mark.row("004-22")
def test_a_fault_is_refused_for_its_reason_explained_and_undone(hall: Hall, name: str) -> None:
    for machine, kind, _ in ROUNDS[name]:
        assert "simulated" in hall.do(kind, machine)
    for machine, kind, code in ROUNDS[name]:
        eventually(
            lambda target=machine, code=code: f"refused ({code})" in hall.machines()[target]["console"],  # type: ignore[misc]
            f"{kind}: {code}",
        )
        eventually(lambda target=machine, code=code: code in hall.codes(target), f"an explanation of {kind}")  # type: ignore[misc]
        assert hall.explain(machine).actions, kind
        eventually(lambda target=machine: hall.ready(target) == "False", "a node that is not ready")  # type: ignore[misc]
    for machine, kind, _ in ROUNDS[name]:
        hall.undo(f"{machine}.{kind}")
    eventually(lambda: hall.attested(*(machine for machine, _, _ in ROUNDS[name])), "machines that are well again")
    for machine, _, _ in ROUNDS[name]:
        eventually(lambda target=machine: hall.ready(target) == "True", "a node that is ready again")  # type: ignore[misc]


def test_a_stranger_with_the_ticket_gets_nothing_is_on_the_record_and_the_ticket_is_replaced(hall: Hall) -> None:
    def ticket() -> str:
        return hall.live.kubectl(
            "get", "secret", "-n", "openshift-machine-api", "worker-user-data-managed", "-o", "yaml"
        ).out

    before = ticket()
    report = hall.do("stolen-ticket", TPM)
    assert "enrolment said endorsement-refused, the config server 403" in report
    assert hall.attested(TPM)

    def refusals() -> list[str]:
        record = hall.fastness("audit", "show", "--what", "enrol-refused", "-o", "json")
        return [entry["detail"]["code"] for entry in record.json] if record.code == 0 else []

    eventually(lambda: "endorsement-refused" in refusals(), "the refusal on the record")
    hall.undo(f"{TPM}.stolen-ticket")
    eventually(lambda: ticket() != before, "another ticket")


def test_an_edited_file_is_drift_until_it_is_put_back(hall: Hall) -> None:
    eventually(lambda: hall.annotation(SNP, "state") == "Done", "a machine that settled")
    path = hall.do("edited-file", SNP).split(" to ")[1].split(" ")[0]
    eventually(lambda: hall.annotation(SNP, "state") == "Degraded", "drift")
    assert path in hall.annotation(SNP, "reason")
    assert "somebody was here" in hall.annotation(SNP, "reason")
    hall.undo(f"{SNP}.edited-file")
    eventually(lambda: hall.annotation(SNP, "state") == "Done", "a machine that is well again")


def test_a_machine_without_network_loses_its_proof_when_time_passes_and_gets_it_back(hall: Hall) -> None:
    hall.do("network-cut", TPM)
    assert hall.ready(TPM) == "Unknown"
    assert hall.machines()[TPM]["network"] is False
    hall.do("clock-jump", argument="+45m")
    eventually(lambda: "too old" in hall.explain(TPM).answer, "a proof that grew old")
    assert not hall.explain(TPM).attested
    assert "reaches the broker" in hall.explain(TPM).actions[0]
    eventually(lambda: hall.attested(SNP, TDX), "fresh proofs of the others")
    ahead = hall.explain(SNP).last_attested
    hall.undo(f"{TPM}.network-cut")
    eventually(lambda: hall.attested(TPM) and hall.ready(TPM) == "True", "the machine back")
    hall.undo("clock-jump")
    eventually(lambda: hall.explain(SNP).last_attested < ahead, "proofs of today")
    assert hall.attested(TPM, SNP, TDX)


def test_without_the_vendors_documents_a_trust_domain_waits_and_others_go_on(hall: Hall) -> None:
    hall.do("vendor-stopped")
    eventually(lambda: "collateral-missing" in hall.codes(TDX), "nobody who could judge")
    assert any("vendor's service" in action for action in hall.explain(TDX).actions)
    hall.ask("reboot", machine=TDX)
    eventually(lambda: "waiting (collateral-missing)" in hall.machines()[TDX]["console"], "a boot that waits")
    assert hall.attested(TPM, SNP)
    hall.undo("vendor-stopped")
    eventually(lambda: hall.attested(TDX), "the machine back")


@pytest.mark.row("000-56")
def test_a_machine_comes_proves_itself_boots_again_and_goes(hall: Hall) -> None:
    report = hall.ask("add", count=1, tee="snp")["said"]
    name = str(report).split()[0]
    eventually(lambda: hall.machines()[name]["running"] and hall.attested(name), "another machine")
    node, first = hall.node(name), hall.explain(name).last_attested
    assert hall.machines()[name]["tee"] == "snp"
    time.sleep(1.1)  # proofs are told to the second
    hall.ask("reboot", machine=node)
    eventually(lambda: hall.explain(name).last_attested > first, "a proof of the new boot")
    hall.ask("remove", machine=name)
    assert name not in hall.machines()
    assert not (hall.live.state / "machines" / name).exists()
    eventually(lambda: node not in hall.live.kubectl("get", "nodes", "-o", "name").out, "no node")
    assert node[-20:] not in hall.live.kubectl("get", "machines", "-A", "-o", "name").out
    again = str(hall.ask("add", count=1)["said"]).split()[0]
    assert again != name
    hall.ask("remove", machine=again)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        ({"verb": "do", "kind": "old-firmware", "machine": TPM}, BadRequest, "choose a machine with snp or tdx"),
        ({"verb": "do", "kind": "earthquake", "machine": TPM}, BadRequest, "changed-boot-loader"),
        ({"verb": "do", "kind": "network-cut"}, BadRequest, "name one"),
        ({"verb": "do", "kind": "vendor-stopped", "machine": TPM}, BadRequest, "whole cluster"),
        ({"verb": "do", "kind": "network-cut", "machine": "worker-99"}, NotFound, "worker-99"),
        ({"verb": "do", "kind": "clock-jump", "argument": "-5m"}, BadRequest, "+15m"),
        ({"verb": "do", "kind": "clock-jump", "argument": "99999h"}, BadRequest, "45 days"),
        ({"verb": "undo", "fault": "nothing"}, NotFound, "nothing was done"),
        ({"verb": "add", "count": 0}, BadRequest, "between 1 and 1000"),
        ({"verb": "add", "tee": "sgx"}, BadRequest, "tpm, snp, tdx"),
        ({"verb": "remove", "machine": "../worker-0"}, NotFound, "worker-0"),
        ({"verb": "reboot", "machine": ""}, NotFound, "no virtual machine"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    hall: Hall, ask: dict[str, Any], error: type[ApiError], words: str
) -> None:
    with pytest.raises(error, match=words.replace("+", r"\+")):
        ask_control(hall.live.state, ask)


def test_the_same_fault_twice_is_a_conflict_that_names_the_way_out_and_all_of_it_is_in_the_audit_log(
    hall: Hall,
) -> None:
    hall.do("network-cut", SNP)
    with pytest.raises(Conflict, match=r"undo worker-1\.network-cut first"):
        hall.do("network-cut", SNP)
    hall.undo(f"{SNP}.network-cut")
    done, refused = (
        [json.loads(line) for line in (hall.live.state / name).read_text().splitlines()]
        for name in ("audit.log", "audit-refused.log")
    )
    lines = [line for line in (*done[-2:], *refused[-1:]) if line["name"] == f"{SNP}.network-cut"]
    assert [(line["verb"], line["code"]) for line in lines] == [("do", 200), ("undo", 200), ("do", 409)]
    assert {(line["user"], line["resource"]) for line in lines} == {(f"system:local:{os.geteuid()}", "virtualmachines")}


def test_the_command_line_does_all_of_it_and_says_that_it_is_simulated(hall: Hall) -> None:
    listed = hall.fastness("sim", "list")
    assert [row[0] for row in listed.rows] == ["NAME", TPM, SNP, TDX]
    assert "all of this is simulated" in listed.err
    assert hall.fastness("sim", "cut", TPM).out.startswith("worker-0 is cut off (simulated; undo with")
    listing = hall.fastness("sim", "faults", "-o", "json").json
    assert [fault["id"] for fault in listing["faults"]] == ["worker-0.network-cut"]
    assert {kind["id"] for kind in listing["kinds"]} >= {"changed-boot-loader", "vendor-stopped", "clock-jump"}
    assert hall.fastness("sim", "undo", TPM, "-o", "json").json == {
        "simulated": True,
        "said": ["worker-0 is connected again"],
    }
    refused = hall.fastness("sim", "tamper", TPM, "debug-mode")
    assert (refused.code, "choose a machine with snp or tdx" in refused.err) == (4, True)
    assert hall.fastness("sim", "undo").code == 2
    assert hall.fastness("sim", "undo", "--all").err == "nothing was done\n"


def machine_objects(hall: Hall) -> dict[str, dict[str, Any]]:
    machines = hall.live.kubectl("get", "machines", "-n", "fastness-system", "-o", "json").json["items"]
    return {machine["status"].get("nodeName", ""): machine for machine in machines}


@pytest.mark.row("000-95")
def test_a_machine_whose_machine_was_deleted_comes_back_as_a_new_one_when_it_boots(hall: Hall) -> None:
    node = hall.node(SNP)
    before = machine_objects(hall)[node]["metadata"]
    hall.live.kubectl("delete", "machine", "-n", "fastness-system", before["name"])
    eventually(lambda: node not in machine_objects(hall), "the Machine to be gone")
    assert "boots again" in hall.fastness("sim", "reboot", SNP).out
    eventually(lambda: node in machine_objects(hall) and hall.attested(SNP), "a new Machine that proved itself")
    assert machine_objects(hall)[node]["metadata"]["uid"] != before["uid"]
    assert hall.node(SNP) == node, "the key is the same, and so is the node"
    eventually(lambda: hall.ready(SNP) == "True", "a node that is ready")


def cluster(hall: Hall) -> dict[str, Any]:
    return dict(hall.live.kubectl("get", "confidentialcluster", "cluster", "-o", "json").json)


def degraded(hall: Hall) -> str:
    return str(
        next(
            condition["status"]
            for condition in cluster(hall)["status"]["conditions"]
            if condition["type"] == "Degraded"
        )
    )


def test_a_removed_machine_leaves_nothing_that_keeps_the_cluster_degraded(hall: Hall) -> None:
    hall.ask("add", count=1, tee="snp")
    (added,) = hall.machines().keys() - {TPM, SNP, TDX}
    eventually(lambda: hall.machines()[added]["running"], "another machine")
    hall.do("changed-boot-loader", added)
    eventually(lambda: degraded(hall) == "True", "a refused machine")
    hall.ask("remove", machine=added)
    assert len(machine_objects(hall)) == 3
    eventually(lambda: degraded(hall) == "False", "a cluster that is well")


def test_a_machine_that_never_joined_leaves_nothing_either(hall: Hall) -> None:
    patch = ("patch", "confidentialcluster", "cluster", "--type", "merge", "-p")
    hall.live.kubectl(*patch, '{"spec": {"join": {"approval": "Manual"}}}')
    hall.ask("add", count=1)
    (added,) = hall.machines().keys() - {TPM, SNP, TDX}
    eventually(lambda: len(machine_objects(hall)) == 4, "a machine that waits for approval")
    eventually(lambda: cluster(hall)["status"]["pending"] == 1, "a count of it")
    hall.ask("remove", machine=added)
    assert len(machine_objects(hall)) == 3
    eventually(lambda: cluster(hall)["status"]["enrolled"] == 3, "a count without it")
    again = '{"spec": {"join": {"approval": "Automatic"}}}'
    word = hall.live.kubectl(*patch, again).err.partition("fastness.dev/confirm-lower=")[2].split()[0]
    hall.live.kubectl("annotate", "confidentialcluster", "cluster", f"fastness.dev/confirm-lower={word}")
    assert hall.live.kubectl(*patch, again).code == 0


def test_without_a_simulation_the_command_line_says_how_to_get_one(tmp_path: Path) -> None:
    outcome = run([FASTNESS, "sim", "list"], environment(tmp_path), cwd=tmp_path)
    assert outcome.code == 3
    assert "no virtual machines run in state" in outcome.err
    assert "fastness up --machines 5" in outcome.err
