"""A real kubelet with what `agent join` made: it becomes the Machine's node and runs a pod; any other key is denied.

ADR 43 rests on what a kubelet with `rotateCertificates: false` does: it takes the key in `kubelet-client.key.tmp`, which the
agent made and named in its proof, and asks for no certificate of its own accord later. Here that kubelet runs, with the settings
and the bootstrap kubeconfig of a rendered configuration: it registers with a taint, which the proof takes away, and controllers
give its node the role that it may not give itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.join import Prepared, prepare_join
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.machine.proof_age import TAINT_KEY
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate
from fastness.enrolment.loops.join_tokens import BINDING, BINDINGS
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import labels_of
from fastness.kube.controllers import Runner
from fastness.kube.errors import AlreadyExists
from fastness.machineconfig.loops.nodes.labels import FirstLabels
from fastness.machineconfig.loops.rendering.defaults import built_in_pool
from fastness.machineconfig.render.base.kubelet import NOT_ATTESTED as TAINT
from fastness.machineconfig.render.base.kubelet import TOKEN_FILE, bootstrap_kubeconfig, kubelet_settings
from fastness.machineconfig.render.base.node_inputs import NodeInputs, NodeSources, Runtime
from fastness.release.live.signed_configs import ConfigSigner
from fastness.runtime.clock import SystemClock
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import ENTROPY, until
from tests.bed import Bed, Node
from tests.bed.kubectl import Kubectl, pod
from tests.bed.settings import CLUSTER_DNS
from tests.contract.worlds import served
from tests.joining import CSRS, JoiningSite, Place, client_request, joining, new_key, outcome
from tests.patience import PATIENCE

GROUPS = (
    "fastness.dev", "trusted-execution-clusters.io", "confidentialcontainers.org", "machineconfiguration.openshift.io",
)  # fmt: skip
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Settings of a rendered configuration that a node which shares its machine with others cannot have: it has no systemd.
ALONE = frozenset({
    "authentication", "cgroupDriver", "cgroupRoot", "enforceNodeAllocatable", "failSwapOn", "staticPodPath", "systemCgroups",
    "systemReservedCgroup", "volumePluginDir",
})  # fmt: skip


def attested_inputs(bed: Bed) -> NodeInputs:
    """What the base of an attested pool of the bed's cluster is made from."""
    sources = NodeSources(api_ca=bed.kube.ca.read_text())
    return NodeInputs(
        runtime=Runtime.CONTAINERD, trust=TrustModel.CONFIDENTIAL_CLUSTER, attested=True, cluster_dns=CLUSTER_DNS,
        api_server=bed.inner_url, sources=sources,
    )  # fmt: skip


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


@pytest.mark.long("a kubelet joins a real Kubernetes and runs a pod, and another one is refused")
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
    node_object = await site.world.cluster.get(NODE.resource, prepared.node_name)
    assert TAINT in node_object["spec"]["taints"], "nothing is scheduled before the proof was looked at"
    assert names.WORKER_LABEL not in labels_of(node_object), "a kubelet may not give its node a role"
    async with control_loops(site):
        await until(lambda: is_at_work(site, prepared.node_name))
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


@asynccontextmanager
async def control_loops(site: JoiningSite) -> AsyncIterator[None]:
    """The loops that look at a machine's proof and label its node, for the time of the block."""
    world = site.world
    with suppress(AlreadyExists):
        await world.cluster.create(MACHINE_CONFIG_POOL.resource, built_in_pool("worker"))
    loops = [loop(world.cluster, world.informers, world.clock) for loop in (ProofAge, FirstLabels)]
    work = asyncio.create_task(Runner(loops, world.informers, world.clock, ENTROPY).run())
    try:
        yield
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def is_at_work(site: JoiningSite, name: str) -> bool:
    """Whether a node has lost the taint and has the role of its Machine's pool."""
    node = await site.world.cluster.get(NODE.resource, name)
    tainted = TAINT_KEY in {taint["key"] for taint in node["spec"].get("taints") or ()}
    return names.WORKER_LABEL in labels_of(node) and not tainted


def start_kubelet(bed: Bed, node: Node, name: str, token: str) -> None:
    """The kubelet of an attested pool, with what a rendered configuration says and what the agent left."""
    inputs = attested_inputs(bed)
    place = node.space.path(TOKEN_FILE)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(token)
    kubeconfigs = {"bootstrap": bootstrap_kubeconfig(inputs), "proxy": bed.proxy_kubeconfig(node)}
    settings = {key: value for key, value in kubelet_settings(inputs).items() if key not in ALONE}
    node.join(bed.binaries, name, kubeconfigs, bed.kube.ca, **settings)


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
