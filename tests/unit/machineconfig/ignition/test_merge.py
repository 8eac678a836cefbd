"""Merging children, and who is to blame for what came out."""

import copy
import random
from functools import partial
from typing import Any

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import ChildEffect, Supply
from fastness.machineconfig.ignition.origins import Origins
from tests.component.machineconfig.ignition.corpus import good


def config(**sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": "3.5.0"}, **sections}


def files(*entries: dict[str, Any]) -> dict[str, Any]:
    return config(storage={"files": list(entries)})


def contents(text: str, **fields: Any) -> dict[str, Any]:
    return {"source": f"data:,{text}", **fields}


def supplies_of(*children: dict[str, Any], corrections: bool = False) -> list[Supply]:
    heard: list[Supply] = []
    named = [(f"c{number}", child) for number, child in enumerate(children, 1)]
    ignition.merge_all(named, heard.append, corrections)
    return [supply for supply in heard if supply.place[0] != "ignition"]


def test_fields_are_merged_one_by_one_in_the_place_of_the_parent() -> None:
    parent = files({"path": "/a", "mode": 1, "contents": contents("old")}, {"path": "/b"})
    child = files({"path": "/c"}, {"path": "/a", "contents": contents("new"), "user": {"id": 1}})
    assert ignition.merge(parent, child) == files(
        {"path": "/a", "mode": 1, "contents": contents("new"), "user": {"id": 1}}, {"path": "/b"}, {"path": "/c"}
    )


def test_a_later_child_enables_a_unit_and_adds_a_drop_in() -> None:
    parent = config(systemd={"units": [{"name": "a.service", "contents": "[Unit]", "dropins": [{"name": "1.conf"}]}]})
    child = config(systemd={"units": [{"name": "a.service", "enabled": True, "dropins": [{"name": "2.conf"}]}]})
    (unit,) = ignition.merge(parent, child)["systemd"]["units"]
    assert unit == {
        "name": "a.service",
        "contents": "[Unit]",
        "enabled": True,
        "dropins": [{"name": "1.conf"}, {"name": "2.conf"}],
    }


def test_keys_of_one_user_from_many_children_are_joined() -> None:
    users = ({"passwordHash": "testpass"}, {"sshAuthorizedKeys": ["5678"]}, {"sshAuthorizedKeys": ["1234", "5678"]})
    children = [("x", config(passwd={"users": [{"name": "core", **user}]})) for user in users]
    merged = ignition.merge_all(children)
    assert merged["passwd"]["users"] == [
        {"name": "core", "passwordHash": "testpass", "sshAuthorizedKeys": ["5678", "1234"]}
    ]


def test_a_kernel_argument_moves_between_the_lists() -> None:
    parent = config(kernelArguments={"shouldExist": ["a", "b"], "shouldNotExist": ["c"]})
    child = config(kernelArguments={"shouldExist": ["c", "d"], "shouldNotExist": ["a"]})
    assert ignition.merge(parent, child)["kernelArguments"] == {"shouldExist": ["b", "c", "d"], "shouldNotExist": ["a"]}


def test_a_header_without_a_value_takes_one_away_and_fragments_are_concatenated() -> None:
    headers = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    parent = files(
        {"path": "/a", "contents": {"source": "https://x", "httpHeaders": headers}, "append": [contents("1")]}
    )
    child = files({"path": "/a", "contents": {"httpHeaders": [{"name": "A"}]}, "append": [contents("1")]})
    (file,) = ignition.merge(parent, child)["storage"]["files"]
    assert file["contents"]["httpHeaders"] == headers[1:]
    assert file["append"] == [contents("1"), contents("1")]


def test_nothing_that_was_merged_is_changed_or_copied() -> None:
    children = [good(random.Random(seed), 5) for seed in range(12)]
    before = copy.deepcopy(children)
    merged = ignition.merge_all([("x", child) for child in children], corrections=True)
    assert children == before
    lone = files({"path": "/a", "contents": contents("x")})
    assert ignition.merge_all([("x", lone)])["storage"]["files"][0] is lone["storage"]["files"][0]
    assert merged["ignition"]["version"] == "3.5.0"


def test_merging_a_config_with_itself_or_with_an_empty_one_changes_nothing_but_what_is_concatenated() -> None:
    for seed in range(30):
        only = ignition.merge_all([("x", good(random.Random(seed), 5))])
        assert ignition.merge(only, config()) == only
        assert ignition.merge(config(), only) == only
        twice = ignition.merge(only, only)
        assert len(twice.get("storage", {}).get("files", [])) == len(only.get("storage", {}).get("files", []))
        assert twice.get("passwd") == only.get("passwd")
        assert twice.get("systemd") == only.get("systemd")


def test_merging_is_associative() -> None:
    for seed in range(40):
        generator = random.Random(seed)
        a, b, c = (good(generator, 5) for _ in range(3))
        assert ignition.merge(ignition.merge(a, b), c) == ignition.merge(a, ignition.merge(b, c))


def test_contents_without_compression_do_not_inherit_gzip() -> None:
    packed = files({"path": "/a", "contents": contents("packed", compression="gzip")})
    plain = files({"path": "/a", "contents": contents("plain")})
    mode = files({"path": "/a", "mode": 1})
    assert ignition.merge(packed, plain)["storage"]["files"][0]["contents"]["compression"] == "gzip"
    (file,) = ignition.merge_all([("1", packed), ("2", plain)], corrections=True)["storage"]["files"]
    assert file == {"path": "/a", "contents": contents("plain"), "overwrite": True}
    (file,) = ignition.merge_all([("1", packed), ("2", mode)], corrections=True)["storage"]["files"]
    assert file["contents"]["compression"] == "gzip"


def test_overwrite_is_stated_for_every_file_that_does_not_say() -> None:
    stated = ignition.default_overwrite(files({"path": "/a"}, {"path": "/b", "overwrite": False}))
    assert [file["overwrite"] for file in stated["storage"]["files"]] == [True, False]


def test_a_new_entry_is_told_once_and_a_changed_one_field_by_field() -> None:
    supplies = supplies_of(
        files({"path": "/a", "mode": 1, "contents": contents("1")}),
        files({"path": "/a", "mode": 1, "contents": contents("2")}),
        files({"path": "/a", "contents": contents("3"), "overwrite": True}),
    )
    place = ("storage", "files", "/a")
    assert [(item.change, item.place, item.source, item.overrode) for item in supplies] == [
        (ChildEffect.ADDED, place, "c1", None),
        (ChildEffect.REPEATED, (*place, "mode"), "c2", "c1"),
        (ChildEffect.REPLACED, (*place, "contents", "source"), "c2", "c1"),
        (ChildEffect.REPLACED, (*place, "contents", "source"), "c3", "c2"),
        (ChildEffect.ADDED, (*place, "overwrite"), "c3", None),
    ]
    assert (supplies[3].old, supplies[3].value) == ("data:,2", "data:,3")


def test_what_a_child_takes_away_is_told_with_whom_it_was_taken_from() -> None:
    link = config(storage={"links": [{"path": "/a", "target": "x"}]})
    supplies = supplies_of(files({"path": "/a"}), link, files({"path": "/a", "mode": 2}))
    assert [(item.change, item.place[1], item.source, item.overrode) for item in supplies] == [
        (ChildEffect.ADDED, "files", "c1", None),
        (ChildEffect.REMOVED, "files", "c2", "c1"),
        (ChildEffect.ADDED, "links", "c2", None),
        (ChildEffect.REMOVED, "links", "c3", "c2"),
        (ChildEffect.ADDED, "files", "c3", None),
    ]


def test_corrections_are_not_told_as_contributions() -> None:
    supplies = supplies_of(
        files({"path": "/a", "contents": contents("1")}),
        files({"path": "/a", "contents": contents("2")}),
        corrections=True,
    )
    assert not any("compression" in item.place for item in supplies)
    over = supplies_of(
        files({"path": "/a", "contents": contents("1", compression="gzip")}),
        files({"path": "/a", "contents": contents("2")}),
        corrections=True,
    )
    assert [item.overrode for item in over if "compression" in item.place] == ["c1"]


def test_every_entry_of_the_result_has_an_origin() -> None:
    for seed in range(20):
        generator = random.Random(seed)
        children = [(f"c{n}", good(generator, 5)) for n in range(4)]
        origins = Origins(lambda supply: None)
        merged = ignition.merge_all(children, partial(_replay, origins))
        for name in ("files", "links", "directories"):
            for node in merged.get("storage", {}).get(name, []):
                origin = origins.origin(("storage", name, node["path"]))
                assert origin is not None
                child = dict(children)[origin]
                assert node["path"] in {entry["path"] for entry in child["storage"][name]}


def _replay(origins: Origins, supply: Supply) -> None:
    if supply.change is ChildEffect.REMOVED:
        origins.removed(supply.place, supply.source, supply.old)
    else:
        origins.added(supply.place, supply.source, supply.value)
