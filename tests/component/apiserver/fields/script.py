"""One conversation about one object, told to a real API server and to our code alike.

A `Step` is one request. `body` of an update is a function from the live object to the new one, since a client that updates
reads first. Steps build on each other: each starts from what the real server answered to the one before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

JsonObject = dict[str, Any]

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_PORTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "required": ["port"],
        "properties": {
            "port": _NUMBER,
            "protocol": {"type": "string", "default": "TCP"},
            "name": _TEXT,
            "limits": {"type": "object", "properties": {"rate": _NUMBER, "burst": _NUMBER}},
        },
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "replicas": _NUMBER,
        "image": _TEXT,
        "percent": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "args": {"type": "array", "items": _TEXT},
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "numbers": {"type": "array", "items": _NUMBER, "x-kubernetes-list-type": "set"},
        "ports": _PORTS,
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "selector": {"type": "object", "additionalProperties": _TEXT, "x-kubernetes-map-type": "atomic"},
        "nested": {"type": "object", "properties": {"a": _TEXT, "deep": {"type": "object", "properties": {"c": _TEXT}}}},
        "maybe": {"type": "object", "nullable": True, "properties": {"a": _TEXT}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": _TEXT}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
STATUS = {
    "type": "object",
    "properties": {
        "ready": _NUMBER,
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {"type": _TEXT, "status": _TEXT}},
        },
    },
}
GROUP, PLURAL, VERSION = "fields.fastness.dev", "widgets", "fields.fastness.dev/v1"
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"plural": PLURAL, "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, "subresources": {"status": {}}}
        ],
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a conversation."""

    what: str
    verb: Literal["create", "update", "apply"]
    manager: str
    body: Any
    force: bool = False
    subresource: str = ""
    differs: str = ""  # why our answer is another one, on purpose


@dataclass(frozen=True, slots=True)
class Conversation:
    """A name and the requests about the object of that name."""

    name: str
    steps: tuple[Step, ...] = field(default_factory=tuple)


def widget(name: str, spec: JsonObject | None = None, meta: JsonObject | None = None, **parts: Any) -> JsonObject:
    """A widget as a client writes it."""
    head: JsonObject = {"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": name, **(meta or {})}}
    return {**head, **({} if spec is None else {"spec": spec}), **parts}


def setting(*path: str | int, to: Any) -> Callable[[JsonObject], JsonObject]:
    """An update that sets one place of the live object."""

    def update(obj: JsonObject) -> JsonObject:
        place: Any = obj
        for step in path[:-1]:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        place[path[-1]] = to
        return obj

    return update


def dropping(*path: str | int) -> Callable[[JsonObject], JsonObject]:
    """An update that removes one place of the live object."""

    def update(obj: JsonObject) -> JsonObject:
        place: Any = obj
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        return obj

    return update


def talk(name: str, *steps: tuple[Any, ...]) -> Conversation:
    """A conversation; a step is (what, verb, manager, body[, options])."""
    return Conversation(name, tuple(Step(*step[:4], **(step[4] if len(step) > 4 else {})) for step in steps))


FORCE = {"force": True}
STATUS_DOOR = {"subresource": "status"}
NULLED = {
    "differs": "the real server writes null where a container lost its last part, and then refuses its own result"
}
GO_VALUES = {"differs": "the real message ends in a Go value"}

FULL = {
    "replicas": 1, "image": "a", "percent": "10%", "args": ["x", "y"], "tags": ["a", "b<c"], "numbers": [443, 80, 8080],
    "ports": [{"port": 80}, {"port": 443, "protocol": "UDP", "name": "q", "limits": {"rate": 1}}],
    "labels": {"app": "w", "example.com/x": "1"}, "selector": {"k": "v"}, "nested": {"a": "1", "deep": {"c": "2"}},
    "free": {"list": [{"a": 1}], "map": {"x": {"y": None}}, "n": 1}, "half": {"known": "k", "other": {"z": 1}},
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x/y"]}},
}  # fmt: skip

# Of a kind that no server has: the garbage collector deletes only what it knows to be gone.
OWNER = {"apiVersion": "none.dev/v1", "kind": "None", "name": "o", "uid": "6b7f7d1c-0000-4000-8000-000000000001"}
META = {"labels": {"a": "b"}, "annotations": {"n": "1"}, "finalizers": ["x.dev/keep"], "ownerReferences": [OWNER]}


NOTE = "kubectl.kubernetes.io/last-applied-configuration"
ORDERS = ("ab:acb", "axb:acb", "ab:ba", "axby:ba", "xy:ab", "a:cad", "abcd:db", "ab:ca", "xaybz:bqap", "abc:cab")
TRUE = {"type": "A", "status": "True"}
UDP = {"port": 443, "protocol": "UDP"}


def reporting(condition: JsonObject) -> JsonObject:
    """A status with one condition."""
    return widget("apply-status", status={"conditions": [condition]})


def conversations() -> list[Conversation]:
    """All conversations."""
    return [
        talk(
            "create-and-update",
            ("everything at once", "create", "maker", widget("create-and-update", FULL, META)),
            ("nothing changes", "update", "other", lambda obj: obj),
            ("one leaf", "update", "other", setting("spec", "replicas", to=2)),
            ("own leaf again", "update", "other", setting("spec", "replicas", to=3)),
            ("an atomic list", "update", "other", setting("spec", "args", to=["x"])),
            ("a set", "update", "other", setting("spec", "tags", to=["b<c", "d&e"])),
            ("a set of numbers", "update", "third", setting("spec", "numbers", to=[80, 9, 8080])),
            ("an atomic map", "update", "third", setting("spec", "selector", to={"k": "v", "l": "w"})),
            ("an item's leaf", "update", "third", setting("spec", "ports", 0, "name", to="web")),
            ("an item goes", "update", "fourth", dropping("spec", "ports", 1)),
            ("a map empties", "update", "fourth", setting("spec", "labels", to={})),
            ("a struct goes", "update", "fourth", dropping("spec", "nested")),
            ("a nested struct comes", "update", "fifth", setting("spec", "nested", to={"deep": {"c": "9"}})),
            ("free form changes its shape", "update", "fifth", setting("spec", "free", "map", to=[1, {"a": "b"}])),
            ("free form changes back", "update", "fifth", setting("spec", "free", "map", to={"q": True, "r": {}})),
            ("number becomes true", "update", "sixth", setting("spec", "free", "n", to=True)),
            ("undeclared beside declared", "update", "sixth", setting("spec", "half", "other", "z", to=2)),
            ("embedded metadata", "update", "sixth", setting("spec", "template", "metadata", "labels", to={"c": "d"})),
            ("labels and finalizers", "update", "seventh", setting("metadata", "labels", to={"a": "b", "c": "d"})),
            ("owner changes", "update", "seventh", setting("metadata", "ownerReferences", to=[{**OWNER, "name": "p"}])),
            ("null where it may be", "update", "seventh", setting("spec", "maybe", to=None)),
            ("a value there", "update", "eighth", setting("spec", "maybe", to={"a": "1"})),
            ("null again", "update", "eighth", setting("spec", "maybe", to=None)),
            ("status", "update", "controller", setting("status", to={"ready": 1}), STATUS_DOOR),
            ("status again", "update", "controller", setting("status", "conditions", to=[TRUE]), STATUS_DOOR),
            ("spec through the status door", "update", "controller", setting("spec", "image", to="zzz"), STATUS_DOOR),
            ("finalizers go", "update", "seventh", dropping("metadata", "finalizers")),
        ),
        talk(
            "many-managers",
            ("create", "create", "m00", widget("many-managers", {"labels": {"k00": "v"}})),
            *((f"manager {n}", "update", f"m{n:02}", setting("spec", "labels", f"k{n:02}", to="v")) for n in range(1, 14)),
            ("status counts too", "update", "m99", setting("status", to={"ready": 1}), STATUS_DOOR),
        ),
        talk(
            "reset",
            ("create", "create", "maker", widget("reset", {"replicas": 1})),
            ("lines sent by a client", "update", "other", setting("metadata", "managedFields", to=[
                {"manager": "custom", "operation": "Apply", "apiVersion": VERSION, "time": "2024-01-01T00:00:00Z",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}])),
            ("damaged lines are ignored", "update", "other", setting("metadata", "managedFields", to=[
                {"manager": "custom", "operation": "Nonsense", "apiVersion": VERSION, "fieldsType": "FieldsV1"}])),
            ("one empty line resets", "update", "other", setting("metadata", "managedFields", to=[{}])),
            ("not tracked any more", "update", "other", setting("spec", "replicas", to=7)),
            ("an apply begins again", "apply", "applier", widget("reset", {"image": "x"})),
            ("conflict with before-first-apply", "apply", "applier", widget("reset", {"image": "x", "replicas": 8})),
        ),
        talk(
            "apply",
            ("creates", "apply", "alpha", widget("apply", FULL, {"labels": {"a": "b"}})),
            ("again: nothing", "apply", "alpha", widget("apply", FULL, {"labels": {"a": "b"}})),
            ("another, same values", "apply", "beta", widget("apply", {"replicas": 1, "ports": [{"port": 80}]})),
            ("another, same, again", "apply", "beta", widget("apply", {"replicas": 1, "ports": [{"port": 80}]})),
            ("conflict", "apply", "beta", widget("apply", {"replicas": 2, "image": "b", "ports": [{"port": 80, "name": "n"}]})),
            ("conflict of one", "apply", "beta", widget("apply", {"replicas": 2})),
            ("force", "apply", "beta", widget("apply", {"replicas": 2, "ports": [{"port": 80, "name": "n"}]}), FORCE),
            ("first lets go", "apply", "alpha", widget("apply", {"image": "a", "tags": ["a"], "ports": [UDP]})),
            ("order of items", "apply", "gamma", widget("apply", {"ports": [
                {"port": 1}, UDP, {"port": 2}, {"port": 80}, {"port": 3}]})),
            ("order turned", "apply", "gamma", widget("apply", {"ports": [
                {"port": 3}, {"port": 80}, {"port": 2}, UDP]})),
            ("empty things", "apply", "delta", widget("apply", {"labels": {}, "nested": {}, "tags": [], "ports": []})),
            ("maps", "apply", "delta", widget("apply", {"labels": {"x": "1", "y": "2"}, "free": {"m": {"a": 1, "b": [1]}}})),
            ("half of the maps", "apply", "delta", widget("apply", {"labels": {"x": "1"}, "free": {"m": {"a": 1}}})),
            ("an update takes over", "update", "updater", setting("spec", "labels", "x", to="9")),
            ("conflict with an update", "apply", "delta", widget("apply", {"labels": {"x": "1"}})),
            ("gives up", "apply", "delta", widget("apply", {})),
            ("an atomic map", "apply", "delta", widget("apply", {"selector": {"z": "1"}}), FORCE),
            ("null", "apply", "delta", widget("apply", {"selector": {"z": "1"}, "maybe": None})),
            ("all of gamma goes", "apply", "gamma", widget("apply")),
            ("all of beta goes", "apply", "beta", widget("apply", {})),
            ("all of alpha goes", "apply", "alpha", widget("apply")),
        ),
        talk(
            "emptying",
            ("one leaf", "apply", "a", widget("emptying", {"replicas": 1})),
            ("a struct empties", "apply", "a", widget("emptying", {}), NULLED),
            ("inner ones", "apply", "a", widget("emptying", {"nested": {"a": "1", "deep": {"c": "2"}}, "image": "i"})),
            ("the innermost empties", "apply", "a", widget("emptying", {"nested": {"a": "1", "deep": {}}, "image": "i"}), NULLED),
            ("both empty", "apply", "a", widget("emptying", {"nested": {"deep": {}}, "image": "i"}), NULLED),
            ("containers", "apply", "a", widget("emptying", {
                "labels": {"a": "1"}, "tags": ["t"], "ports": [{"port": 1, "name": "n"}], "free": {"m": {"a": 1}}})),
            ("containers empty", "apply", "a", widget("emptying", {"labels": {}, "tags": [], "free": {"m": {}}}), NULLED),
            ("containers again", "apply", "a", widget("emptying", {
                "labels": {"a": "1"}, "tags": ["t"], "args": ["x"], "selector": {"a": "b"}})),
            ("whole ones empty", "apply", "a", widget("emptying", {"args": [], "selector": {}})),
            ("metadata", "apply", "a", widget("emptying", {"image": "i"}, {"labels": {"a": "b"}, "finalizers": ["x.dev/y"]})),
            ("metadata empties", "apply", "a", widget("emptying", {"image": "i"}, {"labels": {}, "finalizers": []})),
            ("metadata by an update", "update", "u", setting("metadata", "labels", to={"q": "r"})),
            ("shared metadata", "apply", "a", widget("emptying", {"image": "i"}, {"labels": {"q": "r"}})),
            ("let go", "apply", "a", widget("emptying", {"image": "i"})),
        ),
        talk(
            "orders",
            *(
                step
                for n, (live, config) in enumerate(pair.split(":") for pair in ORDERS)
                for step in (
                    (f"live {live}", "update" if n else "create", "maker", setting("spec", "tags", to=list(live)) if n
                     else widget("orders", {"tags": list(live)})),
                    (f"config {config}", "apply", f"applier-{n}", widget("orders", {"tags": list(config)})),
                )
            ),
        ),
        talk(
            "kubectl",
            ("client-side apply", "create", "kubectl-client-side-apply", widget("kubectl", {"replicas": 1, "image": "a"}, {
                "annotations": {NOTE: json.dumps(widget("kubectl", {"replicas": 1, "image": "a"}))}})),
            ("somebody else conflicts", "apply", "other", widget("kubectl", {"replicas": 2})),
            ("kubectl takes its own fields", "apply", "kubectl", widget("kubectl", {"replicas": 2, "image": "<b>&"})),
            ("an update in between", "update", "hpa", setting("spec", "replicas", to=9)),
            ("not any more", "apply", "kubectl", widget("kubectl", {"replicas": 3, "image": "c"})),
            ("the rest", "apply", "kubectl", widget("kubectl", {"image": "c"})),
        ),
        talk(
            "apply-status",
            ("create", "create", "maker", widget("apply-status", {"replicas": 1})),
            ("status", "apply", "ctl", reporting(TRUE), STATUS_DOOR),
            ("another condition", "apply", "ctl2", reporting({"type": "B", "status": "False"}), STATUS_DOOR),
            ("conflict", "apply", "ctl2", reporting({"type": "A", "status": "False"}), STATUS_DOOR),
            ("update of status", "update", "upd", setting("status", "conditions", 0, "status", to="False"), STATUS_DOOR),
            ("conflict with subresource", "apply", "ctl", reporting(TRUE), STATUS_DOOR),
            ("own goes", "apply", "ctl", widget("apply-status", status={}), STATUS_DOOR),
            ("spec and status by the front door", "apply", "front", widget("apply-status", {"image": "i"}, status={"ready": 9})),
        ),
        talk(
            "refused",
            ("create", "apply", "a", widget("refused", {"replicas": 1})),
            ("managedFields", "apply", "a", widget("refused", {"replicas": 1}, {"managedFields": []})),
            ("managedFields filled", "apply", "a", widget("refused", {"replicas": 1}, {"managedFields": [{}]})),
            ("repeated key", "apply", "a", widget("refused", {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]})),
            ("repeated value", "apply", "a", widget("refused", {"tags": ["a", "a"]})),
            ("item is not a map", "apply", "a", widget("refused", {"ports": [1]})),
            ("null item", "apply", "a", widget("refused", {"tags": [None]})),
            ("unknown field", "apply", "a", widget("refused", {"replicaz": 1})),
            ("map for a list", "apply", "a", widget("refused", {"tags": {"a": 1}}), GO_VALUES),
            ("text for a number", "apply", "a", widget("refused", {"replicas": "1"})),
            ("list for a text", "apply", "a", widget("refused", {"image": ["a"]}), GO_VALUES),
        ),
    ]  # fmt: skip
