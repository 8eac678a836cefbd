"""Which version of Fastness wrote what a cluster holds: an older one does not start on it.

    ConfigMap fastness-system/state-format    {"format": "1", "fastness": the version that raised it}

The controllers write it, embedded and on Kubernetes alike, and every role reads it before it starts. `FORMAT` rises when objects,
keys or the record are written in a way that the version before would misread. A cluster without it is from before there was one.
There is no way down by itself: a backup of before, restored with the version that made it, is the way back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastness import __version__
from fastness.app.parts import LackingError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import metadata
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

FORMAT: Final = 1
NAME: Final = "state-format"
WAY_BACK: Final = (
    "Run that version or a later one, or restore a backup that this one made (docs/how-to/upgrade-and-go-back.md)."
)
_AS: Final = WriteOptions(manager="state-format")


class NewerState(LackingError):
    """What the cluster holds was written by a later version."""

    code = "newer-state"


async def require_known_format(cluster: Cluster) -> None:
    """Refuse a cluster that a later version wrote; raises NewerState, ApiError."""
    await _stated(cluster)


async def claim_format(cluster: Cluster) -> None:
    """The same, and say from now on that this version wrote here; raises NewerState, ApiError."""
    for _ in range(2):  # another replica may say it at the same moment
        stored, stated = await _stated(cluster)
        if stated == FORMAT:
            return
        data = {"format": str(FORMAT), "fastness": __version__}
        with suppress(AlreadyExists, Conflict, NotFound):
            if stored is None:
                meta = {"name": NAME, "namespace": NAMESPACE}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
                await cluster.create(CONFIG_MAP.resource, body, _AS)
            else:
                patch = {"metadata": {"resourceVersion": stored}, "data": data}
                await cluster.patch(CONFIG_MAP.resource, NAME, patch, PatchType.MERGE, NAMESPACE, _AS)
            return


async def _stated(cluster: Cluster) -> tuple[str | None, int]:
    """The version of the map, None without one, and the format that it states; raises NewerState, ApiError."""
    try:
        stored = await cluster.get(CONFIG_MAP.resource, NAME, NAMESPACE)
    except NotFound:
        return None, 0
    content = stored.get("data") or {}
    number, by = str(content.get("format") or ""), str(content.get("fastness") or "an unknown version")
    if not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise NewerState(f"the ConfigMap {NAMESPACE}/{NAME} states no format that this version can read", WAY_BACK)
    if int(number) > FORMAT:
        raise NewerState(
            f"Fastness {by} wrote this cluster in format {number}; this is {__version__}, which knows up to {FORMAT}",
            WAY_BACK,
        )
    return str(metadata(stored)["resourceVersion"]), int(number)
