"""A program: a made-up machine walks from its ticket to its configuration, with the agent of whichever Fastness Python finds.

    python agent_walk.py STATE      the state directory of a running `fastness up`

It prints where that Fastness is, and then each step. The steps are `fastness.cli.support.selftest_walk`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path

import fastness
from fastness.cli.support.selftest_walk import DoorsAt, trust_of, walk
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find

HOME = "fastness-system"
CLUSTER = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
    "spec": {"mode": "Enforce", "simulated": True},
}  # fmt: skip


async def run(state: Path) -> None:
    """The whole walk; raises when a door does not do what it is there for."""
    where = json.loads((state / "endpoints.json").read_text())
    config = find(Surroundings(os.environ, Path.home()), kubeconfig=state / "kubeconfig", context="")
    async with connect(config) as cluster:
        if not (await cluster.list(CONFIDENTIAL_CLUSTER.resource)).items:
            await cluster.create(CONFIDENTIAL_CLUSTER.resource, CLUSTER)
        authority = (await cluster.get(SECRET.resource, "doors-ca", HOME))["data"]["ca.crt"]
        keys = (await cluster.get(CONFIG_MAP.resource, "config-public-keys", HOME))["data"]["jwks.json"]
        trust = trust_of(base64.b64decode(authority).decode(), keys.encode())
        doors = DoorsAt(where["enrolment"], where["broker"], trust, where["gate"])
        await walk(cluster, doors, "worker", print)


if __name__ == "__main__":
    print(fastness.__file__)
    asyncio.run(run(Path(sys.argv[1])))
