"""MachineConfigs that the control plane makes: from KubeletConfigs, ContainerRuntimeConfigs and the cluster's own settings.

Names are `99-<pool>-generated-kubelet` and `99-<pool>-generated-containerruntime`, with a number from the second object on; the
object remembers its number in an annotation. A pool takes ten of each kind. Every pool of a built-in role also has its base
configs (`00-<role>`, `01-<role>-container-runtime`, `01-<role>-kubelet`), owned by the ControllerConfig.

What is generated is judged like what people write: an owner whose config a pool would refuse (one of the four fields in a
confidential pool) is refused itself, by `fits`, before there is a config that stops the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.machineconfig.render.container_runtime import DIRECTORY, containerruntime_spec
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.kubelet import CONFIG_FILE, base_settings, config_file, kubelet_spec
from fastness.machineconfig.render.validate import problems
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
KUBELET: Final = "KubeletConfig"
RUNTIME: Final = "ContainerRuntimeConfig"
CONTROLLER: Final = "ControllerConfig"
MAX_PER_POOL: Final = 10
_WORDS: Final = {KUBELET: "kubelet", RUNTIME: "containerruntime"}
_SYSCTL: Final = "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n"
_CRIO: Final = '[crio.runtime]\ncgroup_manager = "systemd"\nconmon_cgroup = "pod"\ndefault_runtime = "crun"\n'


@dataclass(frozen=True, slots=True)
class Owners:
    """The objects that configs are generated from, by kind and name."""

    kubelets: Mapping[str, Object] = field(default_factory=dict)
    runtimes: Mapping[str, Object] = field(default_factory=dict)
    controller: Object | None = None

    @classmethod
    def of(cls, kubelets: Iterable[Object], runtimes: Iterable[Object], controller: Object | None) -> Owners:
        """From lists of objects."""
        return cls(
            {object_name(owner).name: owner for owner in kubelets},
            {object_name(owner).name: owner for owner in runtimes},
            controller,
        )


def selects_pool(owner: Object, pool: Object) -> bool:
    """Whether a KubeletConfig or ContainerRuntimeConfig is meant for a pool; raises nothing, a bad selector selects none."""
    selector = (owner.get("spec") or {}).get("machineConfigPoolSelector")
    if not selector:
        return False
    try:
        return label_selector_from_object(selector).matches(labels_of(pool))
    except SelectorError:
        return False


def generated_name(kind: str, pool: str, suffix: str = "") -> str:
    """The name of a generated config."""
    return f"99-{pool}-generated-{_WORDS[kind]}" + (f"-{suffix}" if suffix else "")


def suffix_of(owner: Object) -> str | None:
    """The number that an owner remembers; empty for the first, None when it has none yet."""
    return annotations_of(owner).get(names.NAME_SUFFIX)


def next_suffix(owners: Iterable[Object]) -> str:
    """A number that none of the owners of one kind has; raises BadSettings when a pool would have too many."""
    taken = {suffix for owner in owners if (suffix := suffix_of(owner)) is not None}
    for number in range(MAX_PER_POOL):
        suffix = str(number) if number else ""
        if suffix not in taken:
            return suffix
    raise BadSettings(f"there are {MAX_PER_POOL} objects of this kind already", "merge some of them")


def generate(kind: str, owner: Object, pool: str, version: str, controller: Object | None = None) -> JsonObject:
    """The MachineConfig of an owner for one pool; raises BadSettings."""
    spec = kubelet_spec(owner, pool, controller) if kind == KUBELET else containerruntime_spec(owner)
    name = generated_name(kind, pool, suffix_of(owner) or "")
    return _manifest(name, pool, spec, version, _reference(kind, owner))


def fits(config: Object, pool: str, trust: TrustModel) -> None:
    """Refuse a generated config that its pool would refuse; raises BadSettings, for the condition of the owner."""
    wrong = [problem for problem in problems(config, trust) if problem.fatal]
    if wrong:
        raise BadSettings(f"pool {pool}: {wrong[0].reason}", wrong[0].way_out)


def proposed(
    owners: Owners,
    new: Iterable[tuple[str, Object]],
    gone: Iterable[tuple[str, str]],
    pools: Iterable[Object],
    version: str,
) -> tuple[Owners, list[JsonObject], list[str]]:
    """What follows from applying owners (kind and object) and deleting others (kind and name).

    The owners after it, the configs that they generate, and the names of those that go; raises BadSettings.
    """
    every: dict[str, dict[str, Object]] = {KUBELET: dict(owners.kubelets), RUNTIME: dict(owners.runtimes)}
    all_pools, made, stale = list(pools), list[JsonObject](), set[str]()
    for kind, name in gone:
        owner = every[kind].pop(name, None)
        stale |= (
            {object_name(config).name for config in _all_of(kind, owner, all_pools, version, owners)}
            if owner
            else set()
        )
    for kind, owner in new:
        before = every[kind].get(object_name(owner).name)
        suffix = suffix_of(before) if before is not None else None
        number = next_suffix(every[kind].values()) if suffix is None else suffix
        meta = {**metadata(owner), "annotations": {**annotations_of(owner), names.NAME_SUFFIX: number}}
        numbered = {**owner, "metadata": meta}
        every[kind][object_name(owner).name] = numbered
        made += _all_of(kind, numbered, all_pools, version, owners)
        if before is not None:
            stale |= {
                generated_name(kind, object_name(pool).name, number) for pool in all_pools if selects_pool(before, pool)
            }
    fresh = {object_name(config).name for config in made}
    return Owners(every[KUBELET], every[RUNTIME], owners.controller), made, sorted(stale - fresh)


def _all_of(kind: str, owner: Object, pools: Iterable[Object], version: str, owners: Owners) -> list[JsonObject]:
    chosen = [object_name(pool).name for pool in pools if selects_pool(owner, pool)]
    return [generate(kind, owner, pool, version, owners.controller) for pool in chosen]


def base_names(role: str) -> tuple[str, ...]:
    """The names of the configs that every pool of a built-in role starts from."""
    return (f"00-{role}", f"01-{role}-container-runtime", f"01-{role}-kubelet")


def base_configs(role: str, controller: Object, version: str) -> list[JsonObject]:
    """The configs that every pool of a built-in role starts from."""
    reference = _reference(CONTROLLER, controller)
    return [_manifest(name, role, spec, version, reference) for name, spec in _base_specs(role, controller).items()]


def regenerate(config: Object, owners: Owners) -> JsonObject | None:
    """The spec that the owner which a config names would give it; None when there is no such owner or name."""
    name = object_name(config).name
    pool = labels_of(config).get(names.ROLE_LABEL, "")
    for reference in metadata(config).get("ownerReferences") or ():
        kind, owner_name = reference.get("kind"), str(reference.get("name"))
        if kind == CONTROLLER and owners.controller is not None:
            return _base_specs(pool, owners.controller).get(name)
        owner = {KUBELET: owners.kubelets, RUNTIME: owners.runtimes}.get(str(kind), {}).get(owner_name)
        if owner is None or name != generated_name(str(kind), pool, suffix_of(owner) or ""):
            continue
        try:
            return kubelet_spec(owner, pool, owners.controller) if kind == KUBELET else containerruntime_spec(owner)
        except BadSettings:
            return None
    return None


def _base_specs(role: str, controller: Object) -> dict[str, JsonObject]:
    settings = json.canonical(base_settings(controller)).decode() + "\n"
    host, runtime, kubelet = base_names(role)
    return {
        host: _files(config_file("/etc/sysctl.d/50-inotify.conf", _SYSCTL)),
        runtime: _files(config_file(f"{DIRECTORY}/00-default", _CRIO)),
        kubelet: _files(config_file(CONFIG_FILE, settings)),
    }


def _files(*files: JsonObject) -> JsonObject:
    return {"config": {"ignition": {"version": CURRENT}, "storage": {"files": list(files)}}}


def _reference(kind: str, owner: Object) -> JsonObject:
    place = {"apiVersion": names.API_VERSION, "kind": kind, "name": object_name(owner).name}
    return {**place, "uid": metadata(owner).get("uid") or "", "controller": True, "blockOwnerDeletion": True}


def _manifest(name: str, role: str, spec: JsonObject, version: str, owner: JsonObject) -> JsonObject:
    meta = {
        "name": name,
        "labels": {names.ROLE_LABEL: role},
        "annotations": {names.GENERATED_BY: version},
        "ownerReferences": [owner],
    }
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": spec}
