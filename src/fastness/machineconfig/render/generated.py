"""MachineConfigs that the control plane makes: from KubeletConfigs, ContainerRuntimeConfigs and the cluster's own settings.

Names are `99-<pool>-generated-kubelet` and `99-<pool>-generated-containerruntime`, with a number from the second object on; the
object remembers its number in an annotation. A pool takes ten of each kind, and has those that follow from the cluster's own
settings (`cluster_configs`).

Every pool of a built-in role also has its base configs (`00-<role>`, `01-<role>-container-runtime`, `01-<role>-kubelet`), owned
by the ControllerConfig: what makes a machine a node (`base`). A custom pool takes those of the workers. Where it chooses another
runtime or distribution, or its trust model differs, it has a base of its own, and takes that one in their place (`has_own_base`).

What is generated is judged like what people write: an owner whose config a pool would refuse (one of the four fields in a
confidential pool) is refused itself, by `fits`, before there is a config that stops the pool.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kinds.openshift.config import GROUP as CONFIG_GROUP
from fastness.machineconfig.render.base.kubelet import kubelet_settings
from fastness.machineconfig.render.base.node_inputs import MissingInput, NodeInputs, NodeSources, choices, read_inputs
from fastness.machineconfig.render.base.table import base_names, documents
from fastness.machineconfig.render.cluster_configs import (
    FEATURE_GATE,
    NODE_CONFIG,
    cluster_config_name,
    cluster_config_spec,
    confidential_receivers,
    standing_latency,
)
from fastness.machineconfig.render.container_runtime import containerruntime_spec
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.kubelet import kubelet_remarks, kubelet_spec, with_settings
from fastness.machineconfig.render.settings.choices import container_runtime, with_choices
from fastness.machineconfig.render.settings.cluster import STORAGE_GATE, ClusterSettings, cluster_tls
from fastness.machineconfig.render.validate import problems

Object = Mapping[str, Any]
KUBELET: Final = "KubeletConfig"
RUNTIME: Final = "ContainerRuntimeConfig"
CONTROLLER: Final = "ControllerConfig"
REGISTRIES: Final = "Image"
TLS: Final = "tls"
MAX_PER_POOL: Final = 10
_WORDS: Final = {KUBELET: "kubelet", RUNTIME: "containerruntime", REGISTRIES: "registries"}


@dataclass(frozen=True, slots=True)
class Owners:
    """The objects that configs are generated from, by kind and name, and the pools that they are generated for.

    Configs about registries follow from many objects at once, so they are here as what they should be (specs by the names of the
    configs), or with the reason why there are none (by pool).
    """

    kubelets: Mapping[str, Object] = field(default_factory=dict)
    runtimes: Mapping[str, Object] = field(default_factory=dict)
    controller: Object | None = None
    pools: Mapping[str, Object] = field(default_factory=dict)
    confidential: Object | None = None
    settings: ClusterSettings = field(default_factory=ClusterSettings)
    registries: Mapping[str, JsonObject] = field(default_factory=dict)
    registries_refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        kubelets: Iterable[Object],
        runtimes: Iterable[Object],
        controller: Object | None,
        pools: Iterable[Object] = (),
        confidential: Object | None = None,
        *,
        settings: ClusterSettings | None = None,
        configs: Iterable[Object] = (),
    ) -> Owners:
        """From lists of objects; the latency profile that holds is read from `configs`."""
        plain = settings or ClusterSettings()
        release = annotations_of(controller or {}).get(names.RELEASE_IMAGE_VERSION, "")
        cluster = replace(plain, latency=standing_latency(plain.nodes, configs), release=release)
        return cls(_by_name(kubelets), _by_name(runtimes), controller, _by_name(pools), confidential, cluster)

    def pool(self, name: str) -> Object:
        """A pool with what it chooses; one that is not there is taken for an ordinary one."""
        plain = self.pools.get(name) or {"metadata": {"name": name}}
        workers = self.pools.get(names.WORKER) if name not in names.BUILT_IN_POOLS else None
        return with_choices(plain, workers, self.controller)

    def inputs(self, pool: str, sources: NodeSources | None = None) -> tuple[NodeInputs, list[MissingInput]]:
        """What the base of a pool is made from, and what is missing; without `sources` these are not asked for."""
        return read_inputs(
            self.pools.get(pool) or {"metadata": {"name": pool}}, self.controller, trust_model(self.confidential, pool),
            sources, attested=enforces(self.confidential, pool), workers=self.pools.get(names.WORKER),
        )  # fmt: skip

    def has_own_base(self, pool: str) -> bool:
        """Whether a custom pool differs from the workers in something that their base follows from."""
        if pool in names.BUILT_IN_POOLS or names.WORKER not in self.pools:
            return False
        return choices(self.inputs(pool)[0]) != choices(self.inputs(names.WORKER)[0])

    def base_of(self, pool: str) -> tuple[str, ...]:
        """The names of the base configs that a pool is rendered from."""
        own = pool in names.BUILT_IN_POOLS or self.has_own_base(pool)
        return base_names(pool if own else names.WORKER)


def _by_name(objects: Iterable[Object]) -> dict[str, Object]:
    return {object_name(obj).name: obj for obj in objects}


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
    raise BadSettings(
        f"there are {MAX_PER_POOL} objects of this kind already; merge some of them", "merge some of them"
    )


def generate(kind: str, owner: Object, pool: str, version: str, owners: Owners) -> JsonObject:
    """The MachineConfig of an owner for one pool; raises BadSettings."""
    name = generated_name(kind, pool, suffix_of(owner) or "")
    return generated_manifest(name, pool, _spec_of(kind, owner, pool, owners), version, _reference(kind, owner))


def kubelet_base(pool: str, owners: Owners) -> JsonObject:
    """What every kubelet of a pool has, whatever settings there are."""
    return kubelet_settings(owners.inputs(pool)[0])


def _spec_of(kind: str, owner: Object, pool: str, owners: Owners) -> JsonObject:
    chosen = owners.pool(pool)
    if kind == KUBELET:
        return kubelet_spec(owner, chosen, kubelet_base(pool, owners), owners.settings)
    stores = owners.settings.gate_on(STORAGE_GATE)
    return containerruntime_spec(owner, container_runtime(chosen), stores=stores)


def remarks(kind: str, owner: Object, pool: str, owners: Owners) -> list[str]:
    """What of an accepted owner has no effect in a pool; raises BadSettings."""
    if kind != KUBELET:
        return []
    return kubelet_remarks(owner, owners.pool(pool), kubelet_base(pool, owners), owners.settings)


def cluster_manifests(kind: str, owners: Owners, version: str) -> list[JsonObject]:
    """The configs that nodes.config or the FeatureGate generates, for every pool."""
    specs = ((name, _cluster_spec(kind, name, owners)) for name in sorted(owners.pools))
    owner = owners.settings.nodes if kind == NODE_CONFIG else owners.settings.feature_gate
    # Without blockOwnerDeletion, which would need a right to finalizers of kinds that are not ours.
    reference = {**_reference(kind, owner or {}), "apiVersion": f"{CONFIG_GROUP}/v1", "blockOwnerDeletion": False}
    return [
        generated_manifest(cluster_config_name(kind, pool), pool, spec, version, reference)
        for pool, spec in specs
        if spec is not None
    ]


def cluster_config_names(pool: str, owners: Owners) -> list[str]:
    """The names of the configs that the cluster's own settings generate for a pool."""
    kinds = (kind for kind in (NODE_CONFIG, FEATURE_GATE) if _cluster_spec(kind, pool, owners) is not None)
    return [cluster_config_name(kind, pool) for kind in kinds]


def _cluster_spec(kind: str, pool: str, owners: Owners) -> JsonObject | None:
    untouched = not confidential_receivers(pool, owners.pools.values(), owners.confidential)
    base = kubelet_base(pool, owners)
    return cluster_config_spec(kind, owners.pool(pool), base, owners.settings, with_arguments=untouched)


def fits(config: Object, pool: str, trust: TrustModel) -> None:
    """Refuse a generated config that its pool would refuse; raises BadSettings, for the condition of the owner."""
    wrong = [problem for problem in problems(config, trust) if problem.fatal]
    if wrong:
        way_out = f" ({wrong[0].way_out})" if wrong[0].way_out else ""
        raise BadSettings(f"pool {pool}: {wrong[0].reason}{way_out}", wrong[0].way_out)


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
    return replace(owners, kubelets=every[KUBELET], runtimes=every[RUNTIME]), made, sorted(stale - fresh)


def _all_of(kind: str, owner: Object, pools: Iterable[Object], version: str, owners: Owners) -> list[JsonObject]:
    chosen = [object_name(pool).name for pool in pools if selects_pool(owner, pool)]
    return [generate(kind, owner, pool, version, owners) for pool in chosen]


def base_configs(pool: str, inputs: NodeInputs, owners: Owners, version: str) -> list[JsonObject]:
    """The configs that a built-in role, or a custom pool that differs from the workers, starts from."""
    reference, tls = _reference(CONTROLLER, owners.controller or {}), cluster_tls(owners.settings)
    made = [
        generated_manifest(
            part.config(pool), pool, with_settings({"config": document}, tls.settings), version, reference
        )
        for part, document in documents(inputs).items()
    ]
    for config in made:
        # The same for every cluster of a version; what of it is a credential stays out of images by its path.
        config["metadata"]["annotations"][names.PUBLIC] = "true"
    return made


def is_base(config: Object) -> bool:
    """Whether a config is one of a base: it says that the ControllerConfig owns it."""
    return any(reference.get("kind") == CONTROLLER for reference in metadata(config).get("ownerReferences") or ())


def base_digest(config: Object) -> str:
    """What a base config says, in short."""
    return hashlib.sha256(json.canonical(config.get("spec") or {})).hexdigest()[:32]


def tls_digest(owners: Owners) -> str:
    """The cluster's TLS profile, in short: with another one the base of every pool is another."""
    return hashlib.sha256(json.canonical(cluster_tls(owners.settings).settings)).hexdigest()[:32]


def base_digests(controller: Object) -> dict[str, str]:
    """What the base configs that were made of a ControllerConfig say, by name; under `TLS` the profile that they have."""
    try:
        value = json.decode(annotations_of(controller).get(names.BASE_CONFIGS, "{}").encode())
    except JsonError:
        return {}
    return {str(name): str(digest) for name, digest in value.items()} if isinstance(value, dict) else {}


def with_bases(owners: Owners, configs: Iterable[Object]) -> tuple[Owners, list[JsonObject]]:
    """The base configs that are there with the cluster's TLS profile of these owners, and the owners that note them."""
    if owners.controller is None:
        return owners, []
    tls = cluster_tls(owners.settings).settings
    made = [{**config, "spec": with_settings(config["spec"], tls)} for config in configs if is_base(config)]
    digests = {**base_digests(owners.controller), TLS: tls_digest(owners)}
    digests |= {object_name(config).name: base_digest(config) for config in made}
    notes = {**annotations_of(owners.controller), names.BASE_CONFIGS: json.canonical(digests).decode()}
    controller = {**owners.controller, "metadata": {**metadata(owners.controller), "annotations": notes}}
    return replace(owners, controller=controller), made


def is_current(config: Object, owners: Owners) -> bool | None:
    """Whether a generated config is what its owner says now; None when there is no such owner or name.

    A base config follows from Secrets too, which not everybody may read: the ControllerConfig remembers what was made.
    """
    name = object_name(config).name
    pool = labels_of(config).get(names.ROLE_LABEL, "")
    for reference in metadata(config).get("ownerReferences") or ():
        kind, owner_name = str(reference.get("kind")), str(reference.get("name"))
        if kind == CONTROLLER and owners.controller is not None and name in base_names(pool):
            noted = base_digests(owners.controller)
            return noted.get(name) == base_digest(config) and noted.get(TLS) == tls_digest(owners)
        if kind in (NODE_CONFIG, FEATURE_GATE):
            spec = _cluster_spec(kind, pool, owners) if name == cluster_config_name(kind, pool) else None
            return None if spec is None else spec == config.get("spec")
        if kind == REGISTRIES:
            spec = owners.registries.get(name)
            return None if spec is None else spec == config.get("spec")
        owner = {KUBELET: owners.kubelets, RUNTIME: owners.runtimes}.get(kind, {}).get(owner_name)
        if owner is None or name != generated_name(kind, pool, suffix_of(owner) or ""):
            continue
        try:
            return _spec_of(kind, owner, pool, owners) == config.get("spec")
        except BadSettings:
            return None
    return None


def _reference(kind: str, owner: Object) -> JsonObject:
    place = {"apiVersion": names.API_VERSION, "kind": kind, "name": object_name(owner).name}
    return {**place, "uid": metadata(owner).get("uid") or "", "controller": True, "blockOwnerDeletion": True}


def generated_manifest(name: str, role: str, spec: JsonObject, version: str, owner: JsonObject) -> JsonObject:
    """A MachineConfig that the control plane makes: for a role, of a version, owned by what it follows from."""
    meta = {
        "name": name,
        "labels": {names.ROLE_LABEL: role},
        "annotations": {names.GENERATED_BY: version},
        "ownerReferences": [owner],
    }
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfig", "metadata": meta, "spec": spec}
