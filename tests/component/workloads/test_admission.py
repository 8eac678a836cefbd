"""Requirements of namespaces in the embedded API, with input that means harm, and with the real policy engine."""

from __future__ import annotations

import asyncio
import base64
import gzip
from typing import Any

import pytest

from fastness.kinds.registry import find
from fastness.kube.errors import Forbidden, Invalid
from fastness.kube.port import PatchType
from fastness.workloads.admission.workloads import ENFORCEMENT
from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.agent_policy.lint import unconditionally_open
from fastness.workloads.initdata.workload import ANNOTATION
from fastness.workloads.live.agent_policies import PolicyTrials
from tests.embedded.fixtures import Embedded
from tests.unit.workloads.admission.test_workloads import OPEN, RESTRICTIVE, packed, pod

Object = dict[str, Any]
NAMESPACES, PODS = find("", "v1", "namespaces").resource, find("", "v1", "pods").resource
CLASSES = find("node.k8s.io", "v1", "runtimeclasses").resource
BOMB = base64.b64encode(gzip.compress(b"#" * 16_000_000, 9)).decode()


async def world(embedded: Embedded, level: str = "deny") -> None:
    meta = {"name": "safe", "labels": {ENFORCEMENT: level}}
    await embedded.cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata-cc"},
        "handler": "kata-tdx",
    }
    await embedded.cluster.create(
        CLASSES, {**runtime, "overhead": {"podFixed": {"cpu": "250m", "tdx.intel.com/keys": "1"}}}
    )


def made(name: str, initdata: str) -> Object:
    workload = pod(initdata)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **workload,
        "metadata": {**workload["metadata"], "name": name, "namespace": "safe"},
    }


BAD = {
    BOMB: "more than",
    RESTRICTIVE[: len(RESTRICTIVE) // 2]: "",
    RESTRICTIVE + RESTRICTIVE: "",
    "not base64 at all!": "base64",
    base64.b64encode(b"not gzip").decode(): "gzip",
    packed(OPEN): "ExecProcessRequest",
    packed("package agent_policy\n\nAllowRequestsFailingPolicy := true\n"): "AllowRequestsFailingPolicy",
    packed("default ExecProcessRequest := false\n"): "there is no package",
    packed("package agent_policy\n\nExecProcessRequest if {\n\tcount([]) == 0\n}\n"): "a rule that anything satisfies",
}


async def test_bad_init_data_is_refused_and_the_next_good_pod_is_not(embedded_server: Embedded) -> None:
    await world(embedded_server)
    for number, (initdata, reason) in enumerate(BAD.items()):
        with pytest.raises(Forbidden) as caught:
            await embedded_server.cluster.create(PODS, made("bad", initdata))
        assert reason in caught.value.message
        assert caught.value.causes[0].field.startswith("metadata.annotations[")
        stored = await embedded_server.cluster.create(PODS, made(f"good-{number}", RESTRICTIVE))
        assert stored["spec"]["overhead"] == {"cpu": "250m", "tdx.intel.com/keys": "1"}


async def test_switch_with_a_typing_error_is_refused_by_name(embedded_server: Embedded) -> None:
    await world(embedded_server)
    with pytest.raises(Invalid, match="use warn or deny"):
        patch = {"metadata": {"labels": {ENFORCEMENT: "yes"}}}
        await embedded_server.cluster.patch(NAMESPACES, "safe", patch, PatchType.MERGE)


async def test_running_pods_of_before_can_still_be_changed_and_deleted(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await world(embedded_server, "warn")
    await cluster.create(PODS, made("old", packed(OPEN)))
    await cluster.patch(NAMESPACES, "safe", {"metadata": {"labels": {ENFORCEMENT: "deny"}}}, PatchType.MERGE)
    await cluster.patch(PODS, "old", {"metadata": {"labels": {"a": "b"}}}, PatchType.MERGE, "safe")
    await cluster.delete(PODS, "old", "safe")
    with pytest.raises(Forbidden):
        await cluster.create(PODS, made("old2", packed(OPEN)))


HIDDEN = "package agent_policy\n\ndefault ExecProcessRequest := false\n\nExecProcessRequest if {\n\tinput == input\n}\n"


async def test_engine_finds_what_no_reading_does() -> None:
    trials = PolicyTrials()
    assert unconditionally_open(HIDDEN) == []
    assert "ExecProcessRequest" in (await trials.of(HIDDEN)).opened
    assert (await trials.of("package agent_policy\n\nExecProcessRequest := {{{\n")).error


@pytest.mark.parametrize("policy", [HIDDEN, "package agent_policy\n\nExecProcessRequest := {{{\n"])
async def test_embedded_api_asks_the_engine_as_well(embedded_server: Embedded, policy: str) -> None:
    await world(embedded_server)
    reason = "a rule that anything satisfies" if policy == HIDDEN else "does not parse"
    with pytest.raises(Forbidden, match=reason):
        await embedded_server.cluster.create(PODS, made("bad", packed(policy)))
    await embedded_server.cluster.create(PODS, made("p", RESTRICTIVE))
    notes = {"metadata": {"annotations": {ANNOTATION: packed(policy)}}}
    with pytest.raises(Forbidden, match=reason):
        await embedded_server.cluster.patch(PODS, "p", notes, PatchType.MERGE, "safe")


async def test_change_during_the_question_to_the_engine_is_not_lost(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await world(embedded_server)
    await cluster.create(PODS, made("p", RESTRICTIVE))
    other = packed(policy_of({"apiVersion": "v1", "kind": "Pod", **pod()}) + "# another\n")
    asking = asyncio.create_task(
        cluster.patch(PODS, "p", {"metadata": {"annotations": {ANNOTATION: other}}}, PatchType.MERGE, "safe")
    )
    await asyncio.sleep(0)
    await cluster.patch(PODS, "p", {"metadata": {"labels": {"meanwhile": "yes"}}}, PatchType.MERGE, "safe")
    assert not asking.done(), "the engine is still being asked"
    stored = await asking
    assert stored["metadata"]["labels"]["meanwhile"] == "yes"
    assert stored["metadata"]["annotations"][ANNOTATION] == other
