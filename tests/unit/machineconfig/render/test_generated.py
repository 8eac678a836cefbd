"""Generated configs: their names, their owners, and the pools that they are for."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    KUBELET,
    MAX_PER_POOL,
    RUNTIME,
    Owners,
    base_configs,
    fits,
    generate,
    generated_name,
    next_suffix,
    selects_pool,
)
from fastness.machineconfig.render.render import Rendered, render
from fastness.machineconfig.render.validate import problems
from tests.unit.machineconfig.build import controller_config, pool

CONTROLLER = controller_config()


def kubelet(settings: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"kind": KUBELET, "metadata": {"name": "k"}, "spec": {"kubeletConfig": settings or {}, **spec}}


def runtime(**settings: Any) -> dict[str, Any]:
    return {"kind": RUNTIME, "metadata": {"name": "c"}, "spec": {"containerRuntimeConfig": settings}}


def test_names_carry_the_number_that_the_owner_remembers() -> None:
    owner = kubelet()
    assert generate(KUBELET, owner, "infra", "v", Owners())["metadata"]["name"] == "99-infra-generated-kubelet"
    owner["metadata"]["annotations"] = {names.NAME_SUFFIX: "2"}
    assert generate(KUBELET, owner, "infra", "v", Owners())["metadata"]["name"] == "99-infra-generated-kubelet-2"
    assert generated_name(RUNTIME, "worker") == "99-worker-generated-containerruntime"


def test_numbers_are_given_out_until_a_pool_has_ten() -> None:
    owners: list[dict[str, Any]] = []
    for number in range(MAX_PER_POOL):
        suffix = next_suffix(owners)
        assert suffix == (str(number) if number else "")
        owners.append({"metadata": {"annotations": {names.NAME_SUFFIX: suffix}}})
    with pytest.raises(BadSettings):
        next_suffix(owners)
    del owners[4]
    assert next_suffix(owners) == "4"


def test_generated_configs_say_their_owner_and_are_good() -> None:
    made = generate(RUNTIME, runtime(logLevel="debug"), "worker", "v1", Owners())
    assert made["metadata"]["labels"] == {names.ROLE_LABEL: "worker"}
    assert made["metadata"]["annotations"] == {names.GENERATED_BY: "v1"}
    assert made["metadata"]["ownerReferences"][0]["kind"] == RUNTIME
    assert problems(made) == []


def test_a_selector_decides_which_pools_an_owner_is_for() -> None:
    owner = runtime()
    owner["spec"]["machineConfigPoolSelector"] = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}infra": ""}}
    assert selects_pool(owner, pool("infra"))
    assert not selects_pool(owner, pool("worker"))
    assert not selects_pool(runtime(), pool("worker"))
    owner["spec"]["machineConfigPoolSelector"] = {"matchExpressions": "x"}
    assert not selects_pool(owner, pool("infra"))


@pytest.mark.parametrize("role", ["master", "worker"])
def test_a_pool_with_nothing_but_its_base_configs_renders(role: str) -> None:
    enforcing = {"metadata": {"name": "cluster"}, "spec": {"mode": "Enforce"}}
    owners = Owners.of([], [], CONTROLLER, pools=[pool(role)], confidential=enforcing)
    inputs, missing = owners.inputs(role)
    assert missing == []
    configs = base_configs(role, inputs, owners, "v1")
    assert [machine_config["metadata"]["name"] for machine_config in configs] == [
        f"00-{role}",
        f"01-{role}-container-runtime",
        f"01-{role}-kubelet",
    ]
    assert isinstance(render(pool(role), configs), Rendered)
    for config in configs:
        fits(config, role, TrustModel.CONFIDENTIAL_CLUSTER)
    configs[0]["spec"]["fips"] = True
    with pytest.raises(BadSettings, match="FIPS"):
        fits(configs[0], role, TrustModel.CONFIDENTIAL_CLUSTER)
