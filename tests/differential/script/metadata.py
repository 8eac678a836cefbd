"""Names, labels, annotations, finalizers and owners: what is refused and for which field."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, config_map, inside, obj, ticket
from tests.differential.step import MERGE, Step

F = "metadata"
MAPS = inside(F, "configmaps")
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "11111111-2222-3333-4444-555555555555"}


def _bad(label: str, name: str, /, **meta: object) -> tuple[Step, Step]:
    """The same bad metadata on a native and on a custom object."""
    return (
        Step(f"metadata.{label}", "POST", MAPS, config_map(name, {"a": "1"}, **meta)),
        Step(f"metadata.custom-{label}", "POST", TICKETS, {**ticket(""), "metadata": {"name": name, **meta}}),
    )


STEPS = (
    begin(F),
    Step("metadata.missing-name", "POST", MAPS, obj("v1", "ConfigMap", "")),
    Step("metadata.custom-missing-name", "POST", TICKETS, ticket("")),
    *_bad("upper-case-name", "Upper"),
    *_bad("underscore-name", "a_b"),
    *_bad("long-name", "n" * 254),
    *_bad("dots-name", "a..b"),
    *_bad("label-key", "${run}-labels", labels={"bad key!": "v"}),
    *_bad("label-value", "${run}-labels", labels={"good": "bad value"}),
    *_bad("label-long-value", "${run}-labels", labels={"good": "v" * 64}),
    *_bad("label-two-slashes", "${run}-labels", labels={"a/b/c": "v"}),
    *_bad("label-number", "${run}-labels", labels={"a": 1}),
    *_bad("labels-list", "${run}-labels", labels=["a"]),
    *_bad("annotation-key", "${run}-annotations", annotations={"bad key!": "v"}),
    *_bad("annotation-size", "${run}-annotations", annotations={"big": "x" * (257 * 1024)}),
    *_bad("annotation-number", "${run}-annotations", annotations={"a": 1}),
    *_bad("finalizer-bad", "${run}-finalizers", finalizers=["bad finalizer!"]),
    *_bad("finalizer-bare", "${run}-finalizers", finalizers=["bare"]),
    *_bad("finalizers-exclusive", "${run}-finalizers", finalizers=["orphan", "foregroundDeletion"]),
    *_bad("owner-empty", "${run}-owners", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap"}]),
    *_bad(
        "owner-two-controllers",
        "${run}-owners",
        ownerReferences=[
            {**OWNER, "controller": True},
            {**OWNER, "name": "y", "uid": "11111111-2222-3333-4444-555555555556", "controller": True},
        ],
    ),
    *_bad("owner-unknown-field", "${run}-owners", ownerReferences=[{**OWNER, "extra": 1}]),
    *_bad("owner-bad-version", "${run}-owners", ownerReferences=[{**OWNER, "apiVersion": "a/b/c"}]),
    *_bad("owner-event", "${run}-owners", ownerReferences=[{**OWNER, "kind": "Event"}]),
    *_bad("unknown-field", "${run}-unknown", colour="red"),
    *_bad("number-name", "${run}-unused", name=5),
    Step(
        "metadata.generate-bad", "POST", MAPS, config_map("", generateName="Bad_"), capture={"bad.name": "details.name"}
    ),
    Step("metadata.not-an-object", "POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "x"}),
    Step("metadata.several-causes", "POST", MAPS, config_map("Up", labels={"bad key!": "bad value"})),
    # Changes of what a client may not change.
    Step("metadata.base", "POST", MAPS, config_map("base", {"a": "1"}, labels={"l": "1"}, annotations={"n": "1"})),
    Step(
        "metadata.patch-uid",
        "PATCH",
        f"{MAPS}/base",
        {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}},
        type=MERGE,
    ),
    Step(
        "metadata.patch-creation",
        "PATCH",
        f"{MAPS}/base",
        {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
        type=MERGE,
    ),
    Step(
        "metadata.patch-creation-null", "PATCH", f"{MAPS}/base", {"metadata": {"creationTimestamp": None}}, type=MERGE
    ),
    Step(
        "metadata.patch-deletion",
        "PATCH",
        f"{MAPS}/base",
        {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}},
        type=MERGE,
    ),
    Step("metadata.patch-generation", "PATCH", f"{MAPS}/base", {"metadata": {"generation": 5}}, type=MERGE),
    Step("metadata.patch-name", "PATCH", f"{MAPS}/base", {"metadata": {"name": "renamed"}}, type=MERGE),
    Step("metadata.patch-namespace", "PATCH", f"{MAPS}/base", {"metadata": {"namespace": "default"}}, type=MERGE),
    Step("metadata.patch-label", "PATCH", f"{MAPS}/base", {"metadata": {"labels": {"l": None, "m": "2"}}}, type=MERGE),
    Step("metadata.patch-bad-label", "PATCH", f"{MAPS}/base", {"metadata": {"labels": {"m": "!"}}}, type=MERGE),
    Step("metadata.patch-managed-empty", "PATCH", f"{MAPS}/base", {"metadata": {"managedFields": [{}]}}, type=MERGE),
    Step("metadata.long-namespace-name", "POST", "/api/v1/namespaces", obj("v1", "Namespace", "n" * 64)),
    Step("metadata.dotted-namespace-name", "POST", "/api/v1/namespaces", obj("v1", "Namespace", "a.b")),
    Step(
        "metadata.service-name",
        "POST",
        inside(F, "services"),
        obj("v1", "Service", "1abc", spec={"ports": [{"port": 80}]}),
    ),
    Step(
        "metadata.role-name-with-colon",
        "POST",
        inside(F, "roles", group="rbac.authorization.k8s.io/v1"),
        obj("rbac.authorization.k8s.io/v1", "Role", "a:b", rules=[]),
    ),
    Step(
        "metadata.role-name-with-slash",
        "POST",
        inside(F, "roles", group="rbac.authorization.k8s.io/v1"),
        obj("rbac.authorization.k8s.io/v1", "Role", "a/b", rules=[]),
    ),
)
