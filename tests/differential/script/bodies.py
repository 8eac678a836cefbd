"""Bytes that are not what they should be, media types, unknown paths and methods, options."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, config_map, inside, obj, ticket
from tests.differential.step import Step

F = "bodies"
MAPS = inside(F, "configmaps")
STRICT, WARN, IGNORE = ({"fieldValidation": word} for word in ("Strict", "Warn", "Ignore"))
DUPLICATE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"a":"1","a":"2"}}'
DUPLICATE_TICKET = (
    b'{"apiVersion":"fastness.dev/v1alpha1","kind":"JoinTicket","metadata":{"name":"${run}-dup"},"spec":{"pool":"worker",'
    b'"uses":1,"uses":2,"expires":"2030-01-01T00:00:00Z","secretHash":"sha256:' + b"0" * 64 + b'"}}'
)
YAML = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yaml\ndata:\n  a: '1'\n"


def _post(label: str, body: object, path: str = MAPS, type: str = "application/json", **query: str) -> Step:  # noqa: A002
    return Step(f"bodies.{label}", "POST", path, body, type=type, query=query)


def _get(label: str, path: str, **headers: str) -> Step:
    return Step(f"bodies.{label}", "GET", path, headers=headers)


def _accept(label: str, accept: str, path: str = MAPS) -> Step:
    """What the controllers of a namespace put there is not looked at."""
    return Step(
        f"bodies.accept-{label}", "GET", path, headers={"Accept": accept}, query={"fieldSelector": "metadata.name=f2"}
    )


STEPS = (
    begin(F),
    _post("empty", b""),
    _post("truncated", b'{"apiVersion":"v1","kind":'),
    _post("text", b"hello"),
    _post("array", b"[]"),
    _post("null", b"null"),
    _post("number", b"5"),
    _post("bad-utf8", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u"},"data":{"a":"\xff\xfe"}}'),
    _post("trailing", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"t"}} {}'),
    _post("yaml", YAML, type="application/yaml"),
    _post("bad-yaml", b"a: [", type="application/yaml"),
    _post("plain-text", YAML, type="text/plain"),
    _post("form", b"a=b", type="application/x-www-form-urlencoded"),
    _post("bad-protobuf", b"k8s\x00\x01\x02", type="application/vnd.kubernetes.protobuf"),
    _post("custom-empty", b"", TICKETS),
    _post("custom-truncated", b"{", TICKETS),
    _post(
        "custom-yaml",
        b"apiVersion: fastness.dev/v1alpha1\nkind: JoinTicket\nmetadata: {}\n",
        TICKETS,
        "application/yaml",
    ),
    _post("custom-text", b"x", TICKETS, "text/plain"),
    # Field validation.
    _post("unknown-strict", {**config_map("f1"), "colour": "red"}, **STRICT),
    _post("unknown-warn", {**config_map("f2"), "colour": "red"}, **WARN),
    _post("unknown-default", {**config_map("f3"), "colour": "red"}),
    _post("unknown-ignore", {**config_map("f4"), "colour": "red"}, **IGNORE),
    _post("unknown-bad-mode", {**config_map("f5"), "colour": "red"}, fieldValidation="Maybe"),
    _post("duplicate-strict", DUPLICATE % b"d1", **STRICT),
    _post("duplicate-warn", DUPLICATE % b"d2", **WARN),
    _post("duplicate-ignore", DUPLICATE % b"d3", **IGNORE),
    _post(
        "case-strict",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "case"}, "Data": {"a": "1"}},
        **STRICT,
    ),
    _post("type-error", config_map("t1", {"a": 1})),
    _post("type-error-list", {**config_map("t2"), "data": ["a"]}),
    _post("type-error-bool", {**config_map("t3"), "immutable": "yes"}),
    _post("custom-unknown-strict", ticket("${run}-f1", {"colour": "red"}), TICKETS, **STRICT),
    _post("custom-unknown-warn", ticket("${run}-f2", {"colour": "red"}), TICKETS, dryRun="All", **WARN),
    _post("custom-unknown-ignore", ticket("${run}-f3", {"colour": "red"}), TICKETS, dryRun="All", **IGNORE),
    _post("custom-unknown-metadata-strict", ticket("${run}-f4", colour="red"), TICKETS, **STRICT),
    _post("custom-unknown-root-strict", {**ticket("${run}-f4"), "colour": "red"}, TICKETS, **STRICT),
    _post("custom-duplicate-strict", DUPLICATE_TICKET, TICKETS, **STRICT),
    _post("custom-duplicate-warn", DUPLICATE_TICKET, TICKETS, dryRun="All", **WARN),
    _post("custom-type-error", ticket("${run}-t1", {"uses": "many"}), TICKETS),
    _post("custom-two-type-errors", ticket("${run}-t1", {"uses": "many", "pool": 5}), TICKETS),
    _post("custom-spec-string", {**ticket("${run}-t2"), "spec": "x"}, TICKETS),
    # Dry run and other options.
    _post("dry-run", config_map("dry", {"a": "1"}), dryRun="All"),
    _get("dry-run-left-nothing", f"{MAPS}/dry"),
    _post("dry-run-bad", config_map("dry"), dryRun="Some"),
    _post("dry-run-empty", config_map("dry2"), dryRun=""),
    Step(
        "bodies.dry-run-generate",
        "POST",
        MAPS,
        config_map("", generateName="dry-"),
        query={"dryRun": "All"},
        capture={"dry": "metadata.name"},
    ),
    _post("long-manager", config_map("mgr"), fieldManager="m" * 129),
    _post("bad-manager", config_map("mgr"), fieldManager="a\x01b"),
    _post("unknown-option", config_map("opt"), colour="red"),
    _post("pretty", config_map("pretty"), pretty="true"),
    # What is accepted in return.
    _accept("json", "application/json"),
    _accept("any", "*/*"),
    _accept("text", "text/plain"),
    _accept("html", "text/html"),
    _accept("browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    _accept("fallback", "application/vnd.other, application/json;q=0.5"),
    _accept("garbage", "garbage"),
    _accept("table-bad-version", "application/json;as=Table;g=meta.k8s.io;v=v9"),
    _get("accept-text-custom", TICKETS, Accept="text/plain"),
    _get("accept-text-object", f"{MAPS}/f2", Accept="text/plain"),
    # Paths and methods.
    _get("unknown-resource", "/api/v1/namespaces/default/widgets"),
    _get("unknown-resource-object", "/api/v1/namespaces/default/widgets/w"),
    _get("unknown-cluster-resource", "/api/v1/widgets"),
    _get("unknown-group", "/apis/nowhere.example/v1/widgets"),
    _get("unknown-version", "/apis/fastness.dev/v9/jointickets"),
    _get("unknown-core-version", "/api/v9/pods"),
    _get("unknown-in-custom-group", "/apis/fastness.dev/v1alpha1/widgets"),
    _get("unknown-subresource", f"{MAPS}/f2/status"),
    _get("unknown-subresource-custom", f"{TICKETS}/x/frobs"),
    _get("unknown-path", "/nothing/here"),
    _get("namespaced-as-cluster", "/api/v1/configmaps/f2"),
    _get("cluster-as-namespaced", "/apis/fastness.dev/v1alpha1/namespaces/default/jointickets"),
    Step("bodies.post-unknown", "POST", "/api/v1/namespaces/default/widgets", config_map("x")),
    Step("bodies.put-collection", "PUT", MAPS, config_map("x")),
    Step("bodies.patch-collection", "PATCH", MAPS, {}, type="application/merge-patch+json"),
    Step("bodies.post-object", "POST", f"{MAPS}/f2", config_map("f2")),
    Step("bodies.odd-method", "PROPFIND", MAPS),
    Step("bodies.put-custom-collection", "PUT", TICKETS, ticket("x")),
    Step("bodies.post-custom-object", "POST", f"{TICKETS}/x", ticket("x")),
    Step("bodies.delete-status", "DELETE", f"{TICKETS}/x/status"),
    Step("bodies.get-review", "GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    Step("bodies.delete-discovery", "DELETE", "/apis"),
    Step("bodies.deletecollection-services", "POST", inside(F, "services", "x"), obj("v1", "Service", "x")),
)
