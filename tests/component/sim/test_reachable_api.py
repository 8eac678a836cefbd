"""Real machines that become nodes are told an address of the API that they can dial."""

from __future__ import annotations

from fastness.app.vms import reachable_api
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kube.port import Cluster, PatchType
from tests.embedded.fixtures import Embedded

TODAY, YESTERDAY = "https://127.0.0.1:6443", "https://127.0.0.1:7443"


async def address(cluster: Cluster) -> str:
    controller = await cluster.get(CONTROLLER_CONFIG.resource, SINGLETON)
    return str(controller["spec"]["infra"]["status"]["apiServerInternalURI"])


async def test_the_name_that_no_machine_resolves_and_the_port_of_yesterday_give_way(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    for api in (YESTERDAY, TODAY):
        await reachable_api(cluster, api)
        assert await address(cluster) == api


async def test_an_address_that_somebody_chose_stays(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    chosen = {"spec": {"infra": {"status": {"apiServerInternalURI": "https://api.example.com:6443"}}}}
    await cluster.patch(CONTROLLER_CONFIG.resource, SINGLETON, chosen, PatchType.MERGE)
    await reachable_api(cluster, TODAY)
    assert await address(cluster) == "https://api.example.com:6443"
