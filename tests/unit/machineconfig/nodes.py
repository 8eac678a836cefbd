"""Inputs of bases, for every kind of node that there is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Final

from fastness.formats import data_url
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.base.node_inputs import (
    Distribution,
    NodeInputs,
    NodeSources,
    Proxy,
    Runtime,
)
from tests.unit.machineconfig.build import CERTIFICATE

SECRET: Final = '{\n  "auths": {"registry.example": {"auth": "dXNlcjpwYXNz"}}\n}'
PLAIN: Final = NodeInputs(
    runtime=Runtime.CONTAINERD, cluster_dns="10.96.0.10", kubelet_ca=CERTIFICATE, api_server="https://api.example:6443",
    sources=NodeSources(SECRET, CERTIFICATE),
)  # fmt: skip
CRIO: Final = replace(PLAIN, runtime=Runtime.CRIO)
OPENSHIFT: Final = replace(
    CRIO, distribution=Distribution.OPENSHIFT, pause_image="registry.example/pod@sha256:" + 64 * "a", platform="AWS"
)
KINDS: Final = {"kubernetes-containerd": PLAIN, "kubernetes-crio": CRIO, "openshift-crio": OPENSHIFT}
PROXY: Final = Proxy("http://proxy.example:3128", "http://proxy.example:3128", ".cluster.local,10.0.0.0/8")


def all_inputs() -> dict[str, NodeInputs]:
    """Every kind of node, by name: distribution and runtime, role, trust, with and without what users bring."""
    every: dict[str, NodeInputs] = {}
    trusts = [(TrustModel.NONE, False), (TrustModel.CONTAINERS_HOST, False), (TrustModel.CONFIDENTIAL_CLUSTER, True)]
    for (name, kind), role, (trust, attested), full in itertools.product(
        KINDS.items(), ("worker", "master"), trusts, (False, True)
    ):
        inputs = replace(kind, role=role, trust=trust, attested=attested)
        if full:
            inputs = replace(
                inputs, proxy=PROXY, trust_bundle=CERTIFICATE, config_server="https://configs.example:22624",
                pause_image="registry.example/pause:3.10", ip_families="DualStack",
            )  # fmt: skip
        every[f"{name}-{role}-{trust}{'-full' if full else ''}"] = inputs
    return every


def files_of(document: JsonObject) -> dict[str, str]:
    """The text of every file of a document, by path."""
    entries = (document.get("storage") or {}).get("files") or ()
    return {entry["path"]: data_url.contents(entry["contents"]).decode() for entry in entries}


def units_of(document: JsonObject) -> dict[str, JsonObject]:
    """The units of a document, by name."""
    return {unit["name"]: unit for unit in (document.get("systemd") or {}).get("units") or ()}
