"""What nodes can do, on the Nodes.

    NodeFeature (from the node) ─┐
    NodeFeatureRule ─────────────┼─ workloads.features ─ Node: labels, annotations, taints; status: resources
    NodeFeatureDiscovery ────────┘

* Nothing is written before somebody creates a NodeFeatureDiscovery; when the last one goes, what was written goes with it.
* Rules are compiled once and asked for every node; a change of one rule or one node is on the Nodes within a second.
* What a host says of itself is a hint. Rules cannot write attested properties: their prefix is denied to them, and the loop that
  keeps those (`attestation.loops.proof_age`) listens to verdicts alone.
* Nor labels by which pools choose their nodes.
* Only what this loop wrote is ever removed; a rule that cannot be answered is told in an event and stops no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE, NODE_NAME_LABEL
from fastness.kinds.nfd.rule import NODE_FEATURE_RULE
from fastness.kinds.objects import ObjectName, annotations_of, labels_of, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import Conflict, Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.rollout.nodes import selector_keys
from fastness.runtime.clock import Clock
from fastness.workloads.features.book import NodeOutcome, RuleBook
from fastness.workloads.features.builtin import builtin_labels
from fastness.workloads.features.discovered import Features, merged, read_features
from fastness.workloads.features.errors import BadFeatures
from fastness.workloads.features.outputs import DEFAULT, Settings, allowed_labels
from fastness.workloads.features.ownership import NOTES, changes
from fastness.workloads.features.rules import in_order

OWN_NAMESPACE: Final = "openshift-nfd"
BURST_SECONDS: Final = 0.1
BY_NODE: Final = "feature-node"
_READS: Final = fields(
    "metadata.labels", "metadata.annotations", "spec.taints", "status.capacity", "status.allocatable"
)
_AS: Final = WriteOptions(manager="node-features")
_STATUS: Final = WriteOptions(manager="node-features", subresource="status")


def node_of(feature: Object) -> Iterable[str]:
    """The node that a NodeFeature is about."""
    name = labels_of(feature).get(NODE_NAME_LABEL)
    return (name,) if name else ()


class NodeFeatures:
    """Keeps Nodes in step with what was found on them and what rules make of it."""

    name = "node-features"
    writes: Sequence[Resource] = (NODE.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(NODE.resource, keys=self._if_discovered, reads=_READS),
            Source(NODE_FEATURE.resource, keys=_keys_of_feature, indexes={BY_NODE: node_of}),
            Source(NODE_FEATURE_RULE.resource, keys=self._every_node, delay=BURST_SECONDS),
            Source(NODE_FEATURE_DISCOVERY.resource, keys=self._every_node, delay=BURST_SECONDS),
            Source(MACHINE_CONFIG_POOL.resource, keys=self._if_selected_anew, delay=BURST_SECONDS),
        )
        self._cluster = cluster
        self._nodes = informers.of(NODE.resource)
        self._features = informers.of(NODE_FEATURE.resource, indexers={BY_NODE: node_of})
        self._rules = informers.of(NODE_FEATURE_RULE.resource)
        self._discoveries = informers.of(NODE_FEATURE_DISCOVERY.resource)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._selecting: frozenset[str] = frozenset()
        self._recorder = Recorder(cluster, self.name, clock)
        self._book = RuleBook(())
        self._book_of: Any = None
        self._reported: dict[str, frozenset[str]] = {}

    def _if_discovered(self, node: Object) -> Iterable[ObjectName]:
        """The node, where features are discovered or were written; all are looked at when discovery begins or ends."""
        key = object_name(node)
        written = key.name in self._reported or any(name.startswith(NOTES) for name in annotations_of(node))
        return (key,) if written or self._discoveries.list() else ()

    def _every_node(self, _: Object) -> Iterable[ObjectName]:
        return [object_name(node) for node in self._nodes.list()]

    def _if_selected_anew(self, _: Object) -> Iterable[ObjectName]:
        """Every node when pools choose by other labels than before; their status changes all the time."""
        before, self._selecting = self._selecting, self._pool_labels()
        return self._every_node({}) if before != self._selecting else ()

    def _pool_labels(self) -> frozenset[str]:
        return frozenset(key for pool in self._pools.list() for key in selector_keys(pool))

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one node in step."""
        for informer in (self._features, self._rules, self._discoveries, self._pools):
            await informer.synced()
        node = self._nodes.get("", key.name)
        if node is None:
            self._reported.pop(key.name, None)
            return GONE
        discoveries = self._discoveries.list()
        settings = replace(settings_of(discoveries), pool_labels=self._pool_labels())
        outcome = await self._outcome_of(node, settings) if discoveries else NodeOutcome()
        try:
            await self._write(node, outcome)
        except Conflict:
            return Done(again_after=0.2)
        except NotFound:
            return GONE
        except Invalid as error:
            await self._recorder.warning(
                _about(node), "FeaturesRefused", f"the API refuses what rules ask for: {error.message}"
            )
        return Done()

    async def _outcome_of(self, node: JsonObject, settings: Settings) -> NodeOutcome:
        """What the node should carry: built-in labels, then those that it reports, then those of rules."""
        features, reported = await self._features_of(object_name(node).name)
        outcome = (await self._current_book(settings)).run(features)
        first = allowed_labels({**builtin_labels(features), **reported}, features, settings).entries
        outcome.labels = {**first, **outcome.labels}
        await self._tell(node, outcome)
        return outcome

    async def _features_of(self, node: str) -> tuple[Features, dict[str, str]]:
        parts, labels = list[Features](), dict[str, str]()
        for obj in sorted(self._features.by_index(BY_NODE, node), key=_order):
            spec = obj.get("spec") or {}
            try:
                parts.append(read_features(spec.get("features")))
            except BadFeatures as error:
                await self._recorder.warning(obj, "BadFeatures", f"{error}; {error.hint}")
                continue
            labels |= spec.get("labels") or {}
        return merged(parts), labels

    async def _current_book(self, settings: Settings) -> RuleBook:
        rules = self._rules.list()
        version = (
            settings,
            tuple(sorted((rule["metadata"]["uid"], rule["metadata"]["resourceVersion"]) for rule in rules)),
        )
        if version != self._book_of:
            self._book, self._book_of = RuleBook(in_order(rules), settings), version
            by_name = {object_name(rule).name: rule for rule in rules}
            problems = [(rule.source, rule.name, problem) for rule in self._book.rules for problem in rule.problems()]
            for source, name, problem in problems:
                await self._recorder.warning(by_name[source], "BadRule", f"rule {name}: {problem}; {problem.hint}")
        return self._book

    async def _tell(self, node: JsonObject, outcome: NodeOutcome) -> None:
        """Events about what a node does not get, once for each new reason."""
        name = object_name(node).name
        reasons = frozenset(
            [f"rule {rule}: {error}" for rule, error in outcome.errors.items()]
            + [f"{dropped.kind} {dropped.name}: {dropped.reason}" for dropped in outcome.dropped]
        )
        fresh = reasons - self._reported.get(name, frozenset())
        self._reported[name] = reasons
        if fresh:
            await self._recorder.warning(_about(node), "FeaturesLeftOut", "; ".join(sorted(fresh)[:10]))

    async def _write(self, node: JsonObject, outcome: NodeOutcome) -> None:
        difference, name = changes(node, outcome), object_name(node).name
        # Resources first: the note that remembers them must not be there before they are.
        if difference.status is not None:
            await self._cluster.patch(NODE.resource, name, difference.status, PatchType.MERGE, "", _STATUS)
        if difference.node is not None:
            patch = difference.node
            if difference.status is not None and "resourceVersion" in patch.get("metadata", {}):
                # The status was just written, so this version is old; the next look, which that write causes, does the rest.
                return
            await self._cluster.patch(NODE.resource, name, patch, PatchType.MERGE, "", _AS)


def _keys_of_feature(feature: Object) -> Iterable[ObjectName]:
    return [ObjectName("", name) for name in node_of(feature)]


def _order(obj: Object) -> tuple[bool, str, str]:
    place = object_name(obj)
    return place.namespace != OWN_NAMESPACE, place.namespace, place.name


def _about(node: JsonObject) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", **node}


def settings_of(discoveries: Sequence[Object]) -> Settings:
    """How outputs are treated: what the first NodeFeatureDiscovery says, by namespace and name."""
    first = min(discoveries, key=object_name, default=None)
    spec = (first or {}).get("spec") or {}
    if not spec:
        return DEFAULT
    return Settings(
        extra_label_ns=tuple(spec.get("extraLabelNs") or ()),
        deny_label_ns=tuple(spec.get("denyLabelNs") or ()),
        label_white_list=str(spec.get("labelWhiteList") or ""),
        enable_taints=spec.get("enableTaints") is True,
    )
