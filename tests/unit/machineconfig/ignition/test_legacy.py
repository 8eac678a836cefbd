"""The rules of spec 2.2."""

from typing import Any

import pytest

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import Severity

MOUNT = {"device": "/dev/a", "format": "ext4"}


def problem_codes(severity: Severity, **sections: Any) -> set[str]:
    problems = ignition.validate({"ignition": {"version": "2.2.0"}, **sections})
    return {problem.code for problem in problems if problem.severity is severity}


def file(**fields: Any) -> dict[str, Any]:
    return {"storage": {"files": [{"filesystem": "root", "path": "/a", "mode": 420, **fields}]}}


def filesystem(**fields: Any) -> dict[str, Any]:
    return {"storage": {"filesystems": [{"name": "x", **fields}]}}


def partition(**fields: Any) -> dict[str, Any]:
    return {"storage": {"disks": [{"device": "/dev/a", "partitions": [{"number": 1, **fields}]}]}}


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        (file(path="a"), "path-relative"),
        (file(filesystem=""), "filesystem-required"),
        (file(mode=0o10000), "illegal-mode"),
        (file(user={"id": 1, "name": "x"}), "id-and-name"),
        (file(append=True, overwrite=True), "append-and-overwrite"),
        (file(contents={"source": "gs://x"}), "invalid-scheme"),
        (file(contents={"compression": "xz"}), "invalid-compression"),
        (file(contents={"verification": {"hash": "sha256-" + "a" * 64}}), "hash-unrecognised"),
        (file(contents={"verification": {"hash": "sha512-a"}}), "hash-wrong-size"),
        (filesystem(), "mount-or-path"),
        (filesystem(path="/x", mount=MOUNT), "mount-and-path"),
        (filesystem(path="x"), "path-relative"),
        (filesystem(mount={**MOUNT, "format": "none"}), "unknown-format"),
        (filesystem(mount={**MOUNT, "label": "x" * 17}), "label-too-long"),
        (filesystem(mount={**MOUNT, "create": {}, "wipeFilesystem": True}), "create-with-others"),
        (partition(start=5), "partition-misaligned"),
        (partition(guid="x"), "invalid-guid"),
        (partition(label="x" * 37), "label-too-long"),
        ({"storage": {"disks": [{}]}}, "device-required"),
        ({"storage": {"disks": [{"device": "/d", "partitions": [{"number": 1}, {"number": 1}]}]}}, "duplicate"),
        ({"storage": {"raid": [{"level": "raid9"}]}}, "unknown-level"),
        ({"storage": {"raid": [{"level": "0", "spares": 1}]}}, "spares-unsupported"),
        ({"systemd": {"units": [{"name": "a"}]}}, "unit-suffix"),
        ({"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "x"}]}]}}, "dropin-suffix"),
        ({"networkd": {"units": [{"name": "a.network", "contents": "[x"}]}}, "unit-syntax"),
        ({"networkd": {"units": [{"name": "a.service"}]}}, "unit-suffix"),
        ({"passwd": {"users": [{"name": "x", "create": {}, "uid": 0}]}}, "create-with-others"),
    ],
)
def test_errors(sections: dict[str, Any], code: str) -> None:
    assert problem_codes(Severity.ERROR, **sections) == {code}


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        (file(filesystem="other"), "unknown-filesystem"),
        ({"storage": {"files": [{"filesystem": "root", "path": "/a"}]}}, "mode-unset"),
        (filesystem(name="root", path="/sysroot"), "shadowed-filesystem"),
        (filesystem(mount={**MOUNT, "create": {}}), "deprecated"),
        (partition(label="a:b"), "label-with-colon"),
        ({"systemd": {"units": [{"name": "a.service", "enable": True, "contents": "[Unit]\nA=b\n"}]}}, "no-install"),
        ({"passwd": {"users": [{"name": "x", "create": {"uid": 1}}]}}, "deprecated"),
    ],
)
def test_warnings(sections: dict[str, Any], code: str) -> None:
    assert problem_codes(Severity.ERROR, **sections) == set()
    assert problem_codes(Severity.WARNING, **sections) == {code}


def test_spec_2_is_looser_about_paths_and_repetition() -> None:
    twice = {"filesystem": "root", "path": "/a//../b/", "mode": 0}
    assert problem_codes(Severity.ERROR, storage={"files": [twice, twice]}) == set()
