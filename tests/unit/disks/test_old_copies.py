"""Old copies of a volume, from the numbers on it to the cluster's opinion: a copy stays one however often it is booted.

The record itself may be the older one, when it came from a backup: then disk and copies of the time in between are told as such.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.boot.generation import MOST, count_opening
from fastness.disks.keyring import next_opening, opened_at
from fastness.disks.reports import RECORD_OLDER, ROLLED_BACK, disks_change, judged_reports
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.protocol.disk_report import MOST_OPENINGS, DiskReport
from fastness.runtime.clock import SystemEntropy
from tests.unit.disks.test_reports import NOW

HEADER = {
    "uuid": "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11", "cipher": "aes-xts-plain64", "integrity": "none", "sectorSize": 4096,
    "segmentsDigest": "sha256:" + "ab" * 32,
}  # fmt: skip
ENTROPY = SystemEntropy()


class Host:
    """A machine with one volume whose host copies it and puts copies back, and what the cluster has recorded of it."""

    def __init__(self, directory: Path) -> None:
        self._disk, self._copies = directory / "disk", directory / "copies"
        self._volume: dict[str, Any] = {"volume": "var", "state": "Pending", "keyId": "k1"}
        self._accepted: list[dict[str, Any]] = []
        self.now = NOW

    def copy(self, name: str) -> None:
        shutil.copytree(self._disk, self._copies / name)

    def put_back(self, name: str) -> None:
        shutil.rmtree(self._disk)
        shutil.copytree(self._copies / name, self._disk)

    def release(self) -> tuple[int, int]:
        """What an answer of the broker says: the number of the release, and the one that is recorded."""
        recorded = self._status().status.disks[0]
        opening = next_opening(recorded, self.now, ENTROPY)
        unproved = [*recorded.unproved, opening]
        self._volume |= {"released": opening, "unproved": unproved, "unlockedAt": "2026-11-17T12:00:00Z"}
        return opening, recorded.generation

    def boot(self) -> DiskReport:
        """The key is released and the volume opened; what a session of this boot reports."""
        number, after, since = count_opening(self._disk, *self.release())
        return DiskReport("var", number, after, "k1", HEADER, since)

    def backup(self) -> dict[str, Any]:
        """What the control plane has of the volume, for a restore."""
        return dict(self._volume)

    def restore(self, backup: dict[str, Any]) -> None:
        """The control plane knows what it knew then."""
        self._volume = dict(backup)

    def accept(self) -> None:
        """A person accepts what is in doubt."""
        self._accepted = [{"volume": "var", "accepted": self._volume["doubtful"]["since"]}]

    def report(self, report: DiskReport) -> list[str]:
        """What is doubted about a session; without a doubt it gives standing, and the report is recorded."""
        judged = judged_reports(self._status(), [report])
        change = disks_change({"disks": [self._volume]}, judged, self.now, accepted=judged.opened)
        self._volume = change["disks"][0] if change else self._volume
        return [doubt.code for doubt in judged.doubts]

    def _status(self) -> Machine:
        meta = {"name": "m", "uid": "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"}
        status = {"pool": "worker", "keyThumbprint": "sha256:aa", "conditions": [], "disks": [self._volume]}
        spec = {"id": "i", "approval": "Approved", "disks": self._accepted}
        return view({"metadata": meta, "spec": spec, "status": status}, Machine)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    made = Host(tmp_path)
    assert made.report(made.boot()) == []
    return made


def test_each_boot_of_the_same_disk_follows_the_one_before(host: Host) -> None:
    for _ in range(5):
        report = host.boot()
        assert host.report(report) == []
        assert host.report(report) == [], "all sessions of one boot report the same numbers"


def test_boots_without_a_proof_and_lost_answers_are_no_old_copies(host: Host) -> None:
    for _ in range(3):
        host.boot()  # opened, and its machine never came to a session
        host.release()  # the answer was lost, and the volume not opened
    assert host.report(host.boot()) == []
    assert host.report(host.boot()) == []


def test_a_copy_stays_an_old_one_however_often_it_is_booted_and_whatever_it_reports(host: Host) -> None:
    host.copy("monday")
    assert host.report(host.boot()) == []
    host.put_back("monday")
    for _ in range(4):
        assert host.report(host.boot()) == [ROLLED_BACK]


def test_a_copy_that_is_booted_in_silence_until_its_numbers_are_high_is_an_old_one_still(host: Host) -> None:
    host.copy("monday")
    for _ in range(3):
        assert host.report(host.boot()) == []
    host.put_back("monday")
    for _ in range(8):
        host.boot()
    assert host.report(host.boot()) == [ROLLED_BACK]


def test_the_disk_itself_counts_again_when_it_is_put_back_after_its_copy(host: Host) -> None:
    host.copy("monday")
    assert host.report(host.boot()) == []
    host.copy("tuesday")
    host.put_back("monday")
    assert host.report(host.boot()) == [ROLLED_BACK]
    host.put_back("tuesday")
    assert host.report(host.boot()) == []


def test_a_number_that_was_never_given_out_is_believed_to_nobody(host: Host) -> None:
    report = host.boot()
    assert host.report(replace(report, generation=report.generation + 1)) == [RECORD_OLDER]
    assert host.report(replace(report, since=(report.generation + 1,))) == [RECORD_OLDER]
    assert host.report(report) == []


def test_a_late_session_of_the_boot_before_does_not_make_the_next_one_a_copy(host: Host) -> None:
    before = host.boot()
    after = host.boot()
    assert host.report(before) == []
    assert host.report(after) == []


@pytest.mark.parametrize(
    "later", [timedelta(days=1), timedelta(0), timedelta(days=-40)], ids=["later", "at-once", "clock-back"]
)
def test_after_a_restore_neither_the_disk_nor_a_copy_of_the_time_between_is_believed(
    host: Host, later: timedelta
) -> None:
    """Of three boots since the backup: the disk as it was left, and copies of each, booted as often as their host likes."""
    backup = host.backup()
    for name in ("first", "second", "disk"):
        assert host.report(host.boot()) == []
        host.copy(name)
    host.restore(backup)
    host.now += later
    for name in ("first", "second", "disk", "first"):
        host.put_back(name)
        host.release()  # burnt by a host that cuts the power before the disk is opened
        for _ in range(3):
            assert host.report(host.boot()) == [RECORD_OLDER], name
    host.put_back("disk")
    assert host.report(host.boot()) == [RECORD_OLDER]
    host.accept()
    assert host.report(host.boot()) == []
    assert host.report(host.boot()) == []
    host.now += timedelta(seconds=5)
    for name in ("first", "second"):
        host.put_back(name)
        assert len(host.report(host.boot())) == 1, "what was accepted is the disk, and no copy of it"


def test_after_a_restore_a_machine_that_runs_since_then_is_told_apart_from_one_that_was_copied(host: Host) -> None:
    host.copy("old")
    assert host.report(host.boot()) == []
    backup = host.backup()
    running = host.boot()
    assert host.report(running) == []
    host.restore(backup)
    assert host.report(running) == [RECORD_OLDER]
    host.put_back("old")
    assert host.report(host.boot()) == [ROLLED_BACK], "a copy from before the backup is an old one by this record, too"


def test_an_old_copy_that_was_booted_in_the_forgotten_time_is_called_an_old_copy(host: Host) -> None:
    host.copy("old")
    assert host.report(host.boot()) == []
    backup = host.backup()
    host.put_back("old")
    host.boot()
    host.restore(backup)
    assert host.report(host.boot()) == [ROLLED_BACK]


def test_after_a_restore_a_machine_that_did_not_boot_since_the_backup_goes_on(host: Host) -> None:
    running = host.boot()
    assert host.report(running) == []
    host.restore(host.backup())
    host.now += timedelta(days=1)
    assert host.report(running) == []
    assert host.report(host.boot()) == []


def test_a_copy_of_the_time_between_is_not_booted_until_its_numbers_are_pushed_out(host: Host) -> None:
    backup = host.backup()
    assert host.report(host.boot()) == []
    host.restore(backup)
    for _ in range(MOST_OPENINGS + 1):
        host.boot()
    assert host.report(host.boot()) == [ROLLED_BACK], "a full list counts as none, and a person decides"


def test_numbers_rise_whatever_the_clock_says_and_differ_between_two_lives_of_a_record() -> None:
    volume = VolumeStatus(volume="var", released=4, generation=2)
    first = next_opening(volume, NOW, ENTROPY)
    assert opened_at(first) == NOW
    behind = VolumeStatus(volume="var", released=first, generation=4)
    for now in (NOW, NOW - timedelta(days=400), datetime(1970, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)):
        assert next_opening(behind, now, ENTROPY) > first
    late = VolumeStatus(volume="var", released=next_opening(volume, datetime(9999, 1, 1, tzinfo=UTC), ENTROPY))
    assert late.released < next_opening(late, NOW, ENTROPY) < MOST
    # The same record, twice brought back under the same wrong clock: what it gives out is not what it gave out before.
    early = datetime(1970, 1, 1, tzinfo=UTC)
    assert len({next_opening(behind, early, ENTROPY) for _ in range(4)}) == 4
