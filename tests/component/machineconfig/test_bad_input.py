"""Bad input, row by row: a clear message, the right condition, nothing half applied.

| bad input                                             | where it is judged        | rows of this module                    |
| ----------------------------------------------------- | ------------------------- | -------------------------------------- |
| every MachineConfig that the rules refuse             | render, RenderDegraded    | REFUSED                                |
| two configs that are good alone and bad together      | render, RenderDegraded    | TOGETHER                               |
| what running machines cannot follow                   | render, RenderDegraded    | IRRECONCILABLE                         |
| what a confidential pool refuses                      | render, RenderDegraded    | CONFIDENTIAL                           |
| types that the schema refuses, objects that are huge  | the API                   | SHAPES, a config of ten megabytes      |
| YAML bombs, duplicate keys, files of ten megabytes    | the command line          | FILES                                  |
| KubeletConfig and ContainerRuntimeConfig              | their own conditions      | SETTINGS                               |
| paths, links, modes, units, content on a machine      | the agent                 | ON_THE_MACHINE                         |
| selectors of all or nothing, two pools for one node   | the pool                  | the tests at the end                   |
| a node that vanishes, a clock that jumps              | the drain                 | the tests at the end                   |

Every row runs through the real loops, driver or verb. After a refused config the pool still points at what it had, no node was
told anything, and no rendered config was stored.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from click.testing import CliRunner

from fastness.agent.apply import disk
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.update import Goal
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.agent.host.states import Link
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.cli.main import cli
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.errors import Invalid, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.loops.drain import Drains
from fastness.runtime.clock import SystemClock
from tests.component.agent.directory_machine import apply, file, make_machine, rendered, snapshot, unit
from tests.component.apiserver.door.raw import exchange, post
from tests.component.machineconfig.bad_rows import (
    CONFIDENTIAL,
    GZIP,
    IRRECONCILABLE,
    MEBIBYTE,
    REFUSED,
    SHA,
    SHAPES,
    TOGETHER,
    at,
    files,
    packed,
)
from tests.component.machineconfig.worker_pool import (
    BUDGET,
    CONFIG,
    NODE,
    POD,
    POOL,
    QUICK,
    WorkerPool,
    config,
    open_worker_pool,
    until,
)
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

CONFIDENTIAL_CLUSTER = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
KUBELET = find("machineconfiguration.openshift.io", "v1", "kubeletconfigs").resource
RUNTIME = find("machineconfiguration.openshift.io", "v1", "containerruntimeconfigs").resource
STREAM = find("machineconfiguration.openshift.io", "v1", "osimagestreams").resource
EVENT = find("", "v1", "events").resource
NAME = "60-bad"
module_loop = pytest.mark.asyncio(loop_scope="module")


class Bench:
    """A settled pool with one node, and what it has."""

    def __init__(self, workers: WorkerPool, before: JsonObject) -> None:
        self.workers = workers
        self.before = before
        self.goal = before["spec"]["configuration"]["name"]

    async def state_of(self, kind: str = "RenderDegraded", status: str = "True") -> Any:
        async def looked() -> Any:
            state = condition(await self.workers.pool(), kind)
            return state if state and state["status"] == status else None

        return await until(looked, f"{kind} does not become {status}")

    async def refused(self, *configs: JsonObject) -> str:
        """Apply configs, and have the message of the pool; everything else is as it was, also after taking them back."""
        stored = await self._rendered()
        for body in configs:
            await self.workers.cluster.create(CONFIG, body)
        try:
            message = str((await self.state_of())["message"])
            assert (await self.state_of("Degraded"))["status"] == "True"
            assert await self.workers.goal() == self.goal
            assert await self._rendered() == stored
            node = await self.workers.cluster.get(NODE, "a")
            assert annotations_of(node)[names.DESIRED_CONFIG] == self.goal
            assert annotations_of(node)[names.STATE] == "Done"
        finally:
            for body in configs:
                await self.workers.cluster.delete(CONFIG, body["metadata"]["name"])
        await self.state_of(status="False")
        assert await self.workers.goal() == self.goal
        return message

    async def _rendered(self) -> set[str]:
        every = (body["metadata"]["name"] for body in (await self.workers.cluster.list(CONFIG)).items)
        return {name for name in every if name.startswith("rendered-worker-")}


def bad(body: JsonObject, name: str = NAME) -> JsonObject:
    labels = {names.ROLE_LABEL: "worker"}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": body}


async def bench_in(directory: Path, *, confidential: bool = False) -> AsyncIterator[Bench]:
    async with open_apiserver(ServerOptions(directory), PRODUCT) as server:
        if confidential:
            made = {
                "apiVersion": "fastness.dev/v1alpha1",
                "kind": "ConfidentialCluster",
                "metadata": {"name": "cluster"},
            }
            await server.cluster.create(CONFIDENTIAL_CLUSTER, {**made, "spec": {"mode": "Enforce", "simulated": True}})
        async with open_worker_pool(Embedded(server, directory)) as workers:
            await workers.add_node("a")
            yield Bench(workers, await workers.settled())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async for opened in bench_in(tmp_path_factory.mktemp("bench") / "state"):
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def confidential_bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async for opened in bench_in(tmp_path_factory.mktemp("confidential") / "state", confidential=True):
        yield opened


@module_loop
@pytest.mark.parametrize("row", REFUSED)
async def test_a_config_that_the_rules_refuse_is_named_with_the_field_and_moves_nothing(bench: Bench, row: str) -> None:
    body, says = REFUSED[row]
    message = await bench.refused(bad(body))
    assert message.startswith("Failed to render configuration for pool worker: ")
    assert NAME in message
    assert says in message


@module_loop
@pytest.mark.parametrize("row", IRRECONCILABLE)
async def test_what_running_machines_cannot_follow_is_not_rendered(bench: Bench, row: str) -> None:
    body, says = IRRECONCILABLE[row]
    message = await bench.refused(bad(body))
    assert f"reconciliation failed between current config {bench.goal}" in message
    assert f"brought by {NAME}" in message
    assert says in message


@module_loop
@pytest.mark.parametrize("row", CONFIDENTIAL)
async def test_what_a_confidential_pool_refuses_says_the_way_out(confidential_bench: Bench, row: str) -> None:
    body, says = CONFIDENTIAL[row]
    message = await confidential_bench.refused(bad(body))
    assert f"MachineConfig {NAME}: " in message
    assert says in message
    assert "refused in a confidential pool" in message
    assert "bake it into the image" in message


@module_loop
@pytest.mark.parametrize("row", TOGETHER)
async def test_configs_that_are_good_alone_and_bad_together_are_refused(bench: Bench, row: str) -> None:
    first, other, says = TOGETHER[row]
    await bench.workers.cluster.create(CONFIG, bad(first, "61-one"))
    alone = Bench(bench.workers, await bench.workers.settled(goal_is_not=bench.goal))
    message = await alone.refused(bad(other, "62-other"))
    await bench.workers.cluster.delete(CONFIG, "61-one")
    await bench.workers.settled(goal_is_not=alone.goal)
    assert says in message
    assert "61-one" in message or "62-other" in message


@module_loop
@pytest.mark.parametrize("row", SHAPES)
async def test_a_field_of_another_type_is_not_even_stored(bench: Bench, row: str) -> None:
    with pytest.raises(Invalid) as caught:
        await bench.workers.cluster.create(CONFIG, bad(SHAPES[row]))
    assert f"spec.{row}" in str(caught.value)
    with pytest.raises(NotFound):
        await bench.workers.cluster.get(CONFIG, NAME)


async def test_a_config_of_ten_megabytes_is_refused_by_the_api_and_nothing_is_stored(embedded_server: Embedded) -> None:
    huge = json.dumps(bad(files(at("/etc/a", "data:," + "x" * 10 * MEBIBYTE)))).encode()
    path = "/apis/machineconfiguration.openshift.io/v1/machineconfigs"
    answer = await exchange(embedded_server, post(path, huge))
    assert (answer.code, json.loads(answer.body)["reason"]) == (413, "RequestEntityTooLarge")
    with pytest.raises(NotFound):
        await embedded_server.cluster.get(CONFIG, NAME)


SETTINGS: dict[str, tuple[Any, JsonObject, str]] = {
    "kubelet field of the cluster": (
        KUBELET, {"kubeletConfig": {"cgroupDriver": "cgroupfs"}}, "spec.kubeletConfig.cgroupDriver is set by the cluster",
    ),
    "kubelet static pods": (KUBELET, {"kubeletConfig": {"staticPodPath": "/x"}}, "staticPodPath can only be emptied"),
    "kubelet reserve twice": (
        KUBELET, {"autoSizingReserved": True, "kubeletConfig": {"systemReserved": {"cpu": "1"}}}, "contradicts",
    ),
    "runtime log size": (RUNTIME, {"containerRuntimeConfig": {"logSizeMax": "1"}}, "must be at least 8192"),
    "runtime pids": (RUNTIME, {"containerRuntimeConfig": {"pidsLimit": 5}}, "pidsLimit must be at least 20"),
}  # fmt: skip


@module_loop
@pytest.mark.parametrize("row", SETTINGS)
async def test_settings_that_are_refused_say_so_on_themselves_and_generate_nothing(bench: Bench, row: str) -> None:
    resource, body, says = SETTINGS[row]
    cluster, selector = bench.workers.cluster, {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}
    made = {"apiVersion": names.API_VERSION, "kind": resource.kind, "metadata": {"name": "bad"}}
    await cluster.create(resource, {**made, "spec": {**body, "machineConfigPoolSelector": selector}})

    async def failed() -> Any:
        failure = condition(await cluster.get(resource, "bad"), "Failure")
        return failure if failure and failure["status"] == "True" else None

    try:
        assert says in (await until(failed, "nobody says it"))["message"]
        accepted = condition(await cluster.get(resource, "bad"), "Accepted")
        assert accepted is not None
        assert accepted["status"] == "False"
        every = [config["metadata"]["name"] for config in (await cluster.list(CONFIG)).items]
        assert not [name for name in every if "-generated-" in name]
        assert await bench.workers.goal() == bench.goal
        assert f"{resource.kind} bad is refused: " in (await bench.state_of())["message"]
    finally:
        await cluster.delete(resource, "bad")
    await bench.state_of(status="False")


BOMB = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
GOOD = yaml.safe_dump(config("50-good"))
FILES: dict[str, tuple[str, str]] = {
    "YAML bomb": (BOMB, "expand to too many"),
    "duplicate key": (GOOD + "kind: MachineConfig\n", "stands twice"),
    "duplicate key inside": (GOOD.replace("spec:\n", "spec:\n  fips: true\n  fips: false\n"), "stands twice"),
    "ten megabytes": ("# " + "x" * 10 * MEBIBYTE, "bytes, the limit is"),
    "a type of Python": ("!!python/object/apply:os.getcwd []\n", "unreadable"),
    "nothing": ("", "nothing in it"),
    "nesting without end": ("[" * 100_000, "unreadable"),
}


@pytest.mark.parametrize("row", FILES)
@pytest.mark.parametrize("verb", ["validate", "render", "plan"])
def test_a_file_that_cannot_be_read_is_named_with_exit_2_and_nothing_is_printed_as_if_it_were(
    tmp_path: Path, verb: str, row: str
) -> None:
    text, says = FILES[row]
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    arguments = {"validate": [str(path)], "render": ["--pool", "worker", str(path)], "plan": ["-f", str(path)]}[verb]
    result = CliRunner().invoke(cli, [verb, *arguments])
    assert result.exit_code == 2, result.output
    assert str(path) in result.output
    assert says in result.output or verb != "validate"
    assert "Traceback" not in result.output
    assert verb == "validate" or result.stdout == ""


ON_THE_MACHINE: dict[str, Callable[[], JsonObject]] = {
    "mode above 0777": lambda: rendered("bad", files=[file("/etc/ok", "x"), file("/etc/a", "x", 0o4755)]),
    "relative path": lambda: rendered("bad", files=[file("/etc/ok", "x"), file("etc/a", "x")]),
    "path with ..": lambda: rendered("bad", files=[file("/etc/ok", "x"), file("/etc/../../a", "x")]),
    "path with a NUL": lambda: rendered("bad", files=[file("/etc/ok", "x"), file("/etc/a\0b", "x")]),
    "link out of the root": lambda: rendered("bad", files=[file("/etc/ok", "x"), file("/out/a", "x")]),
    "unit with a slash": lambda: rendered("bad", files=[file("/etc/ok", "x")], units=[unit("../../a.service")]),
    "drop-in with a slash": lambda: rendered(
        "bad", files=[file("/etc/ok", "x")],
        units=[unit("a.service", dropins=[{"name": "../b.conf", "contents": "[Unit]\n"}])],
    ),
    "bad base64": lambda: rendered(
        "bad", files=[file("/etc/ok", "x"), at("/etc/a", "data:;base64,!!!", overwrite=True)]
    ),
    "gzip bomb": lambda: rendered(
        "bad", files=[file("/etc/ok", "x"), at("/etc/a", packed(bytes(200 * MEBIBYTE)), contents=GZIP)]
    ),
    "other hash": lambda: rendered("bad", files=[file("/etc/ok", "x"), at("/etc/a", contents=SHA)]),
    "append": lambda: rendered("bad", files=[file("/etc/ok", "x"), {"path": "/etc/a", "append": [{"source": "data:,"}]}]),
    "nonsense": lambda: rendered("bad", files=[file("/etc/ok", "x"), {"path": "/etc/a", "mode": "rw"}]),
}  # fmt: skip


@pytest.mark.parametrize("row", ON_THE_MACHINE)
def test_a_config_that_no_renderer_would_make_leaves_the_machine_as_it_was(tmp_path: Path, row: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    machine = make_machine(tmp_path / "m")
    machine.host.root.put("/out", Link(str(outside)))
    before = snapshot(tmp_path / "m" / "root")
    with pytest.raises((AgentError, DriverError)) as caught:
        apply(machine, Goal({}, Desired()), ON_THE_MACHINE[row]())
    assert str(caught.value)
    assert snapshot(tmp_path / "m" / "root") == before, "nothing is half applied, the good file neither"
    assert list(outside.iterdir()) == []
    assert disk.read_current(machine.host.root) is None


def custom(name: str, nodes: JsonObject | None, configs: JsonObject | None = None) -> JsonObject:
    both = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", name]}]}
    body: JsonObject = {"machineConfigSelector": both if configs is None else configs}
    if nodes is not None:
        body["nodeSelector"] = nodes
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name}, "spec": body}


async def heard(workers: WorkerPool, reason: str, about: str) -> JsonObject:
    async def looked() -> JsonObject | None:
        events = (await workers.cluster.list(EVENT)).items
        return next((e for e in events if e["reason"] == reason and e["involvedObject"]["name"] == about), None)

    return await until(looked, f"nobody says {reason}")  # type: ignore[no-any-return]


async def test_a_pool_whose_node_selector_takes_everything_gets_nothing_and_says_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    before = await workers.settled()
    await workers.cluster.create(POOL, custom("greedy", {}))
    event = await heard(workers, "SelectingAll", "greedy")
    assert event["type"] == "Warning"
    assert (await workers.settled())["status"]["machineCount"] == before["status"]["machineCount"] == 1
    assert not (await workers.cluster.get(POOL, "greedy")).get("status", {}).get("machineCount")


async def test_a_pool_whose_config_selector_finds_nothing_is_degraded_and_one_that_takes_all_is_told(
    workers: WorkerPool,
) -> None:
    nothing = {"matchLabels": {names.ROLE_LABEL: "worker", "no": "such"}}
    await workers.cluster.create(POOL, custom("empty", None, nothing))

    async def degraded() -> Any:
        state = condition(await workers.cluster.get(POOL, "empty"), "RenderDegraded")
        return state if state and state["status"] == "True" else None

    reported = await until(degraded, "it does not say so")
    assert reported["message"].startswith("Failed to render configuration for pool empty: ")
    assert not ((await workers.cluster.get(POOL, "empty"))["spec"].get("configuration") or {}).get("name")


async def test_a_pool_with_a_stream_that_is_not_on_offer_keeps_what_it_has_and_says_what_there_is(
    workers: WorkerPool,
) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await workers.cluster.patch(POOL, "worker", {"spec": {"osImageStream": {"name": "rhel-10"}}}, PatchType.MERGE)
    state = await Bench(workers, await workers.pool()).state_of()
    assert "the stream rhel-10, which is not on offer (there are: none)" in state["message"]
    assert await workers.goal() == good
    digest = "@sha256:" + "0" * 64
    offer = {"name": "rhel-10", "osImage": f"a.example/os{digest}", "osExtensionsImage": f"a.example/ext{digest}"}
    made = {"apiVersion": names.API_VERSION, "kind": "OSImageStream", "metadata": {"name": "cluster"}, "spec": {}}
    await workers.cluster.create(STREAM, made)
    status = {"status": {"availableStreams": [offer], "defaultStream": "rhel-10"}}
    await workers.cluster.patch(STREAM, "cluster", status, PatchType.MERGE, "", WriteOptions(subresource="status"))
    pool = await workers.settled(goal_is_not=good)
    assert pool["status"]["osImageStream"] == {"name": "rhel-10"}
    config = await workers.cluster.get(CONFIG, pool["spec"]["configuration"]["name"])
    assert config["spec"]["osImageURL"] == offer["osImage"]


async def test_a_node_that_two_pools_claim_goes_to_neither_and_both_say_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    for name in ("infra", "storage"):
        await workers.cluster.create(POOL, custom(name, {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}}))
    both = {f"{names.NODE_ROLE_PREFIX}{name}": "" for name in ("infra", "storage")}
    await workers.cluster.patch(NODE, "a", {"metadata": {"labels": both}}, PatchType.MERGE)
    for name in ("infra", "storage"):
        event = await heard(workers, "NodeInSeveralPools", name)
        assert event["type"] == "Warning"
        assert "infra" in event["message"]
        assert "storage" in event["message"]

    async def counted() -> bool:
        pools = {pool["metadata"]["name"]: pool for pool in (await workers.cluster.list(POOL)).items}
        return all(not (pools[name].get("status") or {}).get("machineCount") for name in ("worker", "infra", "storage"))

    assert await until(counted, "somebody counts it")
    assert annotations_of(await workers.cluster.get(NODE, "a"))[names.DESIRED_CONFIG] == good
    await workers.cluster.patch(
        NODE, "a", {"metadata": {"labels": {f"{names.NODE_ROLE_PREFIX}storage": None}}}, PatchType.MERGE
    )

    async def claimed() -> bool:
        return bool(((await workers.cluster.get(POOL, "infra")).get("status") or {}).get("machineCount") == 1)

    assert await until(claimed, "nobody takes it although only one claims it")


async def test_a_node_that_vanishes_during_its_drain_holds_up_nobody(workers: WorkerPool) -> None:
    for name in ("a", "b"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await blocked_pod(workers, "a")
    await blocked_pod(workers, "b")
    await workers.cluster.create(CONFIG, config("50-motd"))

    async def draining() -> str:
        nodes = (await workers.cluster.list(NODE)).items
        return next((n["metadata"]["name"] for n in nodes if (n.get("spec") or {}).get("unschedulable")), "")

    gone = await until(draining, "nobody drains")
    await workers.cluster.delete(NODE, gone)
    other = "b" if gone == "a" else "a"
    await workers.cluster.delete(BUDGET, f"keep-{other}", "default")
    pool = await workers.settled(goal_is_not=good)
    assert pool["status"]["machineCount"] == pool["status"]["updatedMachineCount"] == 1
    assert pool["status"]["unavailableMachineCount"] == 0
    assert not (await workers.cluster.get(NODE, other)).get("spec", {}).get("unschedulable")


async def blocked_pod(workers: WorkerPool, node: str) -> None:
    """A pod on a node that a budget keeps there."""
    name = f"web-{node}"
    meta = {"name": name, "namespace": "default", "labels": {"app": node}}
    body = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await workers.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await workers.cluster.patch(POD, name, ready, PatchType.MERGE, "default", WriteOptions(subresource="status"))
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"keep-{node}", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": node}}},
    }  # fmt: skip
    await workers.cluster.create(BUDGET, budget)


class JumpingClock(VirtualClock):
    """A clock whose wall time somebody sets."""

    def __init__(self) -> None:
        super().__init__()
        self.off = timedelta()

    def now(self) -> datetime:
        return super().now() + self.off


@pytest.mark.parametrize("jump", [timedelta(days=-3650), timedelta(days=3650)], ids=["back", "ahead"])
async def test_a_clock_that_jumps_neither_ends_nor_hastens_a_drain(embedded_server: Embedded, jump: timedelta) -> None:
    cluster, clock = embedded_server.cluster, JumpingClock()
    request = {names.DESIRED_DRAIN: "drain-rendered-worker-1"}
    meta = {"name": "a", "annotations": request}
    await cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    body = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    pod = {"name": "web", "namespace": "default", "labels": {"app": "a"}}
    await cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": body})
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    keep = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
    }
    await cluster.create(BUDGET, {**keep, "spec": budget})
    async with Informers(cluster, clock=SystemClock(), entropy=SeededEntropy()) as informers:
        drains = Drains(cluster, informers, clock, QUICK)
        first = await drains.reconcile(ObjectName("", "a"))
        clock.off = jump
        second = await drains.reconcile(ObjectName("", "a"))
        assert first == second, "only time that passed counts"
        reasons = {event["reason"] for event in (await cluster.list(EVENT)).items}
        assert not reasons & {"DrainFailed", "DrainThresholdExceeded"}
        await cluster.delete(BUDGET, "keep", "default")
        for _ in range(3):
            await drains.reconcile(ObjectName("", "a"))
            with suppress(NotFound):
                await cluster.delete(POD, "web", "default")
        node = await cluster.get(NODE, "a")
        assert annotations_of(node)[names.LAST_APPLIED_DRAIN] == request[names.DESIRED_DRAIN]
