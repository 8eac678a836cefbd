"""Secrets that a KbsConfig offers are read below `default/` and nowhere else."""

from __future__ import annotations

import base64
from typing import Any, cast

from fastness.crypto.secret import SecretBytes
from fastness.kinds.kind import JsonObject
from fastness.protocol.kbs_path import parse_path
from fastness.release.live.resources import SecretResources
from fastness.release.source import read_resource
from tests.granting import grant_of

CONFIG = {
    "metadata": {"name": "kbs", "namespace": "trustee-operator-system", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"kbsSecretResources": ["worker"]}, "status": {"isReady": True},
}  # fmt: skip


class Place:
    """A cluster with one Secret, and an informer with one KbsConfig."""

    def list(self) -> list[JsonObject]:
        return [CONFIG]

    async def get(self, *_: Any) -> JsonObject:
        return {"metadata": {"name": "worker"}, "data": {"key": base64.b64encode(b"secret").decode()}}


async def read(path: str) -> SecretBytes | None:
    parsed = parse_path(path)
    assert parsed is not None
    place = cast("Any", Place())
    content = await read_resource([SecretResources(place, place)], grant_of(parsed), parsed, {})
    return content.value if content is not None else None


async def test_a_secret_is_read_where_it_is_offered() -> None:
    assert await read("default/worker/key") == SecretBytes(b"secret")


async def test_a_pool_of_the_same_name_does_not_open_it() -> None:
    for path in ("pool/worker/key", "machine/worker/key", "tenant/worker/key"):
        assert await read(path) is None
