"""A cluster that is not simulated, with all doors, for machines that are not simulated either."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastness.enrolment.live.tpm_makers import CONFIG_MAPS, NAME
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from tests.delivering import DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.swtpm import Maker

CONFIG = {
    "ignition": {"version": "3.3.0"},
    "storage": {
        "files": [{"path": "/etc/fastness/secret", "mode": 384, "contents": {"source": "data:,for%20this%20machine"}}]
    },
    "systemd": {"units": [{"name": "hello.service", "enabled": True, "contents": "[Service]\nExecStart=/bin/true\n"}]},
}


@asynccontextmanager
async def cluster(
    embedded: Embedded, maker: Maker, via: str, names: tuple[str, ...] = ()
) -> AsyncIterator[DeliveringWorld]:
    """A cluster that enforces and knows the maker of the TPM."""
    root = {"sha256": maker.root, "for": "tpm", "reason": "our own machines"}
    spec: dict[str, Any] = {"mode": "Enforce", "delivery": {"via": via}, "attestation": {"extraRoots": [root]}}
    async with delivering_world(embedded.cluster, spec, names) as world:
        world.shelf.body = json.encode(CONFIG)
        pem = b"".join(entry.pem for entry in maker.certificates).decode()
        body = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"swtpm": pem},
        }  # fmt: skip
        await world.cluster.create(CONFIG_MAPS, body)
        await until(lambda: world.doors.enrolment.enrolments.sources.maps.get(NAMESPACE, NAME) is not None)
        yield world


async def explained(embedded: Embedded, world: DeliveringWorld, *, attested: bool = False) -> str:
    """What an operator reads about the one machine that was refused, or all that is known of the one that was not."""
    machines = (await world.cluster.list(MACHINE.resource)).items
    (machine,) = (
        machine for machine in machines if ((condition(machine, "Attested") or {}).get("status") == "True") is attested
    )  # fmt: skip
    everything = ["--all"] if attested else []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fastness.cli.main", "attest", "explain", machine["metadata"]["name"], *everything,
        "--kubeconfig", str(embedded.kubeconfig), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    return output.decode()
