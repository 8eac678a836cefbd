"""CustomResourceDefinitions: good and bad ones, and the objects of a good one from first to last."""

from __future__ import annotations

from typing import Any

from tests.differential.script.objects import CRDS, TICKETS, VALUES, begin, captures, obj, ticket, values
from tests.differential.step import MERGE, Step

F = "crds"
GROUP = "${run}.example.com"
GADGETS = f"/apis/{GROUP}/v1/namespaces/${{run}}-crds/gadgets"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}],
                },
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 3},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                    },
                },
                "either": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True},
                "when": {"type": "string", "format": "date-time"},
                "replicas": {"type": "integer"},
            },
            "x-kubernetes-validations": [{"rule": "!has(self.code) || self.size > 1", "message": "code needs size"}],
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
    },
}


def definition(plural: str, *, versions: list[dict[str, Any]] | None = None, **spec: Any) -> Any:
    """A definition in the group of this run."""
    kind = plural.removesuffix("s").capitalize()
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    body = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind},
        "versions": versions or [version],
        **spec,
    }
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{GROUP}", spec=body)


GADGET = definition(
    "gadgets",
    names={"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["all"]},
    versions=[
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": SCHEMA},
            "subresources": {
                "status": {},
                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
            },
            "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        },
        {
            "name": "v1beta1",
            "served": True,
            "storage": False,
            "deprecated": True,
            "schema": {"openAPIV3Schema": SCHEMA},
        },
    ],
)


def _version(**changes: Any) -> list[dict[str, Any]]:
    return [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}, **changes}
    ]


def _bad(label: str, body: Any) -> Step:
    return Step(f"crds.bad-{label}", "POST", CRDS, body)


def _gadget(name: str, /, meta: dict[str, Any] | None = None, **spec: Any) -> Any:
    return obj(f"{GROUP}/v1", "Gadget", name, meta=meta, spec={"size": 2, **spec})


def _make(label: str, /, **spec: Any) -> Step:
    return Step(f"crds.{label}", "POST", GADGETS, _gadget(label, **spec))


STEPS = (
    begin(F),
    _bad("name", {**definition("widgets"), "metadata": {"name": "other"}}),
    _bad("no-versions", definition("widgets", versions=[{}])),
    _bad("no-storage", definition("widgets", versions=_version(storage=False))),
    _bad("no-schema", definition("widgets", versions=_version(schema=None))),
    _bad("scope", definition("widgets", scope="Universe")),
    _bad("group", definition("widgets", group="Bad_Group")),
    _bad("kind", definition("widgets", names={"plural": "widgets"})),
    _bad(
        "not-structural",
        definition(
            "widgets", versions=_version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}})
        ),
    ),
    _bad(
        "rule",
        definition(
            "widgets",
            versions=_version(
                schema={
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self +"}]}},
                    }
                }
            ),
        ),
    ),
    _bad(
        "default",
        definition(
            "widgets",
            versions=_version(
                schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "default": 5}}}}
            ),
        ),
    ),
    _bad(
        "protected-group",
        {**definition("widgets", group="widgets.k8s.io"), "metadata": {"name": "widgets.widgets.k8s.io"}},
    ),
    Step("crds.create", "POST", CRDS, GADGET),
    Step("crds.again", "POST", CRDS, GADGET),
    Step("crds.served", "GET", GADGETS, until=200),
    Step("crds.discovery", "GET", f"/apis/{GROUP}/v1", until=200),
    Step("crds.group", "GET", f"/apis/{GROUP}", until=200),
    Step("crds.read", "GET", f"{CRDS}/gadgets.{GROUP}"),
    Step("crds.scope", "PATCH", f"{CRDS}/gadgets.{GROUP}", {"spec": {"scope": "Cluster"}}, type=MERGE),
    Step("crds.rename", "PATCH", f"{CRDS}/gadgets.{GROUP}", {"spec": {"group": "other.example.com"}}, type=MERGE),
    # Objects.
    _make("plain"),
    _make(
        "full",
        colour="green",
        code="abc",
        fixed="x",
        tags=["a", "b"],
        parts=[{"name": "p"}],
        either="5%",
        free={"x": 1},
        maybe=None,
        when="2020-01-01T00:00:00Z",
    ),
    _make("no-size", size=None),
    _make("small", size=0),
    _make("large", size=11),
    _make("float", size=1.5),
    _make("whole-float", size=2.0),
    _make("enum", colour="blue"),
    _make("pattern", code="ABC"),
    _make("too-long", code="abcdef"),
    _make("set-twice", tags=["a", "a"]),
    _make("too-many", tags=["a", "b", "c", "d"]),
    _make("map-twice", parts=[{"name": "p"}, {"name": "p"}]),
    _make("map-without-key", parts=[{"count": 1}]),
    _make("either-number", either=5),
    _make("either-bool", either=True),
    _make("null-default", colour=None),
    _make("null-string", code=None),
    _make("bad-time", when="soon"),
    _make("rule", size=1, code="ab"),
    _make("several", size=0, colour="blue", code="ABC"),
    _make("unknown", extra=1),
    Step("crds.no-spec", "POST", GADGETS, obj(f"{GROUP}/v1", "Gadget", "no-spec")),
    Step("crds.with-status", "POST", GADGETS, {**_gadget("with-status"), "status": {"phase": "x"}}),
    Step("crds.immutable", "PATCH", f"{GADGETS}/full", {"spec": {"fixed": "y"}}, type=MERGE),
    Step("crds.immutable-removed", "PATCH", f"{GADGETS}/full", {"spec": {"fixed": None}}, type=MERGE),
    Step("crds.generation", "PATCH", f"{GADGETS}/plain", {"spec": {"size": 3}}, type=MERGE),
    Step("crds.label-only", "PATCH", f"{GADGETS}/plain", {"metadata": {"labels": {"a": "b"}}}, type=MERGE),
    Step("crds.other-version", "GET", f"/apis/{GROUP}/v1beta1/namespaces/${{run}}-crds/gadgets/plain"),
    Step(
        "crds.other-version-create",
        "POST",
        f"/apis/{GROUP}/v1beta1/namespaces/${{run}}-crds/gadgets",
        obj(f"{GROUP}/v1beta1", "Gadget", "beta", spec={"size": 4}),
    ),
    Step("crds.other-version-mismatch", "POST", GADGETS, obj(f"{GROUP}/v1beta1", "Gadget", "gamma", spec={"size": 4})),
    Step(
        "crds.other-version-list",
        "GET",
        f"/apis/{GROUP}/v1beta1/namespaces/${{run}}-crds/gadgets",
        query={"limit": "2"},
    ),
    Step("crds.table", "GET", GADGETS, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}),
    # Status and scale.
    Step(
        "crds.status",
        "PATCH",
        f"{GADGETS}/plain/status",
        {"status": {"phase": "ok", "replicas": 2}, "spec": {"size": 9}},
        type=MERGE,
    ),
    Step("crds.status-invalid", "PATCH", f"{GADGETS}/plain/status", {"status": {"phase": 5}}, type=MERGE),
    Step(
        "crds.status-metadata",
        "PATCH",
        f"{GADGETS}/plain/status",
        {"metadata": {"labels": {"x": "y"}}, "status": {"phase": "z"}},
        type=MERGE,
    ),
    Step("crds.status-get", "GET", f"{GADGETS}/plain/status"),
    Step("crds.scale-unset", "GET", f"{GADGETS}/plain/scale"),
    Step("crds.scale", "PATCH", f"{GADGETS}/plain/scale", {"spec": {"replicas": 4}}, type=MERGE),
    Step("crds.scale-get", "GET", f"{GADGETS}/plain/scale"),
    Step("crds.scale-negative", "PATCH", f"{GADGETS}/plain/scale", {"spec": {"replicas": -1}}, type=MERGE),
    Step("crds.scale-missing", "GET", f"{GADGETS}/none/scale"),
    # Our own kinds: patterns, rules, defaults.
    Step("crds.ticket", "POST", TICKETS, ticket("${run}-own"), capture=captures("own")),
    Step("crds.ticket-bad-hash", "POST", TICKETS, ticket("${run}-bad", {"secretHash": "md5:1"})),
    Step("crds.ticket-too-many", "POST", TICKETS, ticket("${run}-bad", {"uses": 5000})),
    Step("crds.ticket-without-spec", "POST", TICKETS, obj("fastness.dev/v1alpha1", "JoinTicket", "${run}-bad")),
    Step(
        "crds.ticket-status",
        "PUT",
        f"{TICKETS}/${{run}}-own/status",
        {**ticket("${run}-own", resourceVersion="${own.version}"), "status": {"used": 1}},
    ),
    Step(
        "crds.ticket-status-unconditional",
        "PUT",
        f"{TICKETS}/${{run}}-own/status",
        {**ticket("${run}-own"), "status": {"used": 2}},
    ),
    Step("crds.values-rule", "POST", VALUES, values("${run}-bad", ("a", "xx"), source="image")),
    Step("crds.values-enum", "POST", VALUES, values("${run}-bad", ("a", "xx"), source="guess")),
    Step("crds.values-twice", "POST", VALUES, values("${run}-bad", ("a", "xx"), ("a", "xx"))),
    Step("crds.ticket-delete", "DELETE", f"{TICKETS}/${{run}}-own"),
    # The end: objects go with their definition.
    Step("crds.delete", "DELETE", f"{CRDS}/gadgets.{GROUP}"),
    Step("crds.deleted", "GET", f"{CRDS}/gadgets.{GROUP}", until=404),
    Step("crds.no-longer-served", "GET", GADGETS, until=404),
)
