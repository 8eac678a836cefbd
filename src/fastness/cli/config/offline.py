"""The objects that a plan is made from, out of manifests.

Files need not hold everything: pools that are missing are assumed as the product makes them, and where there is no Node in the
files nothing is said about nodes. Where they hold a ControllerConfig, the base of every pool is made of it, as the controllers
make it; without one nobody knows what a node of that cluster needs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fastness import __version__
from fastness.cli.errors import CliError
from fastness.cli.manifests import Manifests
from fastness.cli.output import tell
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.openshift.config import GROUP as CONFIG_GROUP
from fastness.kube.places import ROOT_CA
from fastness.machineconfig.render.base.cluster_facts import ClusterObjects, contents
from fastness.machineconfig.render.cluster_configs import FEATURE_GATE, NODE_CONFIG
from fastness.machineconfig.render.cluster_status import refusal
from fastness.machineconfig.render.errors import BadRegistries, MachineConfigError
from fastness.machineconfig.render.generated import (
    KUBELET,
    RUNTIME,
    Owners,
    base_configs,
    cluster_manifests,
    generate,
    proposed,
    selects_pool,
)
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.proposed_settings import proposed_settings
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.registries.proposed import KINDS, changed, proposed_registries
from fastness.machineconfig.render.settings.cluster import ClusterSettings
from fastness.machineconfig.rollout.plan import Proposal, State

CLUSTER_KINDS: Final = (NODE_CONFIG, FEATURE_GATE, "APIServer")
_TRUSTED: Final = "trusted-execution-clusters.io/"
_WORDS: Final = {
    "kubeletconfig": KUBELET, "kubeletconfigs": KUBELET, "containerruntimeconfig": RUNTIME,
    "containerruntimeconfigs": RUNTIME, "ctrcfg": RUNTIME,
}  # fmt: skip


def assumed_pool(name: str) -> JsonObject:
    """A pool as the product makes it: a custom one also takes the configs for workers."""
    built_in = {names.BUILT_IN_LABEL: ""} if name in names.BUILT_IN_POOLS else {}
    role = {"matchLabels": {names.ROLE_LABEL: name}}
    both = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": [names.WORKER, name]}]}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": {f"{names.POOL_LABEL_PREFIX}{name}": "", **built_in}},
        "spec": {
            "machineConfigSelector": role if name in names.BUILT_IN_POOLS else both,
            "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
        },
    }


def state(read: Manifests, *, pools: Sequence[str] = (), assumed_cluster: JsonObject | None = None) -> State:
    """The state that manifests describe, with the named pools and a ConfidentialCluster assumed where they are missing."""
    given = read.of("MachineConfigPool")
    given_names = {str(pool["metadata"]["name"]) for pool in given}
    assumed = pools or (() if given else (names.MASTER, names.WORKER))
    all_pools = [*given, *(assumed_pool(name) for name in assumed if name not in given_names)]
    controller = first_of(read.of("ControllerConfig"))
    configs = read.of("MachineConfig")
    cluster = first_of(read.of("ConfidentialCluster")) or assumed_cluster
    owners = Owners.of(
        read.of(KUBELET), read.of(RUNTIME), controller,
        settings=settings_among(read), pools=all_pools, configs=configs, confidential=cluster,
    )  # fmt: skip
    for kind in (NODE_CONFIG, FEATURE_GATE):
        reason = refusal(kind, owners)
        if reason:
            raise CliError(f"{kind} cluster: {reason}", "Correct the object.")
    present = {str(config.get("metadata", {}).get("name")) for config in configs}
    registries = changed(RegistryObjects(), read.of(*KINDS, "ClusterVersion"))
    about_registries = _about_registries(registries, all_pools, controller)
    generated = [*_bases(read, owners), *_generated(owners, all_pools), *about_registries]
    made = [config for config in generated if config["metadata"]["name"] not in present]
    return State(
        pools=all_pools,
        configs=[*configs, *made],
        nodes=[node for node in read.of("Node") if node.get("apiVersion") == "v1"] or None,
        pods=read.of("Pod"),
        budgets=read.of("PodDisruptionBudget"),
        cluster=cluster,
        configuration=first_of(read.of("MachineConfiguration")),
        owners=owners,
        defaults=Defaults.of(controller, __version__),
        policies=read.of("RolloutPolicy"),
        streams=first_of(read.of("OSImageStream")),
        machines=[machine for machine in read.of("Machine") if str(machine.get("apiVersion", "")).startswith(_TRUSTED)],
        overlays=read.of("NodeOverlay"),
        registries=registries,
        os_configs=read.of("MachineOSConfig"),
        os_builds=read.of("MachineOSBuild"),
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
    settings = settings_among(new, state.owners.settings)
    if not owners and not gone and settings == state.owners.settings:
        return Proposal(new.of("MachineConfig"), names_gone)
    try:
        after, made, stale = proposed(state.owners, owners, gone, state.pools, __version__)
        if settings != state.owners.settings:
            after, made, unneeded = proposed_settings(after, settings, state.configs, __version__)
            stale = [*stale, *unneeded]
    except MachineConfigError as error:
        raise CliError(f"the settings would be refused: {error.message}", error.hint) from error
    return Proposal([*new.of("MachineConfig"), *made], [*names_gone, *stale], after)


def settings_among(read: Manifests, before: ClusterSettings | None = None) -> ClusterSettings:
    """The cluster's own settings: those in manifests, and otherwise those before."""
    present = before or ClusterSettings()
    nodes, gates, apiserver = (
        called_cluster([obj for obj in read.of(kind) if str(obj.get("apiVersion", "")).startswith(CONFIG_GROUP)])
        for kind in CLUSTER_KINDS
    )
    return replace(
        present,
        nodes=nodes or present.nodes,
        feature_gate=gates or present.feature_gate,
        apiserver=apiserver or present.apiserver,
    )


def called_cluster(objects: Sequence[JsonObject]) -> JsonObject | None:
    """The object that counts among those of a kind of the cluster's settings."""
    return next((obj for obj in objects if (obj.get("metadata") or {}).get("name") == "cluster"), None)


def _names_of_kind(state: State, kind: str) -> list[str]:
    if kind == "MachineConfig":
        return [str(config["metadata"]["name"]) for config in state.configs]
    return sorted({KUBELET: state.owners.kubelets, RUNTIME: state.owners.runtimes}.get(kind, {}))


def split_deletions(
    kind: str, words: Sequence[str], existing: Sequence[str], delete: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Of WORD/NAME to delete the names of one kind, and the others; raises CliError for a name that is not there."""
    mine, others = [], []
    for target in delete:
        word, slash, name = target.partition("/")
        if not slash or word.lower() not in words:
            others.append(target)
        elif name not in existing:
            raise CliError(f"there is no {kind} {name!r} to delete", near(name, existing))
        else:
            mine.append(name)
    return mine, others


def near(name: str, candidates: Sequence[str]) -> str:
    """A hint for a name that is not there: the closest, or all that are."""
    close = difflib.get_close_matches(name, candidates, n=3)
    return (
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"There are: {', '.join(sorted(candidates)[:10]) or 'none'}."
    )


def _bases(read: Manifests, owners: Owners) -> list[JsonObject]:
    """The base configs that the ControllerConfig in the files leads to; raises CliError for what it lacks."""
    if owners.controller is None:
        return []
    reference = (owners.controller.get("spec") or {}).get("pullSecret") or {}
    objects = ClusterObjects(
        pull_secret=_named(read.of("Secret"), reference.get("namespace"), reference.get("name")),
        root_ca=_named(read.of("ConfigMap"), "kube-system", ROOT_CA),
    )
    sources, lacking = contents(owners.controller, objects)
    for absent in lacking:
        tell(f"warning: {absent}; the base is made without it")
    made: list[JsonObject] = []
    for role in dict.fromkeys(_role_of_base(pool, owners) for pool in owners.pools):
        inputs, missing = owners.inputs(role)
        if missing:
            raise CliError(f"pool {role} has no base: {'; '.join(map(str, missing))}", "Correct the ControllerConfig.")
        made += base_configs(role, replace(inputs, sources=sources), owners, __version__)
    return made


def _role_of_base(pool: str, owners: Owners) -> str:
    return pool if pool in names.BUILT_IN_POOLS or owners.has_own_base(pool) else names.WORKER


def _named(objects: Sequence[JsonObject], namespace: object, name: object) -> JsonObject | None:
    """The object of a name; one without a namespace counts for every one, as in files that name none."""
    metas = ((obj, obj.get("metadata") or {}) for obj in objects)
    return next(
        (obj for obj, meta in metas if meta.get("name") == name and meta.get("namespace", namespace) == namespace), None
    )


def _generated(owners: Owners, pools: Sequence[JsonObject]) -> list[JsonObject]:
    """The configs that the settings in the files would generate."""
    made = [config for kind in (NODE_CONFIG, FEATURE_GATE) for config in cluster_manifests(kind, owners, __version__)]
    for kind, objects in ((KUBELET, owners.kubelets), (RUNTIME, owners.runtimes)):
        for owner in objects.values():
            for pool in pools:
                if not selects_pool(owner, pool):
                    continue
                try:
                    made.append(generate(kind, owner, pool["metadata"]["name"], __version__, owners))
                except MachineConfigError as error:
                    raise CliError(f"{kind} {owner['metadata']['name']}: {error.message}", error.hint) from error
    return made


def _about_registries(
    registries: RegistryObjects, pools: Sequence[JsonObject], controller: JsonObject | None
) -> list[JsonObject]:
    """The configs that mirror sets and the like in the files would generate."""
    try:
        return proposed_registries(registries, pools, (), controller, __version__)[0]
    except BadRegistries as error:
        raise CliError(f"{error.culprit}: {error.message}", error.hint) from error


def first_of(objects: Sequence[JsonObject]) -> JsonObject | None:
    """The object of a kind of which there is at most one."""
    return objects[0] if objects else None
