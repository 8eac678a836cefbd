"""Which sets are looked after, what one write changes, and what MachineConfiguration reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.boot_images import manage
from fastness.machineconfig.boot_images.images import NotManaged
from tests.unit.machineconfig.boot_images.sets import OLD_RELEASE, RELEASE, gcp, maker, metal, stream, virtual

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = {"worker": TrustModel.NONE}
OWN = {"worker-user-data-managed"}
METAL = metal(f"http://c/rhcos-{OLD_RELEASE}-openstack.x86_64.qcow2.gz")


def manager(mode: str, resource: str = "machinesets", **more: Any) -> dict[str, Any]:
    return {"resource": resource, "apiGroup": "machine.openshift.io", "selection": {"mode": mode, **more}}


def platform(name: str, **more: Any) -> dict[str, Any]:
    return {"status": {"platformStatus": {"type": name, **more}}}


def modes(status: dict[str, Any]) -> dict[str, str]:
    return {entry["resource"]: entry["selection"]["mode"] for entry in status["machineManagers"]}


@pytest.mark.parametrize("name", ["AWS", "GCP", "VSphere", "Azure"])
def test_the_clouds_are_looked_after_by_default_and_the_control_plane_is_not(name: str) -> None:
    control_plane = {} if name == "VSphere" else {"controlplanemachinesets": "None"}
    assert modes(manage.managed_status({}, platform(name))) == {"machinesets": "All", **control_plane}


@pytest.mark.parametrize(
    "infrastructure", [None, platform("BareMetal"), platform("Azure", azure={"cloudName": "AzureStackCloud"})]
)
def test_elsewhere_somebody_asks_for_it(infrastructure: dict[str, Any] | None) -> None:
    assert modes(manage.managed_status({}, infrastructure))["machinesets"] == "None"


def test_what_the_spec_says_counts_and_an_empty_list_means_nothing() -> None:
    spec: dict[str, Any] = {"spec": {"managedBootImages": {"machineManagers": []}}}
    assert manage.managed_status(spec, platform("AWS")) == {"machineManagers": []}
    spec = {"spec": {"managedBootImages": {"machineManagers": [manager("All")]}}}
    assert modes(manage.managed_status(spec, None)) == {"machinesets": "All"}


@pytest.mark.parametrize(
    ("managers", "selected"),
    [
        ([manager("All")], True),
        ([manager("None")], False),
        ([], False),
        ([manager("All", "controlplanemachinesets")], False),
        ([manager("Partial", partial={"machineResourceSelector": {"matchLabels": {"a": "b"}}})], True),
        ([manager("Partial", partial={"machineResourceSelector": {"matchLabels": {"a": "c"}}})], False),
        ([manager("Partial", partial={"machineResourceSelector": {"matchExpressions": "?"}})], False),
    ],
)
def test_a_set_is_selected_by_mode_and_labels(managers: list[dict[str, Any]], selected: bool) -> None:
    status = {"machineManagers": managers}
    assert manage.is_selected(status, "machinesets", maker(gcp(), labels={"a": "b"})) is selected


def test_a_new_image_and_the_managed_secret_come_in_one_write() -> None:
    obj = maker(gcp(), resourceVersion="7", annotations={names.POINTER_VERSION: "2.2.0"})
    step = manage.decide(obj, stream(), PLAIN, OWN, ())
    assert isinstance(step, manage.Update), step
    value = step.patch["spec"]["template"]["spec"]["providerSpec"]["value"]
    assert value["disks"][0]["image"] == step.image
    assert value["userDataSecret"] == {"name": "worker-user-data-managed"}
    assert step.patch["metadata"] == {
        "annotations": {names.BOOT_IMAGE: f"{RELEASE} {step.image}", names.POINTER_VERSION: None},
        "resourceVersion": "7",
    }


def test_a_set_that_has_both_is_current_and_one_with_the_old_secret_is_not() -> None:
    new = maker(gcp(RELEASE, user_data="worker-user-data-managed"))
    assert manage.decide(new, stream(), PLAIN, OWN, ()) == manage.Current()
    assert isinstance(manage.decide(maker(gcp(RELEASE)), stream(), PLAIN, OWN, ()), manage.Update)


def test_a_set_without_a_pool_or_without_its_secret_is_not_given_an_image_that_would_not_join() -> None:
    stray = manage.decide(maker(gcp(user_data="mine")), stream(), PLAIN, OWN, ())
    assert isinstance(stray, NotManaged)
    assert "its user-data is mine" in stray.reason
    early = manage.decide(maker(gcp()), stream(), PLAIN, set(), ())
    assert isinstance(early, manage.Refused)
    assert "worker-user-data-managed is not there yet" in early.reason


@pytest.mark.parametrize(
    ("value", "pools"),
    [(METAL, PLAIN), (virtual(), {"worker": TrustModel.CONFIDENTIAL_CLUSTER})],
    ids=["bare metal", "machines that attest"],
)
def test_an_image_is_approved_before_machines_boot_it(value: dict[str, Any], pools: dict[str, TrustModel]) -> None:
    refused = manage.decide(maker(value), stream(), pools, OWN, {"another"})
    assert isinstance(refused, manage.Refused)
    assert f"no ApprovedImage is of release {RELEASE}" in refused.reason
    assert isinstance(manage.decide(maker(value), stream(), pools, OWN, {RELEASE}), manage.Update)


def test_the_reference_to_user_data_of_bare_metal_keeps_its_own_name() -> None:
    step = manage.decide(maker(METAL), stream(), PLAIN, OWN, {RELEASE})
    assert isinstance(step, manage.Update)
    value = step.patch["spec"]["template"]["spec"]["providerSpec"]["value"]
    assert value["userData"] == {"name": "worker-user-data-managed"}
    assert "userDataSecret" not in value


def test_a_set_that_is_put_back_three_times_is_left() -> None:
    assert manage.hot_loop(2, "x") is None
    refused = manage.hot_loop(3, "x")
    assert refused is not None
    assert "x was written 3 times" in refused.reason


def reported(settings: dict[str, Any], *tallies: manage.Tally, problem: str = "", waiting: str = "") -> dict[str, Any]:
    titles = {f"kind {number}": tally for number, tally in enumerate(tallies)}
    conditions = manage.boot_image_conditions(settings, titles, problem, waiting, NOW)
    return {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in conditions}


def test_progress_is_told_by_kind_and_ends() -> None:
    status = reported({}, manage.Tally(1, 1), manage.Tally(3, 1), waiting="the upgrade to 4.21.0 to complete")
    assert status[manage.PROGRESSING] == (
        "True",
        "BootImageUpdateProgressing",
        "Reconciled 1 of 1 kind 0 | Reconciled 1 of 3 kind 1; waiting: the upgrade to 4.21.0 to complete",
    )
    assert status[manage.DEGRADED][0] == "False"
    done = reported({}, manage.Tally(2, 2, skipped=["a: it is mine"]))
    assert done[manage.PROGRESSING][0] == "False"
    assert done[manage.PROGRESSING][2] == "Reconciled 2 of 2 kind 0; not managed: a: it is mine"


def test_what_cannot_be_updated_degrades_and_is_named() -> None:
    status = reported({}, manage.Tally(2, 1, refused=["a: no ApprovedImage"]))
    assert status[manage.DEGRADED] == ("True", "BootImageUpdateFailed", "1 set cannot be updated: a: no ApprovedImage")
    assert status[manage.PROGRESSING][0] == "False"
    many = reported({}, manage.Tally(9, 0, refused=[f"{number}: no" for number in range(9)]))
    assert many[manage.DEGRADED][2].endswith("; and 4 more")
    assert reported({}, manage.Tally(1, 0), problem="no stream")[manage.DEGRADED][2] == "no stream"


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({}, None),
        ({"bootImageSkewEnforcement": {"mode": "None"}}, ("False", "NotRequested")),
        ({"bootImageSkewEnforcement": {"mode": "Manual", "manual": {}}}, ("False", "NotEnforced")),
    ],
)
def test_skew_is_not_judged_and_whoever_asks_for_it_is_told(
    spec: dict[str, Any], answer: tuple[str, str] | None
) -> None:
    status = reported({"spec": spec}, manage.Tally()).get(manage.SKEW_ENFORCED)
    assert (status[:2] if status else None) == answer


def test_other_conditions_stay() -> None:
    other = {"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "x"}
    conditions = manage.boot_image_conditions({"status": {"conditions": [other]}}, {}, "", "", NOW)
    assert conditions[0] == other
