"""Who we are to a real API server, by kubeconfig: certificates, tokens, impersonation, and trust."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.registry import find as find_kind
from fastness.kube.client.client import KubeCluster, connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Impersonation
from fastness.kube.errors import Forbidden, Unauthorized, Unavailable
from fastness.runtime.clock import SystemEntropy
from tests.realkube import RealKube
from tests.unit.kube.virtual import VirtualClock

CONFIG_MAP = find_kind("", "v1", "configmaps").resource
REVIEW = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


@asynccontextmanager
async def as_user(kubeconfig: Path, **options: Any) -> AsyncIterator[KubeCluster]:
    """The cluster as a kubeconfig describes it."""
    around = Surroundings({}, Path("/nonexistent"))
    connection = find(around, kubeconfig=kubeconfig, **options)
    async with connect(connection, clock=VirtualClock(), entropy=SystemEntropy()) as cluster:
        yield cluster


async def whoami(cluster: KubeCluster) -> str:
    """What the server calls us."""
    body: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await cluster.create(REVIEW, body)
    return str(answer["status"]["userInfo"]["username"])


def edited(source: Path, target: Path, **user: Any) -> Path:
    """A copy of a kubeconfig with another user."""
    document = json.loads(source.read_text())
    document["users"][0]["user"] = user
    target.write_text(json.dumps(document))
    return target


async def test_a_client_certificate_is_shown(real_kube: RealKube) -> None:
    async with as_user(real_kube.kubeconfig) as cluster:
        assert await whoami(cluster) == "admin"


async def test_a_token_is_shown_and_rights_are_those_of_its_user(real_kube: RealKube) -> None:
    async with as_user(real_kube.kubeconfig_for("viewer")) as cluster:
        assert await whoami(cluster) == "viewer"
        assert (await cluster.list(CONFIG_MAP)).items
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
        with pytest.raises(Forbidden) as caught:
            await cluster.create(CONFIG_MAP, body)
    assert caught.value.kind == "configmaps"


async def test_a_token_in_a_file_is_renewed_without_a_restart(real_kube: RealKube, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("stale")
    config = edited(real_kube.kubeconfig_for("viewer"), tmp_path / "config", tokenFile="token")
    async with as_user(config) as cluster:
        with pytest.raises(Unauthorized):
            await whoami(cluster)
        file.write_text(real_kube.users["viewer"].token)
        assert await whoami(cluster) == "viewer"


async def test_impersonation_acts_as_somebody_else(real_kube: RealKube) -> None:
    async with as_user(real_kube.kubeconfig, act_as=Impersonation("eve", ("dev",))) as cluster:
        assert await whoami(cluster) == "eve"
        with pytest.raises(Forbidden):
            await cluster.list(CONFIG_MAP)


async def test_those_without_the_right_cannot_impersonate(real_kube: RealKube) -> None:
    async with as_user(real_kube.kubeconfig_for("alice"), act_as=Impersonation("admin")) as cluster:
        with pytest.raises(Forbidden, match="impersonate"):
            await whoami(cluster)


async def test_a_server_of_another_authority_is_not_talked_to(real_kube: RealKube, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    trustme.CA().cert_pem.write_to_path(other)
    document = json.loads(real_kube.kubeconfig_for("viewer").read_text())
    document["clusters"][0]["cluster"]["certificate-authority"] = str(other)
    config = tmp_path / "config"
    config.write_text(json.dumps(document))
    async with as_user(config) as cluster:
        with pytest.raises(Unavailable, match="certificate is not trusted"):
            await whoami(cluster)


async def test_a_server_of_another_name_needs_to_be_told(real_kube: RealKube, tmp_path: Path) -> None:
    document = json.loads(real_kube.kubeconfig_for("viewer").read_text())
    config = tmp_path / "config"
    for name, trusted in (("elsewhere.example", False), ("kubernetes.default.svc", True)):
        document["clusters"][0]["cluster"]["tls-server-name"] = name
        config.write_text(json.dumps(document))
        async with as_user(config) as cluster:
            if trusted:
                assert await whoami(cluster) == "viewer"
            else:
                with pytest.raises(Unavailable, match="not trusted"):
                    await whoami(cluster)


async def test_nobody_at_the_address_is_unavailable(real_kube: RealKube, tmp_path: Path) -> None:
    document = json.loads(real_kube.kubeconfig_for("viewer").read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    config = tmp_path / "config"
    config.write_text(json.dumps(document))
    async with as_user(config) as cluster:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await whoami(cluster)
