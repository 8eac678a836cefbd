"""Watches: from a version, from the beginning, with selectors, bookmarks, errors."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, captures, config_map, inside, ticket
from tests.differential.step import MERGE, Step

F = "watches"
MAPS = inside(F, "configmaps")
LABELS = {"set": "${run}"}
FUTURE = "999999999"


def _watch(label: str, events: int, path: str = MAPS, /, **query: str) -> Step:
    selector = {"labelSelector": "set=${run}"} if "labelSelector" not in query else {}
    return Step(
        f"watches.{label}",
        "GET",
        path,
        query={"watch": "true", "timeoutSeconds": "2", **selector, **query},
        events=events,
    )


STEPS = (
    begin(F),
    Step(
        "watches.empty",
        "GET",
        MAPS,
        query={"labelSelector": "set=${run}"},
        capture={"w.start": "metadata.resourceVersion"},
    ),
    Step(
        "watches.create",
        "POST",
        MAPS,
        config_map("one", {"a": "1"}, labels={**LABELS, "tier": "x"}),
        capture=captures("w"),
    ),
    Step("watches.change", "PATCH", f"{MAPS}/one", {"data": {"a": "2"}}, type=MERGE),
    Step("watches.leave", "PATCH", f"{MAPS}/one", {"metadata": {"labels": {"tier": "y"}}}, type=MERGE),
    Step("watches.delete", "DELETE", f"{MAPS}/one"),
    Step(
        "watches.second",
        "POST",
        MAPS,
        config_map("two", {"a": "1"}, labels={**LABELS, "tier": "x"}),
        capture=captures("w2"),
    ),
    _watch("from-version", 5, resourceVersion="${w.start}"),
    _watch("from-object", 4, resourceVersion="${w.version}"),
    _watch("selected", 3, resourceVersion="${w.start}", labelSelector="tier=x,set=${run}"),
    _watch("one-name", 4, resourceVersion="${w.start}", fieldSelector="metadata.name=one"),
    _watch("one-object", 1, f"{MAPS}/two"),
    _watch("deprecated-path", 1, "/api/v1/watch/namespaces/${run}-watches/configmaps", resourceVersion="${w.start}"),
    _watch("from-nothing", 1),
    _watch("from-zero", 1, resourceVersion="0"),
    _watch("all-namespaces", 5, "/api/v1/configmaps", resourceVersion="${w.start}"),
    _watch("future", 1, resourceVersion=FUTURE, timeoutSeconds="1"),
    _watch("bad-version", 1, resourceVersion="abc"),
    _watch("bad-timeout", 1, timeoutSeconds="soon"),
    _watch("bad-selector", 1, labelSelector="a=(b"),
    _watch("bad-field", 1, fieldSelector="data.a=1"),
    _watch(
        "initial-events", 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    ),
    _watch(
        "initial-events-version",
        2,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        resourceVersion="${w2.version}",
    ),
    _watch("initial-events-no-match", 1, sendInitialEvents="true"),
    _watch(
        "initial-events-exact", 1, sendInitialEvents="true", resourceVersionMatch="Exact", resourceVersion="${w.start}"
    ),
    _watch("match-alone", 1, resourceVersionMatch="NotOlderThan", resourceVersion="${w.start}"),
    _watch(
        "initial-events-false", 1, sendInitialEvents="false", resourceVersionMatch="NotOlderThan", timeoutSeconds="1"
    ),
    _watch("ends-in-time", 2, timeoutSeconds="1"),
    _watch("limit-ignored", 5, resourceVersion="${w.start}", limit="1"),
    Step(
        "watches.metadata-only",
        "GET",
        MAPS,
        query={"watch": "1", "resourceVersion": "${w.start}", "timeoutSeconds": "2", "labelSelector": "set=${run}"},
        headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
        events=2,
    ),
    Step(
        "watches.table",
        "GET",
        MAPS,
        query={"watch": "1", "resourceVersion": "${w.start}", "timeoutSeconds": "2", "labelSelector": "set=${run}"},
        headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"},
        events=2,
    ),
    Step(
        "watches.custom-empty",
        "GET",
        TICKETS,
        query={"labelSelector": "set=${run}"},
        capture={"wt.start": "metadata.resourceVersion"},
    ),
    Step("watches.custom-create", "POST", TICKETS, ticket("${run}-watch", labels=LABELS)),
    Step("watches.custom-status", "PATCH", f"{TICKETS}/${{run}}-watch/status", {"status": {"used": 1}}, type=MERGE),
    Step("watches.custom-delete", "DELETE", f"{TICKETS}/${{run}}-watch"),
    _watch("custom", 3, TICKETS, resourceVersion="${wt.start}"),
    _watch("custom-old", 1, TICKETS, resourceVersion="1"),
    _watch("custom-bad-version", 1, TICKETS, resourceVersion="abc"),
    _watch(
        "custom-initial-events",
        1,
        TICKETS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ),
)
