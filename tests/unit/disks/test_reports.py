"""What a report of an opened volume means, and what keys a volume has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import answer, context, key_ids, next_id, superseded, volumes_in
from fastness.disks.reports import EXCHANGED, NOT_OPENED, PHASE, ROLLED_BACK, disks_change, judged_reports
from fastness.disks.told import told_volumes
from fastness.disks.volumes import (
    Settings,
    condition_of,
    has_run,
    is_pin_served,
    lacks_key,
    pool_disk,
    pools_on_open_disks,
    recoverable_of,
)
from fastness.formats import json
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.protocol.disk_report import DiskReport

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HEADER = {
    "uuid": "u",
    "cipher": "aes-xts-plain64",
    "integrity": "hmac-sha256",
    "sectorSize": 4096,
    "segmentsDigest": "d",
}
VAR = {
    "volume": "var", "state": "Open", "keyId": "k2", "keyMade": "2026-11-01T00:00:00Z", "generation": 5, "released": 6,
    "unproved": [6], "header": HEADER, "unlockedAt": rfc3339(NOW), "unlockedBy": "verdict-1",
}  # fmt: skip
CLUSTER = {
    "spec": {
        "mode": "Enforce",
        "pools": [
            {
                "name": "worker",
                "trustModel": "ConfidentialCluster",
                "disk": {"volume": "var", "integrity": "hmac-sha256"},
            },
            {"name": "plain", "trustModel": "None", "disk": {"volume": "var"}},
            {"name": "infra", "trustModel": "ConfidentialCluster"},
        ],
    }
}


def machine(*disks: dict[str, Any], accepted: datetime | None = None, **status: Any) -> Machine:
    spec: dict[str, Any] = {"id": "i", "approval": "Approved"}
    if accepted:
        spec["disks"] = [{"volume": "var", "accepted": rfc3339(accepted)}]
    approved = {"type": "Approved", "status": "True", "reason": "", "message": "", "lastTransitionTime": rfc3339(NOW)}
    meta = {"name": "m", "uid": "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"}
    body = {
        "pool": "worker", "keyThumbprint": "sha256:aa", "conditions": [approved], "disks": list(disks), **status,
    }  # fmt: skip
    return view({"metadata": meta, "spec": spec, "status": body}, Machine)


def opened(generation: int = 6, key: str = "k2", after: int = 5, **header: Any) -> DiskReport:
    return DiskReport("var", generation, after, key, {**HEADER, **header})


def test_a_later_generation_is_recorded_and_an_equal_one_changes_nothing() -> None:
    judged = judged_reports(machine(VAR), [opened(6)])
    assert judged.opened
    (disk,) = disks_change({"disks": [VAR]}, judged, NOW, accepted=True)["disks"]
    assert (disk["generation"], disk["state"]) == (6, "Open")
    assert disks_change({"disks": [VAR]}, judged_reports(machine(VAR), [opened(5)]), NOW, accepted=True) == {}
    assert disks_change({"disks": [VAR]}, judged, NOW, accepted=False) == {}


@pytest.mark.parametrize(("report", "code"), [(opened(after=4), ROLLED_BACK), (opened(uuid="v"), EXCHANGED)])
def test_an_old_copy_and_another_disk_are_told_apart_and_recorded_as_doubt(report: DiskReport, code: str) -> None:
    judged = judged_reports(machine(VAR), [report])
    assert judged.doubt is not None
    assert (judged.doubt.code, judged.opened) == (code, False)
    (disk,) = disks_change({"disks": [VAR]}, judged, NOW, accepted=False)["disks"]
    assert (disk["generation"], disk["header"], disk["doubtful"]["since"]) == (5, HEADER, rfc3339(NOW))
    later = disks_change({"disks": [disk]}, judged, NOW + timedelta(hours=1), accepted=False)
    assert later == {}, "the same doubt began when it began"


def test_what_a_person_accepted_is_this_doubt_and_no_later_one() -> None:
    doubtful = {**VAR, "doubtful": {"generation": 4, "header": HEADER, "since": rfc3339(NOW)}}
    assert judged_reports(machine(doubtful, accepted=NOW), [opened(after=4)]).opened
    assert judged_reports(machine(doubtful, accepted=NOW - timedelta(seconds=1)), [opened(after=4)]).doubt is not None
    assert judged_reports(machine(doubtful, accepted=NOW), [opened(after=3)]).doubt is not None
    assert judged_reports(machine(doubtful, accepted=NOW), [opened(after=4, uuid="v")]).doubt is not None
    assert judged_reports(machine(VAR, accepted=NOW), [opened(after=4)]).doubt is not None


def test_a_volume_that_no_key_of_ours_opened_counts_for_nothing() -> None:
    never = {name: value for name, value in VAR.items() if name != "unlockedAt"}
    for entry, key in ((never, "k2"), (VAR, "k9")):
        assert judged_reports(machine(entry), [opened(6, key)]).reports == ()
    assert judged_reports(machine(), [opened()]).reports == ()


def test_a_machine_whose_key_was_released_reports_its_volume_or_does_not_stand() -> None:
    for reports in ((), [opened(6, "k9")], [DiskReport("root", 6, 5, "k2", HEADER)]):
        judged = judged_reports(machine(VAR), reports)
        assert [(doubt.code, doubt.volume) for doubt in judged.doubts] == [(NOT_OPENED, "var")]
        assert not judged.opened
        (disk,) = disks_change({"disks": [VAR]}, judged, NOW, accepted=False)["disks"]
        assert (disk["state"], disk["generation"]) == (VAR["state"], 5), (
            "who says nothing decides nothing about the number"
        )
        state = condition_of(machine(disk), pool_disk(CLUSTER, "worker"))
        assert state is not None
        assert (state.status, state.reason) == ("False", "NotOpened")
        (again,) = disks_change({"disks": [disk]}, judged_reports(machine(disk), [opened(6)]), NOW, accepted=True)[
            "disks"
        ]
        assert (again["state"], again.get("message")) == ("Open", None)


def test_a_machine_that_was_never_given_a_key_keeps_what_it_has() -> None:
    never = {name: value for name, value in VAR.items() if name not in ("unlockedAt", "header", "generation")}
    assert judged_reports(machine(), ()).doubts == ()
    assert judged_reports(machine({**never, "state": "Pending"}), ()).doubts == ()


def test_a_copy_in_doubt_does_not_pass_by_saying_nothing() -> None:
    doubtful = {**VAR, "state": "RolledBack", "doubtful": {"generation": 4, "header": HEADER, "since": rfc3339(NOW)}}
    judged = judged_reports(machine(doubtful), ())
    assert [doubt.code for doubt in judged.doubts] == [NOT_OPENED]
    assert disks_change({"disks": [doubtful]}, judged, NOW, accepted=False) == {}, "the doubt of before stays"


def test_a_machine_that_runs_from_its_volume_has_measured_that_it_left_its_initrd() -> None:
    judged = judged_reports(machine(VAR), [opened()], in_initrd=True)
    assert [doubt.code for doubt in judged.doubts] == [PHASE]
    (disk,) = disks_change({"disks": [VAR]}, judged, NOW, accepted=False)["disks"]
    assert (disk["state"], disk["generation"]) == ("PhaseNotMeasured", 5)
    state = condition_of(machine(disk), pool_disk(CLUSTER, "worker"))
    assert state is not None
    assert (state.status, state.reason) == ("False", "PhaseNotMeasured")
    (later,) = disks_change({"disks": [disk]}, judged_reports(machine(disk), [opened()]), NOW, accepted=True)["disks"]
    assert (later["state"], "message" in later) == ("Open", False)
    # A copy that is in doubt stays what it is, and the session of a first boot is in the initrd as it should be.
    copied = disks_change(
        {"disks": [VAR]}, judged_reports(machine(VAR), [opened(after=4)], in_initrd=True), NOW, accepted=False
    )
    assert copied["disks"][0]["state"] == "RolledBack"
    fresh = {**VAR, "generation": 0, "header": {}, "released": 1, "unproved": [1]}
    assert judged_reports(machine(fresh), [opened(1, after=0)], in_initrd=True).opened


def test_the_report_of_the_next_key_makes_it_the_key() -> None:
    rekeyed = {**VAR, "nextKeyId": "k3", "nextKeyMade": "2026-11-16T00:00:00Z"}
    (disk,) = disks_change(
        {"disks": [rekeyed]}, judged_reports(machine(rekeyed), [opened(6, "k3")]), NOW, accepted=True
    )["disks"]
    assert (disk["keyId"], disk["keyMade"], disk.get("nextKeyId")) == ("k3", "2026-11-16T00:00:00Z", None)
    (cut_off,) = disks_change(
        {"disks": [rekeyed]}, judged_reports(machine(rekeyed), [opened(6, "k2")]), NOW, accepted=True
    )["disks"]
    assert (cut_off["keyId"], cut_off["nextKeyId"]) == ("k2", "k3")


def test_ids_rise_and_old_keys_go_only_when_nothing_is_under_way() -> None:
    entries = ["var.k2", "var.k10", "root.k1", "var.x", "k3"]
    assert key_ids(entries, "var") == ["k10", "k2"]
    assert volumes_in(entries) == ["root", "var"]
    assert (next_id(["k2", "k10"]), next_id([])) == ("k11", "k1")
    assert superseded(entries, VolumeStatus(volume="var", key_id="k10")) == ["k2"]
    assert superseded(entries, VolumeStatus(volume="var", key_id="k10", next_key_id="k11")) == []
    assert superseded(entries, VolumeStatus(volume="var", key_id="k2")) == []
    assert superseded(entries, VolumeStatus(volume="var")) == []
    assert (
        len(
            {
                context("m", "var", "k1"),
                context("n", "var", "k1"),
                context("m", "root", "k1"),
                context("m", "var", "k2"),
            }
        )
        == 4
    )


def test_the_answer_has_the_shape_of_the_contract() -> None:
    keys = [("k2", SecretBytes(b"\x01" * 32)), ("k1", SecretBytes(b"\x02" * 32))]
    recorded = machine({**VAR, "released": 8}).status.disks[0]
    document = json.decode(answer(recorded, keys, pool_disk(CLUSTER, "worker"), 9).reveal())
    assert document == {
        "version": 1, "volume": "var", "expect": HEADER, "settings": {"integrity": "hmac-sha256"},
        "opening": 9, "recorded": 5,
        "keys": [{"id": "k2", "key": "AQEB" * 10 + "AQE"}, {"id": "k1", "key": "AgIC" * 10 + "AgI"}],
    }  # fmt: skip
    never = json.decode(answer(VolumeStatus(volume="var"), keys, None, 1).reveal())
    assert (never["expect"], never["opening"], never["recorded"]) == (None, 1, 0)


def test_only_measured_pools_have_a_volume_and_only_machines_that_never_ran_get_one() -> None:
    worker = pool_disk(CLUSTER, "worker")
    assert worker is not None
    assert [pool_disk(CLUSTER, pool) for pool in ("plain", "infra", "other")] == [None] * 3
    assert lacks_key(machine(), worker)
    assert not lacks_key(machine(VAR), worker)
    assert not lacks_key(machine(lastAttested=rfc3339(NOW)), worker)
    assert not lacks_key(machine(), None)
    assert not lacks_key(machine(keyThumbprint=""), worker), "one that is not approved has no key"
    assert has_run(machine(overriddenUntil=rfc3339(NOW)))


def test_how_volumes_stand_is_said_in_a_condition_and_in_lines() -> None:
    worker = pool_disk(CLUSTER, "worker")

    def reason(entry: Machine) -> str:
        state = condition_of(entry, worker)
        return state.reason if state is not None else ""

    assert reason(machine()) == "NotMadeYet"
    assert reason(machine(lastAttested=rfc3339(NOW))) == "OpenDisk"
    assert reason(machine(VAR)) == "Opened"
    assert reason(machine({**VAR, "state": "Made"})) == "NotOpenedYet"
    assert reason(machine({**VAR, "state": "RolledBack", "doubtful": {"since": rfc3339(NOW)}})) == "RolledBack"
    assert condition_of(machine(), None) is None
    assert told_volumes(machine(VAR)) == (
        f"var: encrypted, open, unlocked by verdict-1 at {rfc3339(NOW)}, key k2 of 2026-11-01, aes-xts-plain64 with hmac-sha256",
    )
    assert told_volumes(machine()) == ()


def test_pools_of_an_enforcing_cluster_on_open_disks_are_counted() -> None:
    ran = rfc3339(NOW)
    machines = [
        machine(lastAttested=ran),
        machine(VAR, lastAttested=ran),
        machine(),
        machine(lastAttested=ran, pool="plain"),
    ]
    assert pools_on_open_disks(CLUSTER, machines) == {"worker": 1}
    assert pools_on_open_disks({"spec": {"mode": "Audit"}}, machines) == {}


def test_recovery_is_told_where_a_pool_allows_it_and_there_is_something_to_recover() -> None:
    allowed = Settings("var", "none", "Agent", "Approvers")
    state = recoverable_of(machine(VAR), allowed)
    assert state is not None
    assert (state.type, state.status, state.message) == (
        "DisksRecoverable", "True", "two approvers of break-glass can have the key of var",
    )  # fmt: skip
    assert recoverable_of(machine(VAR), None) is None
    assert recoverable_of(machine(VAR), Settings("var", "none", "Agent")) is None
    assert recoverable_of(machine(), allowed) is None


def test_a_root_is_opened_by_the_pin_for_machines_that_the_pin_enrolled_alone() -> None:
    pool = Settings("root", "none", "Clevis")
    assert is_pin_served(machine(pin="Clevis"), pool)
    assert not is_pin_served(machine(), pool), "one of the agent has a stronger way to the key of its root"
    for other in (None, Settings("root", "none", "Agent"), Settings("var", "none", "Clevis")):
        assert not is_pin_served(machine(pin="Clevis"), other)
