"""What an API server has from its first second, and what a state of an earlier version is given."""

from __future__ import annotations

from pathlib import Path

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.objects import annotations_of
from fastness.kinds.registry import find
from fastness.kube.port import PatchType

CONTROLLERS = CONTROLLER_CONFIG.resource
MAPS = find("", "v1", "configmaps").resource


async def test_it_says_what_its_nodes_need_and_whom_to_believe(tmp_path: Path) -> None:
    async with open_apiserver(ServerOptions(tmp_path), PRODUCT) as server:
        controller = await server.cluster.get(CONTROLLERS, SINGLETON)
        assert controller["spec"]["clusterDNSIP"] == "10.96.0.10"
        assert annotations_of(controller)[names.CONTAINER_RUNTIME] == "crio"
        for name, key in (("kube-root-ca.crt", "ca.crt"), ("extension-apiserver-authentication", "client-ca-file")):
            published = await server.cluster.get(MAPS, name, "kube-system")
            assert published["data"][key].encode() == server.pki.bundle


async def test_a_state_that_said_less_is_completed_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    async with open_apiserver(ServerOptions(tmp_path), PRODUCT) as server:
        notes = {names.CONTAINER_RUNTIME: "containerd", names.DISTRIBUTION: None, "mine": "x"}
        patch = {"metadata": {"annotations": notes}, "spec": {"clusterDNSIP": "10.1.2.3", "ipFamilies": None}}
        before = await server.cluster.patch(CONTROLLERS, SINGLETON, patch, PatchType.MERGE)
        damaged = {"data": {"client-ca-file": "old"}}
        await server.cluster.patch(MAPS, "extension-apiserver-authentication", damaged, PatchType.MERGE, "kube-system")
    async with open_apiserver(ServerOptions(tmp_path), PRODUCT) as server:
        after = await server.cluster.get(CONTROLLERS, SINGLETON)
        assert (after["spec"]["clusterDNSIP"], after["spec"]["ipFamilies"]) == ("10.1.2.3", "IPv4")
        assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
        stated = annotations_of(after)
        assert [stated[key] for key in (names.CONTAINER_RUNTIME, names.DISTRIBUTION, "mine")] == [
            "containerd",
            "kubernetes",
            "x",
        ]
        published = await server.cluster.get(MAPS, "extension-apiserver-authentication", "kube-system")
        assert published["data"]["client-ca-file"].encode() == server.pki.bundle
    async with open_apiserver(ServerOptions(tmp_path), PRODUCT) as server:
        again = await server.cluster.get(CONTROLLERS, SINGLETON)
        assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"], (
            "a third start writes nothing"
        )
