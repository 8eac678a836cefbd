"""The predicted tree, in the parts that the comparison with the real files stage cannot reach."""

from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.formats.errors import DataUrlError
from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import EntryKind
from fastness.machineconfig.ignition.layout import PRESET_PATH, preset_lines


def config(version: str = "3.5.0", **sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": version}, **sections}


def test_special_bits_count_from_the_version_that_supports_them() -> None:
    storage = {"files": [{"path": "/a", "mode": 0o4711}], "directories": [{"path": "/d", "mode": 0o1777}]}
    assert ignition.predict(config("3.3.0", storage=storage))["/a"].mode == 0o711
    current = ignition.predict(config(storage=storage))
    assert (current["/a"].mode, current["/d"].mode) == (0o4711, 0o1777)


def test_parents_appear_and_stated_directories_keep_their_mode() -> None:
    storage = {"files": [{"path": "/a/b/c"}], "directories": [{"path": "/a", "mode": 0o700}]}
    layout = ignition.predict(config(storage=storage))
    assert {path: (entry.kind, entry.mode) for path, entry in layout.items()} == {
        "/a": (EntryKind.DIRECTORY, 0o700),
        "/a/b": (EntryKind.DIRECTORY, 0o755),
        "/a/b/c": (EntryKind.FILE, 0o644),
    }


def test_owners_are_numbers_or_names() -> None:
    storage = {"files": [{"path": "/a", "user": {"name": "core"}, "group": {"id": 7}}]}
    entry = ignition.predict(config(storage=storage))["/a"]
    assert (entry.user, entry.group) == ("core", 7)


def test_instances_of_a_template_share_a_line() -> None:
    units = [
        {"name": "e@foo.service", "enabled": True},
        {"name": "b.service", "enabled": True},
        {"name": "e@bar.service", "enabled": True},
        {"name": "e@off.service", "enabled": False},
    ]
    assert preset_lines(units) == ["enable b.service", "disable e@.service off", "enable e@.service foo bar"]


def test_disabling_is_written_for_units_that_the_image_enables() -> None:
    units = [{"name": "a.service", "enabled": False}, {"name": "b.service", "enabled": False}]
    assert preset_lines(units, enabled_in_image={"b.service"}) == ["disable b.service"]
    assert PRESET_PATH not in ignition.predict(config(systemd={"units": units}), enabled_in_image=())


def test_contents_that_would_have_to_be_fetched_or_are_too_large_cannot_be_predicted() -> None:
    remote = config(storage={"files": [{"path": "/a", "contents": {"source": "https://example.com/"}}]})
    with pytest.raises(DataUrlError, match="not in the config"):
        ignition.predict(remote)
    bomb = {"source": dataurl.encode(dataurl.gzip(b"\0" * 1_000_000)), "compression": "gzip"}
    with pytest.raises(DataUrlError, match="more than 1000 bytes"):
        ignition.predict(config(storage={"files": [{"path": "/a", "contents": bomb}]}), limit=1000)


def test_a_masked_unit_is_a_link_to_nothing() -> None:
    units = [{"name": "a.service", "mask": True, "contents": "[Unit]\n"}]
    entry = ignition.predict(config(systemd={"units": units}))["/etc/systemd/system/a.service"]
    assert (entry.kind, entry.target) == (EntryKind.LINK, "/dev/null")
