"""The table runs in order: the first refusal wins, warnings and patches add up."""

from __future__ import annotations

from fastness.apiserver.admission.own import OWN
from fastness.kube.access.user import NODES, User
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Answer, Denied, Operation, Patched
from fastness.kube.admission_rules import Row
from tests.unit.admission.writes import World, review, write
from tests.unit.kube.access.rbac_world import cluster_binding, cluster_role, rule, subject

UPDATES = frozenset({Operation.UPDATE})
NODE = User("system:node:n1", (NODES,))


def warns(text: str) -> Row:
    return Row(lambda request, lookups: Allowed((text,)), UPDATES)


def labels(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    return Patched([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], ("labelled",))


def needs_label(request: AdmissionRequest, lookups: AdmissionLookups) -> Answer | None:
    has = (request.new.get("metadata") or {}).get("labels") == {"a": "b"}
    return None if has else Denied("no label")


def test_nothing_to_say_is_allowed() -> None:
    assert review(write("CREATE", "configmaps", {"metadata": {"name": "c"}}, namespace="d"), World()) == Allowed()


def test_warnings_add_up_in_order() -> None:
    answer = review(write("UPDATE", "things", {}), World(), [warns("one"), warns("two")])
    assert answer == Allowed(("one", "two"))


def test_first_refusal_wins_and_drops_warnings() -> None:
    refuses = Row(lambda request, lookups: Denied("first"), UPDATES)
    never = Row(lambda request, lookups: Denied("second"), UPDATES)
    assert review(write("UPDATE", "things", {}), World(), [warns("one"), refuses, never]) == Denied("first")


def test_patch_is_seen_by_later_rules_and_the_object_is_not_changed() -> None:
    new = {"metadata": {"name": "x"}}
    answer = review(write("UPDATE", "things", new), World(), [Row(labels, UPDATES), Row(needs_label, UPDATES)])
    assert answer == Patched(({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},), ("labelled",))
    assert new == {"metadata": {"name": "x"}}
    assert isinstance(review(write("UPDATE", "things", new), World(), [Row(needs_label, UPDATES)]), Denied)


def test_row_sees_only_its_operations_resource_and_subresource() -> None:
    row = Row(needs_label, UPDATES, "g", "things")
    assert row.sees(Operation.UPDATE, "g", "things", "")
    assert not row.sees(Operation.CREATE, "g", "things", "")
    assert not row.sees(Operation.UPDATE, "g", "others", "")
    assert not row.sees(Operation.UPDATE, "h", "things", "")
    assert not row.sees(Operation.UPDATE, "g", "things", "status")
    assert Row(needs_label, UPDATES, subresources=("*",)).sees(Operation.UPDATE, "g", "things", "status")


def test_namespaces_are_judged_before_anything_else() -> None:
    new = {**cluster_role("strong", rule("*", "*", ["*"])), "kind": "Role"}
    request = write("CREATE", "roles.rbac.authorization.k8s.io", new, namespace="nowhere", user=User("alice"))
    answer = review(request, World())
    assert isinstance(answer, Denied)
    assert answer.code == 404
    assert {row.rule.__name__ for row in OWN[:3]} == {"namespace_exists", "namespace_is_alive", "namespace_may_go"}


def test_node_restriction_is_part_of_the_table() -> None:
    old = {"metadata": {"name": "n1"}}
    new = {"metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/master": ""}}}
    answer = review(write("UPDATE", "nodes", new, old, user=NODE), World())
    assert isinstance(answer, Denied)
    assert answer.message.startswith("nodes \"n1\" is forbidden: node 'n1' may not set these labels")
    assert review(write("UPDATE", "nodes", new, old), World()) == Allowed()


def test_node_asks_for_tokens_of_its_own_pods_only() -> None:
    pod = {"metadata": {"uid": "u"}, "spec": {"nodeName": "n1"}}
    world = World(all_pods={("d", "p"): pod, ("d", "q"): {**pod, "spec": {"nodeName": "n2"}}})

    def ask(name: str) -> Answer:
        body = {"spec": {"boundObjectRef": {"kind": "Pod", "name": name, "uid": "u"}}}
        return review(write("CREATE", "serviceaccounts/token", body, namespace="d", user=NODE, name="sa"), world)

    assert ask("p") == Allowed()
    assert isinstance(ask("q"), Denied)


def test_escalation_is_part_of_the_table() -> None:
    alice = User("alice")
    strong = cluster_role("strong", rule("*", "*", ["*"]))
    binds = cluster_binding("b", "strong", subject("User", "alice"))
    for resource, new in (("clusterroles", strong), ("clusterrolebindings", binds)):
        answer = review(write("CREATE", f"{resource}.rbac.authorization.k8s.io", new, user=alice), World())
        assert isinstance(answer, Denied)
        assert answer.code == (403 if resource == "clusterroles" else 404)
        assert review(write("CREATE", f"{resource}.rbac.authorization.k8s.io", new), World()) == Allowed()
