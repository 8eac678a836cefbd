"""What a user may see.

Pages read caches that hold everything, so every read goes through a `ViewScope`, which asks the API's authorizer first, with the
same attributes as a request of kubectl would have. There is no other way from a page to an object, and no rule of who may see
what besides the API's. Kinds that are not in `SEEN` (secrets first of all) cannot be read through it at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

from fastness.attestation.status.cluster import StandingRules
from fastness.attestation.status.unproved_nodes import never_attested
from fastness.attestation.verdict.breakglass import listed_approvers
from fastness.http import Request
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.rollout import ROLLOUT_POLICY
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.kubernetes.native import RUNTIME_CLASS
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import condition, view
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.access import Attributes, Decision, User, refusal
from fastness.kube.errors import ApiError, Forbidden
from fastness.kube.informers import Informer, Informers

MACHINES: Final = MACHINE.resource
VERDICTS: Final = VERDICT.resource
NODES: Final = NODE.resource
POOLS: Final = MACHINE_CONFIG_POOL.resource
CONFIGS: Final = MACHINE_CONFIG.resource
CONFIGURATIONS: Final = MACHINE_CONFIGURATION.resource
ROLLOUTS: Final = ROLLOUT_POLICY.resource
CLUSTERS: Final = CONFIDENTIAL_CLUSTER.resource
IMAGES: Final = APPROVED_IMAGE.resource
VALUE_SETS: Final = REFERENCE_VALUE_SET.resource
POLICIES: Final = APPRAISAL_POLICY.resource
DISTRUSTS: Final = DISTRUST.resource
CHECKPOINTS: Final = AUDIT_CHECKPOINT.resource
KATA_CONFIGS: Final = KATA_CONFIG.resource
CLASSES: Final = RUNTIME_CLASS.resource
OS_CONFIGS: Final = MACHINE_OS_CONFIG.resource
OS_BUILDS: Final = MACHINE_OS_BUILD.resource

# What is seen, and the topic under which open pages hear of a change.
SEEN: Final[Mapping[Resource, str]] = {
    MACHINES: "machines", VERDICTS: "machines", NODES: "machines", POOLS: "pools", CONFIGS: "pools",
    CONFIGURATIONS: "pools", ROLLOUTS: "pools", CLUSTERS: "trust", IMAGES: "trust", VALUE_SETS: "trust", POLICIES: "trust",
    DISTRUSTS: "trust", CHECKPOINTS: "trust", KATA_CONFIGS: "runtimes", CLASSES: "runtimes",
    OS_CONFIGS: "builds", OS_BUILDS: "builds",
}  # fmt: skip
BY_SUBJECT: Final = "page-subject"


class Authorizer(Protocol):
    """Says what somebody may, in the API's name."""

    def authorize(self, attrs: Attributes) -> Decision:
        """Whether something is allowed."""


class Guard(Authorizer, Protocol):
    """The API's own gatekeeper."""

    def identify(self, request: Request) -> User:
        """Who a request comes from; raises Unauthorized."""


ALERTS: Final = (
    ("Guarded", "False", "Protection is not guarded."),
    ("Recorded", "False", "The record stands still."),
    ("Witnessed", "False", "Witnesses do not vouch for the record."),
    ("ApproversPending", "True", "Approvers of overrides change."),
)


class Stock:
    """The caches behind all pages."""

    def __init__(self, informers: Informers) -> None:
        self.places = informers.places
        self.informers: dict[Resource, Informer] = {resource: informers.of(resource) for resource in SEEN}
        self.informers[VERDICTS].add_index(BY_SUBJECT, _subject)

    async def synced(self) -> None:
        """Wait until everything was seen once."""
        for informer in self.informers.values():
            await informer.synced()

    def fleet(self) -> tuple[list[JsonObject], list[JsonObject]]:
        """All machines and all nodes, whoever may see them."""
        return self.informers[MACHINES].list(), self.informers[NODES].list()

    def rules(self, now: datetime) -> StandingRules:
        """What decides how machines stand: the same for everybody, also for those who may not read the cluster's object."""
        cluster = self.informers[CLUSTERS].get("", CLUSTER)
        return StandingRules.of(cluster, now, listed_approvers(cluster))

    def unproved_nodes(self) -> tuple[str, ...]:
        """The nodes of confidential pools that never attested."""
        machines = (view(machine, Machine) for machine in self.informers[MACHINES].list())
        cluster = self.informers[CLUSTERS].get("", CLUSTER)
        return never_attested(cluster, self.informers[NODES].list(), self.informers[POOLS].list(), machines)

    @property
    def simulated(self) -> bool:
        """Whether this cluster believes simulated evidence; everybody who sees a page is told."""
        return any((cluster.get("spec") or {}).get("simulated") for cluster in self.informers[CLUSTERS].list())

    @property
    def alerts(self) -> tuple[tuple[str, str], ...]:
        """What everybody who logs in must see before anything else: conditions of the cluster that tell of people's acts."""
        cluster = self.informers[CLUSTERS].get("", CLUSTER) or {}
        conditions = ((title, condition(cluster, kind) or {}, bad) for kind, bad, title in ALERTS)
        return tuple(
            (title, str(stored.get("message", ""))) for title, stored, bad in conditions if stored.get("status") == bad
        )


class ViewScope:
    """The cluster as one user may see it."""

    def __init__(self, user: User, guard: Authorizer, stock: Stock) -> None:
        self.user = user
        self._guard = guard
        self._stock = stock

    def rules(self, now: datetime) -> StandingRules:
        """What decides how machines stand."""
        return self._stock.rules(now)

    def unproved_nodes(self) -> tuple[str, ...]:
        """The nodes that never attested, as far as the user may list nodes."""
        return self._stock.unproved_nodes() if self.may("list", NODES) else ()

    def may(self, verb: str, resource: Resource, name: str = "", namespace: str = NAMESPACE) -> bool:
        """Whether the API would allow it."""
        return self._guard.authorize(self._attributes(verb, resource, name, namespace)).allowed

    def require(self, verb: str, resource: Resource, name: str = "") -> None:
        """Raise Forbidden, in the API's words, when the API would not allow it."""
        attributes = self._attributes(verb, resource, name)
        decision = self._guard.authorize(attributes)
        if not decision.allowed:
            raise Forbidden(refusal(attributes, decision.reason), group=resource.group, kind=resource.plural, name=name)

    def all(self, resource: Resource) -> list[JsonObject]:
        """Every object of a kind; raises Forbidden."""
        self.require("list", resource)
        others = [place for place in self._stock.places.of(resource) if place != NAMESPACE]
        hidden = {place for place in others if not self.may("list", resource, namespace=place)}
        objects = self._stock.informers[resource].list()
        return [obj for obj in objects if obj["metadata"].get("namespace") not in hidden] if hidden else objects

    def those(self, resource: Resource) -> list[JsonObject]:
        """Every object of a kind, none where the user may not list it; for what only adds to a page."""
        return self.all(resource) if self.may("list", resource) else []

    def get(self, resource: Resource, name: str) -> JsonObject | None:
        """One object, or None; raises Forbidden."""
        self.require("get", resource, name)
        return self._stock.informers[resource].get(NAMESPACE if resource.namespaced else "", name)

    def glimpse(self, resource: Resource, name: str) -> JsonObject | None:
        """One object where there is one and the user may get it."""
        return self.get(resource, name) if name and self.may("get", resource, name) else None

    def verdicts_of(self, uid: str) -> list[JsonObject]:
        """The verdicts about a machine, newest first; none where the user may not list them."""
        if not self.may("list", VERDICTS):
            return []
        verdicts = self._stock.informers[VERDICTS].by_index(BY_SUBJECT, uid)
        return sorted(verdicts, key=lambda verdict: str(verdict["metadata"].get("creationTimestamp")), reverse=True)

    def _attributes(self, verb: str, resource: Resource, name: str, namespace: str = NAMESPACE) -> Attributes:
        place = namespace if resource.namespaced else ""
        return Attributes(
            self.user, verb, resource.group, resource.version, resource.plural, namespace=place, name=name
        )


def refused_by(error: ApiError) -> str:
    """A refusal of the API as a sentence for a page."""
    return f"{error.message} ({error.reason})"


def _subject(verdict: JsonObject) -> list[str]:
    subject = (verdict.get("spec") or {}).get("subject") or {}
    return [str(subject["machine"])] if subject.get("machine") else []
