"""Who reaches whom by NetworkPolicies, evaluated as Kubernetes defines them: for tests of what manifests mean, not how they look.

    network = Network.of(documents, {"fastness-system": {…labels}})
    network.allows(source, target, 22626)      source and target are `Pod`s, or an address outside for the source

A pod that no policy selects for a direction is open in that direction. One that is selected takes what some rule of some policy
allows, and nothing else. An absent `from`, `to` or `ports` means everybody and everything; an empty selector means all; a
podSelector without a namespaceSelector means the policy's own namespace.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Pod:
    """A pod: where it is, what it is called, which ports have names."""

    namespace: str
    labels: Labels
    ports: Mapping[str, int] = field(default_factory=dict)
    address: str = "10.244.0.9"


@dataclass(frozen=True)
class Outside:
    """Somebody who is no pod."""

    address: str


@dataclass(frozen=True)
class Network:
    """The policies of a cluster, and the labels of its namespaces."""

    policies: Sequence[Document]
    namespaces: Mapping[str, Labels]

    @classmethod
    def of(cls, documents: Iterable[Document], namespaces: Mapping[str, Labels] | None = None) -> Network:
        """The network that manifests describe."""
        policies = [document for document in documents if document["kind"] == "NetworkPolicy"]
        named = {
            document["metadata"]["name"]: document["metadata"].get("labels") or {}
            for document in documents
            if document["kind"] == "Namespace"
        }
        labels = {
            name: {"kubernetes.io/metadata.name": name, **given}
            for name, given in {**named, **(namespaces or {})}.items()
        }
        return cls(policies, labels)

    def allows(self, source: Pod | Outside, target: Pod, port: int, protocol: str = "TCP") -> bool:
        """Whether a connection is let out where it begins and in where it ends."""
        leaves = not isinstance(source, Pod) or self._passes("Egress", source, target, target, port, protocol)
        return leaves and self._passes("Ingress", target, source, target, port, protocol)

    def _passes(self, way: str, held: Pod, other: Pod | Outside, target: Pod, port: int, protocol: str) -> bool:
        binding = [policy for policy in self.policies if way in _ways(policy) and self._holds(policy, held)]
        rules = [(policy, rule) for policy in binding for rule in policy["spec"].get(way.lower()) or ()]
        peers = "from" if way == "Ingress" else "to"
        return not binding or any(
            _port_fits(rule.get("ports"), target, port, protocol)
            and (not rule.get(peers) or any(self._peer_fits(peer, policy, other) for peer in rule[peers]))
            for policy, rule in rules
        )

    def _holds(self, policy: Document, pod: Pod) -> bool:
        there = policy["metadata"]["namespace"] == pod.namespace
        return there and _selects(policy["spec"].get("podSelector") or {}, pod.labels)

    def _peer_fits(self, peer: Document, policy: Document, other: Pod | Outside) -> bool:
        if "ipBlock" in peer:
            address = ipaddress.ip_address(other.address)
            within = address in ipaddress.ip_network(peer["ipBlock"]["cidr"])
            return within and not any(
                address in ipaddress.ip_network(cut) for cut in peer["ipBlock"].get("except") or ()
            )
        if isinstance(other, Outside):
            return False
        if "namespaceSelector" in peer:
            here = _selects(peer["namespaceSelector"] or {}, self.namespaces.get(other.namespace, {}))
        else:
            here = other.namespace == policy["metadata"]["namespace"]
        return here and _selects(peer.get("podSelector") or {}, other.labels)


def _ways(policy: Document) -> list[str]:
    spec = policy["spec"]
    stated = spec.get("policyTypes")
    return list(stated) if stated else ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _selects(selector: Document, labels: Labels) -> bool:
    labelled = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in labelled.items()) and all(
        _expression(entry, labels) for entry in selector.get("matchExpressions") or ()
    )


def _expression(entry: Document, labels: Labels) -> bool:
    value, among = labels.get(entry["key"]), entry.get("values") or ()
    match entry["operator"]:
        case "In":
            return value in among
        case "NotIn":
            return value not in among
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ValueError(f"no operator of selectors: {other}")


def _port_fits(ports: Sequence[Document] | None, target: Pod, port: int, protocol: str) -> bool:
    if not ports:
        return True
    for entry in ports:
        stated = entry.get("port")
        number = target.ports.get(stated) if isinstance(stated, str) else stated
        if entry.get("protocol", "TCP") != protocol:
            continue
        if stated is None or (number is not None and number <= port <= entry.get("endPort", number)):
            return True
    return False
