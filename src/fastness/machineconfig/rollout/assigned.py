"""Which rendered configs a Machine may fetch: those that the rollout wrote on it, before it told the Node.

    change = assignment(machine, claimed, goal, served)     # what to write on the Machine before a Node is told to go to `goal`
    is_assigned(machine, rendered)                          # what doors ask

`desiredConfig` is only ever a goal that the rollout chose. `currentConfig` is where the machine came from, which only its node
knows: what a node says counts when it is one of the configs that were written on the Machine before, or one that its pool hands
out to new machines. So a node never widens what its machine may read by writing annotations.
"""

from __future__ import annotations

from collections.abc import Collection

from fastness.kinds.trusted_execution.machine import Machine


def is_assigned(machine: Machine, rendered: str) -> bool:
    """Whether a rendered config is the machine's desired or current one."""
    return bool(rendered) and rendered in (machine.status.desired_config, machine.status.current_config)


def assignment(machine: Machine, claimed: str, goal: str, served: Collection[str]) -> dict[str, str]:
    """The fields of the Machine that change when its node is told to go to a goal; empty when they say so already.

    `claimed` is what the node says that it has, `served` what its pool gives to machines that boot.
    """
    status = machine.status
    before = {status.desired_config, status.current_config, *served} - {""}
    current = claimed if claimed in before else status.current_config
    wanted = {"desiredConfig": goal, "currentConfig": current}
    known = {"desiredConfig": status.desired_config, "currentConfig": status.current_config}
    return {name: value for name, value in wanted.items() if value and known[name] != value}
