"""The page of runtimes: what is installed where, why a node is left out, why a class is not made."""

from __future__ import annotations

from fastness.kinds.kata import names
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from tests.component.page.scan import shows
from tests.component.page.served_page import NODES, ServedPage
from tests.lowering import lowered

CLASS = find("node.k8s.io", "v1", "runtimeclasses").resource


async def node(web: ServedPage, name: str, image: str = "", **labels: str) -> None:
    meta = {"name": name, "labels": {"node-role.kubernetes.io/worker": "", **labels}}
    await web.cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    status = {"status": {"nodeInfo": {"osImage": image}}}
    await web.cluster.patch(NODES, name, status, PatchType.MERGE, "", WriteOptions(subresource="status"))


async def hosts(web: ServedPage) -> None:
    """The workers are hosts of pod VMs, and somebody said so twice."""
    pools = [{"name": name, "trustModel": "ContainersHost"} for name in ("worker", "kata-oc")]
    await lowered(web.cluster, {"pools": pools})


async def test_without_a_config_the_page_says_who_could_have_it_and_what_to_do(web: ServedPage) -> None:
    await node(web, "bare-0", **{names.BASE_LABEL: "true"})
    await node(web, "bare-1", "Ubuntu 24.04 LTS")
    html = await shows(await web.administrator(), "/runtimes", "Nothing is installed")
    assert "fastness enable tdx --plan" in html
    assert "Ubuntu 24.04 LTS" in html


async def test_nodes_and_classes_are_told_with_their_reasons(web: ServedPage) -> None:
    await node(web, "bare-0", **{names.BASE_LABEL: "true", names.TDX_LABEL: "true"})
    await node(web, "bare-1", **{names.BASE_LABEL: "false"})
    body: JsonObject = {
        "apiVersion": KATA_CONFIG.api_version, "kind": "KataConfig", "metadata": {"name": "example"},
        "spec": {"checkNodeEligibility": True},
    }  # fmt: skip
    await hosts(web)
    await web.cluster.create(KATA_CONFIG.resource, body)
    installing = {
        "type": "InProgress",
        "status": "True",
        "reason": "Installing",
        "message": "Performing <b>initial</b> installation",
    }
    status = {"conditions": [installing], "kataNodes": {"nodeCount": 1, "readyNodeCount": 0, "installing": ["bare-0"]}}
    await web.cluster.patch(
        KATA_CONFIG.resource, "example", {"status": status}, PatchType.MERGE, "", WriteOptions(subresource="status")
    )
    made = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "kata-tdx",
        "metadata": {"name": "kata-cc", "finalizers": [names.CLASS_FINALIZER]},
        "overhead": {"podFixed": {"tdx.intel.com/keys": "1"}},
    }  # fmt: skip
    await web.cluster.create(CLASS, made)
    html = await shows(await web.administrator(), "/runtimes", "kata-tdx")
    assert "installing" in html
    assert "Performing &lt;b&gt;initial" in html
    assert f"no label {names.BASE_LABEL}=true" in html
    assert "tdx.intel.com/keys=1" in html
    assert "no node has all of its labels; the closest lacks" in html
