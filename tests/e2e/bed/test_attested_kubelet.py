"""A real kubelet with what `agent join` made: it becomes the Machine's node and runs a pod; any other key is denied.

ADR 43 rests on what a kubelet with `rotateCertificates: false` does: it takes the key in `kubelet-client.key.tmp`, which the
agent made and named in its proof, and asks for no certificate of its own accord later. Here that kubelet runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.join import Prepared, prepare_join
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate
from fastness.enrolment.loops.join_tokens import BINDING, BINDINGS
from fastness.kinds.crd import manifests
from fastness.kube.errors import AlreadyExists
from fastness.release.live.signed_configs import ConfigSigner
from fastness.runtime.clock import SystemClock
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, until
from tests.bed import Bed, Node
from tests.bed.kubectl import Kubectl, pod
from tests.contract.worlds import served
from tests.joining import CSRS, JoiningSite, Place, client_request, joining, new_key, outcome
from tests.patience import PATIENCE
from tests.realkube.credentials import kubeconfig

GROUPS = ("fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# What the measured image of an attested pool says to its kubelet, whatever the rendered configuration says.
AGENT_MAKES_KEYS = {"rotateCertificates": False, "serverTLSBootstrap": False}


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


@pytest.fixture(scope="module")
def vendor() -> SimVendor:
    return SimVendor(ENTROPY)


@pytest.fixture
def spare(defined: Bed) -> Iterator[Node]:
    """A machine with containerd, whose kubelet has not started yet."""
    node = defined.spare_node()
    yield node
    defined.remove_node(node)


@pytest.fixture
async def site(defined: Bed, vendor: SimVendor) -> AsyncIterator[JoiningSite]:
    """The doors and loops of joining before the bed's API, which know the image and let machines ask."""
    async with joining(Place.real(defined.kube), vendor) as site:
        with suppress(AlreadyExists):
            await site.world.approve("tpm")
        await until(lambda: may_ask(site))
        yield site


async def may_ask(site: JoiningSite) -> bool:
    return any(binding["metadata"]["name"] == BINDING for binding in (await site.world.cluster.list(BINDINGS)).items)


async def test_a_kubelet_with_the_key_of_agent_join_runs_a_pod_and_another_key_is_denied(
    site: JoiningSite, spare: Node, defined: Bed, kubectl: Kubectl, tmp_path: Path
) -> None:
    prepared, named = await joined_by_agent(site, spare, tmp_path)
    token = prepared.token.reveal().decode()
    async with site.client(token) as thief:
        stolen = await site.ask(thief, client_request(new_key(), prepared.node_name))
    assert outcome(stolen) == ("Denied", "OtherKey"), "a leaked token is of no use with a key of one's own"

    start_kubelet(defined, spare, prepared.node_name, token)
    await asyncio.to_thread(defined.until_ready, prepared.node_name)
    await asyncio.to_thread(run_pod, kubectl, prepared.node_name)
    key, certificate = credential_of(spare)
    assert key.public_der() == named.public_der(), "the kubelet is known by the key that the proof named"
    assert certificate.subject.common_name == f"system:node:{prepared.node_name}"

    async with site.node_client(tmp_path, key, certificate.pem) as node:
        renewal = await site.ask(node, client_request(new_key(), prepared.node_name))
        assert outcome(renewal) == ("Denied", "KeyNotNamed"), "also with the node's own credential"
        assert (await node.delete(f"/api/v1/nodes/{prepared.node_name}")).status_code == 403
    async with site.admin() as admin:
        requests = (await admin.get(CSRS)).json()["items"]
        await admin.delete(f"/api/v1/nodes/{prepared.node_name}")
    node_user = f"system:node:{prepared.node_name}"
    own = [request for request in requests if request["spec"]["username"] == node_user]
    assert len(own) == 1, "the one above: the kubelet itself asked for no other certificate"


async def joined_by_agent(site: JoiningSite, node: Node, directory: Path) -> tuple[Prepared, PrivateKey]:
    """What `fastness agent join` does on a machine: the token, and the key that lies where the kubelet looks."""
    signer = await ConfigSigner.open(site.world.cluster, site.world.informers, site.world.clock, ENTROPY)
    trust = directory / "trust.json"
    trust.write_text(json.dumps({"ca": site.world.doors.broker.doors.bundle, "configKeys": signer.jwks()}))
    key_file = node.kubelet_directory / "pki" / "kubelet-client.key.tmp"
    prepared = await prepare_join(
        f"https://127.0.0.1:{site.world.doors.broker.port}", await site.world.enrolled("tpm"), ImageTrust.load(trust),
        key_file, RetryBudget(SystemClock(), ENTROPY, PATIENCE, pause=0.05),
    )  # fmt: skip
    return prepared, PrivateKey.from_pem(SecretBytes(key_file.read_bytes()))


def start_kubelet(bed: Bed, node: Node, name: str, token: str) -> None:
    """The kubelet of an attested pool, which has a bootstrap token and a key and nothing else."""
    kubeconfigs = {
        "bootstrap": kubeconfig(bed.inner_url, bed.kube.ca, {"token": token}),
        "proxy": bed.proxy_kubeconfig(node),
    }
    node.join(bed.binaries, name, kubeconfigs, bed.kube.ca, **AGENT_MAKES_KEYS)


def run_pod(kubectl: Kubectl, node: str) -> None:
    """A pod runs to its end on that node."""
    kubectl.apply(pod("on-attested-node", node, ["true"]))
    kubectl.wait("pod/on-attested-node", "jsonpath={.status.phase}=Succeeded")


def credential_of(node: Node) -> tuple[PrivateKey, Certificate]:
    """What the kubelet shows to the API server; the file that it calls current is a link that leads nowhere outside the node."""
    (file,) = (node.kubelet_directory / "pki").glob("kubelet-client-2*.pem")
    content = file.read_bytes()
    certificate = Certificate.from_pem(content)
    return PrivateKey.from_pem(SecretBytes(content[content.rindex(b"-----BEGIN") :])), certificate
