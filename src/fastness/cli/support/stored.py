"""How much room the record and the evidence take in the API server, beside a bound: a check of the doctor.

Both lie in the API, so no volume is needed and any replica reads them. etcd stops everything at its quota, two gigabytes unless
somebody set it; ours should stay below half of that. Tiles are weighed; of the rest a page is weighed and all are counted.
"""

from __future__ import annotations

from typing import Final

from fastness.cli.support.finding import Finding
from fastness.formats import json
from fastness.formats.words import counted
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import Forbidden
from fastness.kube.port import EVERYWHERE, Cluster, Scope
from fastness.record.live.tiles import LABEL

BOUND: Final = 1024 * 1024 * 1024
PAGE: Final = 100
_PURPOSE: Final = "etcd stops at its quota, 2 GiB unless somebody set it"
_FIX: Final = "raise etcd's --quota-backend-bytes"


async def stored(cluster: Cluster, bound: int = BOUND) -> Finding:
    """What the record, verdicts and evidence take, and of how much; raises ApiError."""
    try:
        tiles, tile_bytes = await _weighed(cluster, CONFIG_MAP.resource, Scope(NAMESPACE, f"{LABEL}=tile"))
        verdicts, verdict_bytes = await _weighed(cluster, VERDICT.resource)
        evidence, evidence_bytes = await _weighed(cluster, EVIDENCE_BLOB.resource)
    except Forbidden:
        return Finding("stored", "optional", "not for you to look at", _PURPOSE, "ask as an administrator")
    total = tile_bytes + verdict_bytes + evidence_bytes
    words = (
        f"{_mebibytes(total)} of {_mebibytes(bound)}: {counted(tiles, 'tile')} of the record, "
        f"{counted(verdicts, 'verdict')}, {counted(evidence, 'piece')} of evidence"
    )
    if total <= bound:
        return Finding("stored", "ok", words, _PURPOSE)
    return Finding("stored", "missing", words, _PURPOSE, _FIX)


async def _weighed(cluster: Cluster, resource: Resource, scope: Scope = EVERYWHERE) -> tuple[int, int]:
    """How many objects there are, and about how many bytes: what was not read weighs as much as what was."""
    read, weight, token, remaining = 0, 0, "", 0
    while True:
        page = await cluster.list(resource, scope, limit=PAGE, token=token)
        read, weight = read + len(page.items), weight + sum(len(json.encode(item)) for item in page.items)
        token = page.next
        # A server that was asked for labels does not say how many remain: then all are read.
        if not token or page.remaining is not None:
            remaining = page.remaining or 0
            break
    return read + remaining, weight * (read + remaining) // max(1, read)


def _mebibytes(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"
