"""What differs between two specs, and how it reads."""

from __future__ import annotations

from typing import Any

from fastness.formats import data_url as dataurl
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.rollout.diff import MAX_DIFF_LINES, ConfigChange, How, Part, compare, text_of
from tests.unit.machineconfig.build import file, ignition


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [str(change) for change in compare(old, new).changes]


def only_change(old: dict[str, Any], new: dict[str, Any]) -> ConfigChange:
    [change] = compare({"config": old}, {"config": new}).changes
    return change


def test_parts_are_added_removed_and_changed_in_a_fixed_order() -> None:
    old = {"config": ignition(file("/b"), file("/c", "1"), units=[{"name": "x.service"}])}
    new = {"config": ignition(file("/a"), file("/c", "2"), users=[{"name": "core"}]), "kernelArguments": ["k"]}
    assert changes(old, new) == [
        "kernelArguments changed", "file /a added", "file /b removed", "file /c changed",
        "unit x.service removed", "user core added",
    ]  # fmt: skip


def test_the_order_of_entries_and_empty_values_are_no_change() -> None:
    old = {"config": {**ignition(file("/a"), file("/b")), "passwd": {"users": []}}}
    new = {"config": ignition(file("/b"), file("/a", user=None))}
    assert changes(old, new) == []
    assert not compare(old, new)


def test_flags_answer_what_agents_ask() -> None:
    flags = compare({}, {"config": ignition(file("/a"), units=[{"name": "a.service"}], users=[{"name": "core"}])}).flags
    assert (flags.files, flags.units, flags.passwd, flags.needs_reboot) == (True, True, True, False)
    hard = compare(
        {}, {"osImageURL": "x", "kernelArguments": ["a"], "fips": True, "kernelType": "realtime", "extensions": ["e"]}
    )
    assert hard.flags.needs_reboot
    assert (hard.flags.os_update, hard.flags.kargs, hard.flags.fips, hard.flags.kernel_type, hard.flags.extensions) == (
        True,
    ) * 5


def test_storage_ignition_and_unknown_fields_are_seen() -> None:
    new = ignition(storage={"disks": [{"device": "/dev/sdb"}], "links": [{"path": "/l", "target": "/t"}]})
    assert changes({}, {"config": {**new, "kernelArguments": {"shouldExist": ["a"]}}, "future": 1}) == [
        "other future changed", "link /l added", "storage disks//dev/sdb added",
        "ignition kernelArguments changed", "ignition changed",
    ]  # fmt: skip


def test_a_changed_file_reads_as_a_unified_diff_with_its_mode() -> None:
    change = only_change(
        ignition(file("/etc/a", "one\ntwo\n")), ignition({**file("/etc/a", "one\nthree\n"), "mode": 0o600})
    )
    assert text_of(change).splitlines() == [
        "mode: 0644 -> 0600", "--- a/etc/a", "+++ b/etc/a", "@@ -1,2 +1,2 @@", " one", "-two", "+three",
    ]  # fmt: skip


def test_compressed_content_is_compared_by_what_is_inside() -> None:
    packed = {
        "path": "/a",
        "mode": 0o644,
        "contents": {"source": dataurl.encode(dataurl.gzip(b"x\n")), "compression": "gzip"},
    }
    change = only_change(ignition(file("/a", "x\n")), ignition(packed))
    assert change.how is How.CHANGED
    assert text_of(change) == ""
    assert file_bytes(change.new) == file_bytes(change.old) == b"x\n"


def test_content_that_is_not_in_the_config_is_said_to_be_elsewhere() -> None:
    remote = {"path": "/a", "contents": {"source": "https://host/a"}}
    assert "fetched elsewhere" in text_of(ConfigChange(Part.FILE, "/a", How.CHANGED, file("/a", "\0"), remote))


def test_a_unit_shows_switches_and_drop_ins() -> None:
    new = {"name": "a.service", "enabled": True, "dropins": [{"name": "x.conf", "contents": "[Unit]\n"}]}
    text = text_of(only_change(ignition(units=[{"name": "a.service", "enabled": False}]), ignition(units=[new])))
    assert "-# enabled: false" in text
    assert "+# enabled: true" in text
    assert "+# drop-in x.conf" in text


def test_password_hashes_differ_visibly_but_are_never_shown() -> None:
    users = [[{"name": "core", "passwordHash": value, "uid": 1}] for value in ("first", "second")]
    text = text_of(only_change(ignition(users=users[0]), ignition(users=users[1])))
    assert "first" not in text
    assert "second" not in text
    assert text.count("hidden") == 2
    assert "uid: 1" in text


def test_a_huge_diff_is_cut() -> None:
    lines = "".join(f"{number}\n" for number in range(2 * MAX_DIFF_LINES))
    text = text_of(only_change(ignition(), ignition(file("/a", lines))))
    assert len(text.splitlines()) == MAX_DIFF_LINES + 1
    assert text.endswith("more lines")
