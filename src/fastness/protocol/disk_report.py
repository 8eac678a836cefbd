"""What a machine reports of the disks that it opened, in its ordinary sessions.

    additional evidence = {…, "fastness-disks": [
        {"volume", "generation", "after", "since": [], "key", "header": {"uuid", "cipher", …}}]}

`generation` is the number that came with the key that opened the volume, `after` the last recorded one under which the volume was
open before, `since` those in between, by its own word (`agent.boot.generation`). The text of the additional evidence is signed
by the hardware and, where there is one, by the guest key. `disks.reports` compares a report with what was recorded: a volume that
was not open under the recorded number is an old copy of the disk, another header is another disk, and numbers that were never
given out are of a time that the record has forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject

MEMBER: Final = "fastness-disks"
MOST_VOLUMES: Final = 8
MOST_OPENINGS: Final = 512
"""Numbers of openings in a row without a proof that are remembered, by a volume and by the record."""
VOLUME: Final = re.compile(r"[a-z0-9-]{1,32}\Z", re.ASCII)
KEY_ID: Final = re.compile(r"k[1-9][0-9]{0,8}\Z", re.ASCII)
_TEXTS: Final = {
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII),
    "cipher": re.compile(r"[a-z0-9()_:,-]{1,64}\Z", re.ASCII),
    "integrity": re.compile(r"[a-z0-9()_,-]{1,64}\Z", re.ASCII),
    "segmentsDigest": re.compile(r"[A-Za-z0-9:]{16,135}\Z", re.ASCII),
}
_MEMBERS: Final = frozenset({"volume", "generation", "after", "since", "key", "header"})
_SECTORS: Final = (512, 1024, 2048, 4096)
_MOST: Final = 2**53
_LIMITS: Final = json.JsonLimits(max_bytes=64 * 1024, max_depth=8)


class BadReport(Exception):
    """The session reports disks, and not understandably."""

    code = "disk-report-unreadable"
    detail = "an opened disk is reported by volume, numbers, key and header, each volume once"


@dataclass(frozen=True, slots=True)
class DiskReport:
    """A volume that a machine opened: under which number and after which, the key that opened it, and what its header says."""

    volume: str
    generation: int
    after: int
    key: str
    header: JsonObject
    since: tuple[int, ...] = ()
    """The numbers between `after` and `generation`, whose machine never came to its proof."""


def disks_member(reports: Sequence[DiskReport]) -> JsonObject:
    """The member of the additional evidence; empty without a volume."""
    listed = [
        {
            "volume": report.volume, "generation": report.generation, "after": report.after,
            "since": list(report.since), "key": report.key, "header": report.header,
        }
        for report in reports
    ]  # fmt: skip
    return {MEMBER: listed} if listed else {}


def reported_disks(additional: str) -> tuple[DiskReport, ...]:
    """The volumes that the additional evidence of an attempt reports; raises BadReport."""
    if MEMBER not in additional:
        return ()
    try:
        value, repeated = json.decode_reporting_duplicates(additional.encode(), _LIMITS)
    except JsonError as error:
        raise BadReport from error
    listed = value.get(MEMBER) if isinstance(value, dict) else None
    if repeated or not isinstance(listed, list) or not 0 < len(listed) <= MOST_VOLUMES:
        raise BadReport
    reports = tuple(_report(entry) for entry in listed)
    # Each once: with two reports of a volume the machine itself could choose which of them is compared.
    if len({report.volume for report in reports}) != len(reports):
        raise BadReport
    return reports


def is_header(value: Any) -> bool:
    """Whether a value has the shape of what a header says."""
    if not isinstance(value, dict) or set(value) != {*_TEXTS, "sectorSize"}:
        return False
    # `type`, because True is an int to Python.
    if type(value["sectorSize"]) is not int or value["sectorSize"] not in _SECTORS:
        return False
    return all(isinstance(value[name], str) and pattern.match(value[name]) for name, pattern in _TEXTS.items())


def _report(entry: Any) -> DiskReport:
    if not isinstance(entry, dict) or set(entry) != _MEMBERS:
        raise BadReport
    volume, key, header = entry["volume"], entry["key"], entry["header"]
    if not isinstance(volume, str) or VOLUME.match(volume) is None or not is_header(header):
        raise BadReport
    if not _is_number(entry["generation"]) or not _is_number(entry["after"]):
        raise BadReport
    if not isinstance(key, str) or KEY_ID.match(key) is None:
        raise BadReport
    return DiskReport(volume, entry["generation"], entry["after"], key, header, _numbers(entry["since"]))


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MOST_OPENINGS or not all(_is_number(entry) for entry in value):
        raise BadReport
    return tuple(value)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST
