"""One answer to how a machine stands, whatever is on it, and nodes that no machine answers for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.status.alarms import verifying
from fastness.attestation.status.cluster import Counts, conditions_of, counted
from fastness.attestation.status.collateral import Freshness
from fastness.attestation.status.unproved_nodes import named, never_attested
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.breakglass import Override
from fastness.attestation.verdict.machine_standing import (
    WORDS,
    MachineStanding,
    State,
    machine_standing,
    standing_change,
    taken_away,
)
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import MACHINE, STANDINGS, Machine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INTERVAL = timedelta(minutes=15)
OVERRIDE = Override("worker", "values are wrong", NOW, NOW + timedelta(hours=1), ("ada", "grace"))
ENFORCE = {"metadata": {"uid": "u"}, "spec": {"mode": "Enforce"}}
NONE = Counts()
POOL = {"metadata": {"name": "worker"}, "spec": {"nodeSelector": {"matchLabels": {"role/worker": ""}}}}


def machine_object(
    attested: tuple[str, str] = ("True", "Affirmed"),
    *,
    approval: str = "Approved",
    revoked: bool = False,
    **status: Any,
) -> dict[str, Any]:
    conditions = [
        {"type": "Approved", "status": "True" if approval == "Approved" else "False", "reason": approval},
        {"type": "Attested", "status": attested[0], "reason": attested[1], "message": "said the verifier"},
        *([{"type": "Revoked", "status": "True", "reason": "Distrusted", "message": "stolen"}] if revoked else []),
    ]
    defaults = {"keyThumbprint": "sha256:1", "pool": "worker", "nodeName": "worker-1", "conditions": conditions}
    body = {"metadata": {"name": "m", "uid": "u"}, "spec": {"id": "i", "approval": approval}}
    return {**body, "status": {**defaults, "lastAttested": rfc3339(NOW), **status}}


def standing(body: dict[str, Any], now: datetime = NOW, override: Override | None = None) -> MachineStanding:
    return machine_standing(view(body, Machine), now, INTERVAL, override)


@pytest.mark.parametrize(
    ("body", "override", "state", "reason"),
    [
        (machine_object(), None, State.PROVED, "Affirmed"),
        (machine_object(), OVERRIDE, State.PROVED, "Affirmed"),
        (machine_object(("False", "ValueDiffers")), OVERRIDE, State.REFUSED, "ValueDiffers"),
        (machine_object(("False", "NeverAttested"), lastAttested=None), None, State.WAITING, "NeverAttested"),
        (machine_object(approval="Pending"), None, State.WAITING, "Pending"),
        (machine_object(approval="Quarantined"), OVERRIDE, State.REVOKED, "Quarantined"),
        (machine_object(revoked=True), OVERRIDE, State.REVOKED, "Revoked"),
        (machine_object(("False", "Revoked")), None, State.PROVED, "Affirmed"),
        (machine_object(("False", "Revoked"), lastAttested="2026-03-01T11:00:00Z"), None, State.STALE, "ProofExpired"),
        (machine_object(("False", "ProofExpired"), lastAttested="2026-03-01T11:00:00Z"), None, State.STALE, "ProofExpired"),
        (machine_object(lastAttested=None), None, State.WAITING, "NeverAttested"),
        # An end without a beginning is no proof: nothing was ever affirmed that could last.
        (
            machine_object(("False", "Revoked"), lastAttested=None, attestedUntil=rfc3339(NOW + INTERVAL)),
            None, State.STALE, "ProofExpired",
        ),
        (
            machine_object(("False", "BreakGlass"), overriddenUntil=rfc3339(NOW + INTERVAL)),
            OVERRIDE, State.OVERRIDDEN, "BreakGlass",
        ),
        (machine_object(("False", "BreakGlass"), overriddenUntil=rfc3339(NOW)), OVERRIDE, State.STALE, "ProofExpired"),
        (
            machine_object(("False", "BreakGlass"), overriddenUntil=rfc3339(NOW + INTERVAL)),
            None, State.STALE, "OverrideEnded",
        ),
        # As it was written before: `True` for the reason BreakGlass was never a proof either.
        (machine_object(("True", "BreakGlass")), None, State.STALE, "OverrideEnded"),
    ],
)  # fmt: skip
def test_a_machine_stands_as_one_of_six(body: Any, override: Override | None, state: State, reason: str) -> None:
    for simulated in (False, True):
        body["status"]["simulated"] = simulated
        stands = standing(body, override=override)
        assert (stands.state, stands.reason, stands.simulated) == (state, reason, simulated)
        assert stands.word == f"{state} (simulated)" if simulated else str(state)
        assert stands.proved == (state is State.PROVED)
        assert stands.asks == (reason == "Pending")


def test_the_words_are_those_of_the_kind() -> None:
    assert tuple(str(state) for state in State) == STANDINGS
    listed = MACHINE.schema["properties"]["status"]["properties"]["standing"]["enum"]
    assert set(WORDS) == set(listed)
    assert "Proved (simulated, host not proved)" in listed


@pytest.mark.parametrize("simulated", [False, True])
def test_a_machine_that_stands_by_a_bare_tpm_says_so_wherever_it_is_shown(simulated: bool) -> None:
    proved = machine_object(("True", "Affirmed"), simulated=simulated, lastVerdict="v", lastAttested=rfc3339(NOW))
    for tee, caveats in (("snp", ()), ("tdx", ()), ("tpm", ("host not proved",))):
        stands = standing({**proved, "status": {**proved["status"], "tee": tee}})
        assert stands.state is State.PROVED
        assert stands.caveats == (*(("simulated",) if simulated else ()), *caveats)
        assert stands.word in WORDS
    refused = machine_object(("False", "value-differs"), tee="tpm")
    assert standing(refused).caveats == ()


@pytest.mark.parametrize("simulated", [False, True])
def test_a_machine_whose_tpm_was_trusted_on_first_use_says_so_wherever_it_is_shown(simulated: bool) -> None:
    more: dict[str, Any] = {"simulated": simulated, "tee": "tpm", "lastVerdict": "v", "lastAttested": rfc3339(NOW)}
    for endorsement, expected in (("ek-certificate", False), ("trust-on-first-use", True)):
        stands = standing(machine_object(("True", "Affirmed"), endorsedBy=endorsement, **more))
        assert stands.state is State.PROVED
        assert ("trusted on first use" in stands.caveats) is expected
        assert ("trusted on first use" in stands.word) is expected
        assert stands.word in WORDS


CONDITION = st.tuples(
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from(["Affirmed", "BreakGlass", "NeverAttested", "ProofExpired", "Quarantined", "ValueDiffers", ""]),
)


@given(CONDITION, st.sampled_from(["Approved", "Pending", "Quarantined"]), st.booleans(), st.integers(-60, 120))
def test_only_an_approved_machine_that_was_affirmed_lately_ever_proved_anything(
    attested: tuple[str, str], approval: str, revoked: bool, minutes: int
) -> None:
    stands = standing(
        machine_object(attested, approval=approval, revoked=revoked), NOW + timedelta(minutes=minutes), OVERRIDE
    )
    if stands.proved:
        assert (approval, revoked) == ("Approved", False)
        assert attested[0] == "True" or attested[1] in ("ProofExpired", "Quarantined")
        assert attested[1] != "BreakGlass"
        assert minutes < 30


def test_the_counts_are_the_standings_and_an_override_counts_as_no_proof() -> None:
    overridden = machine_object(("False", "BreakGlass"), overriddenUntil=rfc3339(NOW + INTERVAL))
    stale = machine_object(lastAttested="2026-03-01T11:00:00Z")
    during = [standing(body, override=OVERRIDE) for body in (machine_object(), overridden, stale)]
    assert counted(during) == Counts(enrolled=3, attested=1, refused=1, stale=1, overridden=1)
    assert counted([standing(overridden)]) == Counts(enrolled=1, refused=1, stale=1)


def test_what_people_take_away_hides_no_refusal() -> None:
    conditions = machine_object()["status"]["conditions"]
    out = taken_away(conditions, "Quarantined", "stolen", NOW)
    assert [(entry["type"], entry["status"], entry["reason"]) for entry in out][1] == (
        "Attested",
        "False",
        "Quarantined",
    )
    refused = machine_object(("False", "ValueDiffers"))["status"]["conditions"]
    assert taken_away(refused, "Quarantined", "stolen", NOW) == refused


def test_a_change_of_the_status_is_written_once() -> None:
    body = machine_object()
    change = standing_change(body, {}, NOW, INTERVAL, None)
    assert change == {"standing": "Proved", "standingReason": "Affirmed"}
    body["status"] |= change
    assert standing_change(body, {}, NOW, INTERVAL, None) == {}
    # A patch takes away what is no longer proved, also inside of something.
    patch = {"properties": {"image": None}, "overriddenUntil": None}
    assert (
        standing_change(
            {**body, "status": {**body["status"], "properties": {"image": "a"}}}, patch, NOW, INTERVAL, None
        )
        == {}
    )
    old = standing_change(body, {}, NOW + 2 * INTERVAL, INTERVAL, None)
    assert old == {"standing": "Stale", "standingReason": "ProofExpired"}


def cluster_conditions(
    override: Override | None = None, unproved: tuple[str, ...] = (), counts: Counts = NONE
) -> dict[str, Any]:
    fresh = Freshness(True, "Fresh", "")
    conditions = conditions_of(ENFORCE, (), ReferenceValues.of([], NOW), counts, fresh, override, unproved)
    return {condition.kind: (condition.status, condition.reason, condition.message) for condition in conditions}


def test_enforcing_is_not_true_while_an_override_lets_machines_in_without_proof() -> None:
    assert cluster_conditions()["Enforcing"] == (True, "Enforce", "nothing is released without attestation")
    status, reason, message = cluster_conditions(OVERRIDE)["Enforcing"]
    assert (status, reason) == (False, "Overridden")
    assert "ada and grace" in message
    assert cluster_conditions(counts=Counts(enrolled=1, overridden=1))["Degraded"][:2] == (True, "MachinesOverridden")


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"role/worker": "", **labels}}}


@pytest.mark.row("000-02")
def test_nodes_that_never_attested_are_counted_and_named_by_every_condition() -> None:
    proved = view(machine_object(), Machine)
    waiting = view(machine_object(("False", "NeverAttested"), lastAttested=None, nodeName="worker-2"), Machine)
    nodes = [node("worker-1"), node("worker-2"), node("old"), {"metadata": {"name": "other", "labels": {}}}]
    unproved = never_attested(ENFORCE, nodes, [POOL], [proved, waiting])
    assert unproved == ("old", "worker-2")
    conditions = cluster_conditions(unproved=unproved)
    assert conditions["Degraded"][:2] == (True, "NodesNeverAttested")
    assert all("old, worker-2" in conditions[kind][2] for kind in ("Degraded", "Enforcing"))
    alarm = verifying(ENFORCE, [], NOW, INTERVAL, unproved)
    assert (alarm.status, alarm.reason) == (False, "NodesNeverAttested")
    assert "old, worker-2" in alarm.message
    assert verifying(ENFORCE, [], NOW, INTERVAL).reason == "NobodyToVerify"


def test_nobody_is_named_where_nobody_asks_for_attestation() -> None:
    assert never_attested({"spec": {"mode": "Disabled"}}, [node("a")], [POOL], []) == ()
    assert never_attested(None, [node("a")], [POOL], []) == ()
    hosts = {"spec": {"mode": "Enforce", "pools": [{"name": "worker", "trustModel": "ContainersHost"}]}}
    assert never_attested(hosts, [node("a")], [POOL], []) == ()
    assert never_attested({"spec": {"mode": "Audit"}}, [node("a")], [POOL], []) == ("a",)


def test_a_second_label_does_not_hide_a_node() -> None:
    pools = [{"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {name: ""}}}} for name in ("x", "y")]
    mixed = {"spec": {"mode": "Enforce", "pools": [{"name": "x", "trustModel": "None"}]}}
    assert never_attested(mixed, [node("a", x="", y="")], pools, []) == ("a",)


def test_another_label_does_not_hide_a_node_whose_machine_never_attested() -> None:
    """Somebody who may write labels moves the node into a pool of which nothing is asked."""
    pools = [{"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {name: ""}}}} for name in ("x", "y")]
    mixed = {"spec": {"mode": "Enforce", "pools": [{"name": "x", "trustModel": "None"}]}}
    waiting = view(machine_object(("False", "NeverAttested"), lastAttested=None, nodeName="a", pool="y"), Machine)
    assert never_attested(mixed, [node("a", x="")], pools, [waiting]) == ("a",)
    assert never_attested(mixed, [node("a", x="")], pools, []) == ()


def test_a_sentence_names_ten_and_says_how_many_more() -> None:
    assert named(("a", "b")) == "a, b"
    assert named([f"n{number}" for number in range(12)]).endswith("n9 and 2 more")


def test_a_machine_that_lost_a_property_stands_as_the_rest_of_it_says() -> None:
    body = machine_object(properties={"tee": "tpm", "image": "os@sha256:1"})
    refused = machine_object(("False", "value-differs"))["status"]["conditions"]
    change = standing_change(body, {"conditions": refused, "properties": {"image": None}}, NOW, INTERVAL, None)
    assert change == {"standing": "Refused", "standingReason": "value-differs"}
