"""A real kubelet of a pool that does not attest, with the kubeconfig that the config server put into its configuration.

Nothing but the configuration helps it: it asks with the token, gets its certificate, registers, asks for a serving certificate,
and gets the role of the pool that its ticket was for. The same kubeconfig on a second machine joins nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from fastness.formats import data_url
from fastness.kinds.crd import manifests
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of
from fastness.machineconfig.render.base.kubelet import kubelet_settings
from fastness.machineconfig.render.base.node_inputs import NodeInputs, Runtime
from tests.attesting import until
from tests.bed import Bed, Node
from tests.bed.settings import CLUSTER_DNS
from tests.contract.worlds import served
from tests.e2e.bed.test_attested_kubelet import ALONE, DEFINITIONS, GROUPS
from tests.joining import CSRS, Place, client_request, new_key, outcome
from tests.unattested import PoolSite, cluster_spec, pool_site


@pytest.fixture(scope="module")
def defined(bed: Bed) -> Bed:
    """The bed with our kinds."""
    ours = [manifest for manifest in manifests() if manifest["spec"]["group"] in GROUPS]
    with bed.kube.client() as admin:
        for manifest in ours:
            assert admin.post(DEFINITIONS, json=manifest).status_code in (201, 409), manifest["metadata"]["name"]
        for manifest in ours:
            bed.until(partial(served, admin, f"{DEFINITIONS}/{manifest['metadata']['name']}"))
    return bed


@pytest.fixture
def spare(defined: Bed) -> Iterator[Node]:
    """A machine with containerd, whose kubelet has not started yet."""
    node = defined.spare_node()
    yield node
    defined.remove_node(node)


@pytest.fixture
async def site(defined: Bed) -> AsyncIterator[PoolSite]:
    async with pool_site(Place.real(defined.kube), cluster_spec(), api_server=defined.inner_url) as site:
        yield site


async def test_a_kubelet_joins_by_its_configuration_alone_and_is_labelled_by_its_ticket(
    site: PoolSite, spare: Node, defined: Bed
) -> None:
    name, boot = "unattested-kubelet", await site.booted("plain")
    settings = kubelet_settings(NodeInputs(runtime=Runtime.CONTAINERD, cluster_dns=CLUSTER_DNS))
    assert settings["rotateCertificates"] is True
    kubeconfigs = {
        "bootstrap": data_url.contents(boot.entry["contents"]).decode(), "proxy": defined.proxy_kubeconfig(spare),
    }  # fmt: skip
    settings = {key: value for key, value in settings.items() if key not in ALONE}
    spare.join(defined.binaries, name, kubeconfigs, defined.kube.ca, **settings)
    await asyncio.to_thread(defined.until_ready, name)

    async def labelled() -> bool:
        return f"{names.NODE_ROLE_PREFIX}plain" in labels_of(await site.cluster.get(NODE.resource, name))

    await until(labelled)

    async def serves() -> bool:
        async with site.joining.admin() as admin:
            requests = (await admin.get(CSRS)).json()["items"]
        own = [request for request in requests if request["spec"]["username"] == f"system:node:{name}"]
        return bool(own) and all(outcome(request)[0] == "Approved" for request in own)

    await until(serves)
    async with site.joining.client(boot.token) as thief:
        made = await thief.post(CSRS, json=client_request(new_key(), "second-machine"))
        if made.status_code == 201:
            assert outcome(await site.joining.settled(made.json()["metadata"]["name"]))[0] == "Denied"
        else:
            assert made.status_code == 401
    await site.cluster.delete(NODE.resource, name)
