"""What users and nodes do wrong: a message, a condition, nothing lost, nothing stuck."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, labels_of
from fastness.kube.errors import Forbidden, Invalid
from fastness.kube.port import PatchType
from fastness.observe import metrics
from tests.component.machineconfig.worker_pool import NODE, POD, WorkerPool, open_worker_pool
from tests.component.workloads.kata.story import (
    CONFIG_MAP,
    KATA,
    feature_gates,
    in_progress,
    is_done,
    is_gone,
    kata_config,
    until,
)
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def workers(embedded_server: Embedded) -> AsyncIterator[WorkerPool]:
    """One worker."""
    async with open_worker_pool(embedded_server) as pool:
        await pool.add_node("worker-0")
        await pool.settled()
        yield pool


def pod(name: str, runtime_class: str) -> JsonObject:
    spec = {"runtimeClassName": runtime_class, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def message_of(config: JsonObject, kind: str) -> str:
    return str((condition(config, kind) or {}).get("message", ""))


async def test_a_second_config_is_refused_and_the_first_goes_on(workers: WorkerPool) -> None:
    await workers.cluster.create(KATA, kata_config())
    with pytest.raises(Forbidden, match="A KataConfig instance already exists, refusing to create a duplicate"):
        await workers.cluster.create(KATA, kata_config("another"))
    await until(workers.cluster, is_done)
    assert b"\nkata_config_installation_success 1.0\n" in metrics.exposition()


async def test_a_config_that_does_not_fit_its_schema_is_refused_by_the_api(workers: WorkerPool) -> None:
    wrong: list[JsonObject] = [
        {"logLevel": "verbose"}, {"checkNodeEligibility": "yes"}, {"kataConfigPoolSelector": "all"},
        {"kataConfigPoolSelector": {"matchExpressions": [{"operator": "In"}]}},
    ]  # fmt: skip
    for spec in wrong:
        with pytest.raises(Invalid, match="spec"):
            await workers.cluster.create(KATA, kata_config(**spec))


async def test_a_selector_that_cannot_be_read_is_told_and_corrected(workers: WorkerPool) -> None:
    await workers.cluster.create(KATA, kata_config(kataConfigPoolSelector={"matchLabels": {"a b": "c"}}))
    config = await until(workers.cluster, lambda config: in_progress(config) == ("False", "InvalidPoolSelector"))
    assert "spec.kataConfigPoolSelector" in message_of(config, "InProgress")
    await workers.cluster.patch(KATA, "example-kataconfig", {"spec": {"kataConfigPoolSelector": None}}, PatchType.MERGE)
    await until(workers.cluster, is_done)


async def test_a_deletion_while_installing_ends_and_leaves_no_label(workers: WorkerPool) -> None:
    await workers.cluster.create(KATA, kata_config())
    await until(workers.cluster, lambda config: in_progress(config) == ("True", "Installing"))
    await workers.cluster.delete(KATA, "example-kataconfig")
    await is_gone(workers.cluster)
    assert names.ROLE_LABEL not in labels_of(await workers.cluster.get(NODE, "worker-0"))


async def test_pods_hold_a_deletion_up_until_they_are_deleted(workers: WorkerPool) -> None:
    await workers.cluster.create(KATA, kata_config())
    await until(workers.cluster, is_done)
    with pytest.raises(Forbidden, match='pod rejected: RuntimeClass "kata-cc" not found'):
        await workers.cluster.create(POD, pod("wrong", "kata-cc"))
    made = await workers.cluster.create(POD, pod("right", "kata"))
    assert made["spec"]["overhead"] == {"cpu": "250m", "memory": "350Mi"}
    assert made["spec"]["nodeSelector"] == {names.ROLE_LABEL: ""}
    await workers.cluster.delete(KATA, "example-kataconfig")
    config = await until(workers.cluster, lambda config: in_progress(config) == ("False", "BlockedByExistingKataPods"))
    assert message_of(config, "InProgress").startswith('Existing pods using "kata" RuntimeClass found.')
    await workers.cluster.delete(POD, "right", "default")
    await is_gone(workers.cluster)


async def test_nonsense_in_the_gates_is_told_costs_only_its_key_and_goes_when_corrected(workers: WorkerPool) -> None:
    await feature_gates(workers.cluster, deploymentMode="<deployment_mode>", confidential="yes", memoryOverheadMB="512")
    await workers.cluster.create(KATA, kata_config())
    config = await until(workers.cluster, is_done)
    assert "deploymentMode: '<deployment_mode>' is not one of" in message_of(config, "GatesUnderstood")
    made = await workers.cluster.create(POD, pod("one", "kata"))
    assert made["metadata"]["annotations"][names.MEMORY_OVERHEAD] == "512"
    patch = {"data": {"deploymentMode": "MachineConfig", "confidential": "false"}}
    await workers.cluster.patch(CONFIG_MAP, names.FEATURE_GATES, patch, PatchType.MERGE, names.NAMESPACE)
    await until(workers.cluster, lambda config: condition(config, "GatesUnderstood") is None)


async def test_a_broken_node_is_told_and_undoing_heals_it(workers: WorkerPool) -> None:
    await workers.cluster.create(KATA, kata_config(checkNodeEligibility=True))
    config = await until(workers.cluster, lambda config: in_progress(config) == ("False", "NoEligibleNodes"))
    assert message_of(config, "InProgress") == "no nodes with required labels found, is NFD running?"
    workers.broken = Everything()
    patch = {"metadata": {"labels": {names.BASE_LABEL: "true"}}}
    await workers.cluster.patch(NODE, "worker-0", patch, PatchType.MERGE)
    config = await until(workers.cluster, lambda config: in_progress(config) == ("True", "Failed"))
    assert message_of(config, "InProgress") == "Node worker-0 Degraded: the config is broken"
    assert config["status"]["kataNodes"]["failedToInstall"] == ["worker-0"]
    await workers.cluster.delete(KATA, "example-kataconfig")
    await is_gone(workers.cluster)


class Everything(set[str]):
    """Every config with the runtime is broken."""

    def __contains__(self, config: object) -> bool:
        return "kata-oc" in str(config)
