"""The three ways to a cluster that the contract is held against.

| name | adapter | server |
| --- | --- | --- |
| `in-process` | LocalCluster | the embedded API |
| `https-embedded` | KubeCluster | the embedded API |
| `https-real` | KubeCluster | kube-apiserver with etcd and our definitions |

A `World` also knows how to make old versions unavailable, which no client can ask of a server.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fastness.kinds.crd import manifests
from fastness.kinds.registry import find as find_kind
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.port import Cluster
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.realkube import RealKube

IN_THIS_PROCESS, REAL = ("in-process", "https-embedded"), "https-real"


@dataclass(frozen=True)
class World:
    """A way to a cluster."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Cluster]]
    forget_the_past: Callable[[], Awaitable[None]]


def in_process(embedded: Embedded) -> World:
    """The embedded API without HTTP."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Cluster]:
        yield embedded.cluster

    return World("in-process", opened, lambda: compact(embedded))


def https_embedded(embedded: Embedded) -> World:
    """The embedded API over HTTPS."""
    return World("https-embedded", lambda: https(embedded.kubeconfig), lambda: compact(embedded))


def https_real(kube: RealKube) -> World:
    """The real API server."""

    async def nothing() -> None:
        """Its watch cache begins when the definitions are installed: version 1 is long gone."""

    return World("https-real", lambda: https(kube.kubeconfig), nothing)


@asynccontextmanager
async def https(kubeconfig: Path) -> AsyncIterator[Cluster]:
    """The HTTPS adapter, configured as a user would."""
    around = Surroundings({"KUBECONFIG": str(kubeconfig)}, Path("/nonexistent"))
    async with connect(find(around)) as cluster:
        yield cluster


async def compact(embedded: Embedded) -> None:
    """Drop the log that watches and pages start from."""
    await embedded.server.api.store.compact()


def install_definitions(kube: RealKube) -> None:
    """Install the definitions that the contract uses and wait until they are served; again: does nothing."""
    definitions = {
        kind.crd_name
        for kind in (
            find_kind("fastness.dev", "v1alpha1", "confidentialclusters"),
            find_kind("fastness.dev", "v1alpha1", "jointickets"),
            find_kind("fastness.dev", "v1alpha1", "referencevaluesets"),
            find_kind("fastness.dev", "v1alpha1", "appraisalpolicies"),
            find_kind("fastness.dev", "v1alpha1", "verdicts"),
            find_kind("fastness.dev", "v1alpha1", "tenantclusters"),
            find_kind("trusted-execution-clusters.io", "v1alpha1", "approvedimages"),
            find_kind("machineconfiguration.openshift.io", "v1", "machineconfigpools"),
        )
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with kube.client() as admin:
        for manifest in manifests():
            if manifest["metadata"]["name"] in definitions:
                assert admin.post(path, json=manifest).status_code in (201, 409)
        deadline = time.monotonic() + PATIENCE
        while not all(served(admin, f"{path}/{name}") for name in definitions):
            assert time.monotonic() < deadline, "the definitions were not established in time"
            time.sleep(0.05)


def served(admin: httpx.Client, path: str) -> bool:
    """Whether a definition is established and its collection answers."""
    definition: dict[str, Any] = admin.get(path).raise_for_status().json()
    conditions = definition.get("status", {}).get("conditions") or []  # null until the first one
    if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
        return False
    spec = definition["spec"]
    version = spec["versions"][0]["name"]
    return admin.get(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}").status_code == 200
