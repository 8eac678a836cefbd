"""What a running machine can follow and what not: the table, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.render.reconcile import blocking, irreconcilable, overrides_of
from tests.unit.machineconfig.build import file, ignition

KEYS = {"name": "core", "sshAuthorizedKeys": ["a"]}


def fields(old: dict[str, Any], new: dict[str, Any], **spec: Any) -> list[str]:
    return [difference.field for difference in irreconcilable({"config": old}, {"config": new, **spec})]


EMPTY = ignition()
DISK = {"disks": [{"device": "/dev/sdb"}]}
ROWS: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (EMPTY, {"ignition": {}, "passwd": {"groups": [{"name": "g"}]}}, ["passwd.groups"]),
    ({"passwd": {"groups": [{"name": "g"}]}}, EMPTY, ["passwd.groups"]),
    (EMPTY, ignition(users=[KEYS]), []),
    (EMPTY, ignition(users=[{"name": "core", "passwordHash": "h"}]), []),
    (ignition(users=[KEYS]), EMPTY, []),
    (EMPTY, ignition(users=[{"name": "eve", "sshAuthorizedKeys": ["a"]}]), ["passwd.users"]),
    (EMPTY, ignition(users=[KEYS, {"name": "eve"}]), ["passwd.users"]),
    (EMPTY, ignition(users=[{**KEYS, "shell": "/bin/zsh"}]), ["passwd.users"]),
    (EMPTY, ignition(users=[{"name": "core"}]), ["passwd.users"]),
    (ignition(users=[{"name": "eve"}]), ignition(users=[{"name": "eve"}]), []),
    (EMPTY, ignition(kernelArguments={"shouldExist": ["a"]}), ["kernelArguments"]),
    (ignition(storage=DISK), EMPTY, ["storage.disks"]),
    (EMPTY, ignition(storage={"filesystems": [{"device": "/dev/sdb"}]}), ["storage.filesystems"]),
    (EMPTY, ignition(storage={"raid": [{"name": "md0"}]}), ["storage.raid"]),
    (EMPTY, ignition(storage={"directories": [{"path": "/a"}]}), ["storage.directories"]),
    (ignition(storage={"directories": [{"path": "/a"}]}), EMPTY, ["storage.directories"]),
    (EMPTY, ignition(storage={"links": [{"path": "/a", "target": "/b"}]}), ["storage.links"]),
    (ignition(storage={"links": [{"path": "/a", "target": "/b"}]}), EMPTY, []),
    (EMPTY, ignition({"path": "/a", "append": [{"source": "data:,"}]}), ["storage.files"]),
    (EMPTY, ignition(file("/run/machine-config-daemon-force")), ["storage.files"]),
    (EMPTY, ignition(file("/a"), units=[{"name": "a.service"}]), []),
    (EMPTY, ignition(storage={"luks": [{"name": "root"}]}), []),
]


@pytest.mark.parametrize(("old", "new", "expected"), ROWS)
def test_the_table(old: dict[str, Any], new: dict[str, Any], expected: list[str]) -> None:
    assert fields(old, new) == expected


def test_fips_cannot_change_in_either_direction() -> None:
    assert fields(EMPTY, EMPTY, fips=True) == ["fips"]
    assert [difference.field for difference in irreconcilable({"fips": True}, {"fips": False})] == ["fips"]
    assert irreconcilable({}, {"fips": False}) == []


def test_differences_come_in_a_fixed_order() -> None:
    new = ignition(
        users=[{"name": "eve"}],
        storage={**DISK, "directories": [{"path": "/a"}]},
        kernelArguments={"shouldExist": ["a"]},
    )
    assert fields(EMPTY, new, fips=True) == [
        "passwd.users", "kernelArguments", "storage.disks", "storage.directories", "fips",
    ]  # fmt: skip


def test_only_the_matching_override_lets_a_difference_through() -> None:
    new = {"config": ignition(storage={**DISK, "raid": [{"name": "md0"}]})}
    differences = irreconcilable({}, new, frozenset({"Disks"}))
    assert [difference.field for difference in differences] == ["storage.disks", "storage.raid"]
    assert [difference.field for difference in blocking(differences)] == ["storage.raid"]


def test_overrides_are_read_from_the_configuration() -> None:
    spec = {"irreconcilableValidationOverrides": {"storage": ["Disks", "Raid"]}}
    assert overrides_of({"spec": spec}) == {"Disks", "Raid"}
    assert overrides_of(None) == frozenset()


def test_every_reason_says_a_way_out() -> None:
    for _, new, _ in ROWS:
        assert all(difference.way_out for difference in irreconcilable({"config": EMPTY}, {"config": new}))
