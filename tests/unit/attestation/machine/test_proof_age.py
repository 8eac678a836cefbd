"""From a proof to a node: which step when, one patch that is enough, and nothing taken back that somebody else did."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.machine.proof_age import (
    BY_US,
    CORDONED,
    LABEL_PREFIX,
    TAINT_KEY,
    Demand,
    Proof,
    Rules,
    Step,
    demanded,
    node_labels,
    node_patch,
    proof_of,
    unclaimed,
)
from fastness.attestation.verdict.breakglass import Override
from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import NOTE, Machine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INTERVAL = timedelta(minutes=15)
MINUTE = timedelta(minutes=1)


def machine(last: datetime | None = NOW, *, approval: str = "Approved", **conditions: tuple[str, str]) -> Machine:
    all_conditions = {"Approved": ("True", "Automatic"), "Attested": ("True", "Affirmed"), **conditions}
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": rfc3339(NOW)}
        for kind, (status, reason) in all_conditions.items()
    ]
    status = {"keyThumbprint": "sha256:" + "a" * 64, "pool": "worker", "conditions": listed}
    status |= {"lastAttested": rfc3339(last)} if last else {}
    status |= {"overriddenUntil": rfc3339(NOW + 2 * INTERVAL)}
    return view({"metadata": {"name": "m"}, "spec": {"id": "i", "approval": approval}, "status": status}, Machine)


@pytest.mark.parametrize(
    ("attested_machine", "at", "good", "reason"),
    [
        (machine(), NOW, True, "Affirmed"),
        (machine(), NOW + 29 * MINUTE, True, "Affirmed"),
        (machine(), NOW + 30 * MINUTE, False, "ProofExpired"),
        (machine(Attested=("False", "ProofExpired")), NOW + 31 * MINUTE, False, "ProofExpired"),
        (machine(Attested=("False", "ProofExpired")), NOW + MINUTE, True, "Affirmed"),
        (machine(Attested=("False", "ValueDiffers")), NOW, False, "ValueDiffers"),
        (machine(Attested=("False", "Distrusted")), NOW, False, "Distrusted"),
        (machine(None, Attested=("False", "NeverAttested")), NOW, False, "NeverAttested"),
        (machine(None), NOW, False, "NeverAttested"),
        (machine(Approved=("False", "Pending")), NOW, False, "ApprovalBeingRecorded"),
        (machine(approval="Pending"), NOW, False, "Pending"),
        (machine(Approved=("False", "ChipBarred")), NOW, False, "ChipBarred"),
        (machine(approval="Quarantined"), NOW, False, "Quarantined"),
        (machine(Revoked=("True", "Distrusted")), NOW, False, "Revoked"),
        (machine(Attested=("False", "BreakGlass")), NOW, False, "OverrideEnded"),
        (machine(Attested=("False", "Quarantined")), NOW, True, "Affirmed"),
        (machine(Attested=("False", "Quarantined")), NOW + 30 * MINUTE, False, "ProofExpired"),
    ],
)
def test_a_proof_is_good_while_it_is_affirmed_and_young(
    attested_machine: Machine, at: datetime, good: bool, reason: str
) -> None:
    proof = proof_of(attested_machine, at, INTERVAL)
    assert (proof.good, proof.reason) == (good, reason)
    assert proof.final == (reason in ("Quarantined", "Revoked"))


def test_a_shorter_interval_counts_for_a_machine_only_once_it_was_told() -> None:
    original: Any = machine()
    status = {"attested_until": rfc3339(NOW + 30 * MINUTE)}
    updated = msgspec.structs.replace(original, status=msgspec.structs.replace(original.status, **status))
    assert proof_of(updated, NOW + 29 * MINUTE, MINUTE).good
    assert not proof_of(updated, NOW + 30 * MINUTE, timedelta(hours=1)).good


def test_a_proof_by_override_is_good_as_long_as_the_override() -> None:
    override = Override("worker", "x", NOW, NOW + 10 * MINUTE, ("a", "b"))
    overridden = machine(Attested=("False", "BreakGlass"))
    proof = proof_of(overridden, NOW + MINUTE, INTERVAL, override)
    assert (proof.good, proof.reason, proof.until) == (True, "BreakGlass", override.expires)
    other = Override("infra", "x", NOW, NOW + 10 * MINUTE, ("a", "b"))
    assert not proof_of(overridden, NOW, INTERVAL, other).good
    longer = Override("worker", "x", NOW, NOW + 90 * MINUTE, ("a", "b"))
    assert proof_of(overridden, NOW + 29 * MINUTE, INTERVAL, longer).good
    assert not proof_of(overridden, NOW + 30 * MINUTE, INTERVAL, longer).good, "it missed its rounds under the override"


def test_a_machine_under_an_override_gets_a_place_and_no_label_of_something_proved() -> None:
    override = Override("worker", "x", NOW, NOW + 10 * MINUTE, ("a", "b"))
    proof = proof_of(machine(Attested=("False", "BreakGlass")), NOW, INTERVAL, override)
    demand = demanded(proof, NOW, Rules(), {f"{LABEL_PREFIX}image": "x"})
    assert (demand.step, demand.labels) == (Step.NOTHING, {})


REASONS = st.sampled_from(["ProofExpired", "ValueDiffers", "Revoked"])
RULES = st.builds(
    Rules,
    st.integers(0, 120).map(lambda minutes: minutes * MINUTE),
    st.none() | st.integers(0, 240).map(lambda minutes: minutes * MINUTE),
)


@given(RULES, REASONS, st.booleans(), st.integers(0, 600), st.integers(0, 600))
def test_steps_only_go_up_while_a_proof_stays_bad_and_the_next_one_is_announced(
    rules: Rules, reason: str, final: bool, first: int, more: int
) -> None:
    proof = Proof(False, reason, since=NOW, final=final)
    early, late = (demanded(proof, NOW + minutes * MINUTE, rules, {}) for minutes in (first, first + more))
    assert Step.TAINT <= early.step <= late.step
    assert early.step < Step.DRAIN or rules.drain_after is not None
    assert not final or early.step >= Step.CORDON
    if early.next_at is None:
        assert late.step == early.step
    else:
        assert demanded(proof, early.next_at, rules, {}).step > early.step


def test_a_good_proof_demands_its_labels_and_a_look_when_it_grows_old() -> None:
    demand = demanded(Proof(True, "Affirmed", until=NOW), NOW, Rules(), {"a": "b"})
    assert (demand.step, demand.labels, demand.next_at) == (Step.NOTHING, {"a": "b"}, NOW)


OTHER_TAINTS = st.lists(
    st.sampled_from(
        [{"key": "UpdateInProgress", "effect": "PreferNoSchedule"}, {"key": "gpu", "effect": "NoSchedule"}]
    ),
    max_size=2,
    unique_by=lambda taint: taint["key"],
)
LABELS = st.dictionaries(st.sampled_from(["tee", "image", "gpu"]).map(lambda name: LABEL_PREFIX + name), st.just("x"))


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    notes = draw(st.fixed_dictionaries({}, optional={NOTE: st.sampled_from(["Affirmed", "Old"]), "mine": st.just("1")}))
    drain = draw(st.sampled_from(["", "drain-c1", "uncordon-c1"]))
    notes |= {names.DESIRED_DRAIN: drain} if drain else {}
    spec: dict[str, Any] = {"taints": draw(OTHER_TAINTS)} if draw(st.booleans()) else {}
    spec |= {"unschedulable": True} if draw(st.booleans()) else {}
    labels = {"zone": "a", **draw(LABELS)}
    return {"metadata": {"name": "n", "resourceVersion": "7", "labels": labels, "annotations": notes}, "spec": spec}


DEMANDS = st.builds(Demand, st.sampled_from(Step), st.sampled_from(["Affirmed", "ProofExpired"]), LABELS)


def applied(node: dict[str, Any], patch: dict[str, Any] | None) -> dict[str, Any]:
    return node if patch is None else apply_merge_patch(deepcopy(node), patch)


@given(nodes(), DEMANDS)
def test_one_patch_is_enough_and_another_look_changes_nothing(node: dict[str, Any], demand: Demand) -> None:
    patch = node_patch(node, demand)
    after = applied(node, patch)
    assert node_patch(after, demand) is None
    ours = {key: value for key, value in after["metadata"]["labels"].items() if key.startswith(LABEL_PREFIX)}
    assert ours == demand.labels
    assert after["metadata"]["labels"]["zone"] == "a"
    tainted = [taint for taint in after["spec"].get("taints") or () if taint["key"] == TAINT_KEY]
    assert len(tainted) == (demand.step >= Step.TAINT)
    assert demand.step < Step.CORDON or after["spec"]["unschedulable"] is True
    assert patch is None or patch["metadata"]["resourceVersion"] == "7"


@given(nodes(), st.sampled_from([Step.TAINT, Step.CORDON, Step.DRAIN]))
def test_recovery_takes_back_what_was_done_and_nothing_else(node: dict[str, Any], step: Step) -> None:
    before = deepcopy(node)
    bad = applied(node, node_patch(node, Demand(step, "ProofExpired")))
    healed = applied(bad, node_patch(bad, Demand(Step.NOTHING, "Affirmed")))
    assert (healed["spec"].get("taints") or []) == (before["spec"].get("taints") or [])
    assert CORDONED not in healed["metadata"]["annotations"]
    updating = before["metadata"]["annotations"].get(names.DESIRED_DRAIN) == "drain-c1"
    cordoned = bool(before["spec"].get("unschedulable"))
    left_cordoned = cordoned or (updating and step >= Step.CORDON)
    assert bool(healed["spec"].get("unschedulable")) == left_cordoned


def test_a_node_that_we_cordoned_says_so_and_one_that_was_does_not() -> None:
    node = {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {}}
    patch = node_patch(node, Demand(Step.CORDON, "Revoked"))
    assert patch is not None
    assert patch["metadata"]["annotations"][CORDONED] == BY_US
    there = node_patch({**node, "spec": {"unschedulable": True}}, Demand(Step.CORDON, "Revoked"))
    assert there is not None
    assert CORDONED not in there["metadata"]["annotations"]


def test_labels_hold_what_fits_and_leave_out_what_does_not() -> None:
    digest = "e" * 64
    properties = {"image": f"registry/os@sha256:{digest}", "tcb-date": "2026-01-01T00:00:00Z", "odd": "a b"}
    assert node_labels(enrolled("snp", "evidence", {"tee": "snp", "endorsement": "evidence", **properties})) == {
        f"{LABEL_PREFIX}tee": "snp", f"{LABEL_PREFIX}image": digest[:40], f"{LABEL_PREFIX}simulated": "true",
        f"{LABEL_PREFIX}tcb-date": "2026-01-01T00-00-00Z", f"{LABEL_PREFIX}endorsement": "evidence",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tee", "endorsed_by", "properties"),
    [
        ("snp", "evidence", {"tee": "tpm", "endorsement": "evidence"}),
        ("tpm", "trust-on-first-use", {"tee": "tpm", "endorsement": "ek-certificate"}),
        ("tpm", "evidence", {"tee": "tpm", "endorsement": "evidence"}),
        ("tpm", "ek-certificate", {"tee": "tpm"}),
        ("tpm", "ek-certificate", {"endorsement": "ek-certificate"}),
    ],
)
def test_what_is_not_of_the_type_and_endorsement_of_the_enrolment_becomes_no_label(
    tee: str, endorsed_by: str, properties: dict[str, str]
) -> None:
    assert node_labels(enrolled(tee, endorsed_by, {**properties, "image": "registry/os@sha256:1"})) == {}


def enrolled(tee: str, endorsed_by: str, properties: dict[str, str]) -> Machine:
    status = {"tee": tee, "endorsedBy": endorsed_by, "simulated": True, "properties": properties}
    return view({"metadata": {"name": "m"}, "spec": {"id": "i"}, "status": status}, Machine)


def test_a_taint_that_a_kubelet_registered_with_goes_where_nothing_is_enforced() -> None:
    """Its configuration may be older than the mode of the cluster."""
    bare: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {}}
    assert unclaimed(bare, enforced=False) is None
    bare["spec"]["taints"] = [{"key": TAINT_KEY, "effect": "NoSchedule"}, {"key": "other", "effect": "NoSchedule"}]
    demand = unclaimed(bare, enforced=False)
    assert demand is not None
    patch = node_patch(bare, demand)
    assert patch is not None
    assert patch["spec"]["taints"] == [{"key": "other", "effect": "NoSchedule"}]
    assert (unclaimed(bare, enforced=True) or Demand(Step.NOTHING, "")).step is Step.TAINT
