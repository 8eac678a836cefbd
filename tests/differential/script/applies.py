"""Server-side apply: create, own, conflict, force, give up."""

from __future__ import annotations

from tests.differential.script.objects import VALUES, begin, config_map, inside, obj, values
from tests.differential.step import APPLY, MERGE, Step

F = "apply"
ONE = inside(F, "configmaps", "one")
V = f"{VALUES}/${{run}}-apply"
BOB, EVE = {"fieldManager": "bob"}, {"fieldManager": "eve"}


def _apply(label: str, path: str, body: object, query: dict[str, str]) -> Step:
    return Step(f"apply.{label}", "PATCH", path, body, query=query, type=APPLY)


STEPS = (
    begin(F),
    _apply("create", ONE, config_map("one", {"a": "1", "b": "1"}), BOB),
    _apply("same", ONE, config_map("one", {"a": "1", "b": "1"}), BOB),
    _apply("conflict", ONE, config_map("one", {"a": "2"}), EVE),
    _apply("agree", ONE, config_map("one", {"a": "1"}), EVE),
    _apply("force", ONE, config_map("one", {"a": "2"}), {**EVE, "force": "true"}),
    _apply("give-up", ONE, config_map("one", {"b": "1"}), BOB),
    _apply("drop", ONE, config_map("one", {}), BOB),
    _apply("without-manager", ONE, config_map("one", {"a": "1"}), {}),
    _apply("empty-manager", ONE, config_map("one", {"a": "1"}), {"fieldManager": ""}),
    _apply("long-manager", ONE, config_map("one", {"a": "1"}), {"fieldManager": "m" * 129}),
    _apply("other-name", ONE, config_map("two", {"a": "1"}), {**BOB, "force": "true", "dryRun": "All"}),
    _apply(
        "other-namespace",
        ONE,
        config_map("one", {"a": "1"}, namespace="default"),
        {**BOB, "force": "true", "dryRun": "All"},
    ),
    _apply("other-kind", ONE, obj("v1", "Secret", "one"), BOB),
    _apply("without-kind", ONE, {"data": {"a": "1"}}, BOB),
    _apply("managed-fields", ONE, config_map("one", {"a": "1"}, managedFields=[{"manager": "x"}]), BOB),
    _apply("stale-version", ONE, config_map("one", {"a": "1"}, resourceVersion="1"), {**BOB, "force": "true"}),
    _apply(
        "version-of-missing",
        inside(F, "configmaps", "versioned"),
        config_map("versioned", {}, resourceVersion="1"),
        BOB,
    ),
    _apply(
        "uid-of-missing",
        inside(F, "configmaps", "none"),
        config_map("none", {}, uid="11111111-2222-3333-4444-555555555555"),
        BOB,
    ),
    _apply("garbage", ONE, b"{", BOB),
    _apply("not-an-object", ONE, [1], BOB),
    _apply("yaml", ONE, b"apiVersion: v1\nkind: ConfigMap\ndata:\n  y: 'yes'\n", {"fieldManager": "yaml"}),
    _apply("undeclared", ONE, {**config_map("one"), "colour": "red"}, BOB),
    _apply("type-error", ONE, config_map("one", {"a": 1}), {**BOB, "force": "true"}),
    _apply("dry-run", ONE, config_map("one", {"a": "9"}), {**BOB, "force": "true", "dryRun": "All"}),
    Step("apply.force-on-merge", "PATCH", ONE, {"data": {}}, query={"force": "true"}, type=MERGE),
    Step("apply.update-takes", "PATCH", ONE, {"data": {"a": "7"}}, query={"fieldManager": "mallory"}, type=MERGE),
    _apply("conflict-with-update", ONE, config_map("one", {"a": "8"}), EVE),
    Step("apply.read", "GET", ONE),
    # Custom: list map of the schema, defaults, unknown fields, rules.
    _apply("custom-create", V, values("${run}-apply", ("one", "aa"), ("two", "bb")), BOB),
    _apply("custom-second", V, values("${run}-apply", ("three", "cc")), EVE),
    _apply("custom-conflict", V, values("${run}-apply", ("one", "aa"), source="import"), EVE),
    _apply("custom-drop-item", V, values("${run}-apply", ("one", "aa")), BOB),
    _apply("custom-duplicate-item", V, values("${run}-apply", ("one", "aa"), ("one", "aa")), BOB),
    _apply("custom-undeclared", V, values("${run}-apply", ("one", "aa"), colour="red"), BOB),
    _apply(
        "custom-undeclared-strict",
        V,
        values("${run}-apply", ("one", "aa"), colour="red"),
        {**BOB, "fieldValidation": "Strict"},
    ),
    _apply("custom-invalid", V, values("${run}-apply", ("one", "aa"), source="nowhere"), {**BOB, "force": "true"}),
    _apply("custom-rule", V, values("${run}-apply", ("one", "aa"), source="image"), {**BOB, "force": "true"}),
    _apply(
        "custom-without-key",
        V,
        {"apiVersion": "fastness.dev/v1alpha1", "kind": "ReferenceValueSet", "spec": {"values": [{"value": "aa"}]}},
        BOB,
    ),
    _apply(
        "custom-status",
        f"{V}/status",
        {
            "apiVersion": "fastness.dev/v1alpha1",
            "kind": "ReferenceValueSet",
            "metadata": {"name": "${run}-apply"},
            "status": {"values": 2},
        },
        {"fieldManager": "controller"},
    ),
    _apply(
        "custom-status-of-missing",
        f"{VALUES}/${{run}}-none/status",
        {
            "apiVersion": "fastness.dev/v1alpha1",
            "kind": "ReferenceValueSet",
            "metadata": {"name": "${run}-none"},
            "status": {"values": 2},
        },
        {"fieldManager": "controller"},
    ),
    Step("apply.custom-read", "GET", V),
    Step("apply.custom-delete", "DELETE", V),
)
