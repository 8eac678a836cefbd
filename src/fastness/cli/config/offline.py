"""The objects that a plan is made from, out of manifests.

Files need not hold everything: pools that are missing are assumed as the product makes them, and where there is no Node in the
files nothing is said about nodes.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from fastness import __version__
from fastness.cli.errors import CliError
from fastness.cli.manifests import Manifests
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import MachineConfigError
from fastness.machineconfig.render.generated import KUBELET, RUNTIME, Owners, generate, proposed, selects_pool
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.rollout.plan import Proposal, State

_TRUSTED: Final = "trusted-execution-clusters.io/"
_WORDS: Final = {
    "kubeletconfig": KUBELET, "kubeletconfigs": KUBELET, "containerruntimeconfig": RUNTIME,
    "containerruntimeconfigs": RUNTIME, "ctrcfg": RUNTIME,
}  # fmt: skip


def assumed_pool(name: str) -> JsonObject:
    """A pool as the product makes it: a custom one also takes the configs for workers."""
    role = {"matchLabels": {names.ROLE_LABEL: name}}
    both = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": [names.WORKER, name]}]}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": {f"{names.POOL_LABEL_PREFIX}{name}": ""}},
        "spec": {
            "machineConfigSelector": role if name in names.BUILT_IN_POOLS else both,
            "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
        },
    }


def state(read: Manifests, *, pools: Sequence[str] = ()) -> State:
    """The state that manifests describe, with the named pools assumed where they are missing."""
    given = read.of("MachineConfigPool")
    given_names = {str(pool["metadata"]["name"]) for pool in given}
    assumed = pools or (() if given else (names.MASTER, names.WORKER))
    all_pools = [*given, *(assumed_pool(name) for name in assumed if name not in given_names)]
    controller = first_of(read.of("ControllerConfig"))
    owners = Owners.of(read.of(KUBELET), read.of(RUNTIME), controller)
    configs = read.of("MachineConfig")
    present = {str(config.get("metadata", {}).get("name")) for config in configs}
    made = [config for config in _generated(owners, all_pools) if config["metadata"]["name"] not in present]
    return State(
        pools=all_pools,
        configs=[*configs, *made],
        nodes=read.of("Node") or None,
        pods=read.of("Pod"),
        budgets=read.of("PodDisruptionBudget"),
        cluster=first_of(read.of("ConfidentialCluster")),
        configuration=first_of(read.of("MachineConfiguration")),
        owners=owners,
        defaults=Defaults.of(controller, __version__),
        policies=read.of("RolloutPolicy"),
        streams=first_of(read.of("OSImageStream")),
        machines=[machine for machine in read.of("Machine") if str(machine.get("apiVersion", "")).startswith(_TRUSTED)],
        overlays=read.of("NodeOverlay"),
    )


def proposal(state: State, new: Manifests, delete: Sequence[str]) -> Proposal:
    """What applying manifests and deleting by name would change; raises CliError for what is not there or not allowed.

    A name is that of a MachineConfig, or `kubeletconfig/NAME`, `containerruntimeconfig/NAME` (also `ctrcfg/NAME`).
    """
    owners = [(kind, owner) for kind in (KUBELET, RUNTIME) for owner in new.of(kind)]
    gone: list[tuple[str, str]] = []
    names_gone: list[str] = []
    for target in delete:
        word, slash, name = target.partition("/")
        kind = _WORDS.get(word.lower(), "") if slash else "MachineConfig"
        existing = _names_of_kind(state, kind)
        if not kind or (name if slash else target) not in existing:
            what = f"{kind or word} {name!r}" if slash else f"MachineConfig {target!r}"
            raise CliError(f"there is no {what} to delete", near(name if slash else target, existing))
        if slash:
            gone.append((kind, name))
        else:
            names_gone.append(target)
    if not owners and not gone:
        return Proposal(new.of("MachineConfig"), names_gone)
    try:
        after, made, stale = proposed(state.owners, owners, gone, state.pools, __version__)
    except MachineConfigError as error:
        raise CliError(f"the settings would be refused: {error.message}", error.hint) from error
    return Proposal([*new.of("MachineConfig"), *made], [*names_gone, *stale], after)


def _names_of_kind(state: State, kind: str) -> list[str]:
    if kind == "MachineConfig":
        return [str(config["metadata"]["name"]) for config in state.configs]
    return sorted({KUBELET: state.owners.kubelets, RUNTIME: state.owners.runtimes}.get(kind, {}))


def near(name: str, candidates: Sequence[str]) -> str:
    """A hint for a name that is not there: the closest, or all that are."""
    close = difflib.get_close_matches(name, candidates, n=3)
    return (
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"There are: {', '.join(sorted(candidates)[:10]) or 'none'}."
    )


def _generated(owners: Owners, pools: Sequence[JsonObject]) -> list[JsonObject]:
    """The configs that the settings in the files would generate."""
    made: list[JsonObject] = []
    for kind, objects in ((KUBELET, owners.kubelets), (RUNTIME, owners.runtimes)):
        for owner in objects.values():
            for pool in pools:
                if not selects_pool(owner, pool):
                    continue
                try:
                    made.append(generate(kind, owner, pool["metadata"]["name"], __version__, owners.controller))
                except MachineConfigError as error:
                    raise CliError(f"{kind} {owner['metadata']['name']}: {error.message}", error.hint) from error
    return made


def first_of(objects: Sequence[JsonObject]) -> JsonObject | None:
    """The object of a kind of which there is at most one."""
    return objects[0] if objects else None
