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
| selectors of all or nothing, two pools for one node   | the pool                  | test_bad_pools.py                      |
| a node that vanishes, a clock that jumps              | the drain                 | test_bad_drains.py                     |

Every row runs through the real loops, driver or verb. After a refused config the pool still points at what it had, no node was
told anything, and no rendered config was stored.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
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
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import Invalid, NotFound
from tests.component.agent.directory_machine import apply, file, make_machine, rendered, snapshot, unit
from tests.component.apiserver.door.raw import exchange, post
from tests.component.machineconfig.bad_rows import (
    CONFIDENTIAL,
    GZIP,
    IRRECONCILABLE,
    MEBIBYTE,
    REFUSED,
    SETTINGS,
    SHA,
    SHAPES,
    TOGETHER,
    at,
    files,
    packed,
)
from tests.component.machineconfig.worker_pool import (
    CONFIG,
    Bench,
    config,
    open_worker_pool,
    until,
)
from tests.embedded.fixtures import Embedded

CONFIDENTIAL_CLUSTER = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
NAME = "60-bad"


module_loop = pytest.mark.asyncio(loop_scope="module")


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
        assert (await until(failed, "nobody says it"))["message"] == says
        accepted = condition(await cluster.get(resource, "bad"), "Accepted")
        assert accepted is not None
        assert (accepted["status"], accepted["message"]) == ("False", says)
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
