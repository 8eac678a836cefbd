"""The combinations that a cluster has, by what its objects say: release, platform, and per kind of worker its CPU, TEE and GPU.

Labels of nodes are hints of their hosts; for a question of support that is good enough, for a question of trust it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.kata.names import TRUE, Tee
from fastness.kinds.machineconfiguration.names import WORKER_LABEL
from fastness.kinds.objects import labels_of, object_name
from fastness.workloads.compat.support import Combination
from fastness.workloads.compat.tables import Platform

Object = Mapping[str, Any]
GPU_LABEL: Final = "nvidia.com/gpu.present"
ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def release_of(version: Object | None) -> str:
    """The release in a ClusterVersion: the last one that was completed, else the one that is wanted; empty if none."""
    status = (version or {}).get("status") or {}
    history: Any = status.get("history")
    entries = [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []
    desired: Any = status.get("desired")
    done = [entry for entry in entries if entry.get("state") == "Completed"]
    current = done[0] if done else desired if isinstance(desired, dict) else {}
    return str(current.get("version") or "")


def platform_of(infrastructure: Object | None, architecture: str, *, peer_pods: bool = False) -> Platform:
    """The platform, as the tables name it; everything that is not Azure or IBM Z counts as bare metal."""
    status = (infrastructure or {}).get("status") or {}
    kind = (status.get("platformStatus") or {}).get("type") or status.get("platform")
    if architecture == "s390x":
        return Platform.IBM_Z_PEER if peer_pods else Platform.IBM_Z
    return Platform.AZURE if kind == "Azure" else Platform.BARE_METAL


def combinations(
    nodes: Iterable[Object], infrastructure: Object | None, release: str, *, peer_pods: bool = False
) -> dict[Combination, list[str]]:
    """Every combination among the workers, with the names of its nodes."""
    nodes_by: dict[Combination, list[str]] = {}
    for node in nodes:
        labels = labels_of(node)
        if WORKER_LABEL not in labels:
            continue
        reported = str(((node.get("status") or {}).get("nodeInfo") or {}).get("architecture") or "amd64")
        architecture = ARCHITECTURES.get(reported, reported)
        tee = next((str(tee) for tee in Tee if labels.get(tee.label) == TRUE), "")
        platform = platform_of(infrastructure, architecture, peer_pods=peer_pods)
        combination = Combination(release, architecture, platform, tee, labels.get(GPU_LABEL) == TRUE)
        nodes_by.setdefault(combination, []).append(object_name(node).name)
    return {combination: sorted(names) for combination, names in nodes_by.items()}
