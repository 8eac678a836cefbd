"""Which nodes get the runtime, and why the others do not.

A worker is chosen when the pool selector matches and nothing speaks against it. Every reason is data, in the order in which
they are asked, so that status, page and doctor say the same:

* its operating system: the manual supports CoreOS hosts only;
* its trust model: a node of a ConfidentialCluster pool is itself the confidential machine;
* another custom pool has it: a node can be in one;
* the selector does not match, or `checkNodeEligibility` asks for a label that feature discovery did not give.

A node that has the runtime does not lose it because a label is gone: a rule that somebody deleted, or discovery that fails, would
take it off the whole fleet. It is *kept*, and a condition says so. It loses the runtime when somebody asks for that: by the
selector, by another pool, by deleting the KataConfig; and then not under running pods (`plan.py`).

On a converged cluster (the masters are the workers) the master pool is taken as it is: neither selector nor base label apply.
Labels are what hosts say of themselves, so they decide where the runtime goes and never what is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import EVERYTHING, LabelSelector, label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kata import names
from fastness.kinds.kata.names import TRUE, Tee
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.machineconfiguration.names import MASTER_LABEL, WORKER_LABEL
from fastness.kinds.objects import annotations_of, labels_of, object_name
from fastness.pools.membership import MemberPools, SeveralPools, pools_of_nodes
from fastness.workloads.kata.errors import Refused

Object = Mapping[str, Any]
SIMULATED: Final = "fastness.dev/simulated"
NO_LABELS: Final = "no nodes with required labels found, is NFD running?"
RETRY_LABELS: Final = 20.0


class Against(StrEnum):
    """Why a worker does not get the runtime."""

    OPERATING_SYSTEM = "UnsupportedOperatingSystem"
    TRUST_MODEL = "ConfidentialClusterPool"
    OTHER_POOL = "InAnotherPool"
    NOT_SELECTED = "NotSelected"
    NOT_ELIGIBLE = "NotEligible"
    LABELS_LOST = "LabelsLost"
    PODS = "BlockedByExistingKataPods"

    @property
    def is_refusal(self) -> bool:
        """Whether the user asked for the node and does not get it; the others are what was asked for."""
        return self in (Against.OPERATING_SYSTEM, Against.TRUST_MODEL, Against.OTHER_POOL)


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """One worker: whether it gets the runtime, and if not, why not and what would change it.

    One that is `retained` has the runtime and keeps it for now, although something speaks against it.
    """

    node: str
    against: Against | None = None
    message: str = ""
    hint: str = ""
    retained: bool = False

    @property
    def chosen(self) -> bool:
        """Whether the node gets the runtime."""
        return self.against is None or self.retained


@dataclass(frozen=True, slots=True)
class NodeRequirements:
    """What a KataConfig asks for, as far as nodes are concerned."""

    selector: LabelSelector
    check: bool
    converged: bool

    @property
    def role_label(self) -> str:
        """The label that runtime classes select by."""
        return MASTER_LABEL if self.converged else names.ROLE_LABEL


def requirements_of(config: Object, *, converged: bool) -> NodeRequirements:
    """Read a KataConfig; raises Refused for a selector that cannot be read."""
    spec = config.get("spec") or {}
    given = spec.get("kataConfigPoolSelector")
    try:
        selector = EVERYTHING if given is None else label_selector_from_object(given, "spec.kataConfigPoolSelector")
    except SelectorError as error:
        raise Refused("InvalidPoolSelector", f"{error}", "correct spec.kataConfigPoolSelector") from error
    return NodeRequirements(selector, spec.get("checkNodeEligibility") is True, converged)


def is_converged(pools: Sequence[Object], nodes: Iterable[Object]) -> bool:
    """Whether the masters are the workers: two pools, none of whose machines is only a worker, and there is a master.

    A third pool, even an empty one, makes a compact cluster look like a regular one.
    """
    by_name = {object_name(pool).name: pool for pool in pools}
    # As the manual's operator has it, so that both take the same cluster for converged.
    if set(by_name) != {mco.MASTER, mco.WORKER}:
        return False
    if int((by_name[mco.WORKER].get("status") or {}).get("machineCount") or 0):
        return False
    return any(MASTER_LABEL in labels_of(node) for node in nodes)


def choose(
    requirements: NodeRequirements,
    nodes: Iterable[Object],
    pools: Sequence[Object],
    cluster: Object | None,
    machines: Sequence[Object] = (),
) -> list[NodeChoice]:
    """Every node that could be meant, by name, with the decision about it; its Machine says in which pool it is."""
    member = MASTER_LABEL if requirements.converged else WORKER_LABEL
    # Machines first: a label that anybody may write must not make a runtime host of a confidential node.
    members, models = MemberPools(pools, pools_of_nodes(machines), cluster), TrustModels(cluster)
    choices = [_choice(requirements, node, members, models) for node in nodes if member in labels_of(node)]
    return sorted(choices, key=lambda choice: choice.node)


class TrustModels(dict[str, TrustModel]):
    """The models of pools, each looked up once."""

    def __init__(self, cluster: Object | None) -> None:
        super().__init__()
        self._cluster = cluster

    def __missing__(self, pool: str) -> TrustModel:
        model = self[pool] = trust_model(self._cluster, pool)
        return model


def _choice(requirements: NodeRequirements, node: Object, pools: MemberPools, models: TrustModels) -> NodeChoice:
    name, labels = object_name(node).name, labels_of(node)
    if not requirements.converged and not requirements.selector.matches(labels):
        return NodeChoice(name, Against.NOT_SELECTED, "kataConfigPoolSelector does not match its labels")
    able = requirements.converged or not requirements.check or labels.get(names.BASE_LABEL) == TRUE
    if not able and not has_role(node):
        message = f"feature discovery did not find it able: no label {names.BASE_LABEL}={TRUE}"
        return NodeChoice(name, Against.NOT_ELIGIBLE, message, "switch virtualization on, or look at its NodeFeature")
    system = _unsupported_system(node)
    if system is not None:
        return NodeChoice(
            name,
            Against.OPERATING_SYSTEM,
            f"runs {system}, and only CoreOS hosts are supported",
            "install CoreOS on it",
        )
    return _pool_against(requirements, node, pools, models) or (NodeChoice(name) if able else _lost(name))


def has_role(node: Object) -> bool:
    """Whether a node was given the runtime, or is being given it."""
    return names.ROLE_LABEL in labels_of(node)


def _lost(name: str) -> NodeChoice:
    message = f"has the runtime and lost its label {names.BASE_LABEL}={TRUE}: it keeps the runtime"
    hint = "restore its NodeFeatureRule; to remove the runtime, exclude the node with kataConfigPoolSelector"
    return NodeChoice(name, Against.LABELS_LOST, message, hint, retained=True)


def _unsupported_system(node: Object) -> str | None:
    """The operating system of a node that the manual excludes; None when it does not, or the node has not said yet."""
    if labels_of(node).get(mco.OS_LABEL) == "windows":
        return "Windows"
    image = str(((node.get("status") or {}).get("nodeInfo") or {}).get("osImage") or "")
    supported = not image or "coreos" in image.lower() or annotations_of(node).get(SIMULATED) == TRUE
    return None if supported else image[:80]


def _pool_against(
    requirements: NodeRequirements, node: Object, pools: MemberPools, models: TrustModels
) -> NodeChoice | None:
    name = object_name(node).name
    try:
        member = pools.of(node).pools
    except SeveralPools as error:
        member = (*error.pools, mco.WORKER)
    others = [pool for pool in member if pool not in (names.POOL, mco.WORKER, mco.MASTER)]
    target = mco.MASTER if requirements.converged else names.POOL
    home = others[0] if others else mco.MASTER if mco.MASTER in member else mco.WORKER
    # The target too: a pool that nobody listed is confidential, and whoever runs hosts has to say so (decision 18).
    for pool in (home, target):
        if models[pool] is TrustModel.CONFIDENTIAL_CLUSTER:
            message = f"pool {pool} has the trust model {TrustModel.CONFIDENTIAL_CLUSTER}: its nodes are confidential machines"
            hint = f"list pool {pool} in ConfidentialCluster spec.pools as {TrustModel.CONTAINERS_HOST} if its nodes are hosts"
            return NodeChoice(name, Against.TRUST_MODEL, message, hint)
    if others and not requirements.converged:
        message = f"is in pool {others[0]}, and a node can be in one custom pool only"
        return NodeChoice(name, Against.OTHER_POOL, message, f"take the label of pool {others[0]} from it")
    return None


def require_labels(requirements: NodeRequirements, nodes: Iterable[Object], *, peer_pods: bool) -> None:
    """Refuse to begin before feature discovery labelled a node, where that was asked for; raises Refused."""
    if not requirements.check or peer_pods:
        return
    if any(labels_of(node).get(names.BASE_LABEL) == TRUE for node in nodes):
        return
    raise Refused(
        "NoEligibleNodes", NO_LABELS, "create a NodeFeatureDiscovery and the rules, or set checkNodeEligibility to false",
        again=RETRY_LABELS, exact=True,
    )  # fmt: skip


def pool_nodes(requirements: NodeRequirements, nodes: Iterable[Object]) -> list[Object]:
    """The nodes that labels for runtime classes are looked for on: those that the pool selector takes."""
    if requirements.converged:
        return [node for node in nodes if MASTER_LABEL in labels_of(node)]
    members = [
        node for node in nodes if WORKER_LABEL in labels_of(node) and requirements.selector.matches(labels_of(node))
    ]
    return [node for node in members if not requirements.check or labels_of(node).get(names.BASE_LABEL) == TRUE]


def tees(nodes: Iterable[Object]) -> tuple[Tee, ...]:
    """The kinds of TEE that nodes say they have."""
    labels = {key for node in nodes for key, value in labels_of(node).items() if value == TRUE}
    return tuple(tee for tee in Tee if tee.label in labels)
