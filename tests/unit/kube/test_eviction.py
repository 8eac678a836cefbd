"""Evictions: a pod leaves the API only after its containers have ended."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kube.eviction import LEAST_GRACE, evict_all
from fastness.kube.port import Cluster, Page


class Pods:
    """A cluster with one pod, which takes down how it is evicted."""

    def __init__(self, pod: JsonObject) -> None:
        self._pod = pod
        self.evictions: list[JsonObject] = []

    async def list(self, *_args: Any, **_more: Any) -> Page:
        return Page([self._pod], "1")

    async def connect(self, *args: Any) -> JsonObject:
        self.evictions.append(args[-1])
        return {}


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ({"terminationGracePeriodSeconds": 0}, {"gracePeriodSeconds": LEAST_GRACE}),
        ({"terminationGracePeriodSeconds": 30}, None),
        ({}, None),
    ],
)
async def test_a_pod_without_grace_is_given_a_second_so_that_its_node_says_when_it_has_ended(
    spec: JsonObject, options: JsonObject | None
) -> None:
    pods = Pods({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})
    assert await evict_all(cast("Cluster", pods), "node") == []
    (eviction,) = pods.evictions
    assert eviction.get("deleteOptions") == options
    assert eviction["metadata"] == {"name": "p", "namespace": "n"}
