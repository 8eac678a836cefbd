"""Create, read, replace and the identity of what is sent."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, captures, config_map, inside, obj, ticket
from tests.differential.step import Step

F = "basics"
MAPS = inside(F, "configmaps")
ONE = inside(F, "configmaps", "one")
T = f"{TICKETS}/${{run}}-one"

STEPS = (
    begin(F),
    Step("basics.create", "POST", MAPS, config_map("one", {"a": "1"}), capture=captures("one")),
    Step("basics.create-again", "POST", MAPS, config_map("one", {"a": "2"})),
    Step("basics.get", "GET", ONE),
    Step("basics.head", "HEAD", ONE),
    Step("basics.get-missing", "GET", inside(F, "configmaps", "missing")),
    Step("basics.get-in-missing-namespace", "GET", "/api/v1/namespaces/${run}-nowhere/configmaps/one"),
    Step("basics.list-in-missing-namespace", "GET", "/api/v1/namespaces/${run}-nowhere/configmaps"),
    Step("basics.create-in-missing-namespace", "POST", "/api/v1/namespaces/${run}-nowhere/configmaps", config_map("x")),
    Step("basics.create-with-version", "POST", MAPS, config_map("two", resourceVersion="1")),
    Step("basics.create-other-namespace", "POST", MAPS, config_map("two", namespace="default")),
    Step("basics.create-same-namespace", "POST", MAPS, config_map("two", namespace="${run}-basics")),
    Step("basics.create-without-namespace", "POST", "/api/v1/configmaps", config_map("three")),
    Step("basics.create-wrong-kind", "POST", MAPS, obj("v1", "Secret", "three")),
    Step("basics.create-wrong-version", "POST", MAPS, obj("v2", "ConfigMap", "three")),
    Step("basics.create-wrong-group", "POST", MAPS, obj("apps/v1", "ConfigMap", "three")),
    Step("basics.create-without-kind", "POST", MAPS, {"apiVersion": "v1", "metadata": {"name": "kindless"}}),
    Step("basics.create-without-version", "POST", MAPS, {"kind": "ConfigMap", "metadata": {"name": "versionless"}}),
    Step("basics.create-anonymous-object", "POST", MAPS, {"metadata": {"name": "bare"}, "data": {"k": "v"}}),
    Step("basics.create-with-name-in-path", "POST", ONE, config_map("one")),
    Step("basics.generate-name", "POST", MAPS, config_map("", generateName="gen-"), capture={"gen": "metadata.name"}),
    Step(
        "basics.generate-long", "POST", MAPS, config_map("", generateName="g" * 70), capture={"long": "metadata.name"}
    ),
    Step("basics.name-and-generate", "POST", MAPS, config_map("both", generateName="gen-")),
    Step(
        "basics.servers-own-fields",
        "POST",
        MAPS,
        config_map(
            "own",
            {"a": "1"},
            uid="11111111-2222-3333-4444-555555555555",
            generation=7,
            selfLink="/x",
            creationTimestamp="2001-01-01T00:00:00Z",
            deletionTimestamp="2001-01-01T00:00:00Z",
            deletionGracePeriodSeconds=3,
        ),
    ),
    Step("basics.create-null-data", "POST", MAPS, obj("v1", "ConfigMap", "null-data", data=None)),
    Step("basics.create-empty-data", "POST", MAPS, config_map("empty-data", {})),
    Step("basics.create-without-metadata", "POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap"}),
    # Replace: with and without a version, with a stale one, with the wrong identity.
    Step(
        "basics.put-unconditional",
        "PUT",
        ONE,
        config_map("one", {"a": "2"}),
        capture={"one.second": "metadata.resourceVersion"},
    ),
    Step("basics.put-stale", "PUT", ONE, config_map("one", {"a": "3"}, resourceVersion="${one.version}")),
    Step(
        "basics.put-current",
        "PUT",
        ONE,
        config_map("one", {"a": "3"}, resourceVersion="${one.second}"),
        capture={"one.third": "metadata.resourceVersion"},
    ),
    Step("basics.put-same", "PUT", ONE, config_map("one", {"a": "3"})),
    Step("basics.put-wrong-uid", "PUT", ONE, config_map("one", {"a": "4"}, uid="11111111-2222-3333-4444-555555555555")),
    Step("basics.put-other-name", "PUT", ONE, config_map("other", {"a": "4"})),
    Step("basics.put-without-name", "PUT", ONE, config_map("", {"a": "4"})),
    Step("basics.put-other-namespace", "PUT", ONE, config_map("one", {"a": "4"}, namespace="default")),
    Step("basics.put-wrong-kind", "PUT", ONE, obj("v1", "Secret", "one")),
    Step("basics.put-bad-version", "PUT", ONE, config_map("one", {"a": "4"}, resourceVersion="abc")),
    Step("basics.put-missing", "PUT", inside(F, "configmaps", "missing"), config_map("missing", {"a": "4"})),
    Step(
        "basics.put-missing-versioned",
        "PUT",
        inside(F, "configmaps", "missing"),
        config_map("missing", {"a": "4"}, resourceVersion="${one.version}"),
    ),
    # The same with a custom object, which has a generation and cannot be replaced without a version.
    Step("basics.custom-create", "POST", TICKETS, ticket("${run}-one"), capture=captures("ticket")),
    Step("basics.custom-create-again", "POST", TICKETS, ticket("${run}-one")),
    Step("basics.custom-put-unconditional", "PUT", T, ticket("${run}-one", {"uses": 2})),
    Step("basics.custom-put-stale", "PUT", T, ticket("${run}-one", {"uses": 2}, resourceVersion="1")),
    Step(
        "basics.custom-put",
        "PUT",
        T,
        ticket("${run}-one", {"uses": 2}, resourceVersion="${ticket.version}"),
        capture={"ticket.second": "metadata.resourceVersion"},
    ),
    Step("basics.custom-put-same", "PUT", T, ticket("${run}-one", {"uses": 2}, resourceVersion="${ticket.second}")),
    Step("basics.custom-wrong-version", "POST", TICKETS, {**ticket("${run}-two"), "apiVersion": "fastness.dev/v1"}),
    Step(
        "basics.custom-without-kind",
        "POST",
        TICKETS,
        {"apiVersion": "fastness.dev/v1alpha1", "metadata": {"name": "x"}},
    ),
    Step("basics.custom-anonymous-object", "POST", TICKETS, {"metadata": {"name": "x"}}),
    Step("basics.custom-with-namespace", "POST", TICKETS, ticket("${run}-nsd", namespace="default")),
    Step("basics.custom-missing", "GET", f"{TICKETS}/${{run}}-missing"),
    Step("basics.custom-delete", "DELETE", T),
)
