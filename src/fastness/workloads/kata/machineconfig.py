"""Installing through machine configs: a config with the extension, a pool for the nodes that get it; the rollout does the rest.

Peer pods add two configs with a file each, and the pool must have those too.

The pool `kata-oc` takes what workers have and the extension; a node is in it by its role label. The rollout of pools keeps
the budget, drains, reboots and undoes. On a converged cluster the extension goes to the master pool as it is.

Whether the extension has arrived in a pool is read from the sources of its rendered config, never from `Updating`: a pool
that has not begun looks exactly like one that is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kata.config import DEFAULT_LOG_LEVEL
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.machineconfiguration.names import MASTER_LABEL, WORKER_LABEL
from fastness.kinds.objects import annotations_of, is_being_deleted, labels_of, object_name
from fastness.workloads.kata import peer_pods
from fastness.workloads.kata.eligibility import NodeRequirements
from fastness.workloads.kata.inputs import Action, Ensure, Inputs, Mark, Object, Ref, Remove, ref_of
from fastness.workloads.kata.mode import DeploymentMode
from fastness.workloads.kata.objects import extension_config, image_config, kata_pool, monitors, runtime_config
from fastness.workloads.kata.status import EMPTY, NodeLists, by_config, gather

_CONFIGS: Final = (names.EXTENSION_CONFIG, names.IMAGE_CONFIG)
_ALL_CONFIGS: Final = (*_CONFIGS, *peer_pods.CONFIG_NAMES)
_CONFIG: Final = "MachineConfig"
_COMMUNITY: Final = ("fedora coreos", "centos stream coreos", "scos")
_RENDERED: Final = f"{mco.RENDERED_PREFIX}{names.POOL}-"


class MachineConfigInstaller:
    """Brings nodes to the runtime and back, in clusters with machine configs; all of it pure."""

    mode: Final = DeploymentMode.MACHINE_CONFIG

    def objects(self, inputs: Inputs, config: Object, requirements: NodeRequirements) -> list[Ensure]:
        """What must be there: config, those of peer pods, pool, the log level where it is not the usual one, monitor."""
        pool = _pool_name(requirements)
        source = (
            image_config(config, pool, inputs.layered) if inputs.gates.layered_image
            else extension_config(config, pool, _extension(inputs))
        )  # fmt: skip
        level = str((config.get("spec") or {}).get("logLevel") or DEFAULT_LOG_LEVEL)
        exists = Ref("ContainerRuntimeConfig", names.RUNTIME_CONFIG) in inputs.objects
        return [
            source,
            *(peer_pods.configs(config, pool) if peer_pods.on_nodes(inputs) else []),
            *([] if requirements.converged else [kata_pool()]),
            *([runtime_config(level, pool)] if exists or level != DEFAULT_LOG_LEVEL else []),
            *(monitors(requirements.role_label) if inputs.namespace else []),
        ]

    def marks(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str]) -> list[Action]:
        """Role labels so that the chosen nodes, and no others, get the runtime; configs that are superfluous go."""
        others = [names.EXTENSION_CONFIG if inputs.gates.layered_image else names.IMAGE_CONFIG]
        others += [] if peer_pods.on_nodes(inputs) else peer_pods.CONFIG_NAMES
        gone = [Ref(_CONFIG, name) for name in others]
        surplus: list[Action] = [Remove(ref) for ref in gone if ref in inputs.objects]
        return [*surplus, *([] if requirements.converged else role_marks(inputs, chosen))]

    def lists(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str]) -> NodeLists:
        """Where every node is; nothing before the pool has a config with the extension."""
        if requirements.converged:
            return self._converged(inputs, enabled=bool(chosen))
        target, members = _target(inputs.pool(names.POOL)), frozenset(chosen)
        places = []
        for node in inputs.nodes:
            if object_name(node).name in members:
                places += [by_config(node, target, enabled=True)] if target else []
            # Not chosen any more, and still with a config of the pool: it is on its way out.
            elif annotations_of(node).get(mco.CURRENT_CONFIG, "").startswith(_RENDERED):
                places.append(by_config(node, "", enabled=False))
        return gather(places)

    def _converged(self, inputs: Inputs, *, enabled: bool) -> NodeLists:
        pool = inputs.pool(mco.MASTER)
        rendered = str(_rendered(pool).get("name") or "")
        if enabled and not _carries(pool):
            return EMPTY
        target = rendered if enabled or not _sources(pool) & {*_ALL_CONFIGS} else ""
        masters = [node for node in inputs.nodes if MASTER_LABEL in labels_of(node)]
        return gather(by_config(node, target, enabled=enabled) for node in masters)

    def is_done(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str], lists: NodeLists) -> bool:
        """Whether the chosen nodes have the pool's config, and no other node has it."""
        pool = inputs.pool(_pool_name(requirements))
        remote = peer_pods.CONFIG_NAMES if peer_pods.are_enabled(inputs.config) else ()
        carried = _carries(pool) and _sources(pool) >= {*remote}
        return carried and not lists.unfinished and len(lists.of("installed")) == len(chosen)

    def leave(self, inputs: Inputs, requirements: NodeRequirements) -> list[Action]:
        """What makes every node lose the runtime: role labels, configs and the log level go."""
        refs = [*(Ref(_CONFIG, name) for name in _ALL_CONFIGS), Ref("ContainerRuntimeConfig", names.RUNTIME_CONFIG)]
        gone = [
            Remove(ref) for ref in refs if (obj := inputs.objects.get(ref)) is not None and not is_being_deleted(obj)
        ]
        return [*role_marks(inputs, ()), *gone]

    def is_gone(self, inputs: Inputs) -> bool:
        """Whether no config asks for the runtime."""
        return not any(Ref(_CONFIG, name) in inputs.objects for name in _ALL_CONFIGS)

    def remains(self, inputs: Inputs) -> list[Ref]:
        """What may go when no node has the runtime any more: the pool, and the monitor."""
        return [Ref("MachineConfigPool", names.POOL), *(ref_of(ensure.obj) for ensure in reversed(monitors("")))]


def role_marks(inputs: Inputs, chosen: Sequence[str]) -> list[Action]:
    """Labels that put the chosen workers into the pool and take the others out."""
    marks: list[Action] = []
    members = frozenset(chosen)
    for node in inputs.nodes:
        name, labels = object_name(node).name, labels_of(node)
        if name in members and names.ROLE_LABEL not in labels:
            marks.append(Mark(name, {names.ROLE_LABEL: ""}))
        elif name not in members and names.ROLE_LABEL in labels and WORKER_LABEL in labels:
            marks.append(Mark(name, {names.ROLE_LABEL: None}))
    return marks


def _pool_name(requirements: NodeRequirements) -> str:
    return mco.MASTER if requirements.converged else names.POOL


def _rendered(pool: Object) -> Any:
    return (pool.get("spec") or {}).get("configuration") or {}


def _sources(pool: Object) -> set[str]:
    """The configs that the rendered config of a pool is made of."""
    return {str(source.get("name")) for source in _rendered(pool).get("source") or ()}


def _carries(pool: Object) -> bool:
    """Whether the rendered config of a pool has the runtime in it."""
    return bool(_sources(pool) & {*_CONFIGS})


def _target(pool: Object) -> str:
    return str(_rendered(pool).get("name") or "") if _carries(pool) else ""


def _extension(inputs: Inputs) -> str:
    """What the packages are called on the operating system of the nodes."""
    images = [
        str(((node.get("status") or {}).get("nodeInfo") or {}).get("osImage") or "").lower() for node in inputs.nodes
    ]
    community = any(word in image for image in images for word in _COMMUNITY)
    return names.COMMUNITY_EXTENSION if community else names.EXTENSION
