"""Our merge against Ignition's own: it writes what it merged into its cache, and that must be what we merged."""

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.machineconfig import ignition
from tests.component.machineconfig.ignition.corpus import good
from tests.component.machineconfig.ignition.real import run_stage

pytestmark = pytest.mark.processes

ROUNDS = 200 if os.environ.get("FASTNESS_SOAK") else 12


def meaning(value: Any) -> Any:
    """A value without what says nothing: Ignition writes every empty object, we write none."""
    if isinstance(value, list):
        return [meaning(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {name: meaning(item) for name, item in value.items()}
    return {name: item for name, item in inner.items() if item not in ({}, [], None) and (name, item) != ("number", 0)}


def merged_by_ignition(parent: dict[str, Any], children: list[dict[str, Any]], directory: Path) -> Any:
    """What Ignition makes of a parent that refers to children."""
    directory.mkdir(exist_ok=True)
    references = [{"source": dataurl.encode(json.dumps(child).encode())} for child in children]
    boot = {**parent, "ignition": {**parent["ignition"], "config": {"merge": references}}}
    run_stage("fetch", json.dumps(boot).encode(), directory)
    cached = json.loads((directory / "cache.json").read_bytes())
    for name in ("version", "config"):
        del cached["ignition"][name]
    return meaning(cached)


def merged_by_us(configs: list[dict[str, Any]]) -> Any:
    merged = ignition.merge_all([(str(number), ignition.upgrade(config)) for number, config in enumerate(configs)])
    del merged["ignition"]["version"]
    return meaning(merged)


def check(configs: list[dict[str, Any]], directory: Path) -> Any:
    ours = merged_by_us(copy.deepcopy(configs))
    assert ours == merged_by_ignition(configs[0], configs[1:], directory)
    return ours


def config_of(**sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": "3.3.0"}, **sections}


def drawn(generator: random.Random) -> dict[str, Any]:
    """A config with names that collide with those of others, and nothing to fetch."""
    config = good(generator, 3)
    config["ignition"] = {
        name: config["ignition"][name] for name in ("version", "timeouts", "proxy") if name in config["ignition"]
    }
    if "kernelArguments" in config:
        config["kernelArguments"] = {"shouldExist": generator.sample(["a", "b", "c"], 2)}
        config["kernelArguments"]["shouldNotExist"] = [
            word for word in ("a", "b", "c", "d") if word not in config["kernelArguments"]["shouldExist"]
        ]
    for index, link in enumerate(config.get("storage", {}).get("links", [])):
        if generator.random() < 0.4:
            link["path"] = f"/etc/file{index + 5 - generator.randrange(6) % 6}"
    return config


def fit(configs: list[dict[str, Any]]) -> bool:
    """Whether every step of the merge is itself a good config; two good ones can make a bad one."""
    merger = ignition.Merger()
    for config in configs:
        merger.add(ignition.upgrade(config))
        if ignition.inspect(merger.result()).config is None:
            return False
    return True


def test_random_families_merge_as_ignition_merges_them(tmp_path: Path) -> None:
    generator = random.Random(3)
    done = 0
    while done < ROUNDS:
        configs = [drawn(generator) for _ in range(generator.choice((2, 2, 3)))]
        if any(ignition.inspect(config).config is None for config in configs) or not fit(configs):
            continue
        check(configs, tmp_path / str(done))
        done += 1


def test_an_entry_changes_its_kind(tmp_path: Path) -> None:
    file = config_of(
        storage={"files": [{"path": "/a", "mode": 0o600}, {"path": "/b"}], "directories": [{"path": "/d"}]}
    )
    link = config_of(storage={"links": [{"path": "/a", "target": "x"}, {"path": "/d", "target": "y"}]})
    back = config_of(storage={"files": [{"path": "/a", "contents": {"source": "data:,x"}}]})
    merged = check([file, link, back], tmp_path)
    assert merged["storage"]["files"] == [{"path": "/b"}, {"path": "/a", "contents": {"source": "data:,x"}}]
    assert merged["storage"]["links"] == [{"path": "/d", "target": "y"}]


def test_fields_lists_and_headers_inside_an_entry(tmp_path: Path) -> None:
    source = "https://example.com/a"
    first = {
        "source": source,
        "compression": "gzip",
        "httpHeaders": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    }
    second = {"httpHeaders": [{"name": "B"}, {"name": "A", "value": "3"}, {"name": "C"}], "source": source}
    disk = {"device": "/dev/a", "partitions": [{"number": 1, "label": "one"}, {"label": "two"}]}
    other = {
        "device": "/dev/a",
        "wipeTable": True,
        "partitions": [{"label": "two", "sizeMiB": 5}, {"number": 1, "startMiB": 1}],
    }
    merged = check(
        [
            config_of(
                storage={
                    "files": [{"path": "/a", "contents": first, "append": [{"source": "data:,1"}]}],
                    "disks": [disk],
                    "filesystems": [{"device": "/dev/b", "format": "ext4", "options": ["-x"]}],
                },
                passwd={"users": [{"name": "core", "passwordHash": "h", "sshAuthorizedKeys": ["1", "2"]}]},
                systemd={"units": [{"name": "a.service", "dropins": [{"name": "a.conf", "contents": ""}]}]},
            ),
            config_of(
                storage={
                    "files": [{"path": "/a", "contents": second, "append": [{"source": "data:,1"}], "mode": 1}],
                    "disks": [other],
                    "filesystems": [{"device": "/dev/b", "format": "xfs", "options": ["-x"]}],
                },
                passwd={"users": [{"name": "core", "sshAuthorizedKeys": ["3", "1"]}]},
                systemd={
                    "units": [
                        {"name": "a.service", "enabled": True, "dropins": [{"name": "b.conf"}, {"name": "a.conf"}]}
                    ]
                },
            ),
        ],
        tmp_path,
    )
    file = merged["storage"]["files"][0]
    assert file["contents"]["httpHeaders"] == [{"name": "A", "value": "3"}, {"name": "C"}]
    assert len(file["append"]) == 2
    assert merged["passwd"]["users"][0]["sshAuthorizedKeys"] == ["1", "2", "3"]
