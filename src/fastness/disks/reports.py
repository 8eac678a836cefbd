"""What a report of an opened volume means: recorded, an old copy of the disk, another disk.

    judged = judged_reports(machine, reports)
    judged.doubt                 # why the session gives no standing, or None
    disks_change(status, judged, now)

* The first report of a volume records its header. Another header later is another disk: `disk-exchanged`.
* Each release of a key has a number, and the volume has in it under which ones it was opened. One that was not open under the
  recorded number is a snapshot that was put back: `disk-rolled-back`. Neither encryption nor integrity tells, because every
  sector of an old copy is authentic; and it stays one however often it is opened, because numbers are never given twice.
* One that was open under later numbers, which are not among those that were released since, shows that the record is the older
  of the two: it came from a backup. That may be the disk as it was left or any copy of the time in between, and the numbers say
  of when it is: `disk-record-older`.
* Either gives no standing until a person accepts what was opened (`spec.disks`), up to the time at which it first came: a later
  copy is a new question.
* A volume that has no key here was opened by nothing that we released, and counts for nothing.
* A machine whose key was released once has an encrypted disk, with its identity on it. A session that does not report it is from
  somewhere else, or left the disk closed: `disk-not-opened`. One that ran before its pool had a volume was never released a key.
* A machine that runs from a volume which was there before has left its initrd and measured that. Root on one whose session is in
  that phase still would get the key again: `phase-not-measured`. The session of a first boot is in the initrd, and let alone.
* The key that opened it is the one that the disk has. When that is the newest, the older ones may be destroyed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.disks.keyring import opened_at
from fastness.disks.volumes import is_pinned
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.disks import UNMEASURED, VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.protocol.disk_report import DiskReport

ROLLED_BACK: Final = "disk-rolled-back"
RECORD_OLDER: Final = "disk-record-older"
EXCHANGED: Final = "disk-exchanged"
NOT_OPENED: Final = "disk-not-opened"
PHASE: Final = "phase-not-measured"
_STATES: Final = {ROLLED_BACK: "RolledBack", RECORD_OLDER: "RecordOlder", EXCHANGED: "Exchanged"}
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a volume is not the one that is recorded."""

    code: str
    volume: str
    shows: str
    recorded: str
    message: str


@dataclass(frozen=True, slots=True)
class JudgedReports:
    """The reports of a session, and the first that is not of the disk that is recorded."""

    reports: tuple[DiskReport, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    claims: tuple[DiskReport, ...] = ()
    """Everything that the session reported, to be judged again where the Machine has changed meanwhile."""
    in_initrd: bool = False
    """Whether the evidence of the session shows that the initrd was not left."""

    @property
    def doubt(self) -> Doubt | None:
        """Why the session gives no standing; None when nothing speaks against it."""
        return self.doubts[0] if self.doubts else None

    @property
    def opened(self) -> bool:
        """Whether the machine opened a volume of its own, and nothing speaks against it."""
        return bool(self.reports) and not self.doubts

    def described(self) -> dict[str, str]:
        """What the record says of them."""
        return {f"disk-{report.volume}": f"generation {report.generation}, {report.key}" for report in self.reports}


NOTHING: Final = JudgedReports()


def judged_reports(machine: Machine, reports: Sequence[DiskReport], *, in_initrd: bool = False) -> JudgedReports:
    """The reports of volumes that this Machine has keys for, judged by what is recorded of them.

    `in_initrd` says that the evidence of the session shows that phase of the boot.
    """
    recorded_volumes = {entry.volume: entry for entry in machine.status.disks}
    # A volume without a key here opens by itself, or with somebody else's key: its report is worth nothing.
    own = tuple(
        report
        for report in reports
        if report.volume in recorded_volumes and _is_released(recorded_volumes[report.volume], report.key)
    )
    doubts = (_doubt(machine, recorded_volumes[report.volume], report) for report in own)
    silent = _not_opened(machine, frozenset(report.volume for report in own))
    unmeasured = (_unmeasured(report) for report in own if in_initrd and report.after)
    all_doubts = (*(doubt for doubt in doubts if doubt is not None), *silent, *unmeasured)
    return JudgedReports(own, all_doubts, tuple(reports), in_initrd)


def _unmeasured(report: DiskReport) -> Doubt:
    message = (
        f"the machine runs from {report.volume} and its evidence shows the initrd: where that phase is not measured root on the "
        "machine gets its disk key again. Use an image whose agent runs `fastness agent leave-initrd`"
    )
    return Doubt(PHASE, report.volume, "the initrd", "a later phase of the boot", message)


def _not_opened(machine: Machine, reported: frozenset[str]) -> Iterator[Doubt]:
    """Volumes whose key the machine was once given, and of which this session says nothing that counts."""
    # The Clevis pin opens a root and tells nobody; that this proves less is said wherever such a machine is shown.
    if is_pinned(machine):
        return
    for volume in machine.status.disks:
        if volume.unlocked_at is not None and volume.volume not in reported:
            message = (
                f"the machine proved itself without its encrypted volume {volume.volume}: boot it from its own disk, or replace "
                "the node"
            )
            yield Doubt(NOT_OPENED, volume.volume, "no report", f"a report of {volume.volume}", message)


def _is_released(volume: VolumeStatus, key: str) -> bool:
    return volume.unlocked_at is not None and key in (volume.key_id, volume.next_key_id)


def _doubt(machine: Machine, volume: VolumeStatus, report: DiskReport) -> Doubt | None:
    name = machine.metadata.name
    if _accepts(machine, volume, report):
        return None
    way = f"`fastness machine disk accept {name} {volume.volume}` when you have looked, or replace the node"
    if volume.header and volume.header != report.header:
        shows, recorded = (str(header.get("uuid")) for header in (report.header, volume.header))
        message = f"another disk was opened as {volume.volume} than the one that was made: {way}"
        return Doubt(EXCHANGED, volume.volume, shows, recorded, message)
    if _follows(volume, report):
        return None
    if _outlives_record(volume, report):
        shows, recorded = (_told_number(number) for number in (_shown(volume, report), volume.generation))
        message = (
            f"{volume.volume} was opened after what is recorded of it (the disk knows of {shows}, the record of {recorded}): the "
            f"record came from a backup, and this is the disk, or a copy, of that time. {way}"
        )
        return Doubt(RECORD_OLDER, volume.volume, shows, recorded, message)
    shows, recorded = _told_number(report.after), _told_number(volume.generation)
    message = f"an old copy of {volume.volume} was opened (of {shows}, while {recorded} is recorded): {way}"
    return Doubt(ROLLED_BACK, volume.volume, shows, recorded, message)


def _told_number(number: int) -> str:
    return f"generation {number} of {rfc3339(opened_at(number))}"


def _follows(volume: VolumeStatus, report: DiskReport) -> bool:
    """Whether a volume is the one that is recorded: in the same opening, or in a later one of that very disk."""
    if report.generation == volume.generation:
        return True  # one more session of the same boot: each release has a number of its own
    return volume.generation in (report.after, *report.since) and not _forgotten(volume, report)


def _forgotten(volume: VolumeStatus, report: DiskReport) -> list[int]:
    """The later numbers that a volume was open under, and that were never given out by this record."""
    opened = (report.after, *report.since, report.generation)
    return [number for number in opened if number > volume.generation and number not in volume.unproved]


def _outlives_record(volume: VolumeStatus, report: DiskReport) -> bool:
    """Whether the record is the older one, and not the disk: it knows of later openings, and was not before the recorded one."""
    reaches = report.after > volume.generation or volume.generation in (report.after, *report.since)
    return reaches and bool(_forgotten(volume, report))


def _shown(volume: VolumeStatus, report: DiskReport) -> int:
    """By which a doubt is known: each boot of a copy has one more number, and it is the same doubt."""
    return max(_forgotten(volume, report)) if _outlives_record(volume, report) else report.after


def _accepts(machine: Machine, volume: VolumeStatus, report: DiskReport) -> bool:
    """Whether a person looked at what this report shows, and takes it."""
    doubtful = volume.doubtful
    if doubtful is None or doubtful.header != report.header or _shown(volume, report) != doubtful.generation:
        return False
    accepted = next((entry.accepted for entry in machine.spec.disks if entry.volume == volume.volume), "")
    # Up to a time, and for this doubt: the next copy that is put back begins later, and is a question of its own.
    return bool(accepted) and datetime.fromisoformat(accepted) >= datetime.fromisoformat(doubtful.since)


def disks_change(status: Object, judged: JudgedReports, now: datetime, *, accepted: bool) -> JsonObject:
    """What the reports of a session change on the status of a Machine; empty when it says all that already.

    `accepted` says that the session gives standing: only then is anything recorded but a doubt.
    """
    held = status.get("disks") or []
    # The first of a volume: a phase that was not measured must not hide that the disk is an old copy.
    doubts = {doubt.volume: doubt for doubt in reversed(judged.doubts)}
    reports = {report.volume: report for report in judged.reports}
    disks = []
    for entry in held:
        report, doubt = reports.get(entry["volume"]), doubts.get(entry["volume"])
        if report is not None and doubt is not None and doubt.code in _STATES:
            disks.append(_doubted(entry, report, doubt, now))
        elif doubt is not None and doubt.code == PHASE and not entry.get("doubtful"):
            disks.append({**entry, "state": UNMEASURED, "message": doubt.message[:1024]})
        elif report is not None and accepted:
            disks.append(_opened(entry, report))
        elif report is None and doubt is not None and not entry.get("doubtful"):
            # The state stays: whether its number has to grow is decided by what was released, and not by who says nothing.
            disks.append({**entry, "message": doubt.message[:1024]})
        else:
            disks.append(entry)
    return {} if disks == held else {"disks": disks}


def _doubted(entry: JsonObject, report: DiskReport, doubt: Doubt, now: datetime) -> JsonObject:
    opened = {"generation": _shown(view(entry, VolumeStatus), report), "header": report.header}
    before = entry.get("doubtful") or {}
    same = all(before.get(name) == value for name, value in opened.items())
    since = before["since"] if same else rfc3339(now)
    return {
        **entry,
        "state": _STATES[doubt.code],
        "doubtful": {**opened, "since": since},
        "message": doubt.message[:1024],
    }


def _opened(entry: JsonObject, report: DiskReport) -> JsonObject:
    opened = {name: value for name, value in entry.items() if name not in ("doubtful", "message")}
    opened |= {"state": "Open", "generation": report.generation, "header": report.header}
    unproved = [number for number in opened.pop("unproved", ()) if number > report.generation]
    opened |= {"unproved": unproved} if unproved else {}
    if report.key == entry.get("nextKeyId"):
        opened |= {"keyId": opened.pop("nextKeyId"), "keyMade": opened.pop("nextKeyMade", entry.get("keyMade"))}
    return opened
