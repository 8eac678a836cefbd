"""The MachineOSConfig that a cluster writes by itself: made, moved, handed over, taken away, and kept for nodes."""

from __future__ import annotations

from typing import Any

from fastness.builds.default_config import Act, manifest, move, next_act
from fastness.builds.leaving import stranded
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.rollout.image_mode import ImageMode, PushPlace, UpdatePath

PLACE = PushPlace("registry.example/os", "push")
ON = ImageMode(UpdatePath.LAYERED, names.OsDriverRule.BY_HOST, PLACE)
OFF = ImageMode(UpdatePath.DIRECT, names.OsDriverRule.BY_HOST)
POOL = {"metadata": {"name": "worker", "uid": "u"}, "status": {"machineCount": 1}}
MADE = manifest(POOL, PLACE)


def changed(**spec: Any) -> dict[str, Any]:
    return {**MADE, "spec": {**MADE["spec"], **spec}}


def test_one_is_made_for_a_pool_with_machines_and_goes_with_the_setting() -> None:
    assert next_act(POOL, None, ON) is Act.MAKE
    assert next_act({**POOL, "status": {}}, None, ON) is Act.NOTHING
    assert next_act(POOL, MADE, ON) is Act.NOTHING
    assert next_act(POOL, MADE, OFF) is Act.REMOVE
    assert next_act(POOL, None, OFF) is Act.NOTHING


def test_its_images_follow_the_place_and_stay_where_they_are_while_none_is_named() -> None:
    other = PushPlace("registry.example/other", "push")
    assert next_act(POOL, MADE, ON._replace(place=other)) is Act.MOVE
    patch = move(POOL, other)
    moved = {**MADE, "spec": patch["spec"], "metadata": {**MADE["metadata"], **patch["metadata"]}}
    assert next_act(POOL, moved, ON._replace(place=other)) is Act.NOTHING
    assert next_act(POOL, MADE, ON._replace(place=None)) is Act.NOTHING


def test_what_somebody_changed_is_theirs_and_what_somebody_wrote_was_never_ours() -> None:
    theirs = changed(containerFile=[{"content": "RUN true"}])
    assert next_act(POOL, theirs, ON) is next_act(POOL, theirs, OFF) is Act.HAND_OVER
    written = {"metadata": {"name": "worker"}, "spec": MADE["spec"]}
    assert next_act(POOL, written, OFF) is Act.NOTHING


def test_a_setting_that_cannot_be_read_takes_nothing_away() -> None:
    assert next_act(POOL, MADE, OFF._replace(unreadable=True)) is Act.NOTHING


def test_one_whose_nodes_would_not_come_back_stays() -> None:
    stays = {**MADE, "status": {"conditions": [{"type": names.REMOVABLE, "status": "False", "message": "why"}]}}
    assert next_act(POOL, stays, OFF) is Act.KEEP_FOR_NODES


def node(name: str, driver: str = "", image: str = "registry.example/os@sha256:0") -> dict[str, Any]:
    notes = {names.OS_DRIVER: f"{driver}: because"} if driver else {}
    return {"metadata": {"name": name, "annotations": {**notes, **({names.CURRENT_IMAGE: image} if image else {})}}}


def test_nodes_are_stranded_by_what_only_an_image_can_bring() -> None:
    usr = {"spec": {"config": {"storage": {"files": [{"path": "/usr/lib/mine"}, {"path": "/usr/local/ours"}]}}}}
    assert "/usr/lib/mine can be there in an image alone (a)" in stranded(usr, [node("a"), node("b", image="")])
    assert "/usr/local" not in stranded(usr, [node("a")])
    assert stranded(usr, [node("b", image="")]) == ""
    packages = {"spec": {"extensions": ["usbguard"], "kernelType": "realtime"}}
    problem = stranded(packages, [node("a", "bootc"), node("b", "rpm-ostree")])
    assert "kernelType realtime, extension usbguard would have to be layered, which only rpm-ostree does (a)" in problem
    assert "take this out of the MachineConfigs of the pool first" in problem
    assert (
        stranded(packages, [node("b", "rpm-ostree")])
        == stranded({"spec": {"kernelType": "default"}}, [node("a", "bootc")])
        == ""
    )
