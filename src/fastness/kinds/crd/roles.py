"""Cluster roles for people: who looks, who reads everything, who decides, who says what counts, who runs and who governs.

    fastness-view      get, list and watch of what cannot hold a secret; aggregated into Kubernetes' own `view`, and with it into
                       `edit` and `admin`
    fastness-reader    that, and what a whole page needs: nodes, runtime classes, and configurations with the contents of files
    fastness-decider   that, and to change Machines: approve, refuse, take out
    fastness-approver  that, and to say what counts: images, values, policies, bindings, distrusts
    fastness-operator  what a decider may, and to run machines day by day: tickets, overlays, rollouts, pools and configs
    fastness-administrator  operator and approver, and to change the ConfidentialCluster itself

* Contents of files may be secrets (pull secrets, keys), and `view` must never show one: kinds that carry free content are left
  out of it, as Kubernetes leaves out Secrets. JoinTickets hold only a hash.
* Nothing of ours is added to `edit` or `admin`: those are given to people who run applications, and whoever writes a
  MachineConfig or approves a machine owns every node.

The embedded API has these roles from its first second (`apiserver/seed`); `fastness crds --roles` prints them for others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from fastness.kinds import registry
from fastness.kinds.kind import JsonObject, Kind

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
TO_VIEW: Final = "rbac.authorization.k8s.io/aggregate-to-view"
VIEW: Final = "fastness-view"
READER: Final = "fastness-reader"
DECIDER: Final = "fastness-decider"
APPROVER: Final = "fastness-approver"
OPERATOR: Final = "fastness-operator"
ADMINISTRATOR: Final = "fastness-administrator"
GROUPS: Final = (
    "fastness.dev", "kataconfiguration.openshift.io", "machineconfiguration.openshift.io", "operator.openshift.io",
    "trusted-execution-clusters.io",
)  # fmt: skip
FREE_CONTENT: Final = frozenset({
    "controllerconfigs", "machineconfigs", "machineosconfigs", "nodeoverlays", "tenantclusters",
})  # fmt: skip
LOOK: Final = ("get", "list", "watch")
CHANGE: Final = ("create", "patch", "update", "delete")
_COUNTS: Final[tuple[tuple[str, list[str]], ...]] = (
    ("fastness.dev", ["appraisalpolicies", "distrusts", "referencevaluesets", "resourcebindings"]),
    ("trusted-execution-clusters.io", ["approvedimages"]),
)
_RUNNING: Final[tuple[tuple[str, list[str]], ...]] = (
    ("fastness.dev", ["jointickets", "nodeoverlays", "rolloutpolicies"]),
    ("kataconfiguration.openshift.io", ["kataconfigs"]),
    (
        "machineconfiguration.openshift.io",
        [
            "containerruntimeconfigs", "kubeletconfigs", "machineconfigpools", "machineconfigs", "machineosconfigs",
            "pinnedimagesets",
        ],
    ),
)  # fmt: skip
_GOVERNING: Final[tuple[tuple[str, list[str]], ...]] = (
    ("fastness.dev", ["confidentialclusters", "tenantclusters"]),
    ("operator.openshift.io", ["machineconfigurations"]),
    ("trusted-execution-clusters.io", ["trustedexecutionclusters"]),
)
_AROUND: Final[tuple[tuple[str, str], ...]] = (("", "events"), ("", "nodes"), ("node.k8s.io", "runtimeclasses"))


def roles() -> tuple[JsonObject, ...]:
    """The roles, ready to be created in any cluster."""
    kinds = [kind for kind in registry.custom_kinds() if kind.group in GROUPS]
    harmless = _look(kind for kind in kinds if kind.plural not in FREE_CONTENT)
    everything = [*_look(kinds), *(_rule(group, [plural], LOOK) for group, plural in _AROUND)]
    deciding = [*everything, _rule("trusted-execution-clusters.io", ["machines"], ("patch", "update"))]
    counting = [_rule(group, plurals, CHANGE) for group, plurals in _COUNTS]
    running = [_rule(group, plurals, CHANGE) for group, plurals in _RUNNING]
    governing = [_rule(group, plurals, CHANGE) for group, plurals in _GOVERNING]
    return (
        _role(VIEW, harmless, {TO_VIEW: "true"}),
        _role(READER, everything),
        _role(DECIDER, deciding),
        _role(OPERATOR, [*deciding, *running]),
        _role(APPROVER, [*deciding, *counting]),
        _role(ADMINISTRATOR, [*deciding, *running, *counting, *governing]),
    )


def _look(kinds: Iterable[Kind]) -> list[JsonObject]:
    resources: dict[str, set[str]] = defaultdict(set)
    for kind in kinds:
        resources[kind.group].add(kind.plural)
    return [_rule(group, sorted(plurals), LOOK) for group, plurals in sorted(resources.items())]


def _rule(group: str, plurals: list[str], verbs: Iterable[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": plurals, "verbs": list(verbs)}


def _role(name: str, rules: list[JsonObject], labels: JsonObject | None = None) -> JsonObject:
    metadata: JsonObject = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": API_VERSION, "kind": "ClusterRole", "metadata": metadata, "rules": rules}
