"""Overlays over what a config server in another process sends: the server knows pools, the door lays over."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Any

from fastness.domain.machineconfig.overlay import Recipient
from fastness.formats import dataurl, ignition
from fastness.model.machineconfiguration import names
from fastness.services.delivery import Overlays
from fastness.services.gate.configs import RemoteConfigs
from fastness.services.http.showing import load
from tests.component.configserver.doors import Doors, open_doors
from tests.embedded.fixtures import Embedded

ACCEPT = "application/vnd.coreos.ignition+json;version=3.3.0"
FILES = [{"path": "/etc/rack", "contents": {"source": dataurl.encode(b"7")}}]
OVERLAY = {
    "metadata": {"name": "rack"},
    "spec": {
        "match": {"machines": ["uid-a"]},
        "config": {"ignition": {"version": "3.4.0"}, "storage": {"files": FILES}},
    },
}


class Cache:
    """An informer with one overlay."""

    def add_index(self, name: str, indexer: Any) -> None:
        self.indexer = indexer

    def by_index(self, name: str, value: str) -> list[Any]:
        return [OVERLAY] if value in self.indexer(OVERLAY) else []


def as_gate(doors: Doors) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=doors.door.internal.bundle)
    load(context, doors.door.internal.client("gate", datetime.now(UTC)))
    return context


async def test_an_overlay_lies_over_what_a_remote_config_server_sends(embedded_server: Embedded) -> None:
    cache: Any = Cache()
    async with open_doors(embedded_server) as doors:
        context = as_gate(doors)
        remote = RemoteConfigs(f"https://127.0.0.1:{doors.door.internal_port}", lambda: context)
        try:
            pooled = await remote.fetch("secret", ACCEPT, "")
        finally:
            await remote.close()
    overlays = Overlays(cache)
    mine = overlays.over(pooled, Recipient("uid-a"))
    paths = [entry["path"] for entry in ignition.upgrade(mine.body)["storage"]["files"]]
    assert "/etc/rack" in paths
    assert paths[-1] == names.ENCAPSULATED_FILE
    assert mine.etag != pooled.etag
    assert overlays.over(pooled, Recipient("uid-b")) is pooled
