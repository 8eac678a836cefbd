"""Deletes: preconditions, finalizers, propagation, collections, namespaces."""

from __future__ import annotations

from tests.differential.script.objects import (
    TICKETS,
    VALUES,
    begin,
    captures,
    config_map,
    inside,
    obj,
    pod,
    ticket,
    values,
)
from tests.differential.step import JSON_PATCH, MERGE, Step

F = "deletes"
MAPS = inside(F, "configmaps")
T = f"{TICKETS}/${{run}}-gone"
LABELS = {"set": "${run}"}


def _options(**fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **fields}


def _new(name: str, **meta: object) -> Step:
    return Step(
        f"deletes.create-{name}",
        "POST",
        MAPS,
        config_map(name, {"a": "1"}, labels=LABELS, **meta),
        capture=captures(name),
    )


def _delete(label: str, name: str, options: object = None, **query: str) -> Step:
    return Step(f"deletes.{label}", "DELETE", f"{MAPS}/{name}", options, query=query)


STEPS = (
    begin(F),
    _new("plain"),
    _delete("plain", "plain"),
    _delete("again", "plain"),
    _new("pre"),
    _delete("wrong-uid", "pre", _options(preconditions={"uid": "11111111-2222-3333-4444-555555555555"})),
    _delete("wrong-version", "pre", _options(preconditions={"resourceVersion": "1"})),
    _delete("bad-policy", "pre", _options(propagationPolicy="Sideways")),
    _delete("bad-policy-query", "pre", propagationPolicy="Sideways"),
    _delete("both-policies", "pre", _options(propagationPolicy="Orphan", orphanDependents=True)),
    _delete("bad-dry-run", "pre", _options(dryRun=["Some"])),
    _delete("bad-dry-run-query", "pre", dryRun="Some"),
    _delete("bad-grace", "pre", gracePeriodSeconds="soon"),
    _delete("negative-grace", "pre", _options(gracePeriodSeconds=-1, dryRun=["All"])),
    _delete("wrong-kind", "pre", obj("v1", "ConfigMap", "pre")),
    _delete("garbage", "pre", b"{"),
    _delete("unknown-field", "pre", _options(colour="red", dryRun=["All"])),
    _delete("dry-run", "pre", _options(dryRun=["All"])),
    _delete("dry-run-query", "pre", dryRun="All"),
    Step("deletes.still-there", "GET", f"{MAPS}/pre"),
    _delete(
        "right-preconditions", "pre", _options(preconditions={"uid": "${pre.uid}", "resourceVersion": "${pre.version}"})
    ),
    # Finalizers.
    _new("held", finalizers=["example.com/hold"]),
    _delete("held", "held"),
    _delete("held-again", "held"),
    Step("deletes.held-read", "GET", f"{MAPS}/held"),
    Step("deletes.held-change", "PATCH", f"{MAPS}/held", {"data": {"a": "2"}}, type=MERGE),
    Step(
        "deletes.held-new-finalizer",
        "PATCH",
        f"{MAPS}/held",
        {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}},
        type=MERGE,
    ),
    Step("deletes.held-create-again", "POST", MAPS, config_map("held")),
    Step(
        "deletes.held-release",
        "PATCH",
        f"{MAPS}/held",
        [{"op": "remove", "path": "/metadata/finalizers"}],
        type=JSON_PATCH,
    ),
    Step("deletes.held-gone", "GET", f"{MAPS}/held", until=404),
    # Propagation, with the collector at work.
    _new("owner"),
    _new("child", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "${owner.uid}"}]),
    _delete("owner-background", "owner", propagationPolicy="Background"),
    Step("deletes.child-collected", "GET", f"{MAPS}/child", until=404),
    _new("owner2"),
    _new(
        "child2",
        ownerReferences=[
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "owner2",
                "uid": "${owner2.uid}",
                "blockOwnerDeletion": True,
            }
        ],
    ),
    _delete("owner-foreground", "owner2", _options(propagationPolicy="Foreground")),
    Step("deletes.owner-waited", "GET", f"{MAPS}/owner2", until=404),
    Step("deletes.child2-gone", "GET", f"{MAPS}/child2"),
    _new("owner3"),
    _new(
        "child3", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner3", "uid": "${owner3.uid}"}]
    ),
    _delete("owner-orphan", "owner3", _options(propagationPolicy="Orphan")),
    Step("deletes.owner3-gone", "GET", f"{MAPS}/owner3", until=404),
    Step("deletes.child3-orphaned", "GET", f"{MAPS}/child3"),
    # Collections.
    _new("c1"),
    _new("c2"),
    Step("deletes.create-other", "POST", MAPS, config_map("other", labels={"set": "other"})),
    Step("deletes.collection-dry-run", "DELETE", MAPS, query={"labelSelector": "set=${run}", "dryRun": "All"}),
    Step("deletes.collection", "DELETE", MAPS, query={"labelSelector": "set=${run}"}),
    Step("deletes.collection-left", "GET", MAPS, query={"labelSelector": "set"}),
    Step("deletes.collection-by-field", "DELETE", MAPS, query={"fieldSelector": "metadata.name=other"}),
    Step("deletes.collection-bad-selector", "DELETE", MAPS, query={"labelSelector": "a=(b"}),
    Step("deletes.collection-all-namespaces", "DELETE", "/api/v1/configmaps"),
    # Custom objects and pods.
    Step(
        "deletes.custom-create", "POST", TICKETS, ticket("${run}-gone", finalizers=["example.com/hold"], labels=LABELS)
    ),
    Step("deletes.custom-held", "DELETE", T),
    Step("deletes.custom-release", "PATCH", T, {"metadata": {"finalizers": None}}, type=MERGE),
    Step("deletes.custom-gone", "GET", T, until=404),
    Step("deletes.custom-missing", "DELETE", T),
    Step("deletes.values", "POST", VALUES, values("${run}-gone"), capture=captures("dv")),
    # A real collector learns of a new kind only after half a minute: what it does with finalizers is seen on config maps.
    Step("deletes.values-background", "DELETE", f"{VALUES}/${{run}}-gone", _options(propagationPolicy="Background")),
    Step("deletes.values-gone", "GET", f"{VALUES}/${{run}}-gone", until=404),
    Step("deletes.pod-create", "POST", inside(F, "pods"), pod("p")),
    Step("deletes.pod", "DELETE", inside(F, "pods", "p")),
    Step("deletes.pod-gone", "GET", inside(F, "pods", "p"), until=404),
    Step("deletes.pod-forced-create", "POST", inside(F, "pods"), pod("q")),
    Step("deletes.pod-forced", "DELETE", inside(F, "pods", "q"), query={"gracePeriodSeconds": "0"}),
    Step("deletes.account-create", "POST", inside(F, "serviceaccounts"), obj("v1", "ServiceAccount", "sa")),
    Step("deletes.account", "DELETE", inside(F, "serviceaccounts", "sa")),
    # A namespace with content that holds it.
    Step("deletes.ns", "POST", "/api/v1/namespaces", obj("v1", "Namespace", "${run}-end")),
    Step("deletes.ns-again", "POST", "/api/v1/namespaces", obj("v1", "Namespace", "${run}-end")),
    Step(
        "deletes.ns-content",
        "POST",
        "/api/v1/namespaces/${run}-end/configmaps",
        config_map("stay", finalizers=["example.com/hold"]),
    ),
    Step("deletes.ns-mark", "DELETE", "/api/v1/namespaces/${run}-end/configmaps/stay"),
    Step("deletes.ns-delete", "DELETE", "/api/v1/namespaces/${run}-end"),
    Step("deletes.ns-create-in-terminating", "POST", "/api/v1/namespaces/${run}-end/configmaps", config_map("late")),
    Step(
        "deletes.ns-release",
        "PATCH",
        "/api/v1/namespaces/${run}-end/configmaps/stay",
        {"metadata": {"finalizers": []}},
        type=MERGE,
    ),
    Step("deletes.ns-gone", "GET", "/api/v1/namespaces/${run}-end", until=404),
    Step("deletes.ns-default", "DELETE", "/api/v1/namespaces/default"),
    Step("deletes.ns-collection", "DELETE", "/api/v1/namespaces", query={"labelSelector": "set=none"}),
)
