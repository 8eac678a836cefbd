"""Who may do what: every way in, for every kind of caller.

Columns, left to right (what they show is in `credentials.py`):

    n1, n2   the credentials of two nodes          viewer   a service account that is bound to `view`
    nobody   a service account without any role    admin    the administrator's certificate
    vera     the administrator acting as somebody who is bound to `view`
    sneaky   `viewer` acting as the administrator

Who shows nothing, garbage, an outlived token or the token of a deleted account gets 401 everywhere except where the door is open
(`OPEN`); an expired certificate and one of another authority do not get past TLS. Every write asks with `dryRun`, so that a row
does not depend on the rows before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.component.apiserver.door import objects
from tests.component.apiserver.door.objects import CONFIDENTIAL, CORE, CRDS, DEFAULT, LEASES, MCO, RBAC

MERGE = "application/merge-patch+json"
JSON = "application/json"
LABEL = {"metadata": {"labels": {"touched": "yes"}}}
STATUS: dict[str, Any] = {"status": {"conditions": []}}


class Row(NamedTuple):
    """One request and what each known caller gets."""

    route: str
    method: str
    path: str
    codes: tuple[str, ...]
    body: Any = None
    content_type: str = JSON


def row(route: str, method: str, path: str, codes: str, body: Any = None) -> Row:
    """A row; `codes` are in the order of `credentials.KNOWN`."""
    content_type = MERGE if method == "PATCH" else JSON
    if route == "resources" and method in ("POST", "PUT", "PATCH", "DELETE"):
        path += "?dryRun=All"
    if route == "resources" and path.startswith("/api/"):
        route = "core-resources"
    return Row(route, method, path, tuple(codes.split()), body, content_type)


SAR = "/apis/authorization.k8s.io/v1"
ASKED = {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}
ROLE = {"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
BINDING = objects.role_binding(
    "up", "cluster-admin", {"kind": "User", "name": "vera", "apiGroup": "rbac.authorization.k8s.io"}
)
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "on-n1"}}
FINALIZE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}, "spec": {"finalizers": []}}
NEW = {"metadata": {"name": "new"}}
CONFIG = objects.machine_config("60-new")
TO_N1 = {"target": {"name": "n1"}}
SELF = {"spec": ASKED}
ABOUT_VERA = {"spec": {**ASKED, "user": "vera"}}
IN_DEFAULT = {"spec": {"namespace": "default"}}
TOKEN = {"spec": {"token": "x"}}
PLAIN: dict[str, Any] = {"spec": {"audiences": []}}
STUFF = objects.definition("stuff", "Stuff")
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"namespace": "default", "kind": "Pod", "name": "on-n1"},
}
THING = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}}

#                                                                            n1  n2  viewer nobody admin vera sneaky
ROWS = [
    row("health", "GET", "/healthz",                                         "200 200 200 200 200 200 200"),
    row("health-check", "GET", "/healthz/ping",                              "200 200 200 200 200 200 200"),
    row("live", "GET", "/livez",                                             "200 200 200 200 200 200 200"),
    row("ready", "GET", "/readyz",                                           "200 200 200 200 200 200 200"),
    row("live-check", "GET", "/livez/ping",                                  "200 200 200 200 200 200 200"),
    row("ready-check", "GET", "/readyz/store",                               "200 200 200 200 200 200 200"),
    row("version", "GET", "/version",                                        "200 200 200 200 200 200 200"),
    row("metrics", "GET", "/metrics",                                        "403 403 403 403 200 403 403"),
    row("index", "GET", "/",                                                 "403 403 403 403 200 403 403"),
    row("discovery-core", "GET", "/api",                                     "200 200 200 200 200 200 403"),
    row("discovery-core-version", "GET", "/api/v1",                          "200 200 200 200 200 200 403"),
    row("discovery", "GET", "/apis",                                         "200 200 200 200 200 200 403"),
    row("discovery-group", "GET", "/apis/apps",                              "200 200 200 200 200 200 403"),
    row("discovery-version", "GET", "/apis/apps/v1",                         "200 200 200 200 200 200 403"),
    row("discovery", "POST", "/apis",                                        "403 403 403 403 405 403 403"),
    row("openapi", "GET", "/openapi/v3",                                     "200 200 200 200 200 200 403"),
    row("unknown", "GET", "/no/such/path",                                   "403 403 403 403 404 403 403"),
    row("unknown", "GET", "/api/v1/%2e%2e/v1/secrets",                       "404 404 404 404 404 404 403"),
    # nodes
    row("resources", "GET", f"{CORE}/nodes/n1",                              "200 403 403 403 200 403 403"),
    row("resources", "GET", f"{CORE}/nodes",                                 "403 403 403 403 200 403 403"),
    row("resources", "GET", f"{CORE}/nodes?fieldSelector=metadata.name%3Dn1", "200 403 403 403 200 403 403"),
    row("resources", "GET", f"{CORE}/nodes?watch=1&timeoutSeconds=1",        "403 403 403 403 200 403 403"),
    row("resources", "POST", f"{CORE}/nodes",                                "403 403 403 403 201 403 403", NEW),
    row("resources", "PATCH", f"{CORE}/nodes/n1",                            "200 403 403 403 200 403 403", LABEL),
    row("resources", "PATCH", f"{CORE}/nodes/n1/status",                     "200 403 403 403 200 403 403", STATUS),
    row("resources", "DELETE", f"{CORE}/nodes/n1",                           "403 403 403 403 200 403 403"),
    row("resources", "DELETE", f"{CORE}/nodes",                              "403 403 403 403 200 403 403"),
    # secrets and configuration
    row("resources", "GET", f"{DEFAULT}/secrets/of-n1",                      "200 403 403 403 200 403 403"),
    row("resources", "GET", f"{DEFAULT}/secrets",                            "403 403 403 403 200 403 403"),
    row("resources", "GET", f"{DEFAULT}/secrets?watch=1&timeoutSeconds=1",   "403 403 403 403 200 403 403"),
    row("resources", "POST", f"{DEFAULT}/secrets",                           "403 403 403 403 201 403 403", NEW),
    row("resources", "PATCH", f"{DEFAULT}/secrets/of-n1",                    "403 403 403 403 200 403 403", LABEL),
    row("resources", "DELETE", f"{DEFAULT}/secrets/of-n1",                   "403 403 403 403 200 403 403"),
    row("resources", "GET", f"{DEFAULT}/configmaps/of-n1",                   "200 403 200 403 200 200 403"),
    row("resources", "GET", f"{DEFAULT}/configmaps",                         "403 403 200 403 200 200 403"),
    row("resources", "POST", f"{DEFAULT}/configmaps",                        "403 403 403 403 201 403 403", NEW),
    row("resources", "DELETE", f"{DEFAULT}/configmaps/of-n1",                "403 403 403 403 200 403 403"),
    # machine configuration
    row("resources", "GET", f"{MCO}/machineconfigs/rendered-n1",             "200 403 403 403 200 403 403"),
    row("resources", "GET", f"{MCO}/machineconfigs/50-mine",                 "403 403 403 403 200 403 403"),
    row("resources", "GET", f"{MCO}/machineconfigs",                         "403 403 403 403 200 403 403"),
    row("resources", "POST", f"{MCO}/machineconfigs",                        "403 403 403 403 201 403 403", CONFIG),
    row("resources", "PATCH", f"{MCO}/machineconfigs/50-mine",               "403 403 403 403 200 403 403", LABEL),
    row("resources", "DELETE", f"{MCO}/machineconfigs/50-mine",              "403 403 403 403 200 403 403"),
    row("resources", "GET", f"{MCO}/machineconfignodes/n1",                  "200 403 200 403 200 200 403"),
    row("resources", "PATCH", f"{MCO}/machineconfignodes/n1",                "200 403 403 403 200 403 403", LABEL),
    row("resources", "PATCH", f"{MCO}/machineconfignodes/n1/status",         "200 403 403 403 200 403 403", STATUS),
    row("resources", "GET", f"{CONFIDENTIAL}/cluster",                       "403 403 200 403 200 200 403"),
    row("resources", "PATCH", f"{CONFIDENTIAL}/cluster",                     "403 403 403 403 200 403 403", LABEL),
    row("resources", "DELETE", f"{CONFIDENTIAL}/cluster",                    "403 403 403 403 403 403 403"),
    # roles
    row("resources", "GET", f"{RBAC}/clusterroles/view",                     "403 403 403 403 200 403 403"),
    row("resources", "POST", f"{RBAC}/clusterroles",                         "403 403 403 403 201 403 403", ROLE),
    row("resources", "POST", f"{RBAC}/clusterrolebindings",                  "403 403 403 403 201 403 403", BINDING),
    # leases
    row("resources", "GET", f"{LEASES}/n1",                                  "200 403 403 403 200 403 403"),
    row("resources", "PATCH", f"{LEASES}/n1",                                "200 403 403 403 200 403 403", LABEL),
    row("resources", "POST", LEASES,                                         "403 403 403 403 201 403 403", NEW),
    row("resources", "DELETE", f"{LEASES}/n1",                               "200 403 403 403 200 403 403"),
    # pods
    row("resources", "GET", f"{DEFAULT}/pods/on-n1",                         "200 403 200 403 200 200 403"),
    row("resources", "GET", f"{DEFAULT}/pods",                               "403 403 200 403 200 200 403"),
    row("resources", "GET", f"{DEFAULT}/pods?watch=1&timeoutSeconds=1",      "403 403 200 403 200 200 403"),
    row("resources", "GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Dn1", "200 403 200 403 200 200 403"),
    row("resources", "POST", f"{DEFAULT}/pods",                              "403 403 403 403 201 403 403", objects.pod("new")),
    row("resources", "PATCH", f"{DEFAULT}/pods/on-n1/status",                "200 403 403 403 200 403 403", STATUS),
    row("resources", "POST", f"{DEFAULT}/pods/on-n1/eviction",               "201 403 403 403 201 403 403", EVICTION),
    row("resources", "POST", f"{DEFAULT}/pods/free/binding",                 "403 403 403 403 201 403 403", TO_N1),
    row("resources", "DELETE", f"{DEFAULT}/pods/on-n1",                      "200 403 403 403 200 403 403"),
    # questions about access
    row("resources", "POST", f"{SAR}/selfsubjectaccessreviews",              "201 201 201 201 201 201 403", SELF),
    row("resources", "POST", f"{SAR}/selfsubjectrulesreviews",               "201 201 201 201 201 201 403", IN_DEFAULT),
    row("resources", "POST", f"{SAR}/subjectaccessreviews",                  "403 403 403 403 201 403 403", ABOUT_VERA),
    row("resources", "POST", "/apis/authentication.k8s.io/v1/tokenreviews",  "403 403 403 403 201 403 403", TOKEN),
    row("resources", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "201 201 201 201 201 201 403", {}),
    row("resources", "POST", f"{DEFAULT}/serviceaccounts/viewer/token",      "403 403 403 403 201 403 403", PLAIN),
    # the rest of the cluster
    row("resources", "GET", f"{CORE}/namespaces/default",                    "403 403 200 403 200 200 403"),
    row("resources", "POST", f"{CORE}/namespaces",                           "403 403 403 403 201 403 403", NEW),
    row("resources", "DELETE", f"{CORE}/namespaces/fastness-system",         "403 403 403 403 403 403 403"),
    row("resources", "PUT", f"{CORE}/namespaces/default/finalize",           "403 403 403 403 200 403 403", FINALIZE),
    row("resources", "GET", f"{CRDS}/things.example.dev",                    "403 403 403 403 200 403 403"),
    row("resources", "POST", CRDS,                                           "403 403 403 403 201 403 403", STUFF),
    row("resources", "DELETE", f"{CRDS}/things.example.dev",                 "403 403 403 403 200 403 403"),
    row("resources", "POST", "/apis/example.dev/v1/things",                  "403 403 403 403 201 403 403", THING),
    row("resources", "GET", "/apis/example.dev/v1/things",                   "403 403 403 403 200 403 403"),
    row("resources", "GET", "/apis/example.dev/v1/nothings",                 "403 403 403 403 404 403 403"),
    row("resources", "POST", f"{DEFAULT}/events",                            "201 201 403 403 201 403 403", EVENT),
    row("resources", "OPTIONS", f"{DEFAULT}/pods",                           "403 403 403 403 405 403 403"),
]  # fmt: skip
