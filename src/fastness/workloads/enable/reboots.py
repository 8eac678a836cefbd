"""Which machines would restart: the plan of machine configuration, with the pool and the config that a KataConfig brings.

The pool `kata-oc` and the extension do not exist before the KataConfig does, so both are put into the picture here: chosen nodes
are shown in that pool, with the configs that it would take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of, metadata, object_name
from fastness.machineconfig.rollout.plan import Plan, Proposal, plan
from fastness.workloads.enable.changes import Action
from fastness.workloads.enable.inputs import Object, Snapshot, Wish
from fastness.workloads.enable.steps import Step, deployment_mode
from fastness.workloads.kata.eligibility import choose
from fastness.workloads.kata.mode import DeploymentMode
from fastness.workloads.kata.objects import extension_config, kata_pool


def reboots(snapshot: Snapshot, wish: Wish, steps: Sequence[Step]) -> Plan:
    """What machines do; empty where nothing about them changes."""
    changes = [change for step in steps for change in step.changes if change.action is not Action.KEEP]
    configs: list[JsonObject] = [change.wanted for change in changes if change.resource.kind == "MachineConfig"]
    state = snapshot.state
    fresh = [change.wanted for change in changes if change.resource.kind == "KataConfig"]
    by_machine_config = deployment_mode(snapshot, wish) != DeploymentMode.DAEMON_SET and snapshot.has_machine_configs
    if fresh and by_machine_config:
        configs.append(extension_config(fresh[0], snapshot.pool, names.EXTENSION).obj)
        if not snapshot.converged:
            chosen = {
                one.node
                for one in choose(snapshot.asked(wish), snapshot.nodes, state.pools, state.cluster, state.machines)
                if one.chosen
            }
            there = any(object_name(pool).name == names.POOL for pool in state.pools)
            pools = [*state.pools, *(() if there else (kata_pool().obj,))]
            state = replace(state, pools=pools, nodes=[_in_pool(node, chosen) for node in snapshot.nodes])
    return plan(state, Proposal(configs)) if configs else Plan()


def _in_pool(node: Object, chosen: set[str]) -> Object:
    if object_name(node).name not in chosen:
        return node
    return {**node, "metadata": {**metadata(node), "labels": {**labels_of(node), names.ROLE_LABEL: ""}}}
