"""What follows from other settings of the cluster, before anybody applies them: which configs are made, and which go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.cluster_configs import FEATURE_GATE, NODE_CONFIG, standing_latency
from fastness.machineconfig.render.cluster_status import refusal
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    KUBELET,
    RUNTIME,
    Owners,
    cluster_config_names,
    cluster_manifests,
    generate,
    selects_pool,
    with_bases,
)
from fastness.machineconfig.render.settings.cluster import ClusterSettings

Object = Mapping[str, Any]


def proposed_settings(
    owners: Owners, settings: ClusterSettings, configs: Sequence[Object], version: str
) -> tuple[Owners, list[JsonObject], list[str]]:
    """The owners with these settings, all configs that follow from them, and the names of those that go; raises BadSettings."""
    after = replace(
        owners,
        settings=replace(settings, latency=standing_latency(settings.nodes, configs), release=owners.settings.release),
    )
    for kind in (NODE_CONFIG, FEATURE_GATE):
        reason = refusal(kind, after)
        if reason:
            raise BadSettings(f"{kind} cluster: {reason}", "change the object")
    made = [config for kind in (NODE_CONFIG, FEATURE_GATE) for config in cluster_manifests(kind, after, version)]
    after, bases = with_bases(after, configs)
    made += bases
    for kind, objects in ((KUBELET, after.kubelets), (RUNTIME, after.runtimes)):
        for owner in objects.values():
            chosen = [name for name, pool in after.pools.items() if selects_pool(owner, pool)]
            made += [generate(kind, owner, name, version, after) for name in chosen]
    before, now = (
        {entry for pool in state.pools for entry in cluster_config_names(pool, state)} for state in (owners, after)
    )
    return after, made, sorted(before - now)
