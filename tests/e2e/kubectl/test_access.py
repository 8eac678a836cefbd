"""Who may do what: `auth`, `--as`, tokens, and nobody without a credential."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import config_map, node
from tests.e2e.live import Outcome


def test_whoami_names_the_administrator(kubectl: Kubectl) -> None:
    user = kubectl.ok("auth", "whoami", "-o", "json").json["status"]["userInfo"]
    assert "system:masters" in user["groups"]


def test_impersonation_is_shown_and_obeyed(kubectl: Kubectl) -> None:
    review = kubectl.ok("auth", "whoami", "--as", "jane", "--as-group", "devs", "-o", "json").json
    assert review["status"]["userInfo"] == {"username": "jane", "groups": ["devs", "system:authenticated"]}
    assert 'User "jane" cannot list resource "secrets"' in kubectl.refused("get", "secrets", "--as", "jane")


def test_only_those_who_may_impersonate_do(kubectl: Kubectl) -> None:
    kubectl.ok("create", "serviceaccount", "robot")
    token = kubectl.ok("create", "token", "robot").out
    outcome = as_token(kubectl, token, "get", "cm", "--as", "jane")
    assert 'cannot impersonate resource "users"' in outcome.err


def as_token(kubectl: Kubectl, token: str, *words: str) -> Outcome:
    live = kubectl.live
    flags = ("--server", live.url, "--certificate-authority", str(live.state / "pki" / "ca.crt"), "--token", token)
    return live.kubectl("--kubeconfig", "/dev/null", *flags, "-n", kubectl.namespace, *words)


def test_can_i_answers_by_word_and_by_exit_code(kubectl: Kubectl) -> None:
    kubectl.ok("create", "role", "reader", "--verb", "get,list", "--resource", "pods")
    kubectl.ok("create", "rolebinding", "reader", "--role", "reader", "--user", "jane")
    yes, no = (kubectl("auth", "can-i", verb, "pods", "--as", "jane") for verb in ("list", "delete"))
    assert (yes.code, yes.out) == (0, "yes\n")
    assert (no.code, no.out) == (1, "no\n")


def test_can_i_list_tells_all_that_is_allowed(kubectl: Kubectl) -> None:
    kubectl.ok("create", "rolebinding", "b", "--clusterrole", "view", "--user", "viewer")
    table = kubectl.ok("auth", "can-i", "--list", "--as", "viewer").out
    assert any(line.startswith("configmaps ") and line.endswith("[get list watch]") for line in table.splitlines())
    assert "secrets" not in table


def test_default_roles_are_those_of_kubernetes(kubectl: Kubectl) -> None:
    names = set(kubectl.ok("get", "clusterroles", "-o", "name").lines)
    defaults = {"cluster-admin", "admin", "edit", "view", "system:node", "system:basic-user", "system:discovery"}
    assert {f"clusterrole.rbac.authorization.k8s.io/{name}" for name in defaults} <= names


def test_aggregation_adds_rules_to_the_default_roles(kubectl: Kubectl, unique: str) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": unique, "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": [f"{unique}.example"], "resources": ["things"], "verbs": ["get"]}],
    }  # fmt: skip
    kubectl.ok("create", "-f", "-", stdin=role)
    path = f'jsonpath={{.rules[?(@.apiGroups[0]=="{unique}.example")].resources[0]}}=things'
    kubectl.ok("wait", f"--for={path}", "clusterrole/view", "--timeout=10s")


def test_a_role_that_grants_more_than_its_author_has_is_refused(kubectl: Kubectl) -> None:
    kubectl.ok("create", "rolebinding", "b", "--clusterrole", "admin", "--user", "boss")
    refusal = kubectl.refused("create", "role", "r", "--verb", "*", "--resource", "nodes", "--as", "boss")
    assert "attempting to grant RBAC permissions not currently held" in refusal


def test_a_token_is_good_for_what_its_account_may_do(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "serviceaccount", "robot")
    kubectl.ok("create", "rolebinding", "b", "--clusterrole", "edit", "--serviceaccount", f"{unique}:robot")
    token = kubectl.ok("create", "token", "robot").out
    assert as_token(kubectl, token, "create", "configmap", "made").out == "configmap/made created\n"
    refused = as_token(kubectl, token, "get", "nodes")
    assert f'User "system:serviceaccount:{unique}:robot" cannot list resource "nodes"' in refused.err


def test_a_token_dies_with_its_account(kubectl: Kubectl) -> None:
    kubectl.ok("create", "serviceaccount", "robot")
    token = kubectl.ok("create", "token", "robot").out
    assert as_token(kubectl, token, "auth", "whoami").code == 0
    kubectl.ok("delete", "serviceaccount", "robot")
    outcome = as_token(kubectl, token, "auth", "whoami")
    assert outcome.code == 1
    assert "Unauthorized" in outcome.err or "must be logged in" in outcome.err


def test_a_node_changes_itself_and_no_other(kubectl: Kubectl, unique: str) -> None:
    for name in (unique, f"{unique}-other"):
        kubectl.ok("create", "-f", "-", stdin=node(name))
    me = ("--as", f"system:node:{unique}", "--as-group", "system:nodes")
    kubectl.ok("annotate", "node", unique, "a=b", *me)
    refusal = kubectl.refused("annotate", "node", f"{unique}-other", "a=b", *me)
    assert f"node '{unique}' may use only its own nodes object" in refusal


def anonymous(kubectl: Kubectl, path: str) -> int:
    context = ssl.create_default_context(cafile=str(kubectl.live.state / "pki" / "ca.crt"))
    try:
        with urllib.request.urlopen(kubectl.live.url + path, context=context, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_nobody_gets_in_without_a_credential(kubectl: Kubectl) -> None:
    assert [anonymous(kubectl, path) for path in ("/livez", "/readyz", "/version")] == [200, 200, 200]
    assert [anonymous(kubectl, path) for path in ("/", "/api", "/api/v1/namespaces", "/metrics")] == [401] * 4


def test_every_write_leaves_an_audit_line(kubectl: Kubectl, unique: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("audited"))
    kubectl.refused("create", "-f", "-", "--as", "jane", stdin=config_map("audited"))
    kubectl.ok("label", "cm", "audited", "a=b")
    mine = {
        name: [
            (line["user"], line["verb"], line["name"], line["code"])
            for line in map(json.loads, (kubectl.live.state / name).read_text().splitlines())
            if line["namespace"] == unique
            and line["resource"] == "configmaps"
            and not line["user"].startswith("system:")
        ]
        for name in ("audit.log", "audit-refused.log")
    }
    assert mine == {
        "audit.log": [("fastness-admin", "create", "audited", 201), ("fastness-admin", "patch", "audited", 200)],
        "audit-refused.log": [("jane", "create", "", 403)],
    }
