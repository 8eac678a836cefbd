"""The model of the files stage against the real one: the tree that Ignition writes is the tree that was predicted."""

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import EntryKind, Layout
from fastness.machineconfig.ignition.layout import PRESET_PATH
from tests.component.machineconfig.ignition.real import provision

pytestmark = pytest.mark.processes

UNIT = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
# What is there before, and what Ignition leaves about itself.
NOT_OURS = {"/etc", "/etc/selinux", "/etc/selinux/config", "/etc/.ignition-result.json"}


def entries_below(root: Path) -> dict[str, tuple[Any, ...]]:
    """Everything below a root in comparable form."""
    entries: dict[str, tuple[Any, ...]] = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(directory, name)
            place = "/" + str(path.relative_to(root))
            status = path.lstat()
            owner = (status.st_uid, status.st_gid)
            if stat.S_ISLNK(status.st_mode):
                entries[place] = ("link", os.readlink(path), *owner)
            elif stat.S_ISDIR(status.st_mode):
                entries[place] = ("directory", stat.S_IMODE(status.st_mode), *owner)
            else:
                data = path.read_bytes()
                # Release 2.14 writes presets in no order at all; the model has the sorted order of later ones.
                data = b"".join(sorted(data.splitlines(keepends=True))) if place == PRESET_PATH else data
                entries[place] = ("file", stat.S_IMODE(status.st_mode), data, *owner)
    return {place: value for place, value in entries.items() if place not in NOT_OURS}


def predicted(layout: Layout) -> dict[str, tuple[Any, ...]]:
    """The same form of a prediction."""
    entries: dict[str, tuple[Any, ...]] = {}
    for place, entry in layout.items():
        if entry.kind is EntryKind.HARD_LINK:
            entry = layout[entry.target]
        if entry.kind is EntryKind.LINK:
            entries[place] = ("link", entry.target, entry.user, entry.group)
        elif entry.kind is EntryKind.DIRECTORY:
            entries[place] = ("directory", entry.mode, entry.user, entry.group)
        else:
            data = b"".join(sorted(entry.data.splitlines(keepends=True))) if place == PRESET_PATH else entry.data
            entries[place] = ("file", entry.mode, data, entry.user, entry.group)
    return {place: value for place, value in entries.items() if place not in NOT_OURS}


def compare(config: dict[str, Any], directory: Path) -> dict[str, tuple[Any, ...]]:
    data = json.dumps(config).encode()
    expected = predicted(ignition.predict(ignition.parse(data).body))
    assert entries_below(provision(data, directory)) == expected
    return expected


def config_of(**sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": "3.3.0"}, **sections}


def test_files_have_their_contents_modes_owners_and_fragments(tmp_path: Path) -> None:
    packed = dataurl.encode(dataurl.gzip(b"packed"))
    files = [
        {"path": "/etc/plain", "contents": {"source": "data:,a%20b%0A"}},
        {"path": "/etc/deep/er/base64", "mode": 0o600, "contents": {"source": "data:text/plain;base64,AAH/"}},
        {"path": "/etc/packed", "contents": {"source": packed, "compression": "gzip"}},
        {"path": "/etc/owned", "mode": 0o640, "user": {"id": 1000}, "group": {"id": 2000}},
        {"path": "/etc/setuid", "mode": 0o4755, "contents": {"source": "data:,x"}},
        {"path": "/opt/joined", "contents": {"source": "data:,one"}, "append": [{"source": "data:,two"}, {"source": "data:,3"}]},
        {"path": "/opt/appended", "append": [{"source": "data:,only"}]},
        {"path": "/opt/empty", "contents": {"source": "data:,"}},
    ]  # fmt: skip
    tree = compare(config_of(storage={"files": files}), tmp_path)
    assert tree["/etc/packed"][2] == b"packed"
    assert tree["/opt/joined"][2] == b"onetwo3"
    assert tree["/etc/setuid"][1] == 0o755


def test_directories_and_links_stand_where_they_were_told(tmp_path: Path) -> None:
    directories = [
        {"path": "/srv/private", "mode": 0o700, "user": {"id": 5}},
        {"path": "/srv", "mode": 0o711},
        {"path": "/var/lib/a"},
    ]
    links = [
        {"path": "/srv/link", "target": "/etc/absent"},
        {"path": "/relative/link", "target": "../srv", "user": {"id": 7}, "group": {"id": 8}},
        {"path": "/hard", "target": "/srv/private/file", "hard": True},
    ]
    files = [{"path": "/srv/private/file", "mode": 0o444, "contents": {"source": "data:,same"}}]
    tree = compare(config_of(storage={"directories": directories, "links": links, "files": files}), tmp_path)
    assert tree["/hard"] == tree["/srv/private/file"]


def test_units_drop_ins_masks_and_presets(tmp_path: Path) -> None:
    units = [
        {"name": "b.service", "enabled": True, "contents": UNIT},
        {"name": "a.timer", "enabled": True},
        {"name": "off.service", "enabled": False, "contents": UNIT},
        {"name": "masked.service", "mask": True, "contents": UNIT},
        {"name": "unmasked.service", "mask": False},
        {"name": "empty.service", "contents": ""},
        {
            "name": "c.service",
            "dropins": [
                {"name": "1.conf", "contents": "[Service]\nA=b\n"},
                {"name": "2.conf"},
                {"name": "3.conf", "contents": ""},
            ],
        },
    ]  # fmt: skip
    tree = compare(config_of(systemd={"units": units}), tmp_path)
    assert tree[PRESET_PATH][2] == b"disable off.service\nenable a.timer\nenable b.service\n"
    assert tree["/etc/systemd/system/masked.service"][1] == "/dev/null"
    assert "/etc/systemd/system/empty.service" not in tree


def test_a_merged_and_translated_config_gives_the_predicted_tree(tmp_path: Path) -> None:
    first = config_of(
        storage={"files": [{"path": "/etc/a", "contents": {"source": "data:,old"}}, {"path": "/etc/b", "mode": 0o600}]},
        systemd={"units": [{"name": "a.service", "contents": UNIT}]},
    )
    second = config_of(
        storage={
            "links": [{"path": "/etc/b", "target": "a"}],
            "files": [{"path": "/etc/a", "contents": {"source": "data:,new"}}],
        },
        systemd={"units": [{"name": "a.service", "enabled": True, "dropins": [{"name": "x.conf", "contents": "[Unit]\nA=b\n"}]}]},
    )  # fmt: skip
    merged = ignition.merge_all([("1", ignition.upgrade(first)), ("2", ignition.upgrade(second))], corrections=True)
    served, losses = ignition.translate(ignition.parse(merged), "3.3.0")
    assert losses == ()
    tree = compare(served.body, tmp_path)
    assert tree["/etc/a"][2] == b"new"
    assert tree["/etc/b"][:2] == ("link", "a")


def test_random_trees_are_predicted(tmp_path: Path) -> None:
    generator = random.Random(7)
    for number in range(60 if os.environ.get("FASTNESS_SOAK") else 8):
        compare(_random_config(generator), tmp_path / str(number))


def _random_config(generator: random.Random) -> dict[str, Any]:
    places = [f"/{generator.choice('ab')}/{generator.choice('cd')}{i}" for i in range(9)]
    owners: tuple[dict[str, Any], ...] = ({}, {"user": {"id": 3}}, {"group": {"id": 4}})
    storage: dict[str, list[dict[str, Any]]] = {"files": [], "directories": [], "links": []}
    for place in places:
        node: dict[str, Any] = {"path": place, **generator.choice(owners)}
        kind = generator.choice(("files", "directories", "links"))
        if kind == "links":
            node["target"] = generator.choice(places)
        elif generator.random() < 0.6:
            node["mode"] = generator.choice((0o600, 0o755, 0o2711, 0o777))
        if kind == "files" and generator.random() < 0.7:
            node["contents"] = {"source": dataurl.encode(generator.randbytes(generator.randrange(40)))}
            node["overwrite"] = generator.random() < 0.5
        storage[kind].append(node)
    units = [
        {"name": f"{generator.choice('xyz')}{i}.service", "contents": UNIT, "enabled": generator.random() < 0.5}
        for i in range(generator.randrange(4))
    ]
    return config_of(storage=storage, systemd={"units": units})
