"""The virtual machines of `fastness up --machines N`.

Each acts in the name of its own node, so that what a node may write is checked as it is for a real one.

* Profile `containers`: hosts that nobody attests; they fetch their configuration with a join ticket.
* Profile `cluster`: confidential machines of a simulated vendor, with TPM, SNP and TDX in turn. The cluster enforces: they enrol,
  attest and fetch over the real protocol, and the image that they boot is approved beforehand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from fastness.agent.attester import Attester
from fastness.agent.imagetrust import ImageTrust
from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.embedded.engine import EmbeddedApi
from fastness.cluster.embedded.local import LocalCluster
from fastness.cluster.errors import AlreadyExists
from fastness.cluster.port import Cluster
from fastness.crypto.digests import sha256
from fastness.crypto.secret import SecretBytes
from fastness.domain.access import User
from fastness.domain.access.user import AUTHENTICATED, NODE_PREFIX, NODES
from fastness.domain.attestation.imagevalues import MEASUREMENTS
from fastness.formats import json
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.model.kind import JsonObject
from fastness.model.trusted_execution.approvals import APPROVED_IMAGE
from fastness.sim.announce import announce_vendor, keep_announced
from fastness.sim.machines import Fleet, Proofs, machines
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from fastness.sim.tee.vendor import SimVendor
from fastness.trust.keyfiles import read_private, write_private

CONTAINERS: Final = "containers"
TEES: Final = ("tpm", "snp", "tdx")
SEED_FILE: Final = "simulated-vendor.seed"
NAMESPACE: Final = "fastness-system"


@dataclass(frozen=True, slots=True)
class Believed:
    """What the image of a virtual machine carries: the doors' authority and the keys that sign configurations, as of now; and
    where the broker is that it proves itself to, again and again. `doors` are those that fresh user-data leads to."""

    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    broker: Callable[[], str] | None = None
    doors: tuple[str, ...] = ()

    def trust(self) -> ImageTrust:
        """The content of the image's trust.json, read."""
        return ImageTrust.parse(json.encode({"ca": self.ca(), "configKeys": self.keys()}))


@asynccontextmanager
async def virtual_machines(
    api: EmbeddedApi, state: Path, count: int, profile: str, believed: Believed, clock: Clock, entropy: Entropy
) -> AsyncIterator[None]:
    """So many machines below the state directory, for the time of the block."""
    directory = state / "machines"
    directory.mkdir(mode=0o700, exist_ok=True)
    cluster = LocalCluster(api)

    def as_node(name: str) -> Cluster:
        return LocalCluster(api, User(f"{NODE_PREFIX}{name}", (NODES, AUTHENTICATED)))

    if profile == CONTAINERS:
        async with machines(Fleet(cluster, as_node, directory, clock, entropy, doors=believed.doors), count):
            yield
        return
    vendor = kept_vendor(state / SEED_FILE, entropy)
    await confidential(cluster, vendor, clock.now())
    proofs = Proofs(lambda number: attester(vendor, number), believed.trust, broker=believed.broker)
    fleet = machines(Fleet(cluster, as_node, directory, clock, entropy, proofs=proofs, doors=believed.doors), count)
    async with fleet, asyncio.TaskGroup() as group:
        announcing = group.create_task(keep_announced(cluster, vendor, clock), name="simulator:announce")
        try:
            yield
        finally:
            announcing.cancel()


def attester(vendor: SimVendor, number: int) -> Attester:
    """The hardware of a machine: the same chip after every restart."""
    return SimAttester(vendor.chip(TEES[number % len(TEES)], serial=number).boot(default_image()))


def kept_vendor(path: Path, entropy: Entropy) -> SimVendor:
    """The simulated vendor of a state directory; its roots follow from one seed."""
    kept = read_private(path)
    if kept is None:
        vendor = SimVendor(entropy)
        write_private(path, SecretBytes(vendor.seed))
        return vendor
    return SimVendor.of(kept.reveal())


async def confidential(cluster: Cluster, vendor: SimVendor, now: datetime) -> None:
    """A simulated cluster that enforces, knows its vendor, and has approved what its machines boot."""
    await announce_vendor(cluster, vendor, now)
    body: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
    manifest = json.canonical(default_image().manifest()).decode()
    image: JsonObject = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
        "metadata": {"name": "virtual-machine", "namespace": NAMESPACE, "annotations": {MEASUREMENTS: manifest}},
        "spec": {"image": f"simulated.fastness.dev/machine@{sha256(manifest.encode())}"},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(APPROVED_IMAGE.resource, image)
