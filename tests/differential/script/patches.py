"""The three patch languages, on native and custom objects."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, captures, config_map, inside, obj, pod, ticket
from tests.differential.step import JSON_PATCH, MERGE, STRATEGIC, Step

F = "patches"
MAPS = inside(F, "configmaps")
ONE = f"{MAPS}/one"
T = f"{TICKETS}/${{run}}-patch"
POD = inside(F, "pods", "one")
DEPLOYMENT = inside(F, "deployments", "one", "apps/v1")
TEMPLATE = {
    "metadata": {"labels": {"app": "one"}},
    "spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]},
}

STEPS = (
    begin(F),
    Step("patches.create", "POST", MAPS, config_map("one", {"a": "1", "b": "2"}), capture=captures("pm")),
    Step("patches.merge", "PATCH", ONE, {"data": {"a": None, "c": "3"}}, type=MERGE, capture=captures("pm")),
    Step("patches.merge-nothing", "PATCH", ONE, {}, type=MERGE),
    Step("patches.merge-stale", "PATCH", ONE, {"metadata": {"resourceVersion": "1"}, "data": {"z": "1"}}, type=MERGE),
    Step(
        "patches.merge-current",
        "PATCH",
        ONE,
        {"metadata": {"resourceVersion": "${pm.version}"}, "data": {"z": "1"}},
        type=MERGE,
    ),
    Step("patches.merge-array", "PATCH", ONE, [1], type=MERGE),
    Step("patches.merge-garbage", "PATCH", ONE, b"{", type=MERGE),
    Step("patches.merge-empty", "PATCH", ONE, b"", type=MERGE),
    Step("patches.merge-type-error", "PATCH", ONE, {"data": {"a": 1}}, type=MERGE),
    Step("patches.merge-unknown-field", "PATCH", ONE, {"colour": "red"}, type=MERGE),
    Step(
        "patches.merge-unknown-strict", "PATCH", ONE, {"colour": "red"}, type=MERGE, query={"fieldValidation": "Strict"}
    ),
    Step("patches.merge-kind", "PATCH", ONE, {"kind": "Secret"}, type=MERGE),
    Step("patches.merge-missing", "PATCH", f"{MAPS}/missing", {"data": {}}, type=MERGE),
    Step("patches.merge-null-data", "PATCH", ONE, {"data": None}, type=MERGE),
    Step("patches.json-add", "PATCH", ONE, [{"op": "add", "path": "/data", "value": {"a": "1"}}], type=JSON_PATCH),
    Step(
        "patches.json-test-ok",
        "PATCH",
        ONE,
        [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "2"}],
        type=JSON_PATCH,
    ),
    Step("patches.json-test-fails", "PATCH", ONE, [{"op": "test", "path": "/data/a", "value": "9"}], type=JSON_PATCH),
    Step("patches.json-remove-missing", "PATCH", ONE, [{"op": "remove", "path": "/data/none"}], type=JSON_PATCH),
    Step(
        "patches.json-replace-missing",
        "PATCH",
        ONE,
        [{"op": "replace", "path": "/data/none", "value": "1"}],
        type=JSON_PATCH,
        query={"dryRun": "All"},
    ),
    Step(
        "patches.json-add-below-missing",
        "PATCH",
        ONE,
        [{"op": "add", "path": "/none/x", "value": "1"}],
        type=JSON_PATCH,
    ),
    Step("patches.json-bad-op", "PATCH", ONE, [{"op": "frob", "path": "/data"}], type=JSON_PATCH),
    Step("patches.json-not-a-list", "PATCH", ONE, {"op": "add"}, type=JSON_PATCH),
    Step("patches.json-garbage", "PATCH", ONE, b"[", type=JSON_PATCH),
    Step("patches.json-empty-list", "PATCH", ONE, [], type=JSON_PATCH),
    Step(
        "patches.json-copy-move",
        "PATCH",
        ONE,
        [{"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "move", "from": "/data/b", "path": "/data/c"}],
        type=JSON_PATCH,
    ),
    Step(
        "patches.json-replace-root-name",
        "PATCH",
        ONE,
        [{"op": "replace", "path": "/metadata/name", "value": "x"}],
        type=JSON_PATCH,
    ),
    Step("patches.unknown-type", "PATCH", ONE, {}, type="application/json"),
    Step("patches.no-type", "PATCH", ONE, {}, type="text/plain"),
    # Strategic: lists merge by key, and directives work.
    Step(
        "patches.deployment",
        "POST",
        inside(F, "deployments", group="apps/v1"),
        obj("apps/v1", "Deployment", "one", spec={"selector": {"matchLabels": {"app": "one"}}, "template": TEMPLATE}),
    ),
    Step(
        "patches.strategic-merge-list",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}},
        type=STRATEGIC,
    ),
    Step(
        "patches.strategic-delete",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}}},
        type=STRATEGIC,
    ),
    Step(
        "patches.strategic-replace",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"name": "z", "image": "z:1"}, {"$patch": "replace"}]}}}},
        type=STRATEGIC,
    ),
    Step(
        "patches.strategic-bad-directive",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"$patch": "explode"}}}},
        type=STRATEGIC,
    ),
    Step(
        "patches.strategic-no-key",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"image": "q:1"}]}}}},
        type=STRATEGIC,
    ),
    Step(
        "patches.merge-list",
        "PATCH",
        DEPLOYMENT,
        {"spec": {"template": {"spec": {"containers": [{"name": "m", "image": "m:1"}]}}}},
        type=MERGE,
    ),
    Step("patches.strategic-same", "PATCH", DEPLOYMENT, {"spec": {"paused": False}}, type=STRATEGIC),
    Step("patches.pod", "POST", inside(F, "pods"), pod("one")),
    Step(
        "patches.pod-image",
        "PATCH",
        POD,
        {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}},
        type=STRATEGIC,
    ),
    Step("patches.pod-immutable", "PATCH", POD, {"spec": {"hostNetwork": True}}, type=STRATEGIC),
    # Custom objects know no strategic merge.
    Step("patches.custom", "POST", TICKETS, ticket("${run}-patch"), capture=captures("pt")),
    Step("patches.custom-strategic", "PATCH", T, {"spec": {"uses": 3}}, type=STRATEGIC),
    Step("patches.custom-merge", "PATCH", T, {"spec": {"uses": 3}}, type=MERGE),
    Step("patches.custom-merge-remove-defaulted", "PATCH", T, {"spec": {"uses": None}}, type=MERGE),
    Step("patches.custom-merge-same", "PATCH", T, {"spec": {"uses": 1}}, type=MERGE),
    Step("patches.custom-json", "PATCH", T, [{"op": "replace", "path": "/spec/uses", "value": 4}], type=JSON_PATCH),
    Step("patches.custom-immutable", "PATCH", T, {"spec": {"pool": "other"}}, type=MERGE),
    Step("patches.custom-type-error", "PATCH", T, {"spec": {"uses": "many"}}, type=MERGE),
    Step("patches.custom-unknown-field", "PATCH", T, {"spec": {"colour": "red"}}, type=MERGE),
    Step(
        "patches.custom-unknown-strict",
        "PATCH",
        T,
        {"spec": {"colour": "red"}},
        type=MERGE,
        query={"fieldValidation": "Strict"},
    ),
    Step("patches.custom-status-ignored", "PATCH", T, {"status": {"used": 3}}, type=MERGE),
    Step(
        "patches.custom-merge-stale",
        "PATCH",
        T,
        {"metadata": {"resourceVersion": "${pt.version}"}, "spec": {"uses": 9}},
        type=MERGE,
    ),
    Step("patches.custom-delete", "DELETE", T),
)
