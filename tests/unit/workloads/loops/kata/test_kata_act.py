"""Patches of our own fields, and how a cluster says whether it serves machine configs."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats.patch.jsonpatch import apply_json_patch
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError, NotFound, Unavailable
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.kata.objects import kata_pool, runtime_config
from fastness.workloads.loops.kata.act import changes
from fastness.workloads.loops.kata.look import NO_SUCH_CONFIG, Look


def test_what_others_set_on_an_object_stays() -> None:
    ensure = kata_pool()
    present: JsonObject = {
        "metadata": {"name": "kata-oc", "labels": {"theirs": "1"}},
        "spec": {"maxUnavailable": 3, "nodeSelector": {"matchLabels": {"wrong": ""}}, "configuration": {"name": "r"}},
    }
    assert ensure.differs(present)
    mended = apply_json_patch(present, changes(present, ensure))
    assert not ensure.differs(mended)
    assert mended["spec"]["maxUnavailable"] == 3
    assert mended["spec"]["configuration"] == {"name": "r"}
    assert mended["metadata"]["labels"]["theirs"] == "1"


def test_a_field_whose_parents_are_missing_is_made_with_them() -> None:
    ensure = runtime_config("debug", "kata-oc")
    present: JsonObject = {"metadata": {"name": "kata-crio-config"}, "spec": {}}
    mended = apply_json_patch(present, changes(present, ensure))
    assert mended["spec"] == ensure.obj["spec"]


class Answering:
    """A cluster that answers every question in one way."""

    def __init__(self, error: ApiError) -> None:
        self._error = error

    async def get(self, *_: Any) -> JsonObject:
        raise self._error


@pytest.mark.parametrize(
    ("error", "served"), [(NotFound("not found", name=NO_SUCH_CONFIG), True), (NotFound("404 page not found"), False)]
)
async def test_a_missing_object_and_a_missing_kind_are_told_apart(error: ApiError, served: bool) -> None:
    cluster: Any = Answering(error)
    informers = Informers(cluster, clock=SystemClock(), entropy=SystemEntropy())
    assert await Look(cluster, informers, SystemClock())._served() is served


async def test_any_other_answer_is_passed_on() -> None:
    cluster: Any = Answering(Unavailable("no"))
    informers = Informers(cluster, clock=SystemClock(), entropy=SystemEntropy())
    with pytest.raises(Unavailable):
        await Look(cluster, informers, SystemClock())._served()
