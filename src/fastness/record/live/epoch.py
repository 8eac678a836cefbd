"""The record goes on under a new name when a person says so.

A record that was cut or rolled back is not continued by itself: see `record.live.guard`. When an older backup was restored on
purpose, or the state of the record was lost, somebody with the right to write our ConfigMaps asks for a new epoch, with a reason.
The sequencer then goes on from the longest beginning that is whole, under a name with the number of the epoch in it, and the
first entry says what happened. A witness does not know the new name, so its operator hears of it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

NAME: Final = "record-epoch"
MAX_REASON: Final = 1024
_AS: Final = WriteOptions(manager="record")


@dataclass(frozen=True, slots=True)
class Epoch:
    """How often the record was restarted, counted from one; when and why it was the last time."""

    number: int = 1
    time: str = ""
    reason: str = ""


async def read_epoch(cluster: Cluster) -> Epoch:
    """The epoch that a person asked for last; one that cannot be understood counts as none."""
    try:
        data = (await cluster.get(CONFIG_MAP.resource, NAME, NAMESPACE)).get("data") or {}
    except NotFound:
        return Epoch()
    number = str(data.get("epoch", ""))
    # It becomes part of the record's name; what is no number is nobody's decision.
    if not re.fullmatch(r"[1-9][0-9]{0,5}", number):
        return Epoch()
    return Epoch(int(number), str(data.get("time", ""))[:64], str(data.get("reason", ""))[:MAX_REASON])


async def restart(cluster: Cluster, reason: str, now: datetime) -> Epoch:
    """Ask for the next epoch; raises ApiError."""
    epoch = Epoch((await read_epoch(cluster)).number + 1, rfc3339(now), reason)
    data = {"epoch": str(epoch.number), "time": epoch.time, "reason": epoch.reason}
    metadata = {"name": NAME, "namespace": NAMESPACE}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    try:
        await cluster.patch(CONFIG_MAP.resource, NAME, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)
    except NotFound:
        await cluster.create(CONFIG_MAP.resource, body, _AS)
    return epoch
