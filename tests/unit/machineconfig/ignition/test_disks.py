"""Rules for disks, arrays, encrypted volumes and filesystems."""

from typing import Any

import pytest

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import Severity

VOLUME = {"name": "v", "device": "/dev/a"}


def codes(version: str = "3.5.0", **storage: Any) -> set[str]:
    problems = ignition.validate({"ignition": {"version": version}, "storage": storage})
    return {problem.code for problem in problems if problem.severity is Severity.ERROR}


def warnings(**storage: Any) -> set[str]:
    problems = ignition.validate({"ignition": {"version": "3.5.0"}, "storage": storage})
    return {problem.code for problem in problems if problem.severity is Severity.WARNING}


def partitions(*entries: dict[str, Any]) -> set[str]:
    return codes(disks=[{"device": "/dev/a", "partitions": list(entries)}])


def test_partitions_are_told_apart_by_number_or_label() -> None:
    assert partitions({"number": 1}, {"number": 2}, {"label": "a"}, {"label": "b"}) == set()
    assert partitions({"number": 1}, {"number": 1}) == {"duplicate"}
    assert "duplicate" in partitions({"label": "a"}, {"label": "a"})
    assert partitions({"number": 1, "label": "a"}, {"number": 2, "label": "a"}) == {"duplicate-label"}
    assert partitions({}) == {"label-or-number"}


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ((1, 10), (11, 5), False),
        ((1, 10), (10, 5), True),
        ((5, 1), (1, 20), True),
        ((1, 0), (1, 5), True),
        ((0, 9), (1, 9), False),
    ],
)
def test_partitions_overlap(first: tuple[int, int], second: tuple[int, int], overlap: bool) -> None:
    extents = [{"number": n, "startMiB": start, "sizeMiB": size} for n, (start, size) in enumerate((first, second), 1)]
    assert partitions(*extents) == ({"partitions-overlap"} if overlap else set())
    assert partitions(*reversed(extents)) == ({"partitions-overlap"} if overlap else set())


def test_a_partition_to_delete_has_a_number_and_nothing_else() -> None:
    assert partitions({"number": 1, "shouldExist": False}, {"number": 2}) == set()
    assert partitions({"number": 1, "shouldExist": False, "sizeMiB": 0}) == {"delete-with-others"}
    assert partitions({"number": 1, "shouldExist": False}, {"label": "x"}) == {"delete-with-zero"}


def test_labels_and_guids_have_a_form() -> None:
    assert partitions({"label": "é" * 18}) == set()
    assert partitions({"label": "é" * 19}) == {"label-too-long"}
    assert partitions({"label": "a:b"}) == {"label-with-colon"}
    assert partitions({"number": 1, "guid": "x", "typeGuid": ""}) == {"invalid-guid"}


def test_a_disk_needs_a_device() -> None:
    assert codes(disks=[{}]) == {"device-required"}
    assert codes(disks=[{"device": "sda"}]) == {"path-relative"}


def test_arrays() -> None:
    good = {"name": "md", "level": "raid1", "devices": ["/dev/a", "/dev/b"], "spares": 1}
    assert codes(raid=[good]) == set()
    assert codes(raid=[{**good, "level": "raid7"}]) == {"unknown-level"}
    assert codes(raid=[{**good, "level": "stripe"}]) == {"spares-unsupported"}
    assert codes(raid=[{"name": "md"}]) == {"level-required", "devices-required"}
    assert codes(raid=[{**good, "devices": ["a", "/dev/b"]}]) == {"path-relative"}
    assert codes(raid=[{**good, "options": ["-x", "-x"]}]) == set()


@pytest.mark.parametrize(("form", "longest"), [("ext4", 16), ("btrfs", 256), ("xfs", 12), ("swap", 15), ("vfat", 11)])
def test_filesystem_labels_have_a_limit_by_format(form: str, longest: int) -> None:
    base = {"device": "/dev/a", "format": form}
    assert codes(filesystems=[{**base, "label": "x" * longest}]) == set()
    assert codes(filesystems=[{**base, "label": "x" * (longest + 1)}]) == {"label-too-long"}


def test_filesystems_need_a_format_for_anything_else() -> None:
    assert codes(filesystems=[{"device": "/dev/a"}]) == set()
    assert codes(filesystems=[{"device": "/dev/a", "label": "x"}]) == {"format-required"}
    assert codes(filesystems=[{"device": "/dev/a", "format": "ntfs"}]) == {"unknown-format"}
    none = {"device": "/dev/a", "format": "none"}
    assert codes(filesystems=[none]) == set()
    assert codes("3.2.0", filesystems=[none]) == {"unknown-format"}


def test_a_filesystem_over_a_partitioned_disk_is_a_warning() -> None:
    filesystem = {"device": "/dev/a", "format": "ext4"}
    disk = {"device": "/dev/a", "partitions": [{"number": 1}]}
    assert warnings(disks=[disk], filesystems=[filesystem]) == {"partitions-overwritten"}
    assert warnings(disks=[{"device": "/dev/a", "wipeTable": True}], filesystems=[filesystem]) == {"implicit-wipe"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"clevis": {"tpm2": True}}, set()),
        ({"name": "a/b"}, {"name-with-slash"}),
        ({"device": ""}, {"device-required"}),
        ({"label": "x" * 48}, {"label-too-long"}),
        ({"clevis": {"tang": [{"url": "ftp://x"}]}}, {"invalid-scheme", "thumbprint-required"}),
        (
            {"clevis": {"tang": [{"url": "http://x", "thumbprint": "t", "advertisement": "{"}]}},
            {"invalid-advertisement"},
        ),
        ({"clevis": {"custom": {"pin": "own", "config": "{}"}}}, {"unknown-pin"}),
        ({"clevis": {"custom": {"needsNetwork": True}}}, {"pin-required", "pin-config-required"}),
        ({"clevis": {"custom": {"pin": "sss", "config": "{}"}, "threshold": 2}}, {"custom-with-others"}),
        ({"cex": {"enabled": True}, "clevis": {"tpm2": True}}, {"cex-with-clevis"}),
        ({"cex": {"enabled": True}, "keyFile": {"source": "data:,x"}}, {"cex-with-key-file"}),
        ({"keyFile": {"source": "x"}}, {"invalid-scheme"}),
        ({"openOptions": ["a", "a"], "options": ["a", "a"]}, {"duplicate"}),
    ],
)
def test_encrypted_volumes(fields: dict[str, Any], expected: set[str]) -> None:
    assert codes(luks=[{**VOLUME, **fields}]) == expected


def test_before_3_3_an_empty_custom_pin_counts_as_one() -> None:
    both = {**VOLUME, "clevis": {"custom": {}, "tpm2": True}}
    assert codes("3.2.0", luks=[both]) == {"custom-with-others"}
    assert codes("3.3.0", luks=[both]) == set()
