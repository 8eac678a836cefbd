"""Which rendered configs go."""

from __future__ import annotations

from typing import Any

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.prune import in_use, is_rendered, prunable
from tests.unit.machineconfig.build import mc, node, pool


def rendered(number: int, of: str = "worker") -> dict[str, Any]:
    config = mc(f"rendered-{of}-{number:032x}")
    config["metadata"] |= {
        "creationTimestamp": f"2026-01-{number:02d}T00:00:00Z",
        "ownerReferences": [{"kind": "MachineConfigPool", "name": of}],
    }
    return config


def name(number: int, of: str = "worker") -> str:
    return str(rendered(number, of)["metadata"]["name"])


def test_the_last_five_unused_of_each_pool_stay() -> None:
    configs = [*(rendered(number) for number in range(1, 9)), *(rendered(number, "infra") for number in range(1, 5))]
    assert prunable(configs, frozenset()) == (name(1), name(2), name(3))


def test_what_a_pool_or_a_node_needs_stays_and_does_not_count() -> None:
    worker = pool("worker", configuration={"name": name(1)})
    worker["status"] = {"configuration": {"name": name(2)}}
    booted = node("n", current=name(3), desired=name(4))
    booted["metadata"]["annotations"][names.FIRST_PIVOT_CONFIG] = name(5)
    used = in_use([worker], [booted])
    assert used == {name(number) for number in range(1, 6)}
    assert prunable([rendered(number) for number in range(1, 12)], used) == (name(6),)


def test_a_users_config_is_never_pruned_whatever_its_name() -> None:
    own = mc("rendered-by-hand")
    assert not is_rendered(own)
    assert prunable([own] * 9, frozenset(), keep=0) == ()
