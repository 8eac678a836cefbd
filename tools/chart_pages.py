"""Two reference pages about an installation on Kubernetes: values of the chart, and rights of every role with their reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fastness.app.accounts import ACCOUNTS, manifests, nodes
from fastness.kinds.crd.roles import roles
from fastness.kinds.kind import JsonObject

CHART = Path(__file__).resolve().parents[1] / "deploy" / "chart"
Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

# Why a role has a right: by group and resource, else by group.
WHY: Mapping[str, str] = {
    "/configmaps": "public keys, settings and the tiles of the record",
    "/events": "tells people about objects",
    "/namespaces": "whether its namespace is there, and what its labels say",
    "/nodes": "which machine is which node, and how it stands",
    "/pods": "what a drain or a change would put out",
    "/secrets": "its own keys by name; sealed resources, tokens and user-data where they are kept",
    "/serviceaccounts": "accounts of what it deploys",
    "/services": "where the cluster's name server is",
    "admissionregistration.k8s.io": "registers the webhook, and sees whether it guards the API",
    "apiextensions.k8s.io": "which kinds are installed",
    "apps/daemonsets": "installs the runtime of confidential containers where there are no machine configs",
    "apps/deployments": "whether another operator does this work",
    "authentication.k8s.io": "who logs in to the page",
    "authorization.k8s.io": "what whoever logged in may see",
    "bootstrap.cluster.x-k8s.io": "bootstrap data for Cluster API",
    "certificates.k8s.io": "decides about certificates of kubelets",
    "cluster.x-k8s.io": "which machine of Cluster API a bootstrap config is for",
    "confidentialcontainers.org": "settings of the broker that another project's manuals write",
    "config.openshift.io": "settings of a cluster that machine configs are rendered from",
    "coordination.k8s.io": "one of the controllers leads, and others are noticed",
    "fastness.dev/auditbatches": "writes to the record",
    "fastness.dev/auditcheckpoints": "the record in order",
    "fastness.dev": "what the cluster demands, and what was decided",
    "kataconfiguration.openshift.io": "the runtime of confidential containers",
    "machine.openshift.io": "machines that sets ask for",
    "machineconfiguration.openshift.io": "pools and configs of machines",
    "metal3.io": "hosts that become machines",
    "nfd.openshift.io": "what nodes can do",
    "node.k8s.io": "runtime classes of confidential containers",
    "operator.openshift.io": "settings of machine configs",
    "operators.coreos.com": "installs operators as their manuals say",
    "rbac.authorization.k8s.io": "the role of the runtime's installer, and who may ask for node certificates",
    "security.openshift.io": "constraints under which the runtime's installer runs",
    "trusted-execution-clusters.io": "machines, their keys, and the images that they may boot",
}
PEOPLE: Mapping[str, str] = {
    "fastness-view": "viewer: looks at what cannot hold a secret; part of Kubernetes' own `view`",
    "fastness-reader": "viewer of everything that the page shows, contents of files included",
    "fastness-decider": "approves, refuses and takes out machines",
    "fastness-operator": "runs machines day by day: tickets, pools, configs, rollouts",
    "fastness-approver": "says what counts: images, values, policies, bindings, distrusts",
    "fastness-administrator": "operator and approver, and changes the ConfidentialCluster itself",
}


def reason(group: str, resource: str) -> str:
    """Why a role has rights to a resource; raises KeyError where nobody said."""
    return WHY.get(f"{group}/{resource.split('/')[0]}") or WHY[group]


def chart_values(table: Table) -> tuple[str, ...]:
    """Every value with its default and its meaning."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = [
        (f"`{path}`", _default(defaults, path), str(node.get("description", "")) + _choices(node))
        for path, node in _leaves(schema, schema["properties"], "")
        if path != "global"
    ]
    return (
        "Values of the chart in `deploy/chart`. A value that is not listed is refused, and so is one of another type. "
        "[How to install it](../how-to/run-on-kubernetes.md).",
        table(("value", "default", "meaning"), rows),
    )


def _leaves(schema: JsonObject, properties: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, JsonObject]]:
    for name, node in properties.items():
        target = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        path = f"{prefix}{name}"
        yield path, target
        if target.get("properties"):
            yield from _leaves(schema, target["properties"], f"{path}.")


def _default(values: Any, path: str) -> str:
    for name in path.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    if isinstance(values, dict) and values and not path.endswith(("requests", "limits")):
        return ""
    return f"`{json.dumps(values)}`"


def _choices(node: JsonObject) -> str:
    choices = node.get("enum") or (node.get("items") or {}).get("enum")
    return f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""


def permissions(table: Table) -> tuple[str, ...]:
    """Every right of every role, where it holds and why; then what people are given."""
    parts = [
        "What the chart and `fastness crds --accounts` give to each role: nothing outside these tables. An account reads Secrets "
        "by their names, except in namespaces that hold nothing else."
    ]
    heading = ("where", "resources", "verbs", "names", "why")
    for account in ACCOUNTS:
        rows = [row for document in manifests(account) for row in _rows(document)]
        parts += [f"## {account.account}", table(heading, rows)]
    rows = [row for document in nodes() for row in _rows(document)]
    parts += [
        "## Nodes",
        "What agents need beside what Kubernetes gives a node, for the group `system:nodes`.",
        table(heading, rows),
    ]
    parts += ["## People", "ClusterRoles that you bind; nobody has them by default."]
    for role in roles():
        name = role["metadata"]["name"]
        parts += [f"### {name}", f"{PEOPLE[name]}.", table(("resources", "verbs"), _people(role))]
    return tuple(parts)


def _rows(document: JsonObject) -> Iterator[tuple[str, ...]]:
    where = document["metadata"].get("namespace", "the whole cluster")
    for rule in document.get("rules", ()):
        group = rule["apiGroups"][0]
        names = [f"`{name}{f'.{group}' if group else ''}`" for name in rule["resources"]]
        why = dict.fromkeys(reason(group, name) for name in rule["resources"])
        yield (
            where,
            ", ".join(names),
            ", ".join(rule["verbs"]),
            ", ".join(rule.get("resourceNames", ())),
            "; ".join(why),
        )


def _people(role: JsonObject) -> Iterator[tuple[str, ...]]:
    for rule in role["rules"]:
        group = rule["apiGroups"][0]
        yield (
            ", ".join(f"`{name}{f'.{group}' if group else ''}`" for name in rule["resources"]),
            ", ".join(rule["verbs"]),
        )
