"""Random and mutated requests straight into the application: it answers all of them, and none with a defect.

`FASTNESS_SOAK=1` searches longer; `FASTNESS_SEED` repeats a search. A failure names the request that caused it.
"""

from __future__ import annotations

import json
import os
import random
import ssl
from collections.abc import Mapping
from typing import Any

from tests.component.apiserver.door import objects
from tests.component.apiserver.door.raw import CONFIGMAPS, defects
from tests.embedded.fixtures import Embedded

REQUESTS = 60_000 if os.environ.get("FASTNESS_SOAK") else 1500
DELIBERATE = frozenset({501, 503, 504})

METHODS = ["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]
PATHS = [
    "/", "/api", "/apis", "/version", "/readyz", "/metrics", "/openapi/v3", "/openapi/v3/api/v1", "/api/v1",
    "/apis/apps/v1", CONFIGMAPS, f"{CONFIGMAPS}/c", "/api/v1/namespaces", "/api/v1/namespaces/fuzz",
    "/api/v1/namespaces/fuzz/finalize", "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/secrets/s",
    "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/p", "/api/v1/namespaces/default/pods/on-n1/status",
    "/api/v1/namespaces/default/pods/on-n1/eviction", "/api/v1/namespaces/default/pods/free/binding",
    "/api/v1/namespaces/default/serviceaccounts/default/token", "/api/v1/nodes", "/api/v1/nodes/n1/status",
    "/apis/apps/v1/namespaces/default/deployments", "/apis/apps/v1/namespaces/default/deployments/d/scale",
    objects.CRDS, f"{objects.CRDS}/things.example.dev", "/apis/example.dev/v1/things", "/apis/example.dev/v1/things/t",
    f"{objects.MCO}/machineconfigs", f"{objects.MCO}/machineconfignodes/n1/status", objects.CONFIDENTIAL,
    f"{objects.RBAC}/clusterroles", f"{objects.RBAC}/clusterrolebindings", objects.LEASES,
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events",
]  # fmt: skip
QUERIES = [
    "", "", "", "watch=1", "watch=1&resourceVersion=1", "limit=1", "limit=1&continue=abc", "dryRun=All", "dryRun=Some",
    "fieldValidation=Strict", "fieldManager=fuzz", "fieldManager=fuzz&force=true", "labelSelector=a%3Db",
    "labelSelector=a+in+(b,c),!d", "fieldSelector=metadata.name%3Dc", "fieldSelector=a.b%21%3Dc", "resourceVersion=0",
    "resourceVersion=5&resourceVersionMatch=Exact", "sendInitialEvents=true&watch=1&resourceVersionMatch=NotOlderThan",
    "timeoutSeconds=1&watch=true&allowWatchBookmarks=true", "gracePeriodSeconds=0", "propagationPolicy=Orphan",
    "propagationPolicy=Sideways", "includeObject=Object", "pretty=true", "hash=1", "verbose", "a=b&a=c", "%ff=%fe", "=",
]  # fmt: skip
TYPES = [
    "application/json", "application/json", "application/json", "application/merge-patch+json",
    "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml",
    "application/yaml", "application/vnd.kubernetes.protobuf", "text/html", "", "application/json; charset=utf-8",
]  # fmt: skip
ACCEPTS = [
    "", "*/*", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/yaml",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf", "q=;,,;",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "application/json;as=Table;v=v9;g=x",
]  # fmt: skip
NAMED: dict[str, Any] = {"metadata": {"name": "c", "labels": {"a": "b"}}}
BODIES: list[Any] = [
    None, {}, [], "x", 7, NAMED, {"metadata": {"name": "fuzz"}}, {**NAMED, "data": {"k": "v"}}, {**NAMED, "data": {"k": 1}},
    {"metadata": {"generateName": "g-", "finalizers": ["a.b/c"]}}, objects.pod("p"), objects.pod("p", "n1"),
    objects.machine_config("50-fuzz"), objects.machine_config_node("n1"), objects.definition("things", "Thing"),
    objects.role_binding("r", "view", {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}),
    {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"deep": [[[{"a": None}]]]}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"applied": "yes"}},
    [{"op": "add", "path": "/data/x", "value": "1"}, {"op": "test", "path": "/data/x", "value": "2"}],
    [{"op": "move", "from": "/metadata", "path": "/data"}, {"op": "remove", "path": "/metadata/uid"}],
    {"metadata": {"annotations": None, "finalizers": None, "ownerReferences": [{"uid": "x"}]}},
    {"spec": {"replicas": -1}}, {"spec": {"token": "x"}}, {"spec": {"resourceAttributes": {"verb": "get"}}},
    {"spec": {"expirationSeconds": 1, "audiences": [""], "boundObjectRef": {}}}, {"target": {"name": "n1"}},
    {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, "deleteOptions": {"preconditions": 1}},
    {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}, "propagationPolicy": "Foreground"},
    {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], **NAMED}, {"status": {"conditions": [{}]}},
]  # fmt: skip
ODD: list[Any] = [
    None,
    0,
    -1,
    2**63,
    1e308,
    "",
    "x" * 300,
    "\u0000",
    "\ud7ff",
    [],
    {},
    [None],
    {"": None},
    True,
    "a/b",
    "é",
]


OBJECTS = ("/c", "/s", "/p", "/t", "/fuzz", "/things.example.dev", "/status", "/scale", "/finalize", "/default")
FITTING: dict[str, Any] = {
    "pods": objects.pod("p"), "configmaps": NAMED, "secrets": {**NAMED, "data": {"k": "dg=="}}, "things": BODIES[16],
    "machineconfigs": objects.machine_config("50-fuzz"), "customresourcedefinitions": objects.definition("stuff", "Stuff"),
    "clusterrolebindings": BODIES[15], "clusterroles": BODIES[28], "namespaces": {"metadata": {"name": "fuzz"}},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "on-n1"}, "deleteOptions": {
        "preconditions": {"uid": "x"}}}, "binding": {"target": {"name": "n1"}}, "scale": {"spec": {"replicas": 2}},
    "token": {"spec": {"audiences": ["a"], "expirationSeconds": 600}}, "finalize": {"spec": {"finalizers": []}},
    "leases": {**NAMED, "spec": {"holderIdentity": "x"}}, "nodes": {"metadata": {"name": "n7"}},
}  # fmt: skip


def sensible(path: str, chance: random.Random) -> str:
    """A method that fits the path, most of the time."""
    if chance.random() < 0.2:
        return chance.choice(METHODS)
    return chance.choice(
        ["GET", "PUT", "PATCH", "DELETE"] if path.endswith(OBJECTS) else ["GET", "POST", "POST", "DELETE"]
    )


class Mutator:
    """Requests out of the corpus, changed at random."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def request(self) -> dict[str, Any]:
        """One request."""
        chance = self._chance
        route, query = chance.choice(PATHS), self._text(chance.choice(QUERIES))
        method = sensible(route, chance)
        fits = chance.random() < 0.7
        content_types = [kind for kind in TYPES if ("patch" in kind) == (method == "PATCH") and "json" in kind]
        headers = {"content-type": chance.choice(content_types if fits else TYPES), "user-agent": self._text("fuzz/1")}
        if chance.random() < 0.2:
            headers["accept"] = chance.choice(ACCEPTS)
        if chance.random() < 0.05:
            headers["impersonate-user"] = chance.choice(["vera", "system:node:n1", "", "é"])
        if chance.random() < 0.03:
            headers["content-length"] = chance.choice(["-1", "²", "9" * 30, "x"])
        body = self._body(FITTING.get(route.rpartition("/")[2]))
        return {"method": method, "path": self._text(route), "query": query, "headers": headers, "body": body}

    def _text(self, text: str) -> str:
        chance = self._chance
        if chance.random() < 0.9 or not text:
            return text
        at = chance.randrange(len(text))
        piece = chance.choice(["", "/", "%2f", "..", "%00", "%", "&", "=", "\u00e9", "a" * 200, "//", ";", "%c3%28"])
        return text[:at] + piece + text[at + chance.randrange(2) :]

    def _body(self, fitting: Any) -> bytes:
        chance = self._chance
        value = fitting if fitting is not None and chance.random() < 0.6 else chance.choice(BODIES)
        if value is None and chance.random() < 0.5:
            return b""
        for _ in range(chance.choice([0, 0, 1, 1, 2, 3])):
            value = self._changed(value)
        data = json.dumps(value).encode()
        if chance.random() < 0.05:
            at = chance.randrange(len(data))
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        return data

    def _changed(self, value: Any) -> Any:
        """The value with one place in it replaced, added or removed."""
        chance = self._chance
        if isinstance(value, dict) and value:
            name = chance.choice(list(value))
            if chance.random() < 0.2:
                return {key: child for key, child in value.items() if key != name}
            if chance.random() < 0.1:
                return {**value, chance.choice(["spec", "kind", "metadata", "x"]): chance.choice(ODD)}
            return {**value, name: self._changed(value[name])}
        if isinstance(value, list) and value and chance.random() < 0.8:
            at = chance.randrange(len(value))
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        return chance.choice(ODD)


async def ask(app: Any, peer: bytes, request: Mapping[str, Any]) -> int:
    """The code of one answer; the client leaves as soon as its request is complete."""
    scope = {
        "type": "http", "method": request["method"], "raw_path": request["path"].encode("ascii", "replace"),
        "query_string": request["query"].encode("utf-8"), "fastness.peer": peer,
        "headers": [(name.encode(), value.encode("utf-8")) for name, value in request["headers"].items()],
    }  # fmt: skip
    messages = [{"type": "http.request", "body": request["body"], "more_body": False}]
    codes: list[int] = []

    async def receive() -> Mapping[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            codes.append(message["status"])

    await app(scope, receive, send)
    return codes[0] if codes else 0


async def test_whatever_is_sent_the_door_answers_and_has_no_defect(embedded_server: Embedded) -> None:
    seed = int(os.environ.get("FASTNESS_SEED") or 20_260_101)
    app = embedded_server.server._listener._server.config.app
    der = ssl.PEM_cert_to_DER_cert(embedded_server.server.pki.admin.certificate.pem.decode())
    async with embedded_server.client() as client:
        await objects.populate(client)
    mutator, before = Mutator(seed), defects()
    statuses: dict[int, int] = {}
    for number in range(REQUESTS):
        request = mutator.request()
        code = await ask(app, der, request)
        statuses[code] = statuses.get(code, 0) + 1
        assert code < 500 or code in DELIBERATE, (seed, number, code, request)
    assert defects() == before
    assert {200, 201, 400, 404, 405, 409, 415, 422} <= statuses.keys(), statuses
