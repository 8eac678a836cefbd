"""Selectors, pages and versions of lists."""

from __future__ import annotations

from tests.differential.script.objects import TICKETS, begin, captures, config_map, inside, obj, pod, ticket
from tests.differential.step import Step

F = "reading"
MAPS = inside(F, "configmaps")
PODS = inside(F, "pods")
OURS = {"labelSelector": "set=${run}"}
LABELS = {"set": "${run}"}


def _list(label: str, path: str = MAPS, /, capture: dict[str, str] | None = None, **query: str) -> Step:
    return Step(f"reading.{label}", "GET", path, query={**OURS, **query}, capture=capture or {})


def _more(label: str, path: str = MAPS, /, **query: str) -> Step:
    renamed = {name.replace("continue_", "continue"): value for name, value in query.items()}
    return Step(f"reading.{label}", "GET", path, query={**OURS, **renamed})


STEPS = (
    begin(F),
    *(
        Step(
            f"reading.create-{name}",
            "POST",
            MAPS,
            config_map(name, {"n": name}, labels={**LABELS, "tier": tier}),
            capture=captures(name),
        )
        for name, tier in (("a", "one"), ("b", "one"), ("c", "two"), ("d", "two"), ("e", "three"))
    ),
    _list("all"),
    _list("page-one", limit="2", capture={"next": "metadata.continue", "page.start": "metadata.resourceVersion"}),
    _more("page-two", limit="2", continue_="${next}"),
    _more("rest", continue_="${next}"),
    _more("page-with-version", limit="2", continue_="${next}", resourceVersion="${page.start}"),
    _more("page-with-zero", limit="2", continue_="${next}", resourceVersion="0"),
    _more("page-with-match", limit="2", continue_="${next}", resourceVersionMatch="Exact"),
    _more("bad-continue", limit="2", continue_="nonsense"),
    _more("bad-continue-base64", limit="2", continue_="e30"),
    Step("reading.page-unselected", "GET", MAPS, query={"limit": "2"}),
    _list("limit-bad", limit="many"),
    _list("limit-negative", limit="-1"),
    _list("version-zero", resourceVersion="0"),
    _list("version-exact", resourceVersion="${e.version}", resourceVersionMatch="Exact"),
    _list("version-exact-old", resourceVersion="${a.version}", resourceVersionMatch="Exact"),
    _list("version-not-older", resourceVersion="${a.version}", resourceVersionMatch="NotOlderThan"),
    _list("version-implied", resourceVersion="${a.version}"),
    _list("version-implied-limit", resourceVersion="${e.version}", limit="2"),
    _list("version-bad", resourceVersion="abc"),
    _list("version-negative", resourceVersion="-1"),
    _list("match-without-version", resourceVersionMatch="Exact"),
    _list("match-exact-zero", resourceVersion="0", resourceVersionMatch="Exact"),
    _list("match-unknown", resourceVersion="1", resourceVersionMatch="Roughly"),
    _list("version-future", resourceVersion="999999999"),
    _list("list-initial-events", sendInitialEvents="true"),
    Step("reading.get-version", "GET", f"{MAPS}/a", query={"resourceVersion": "0"}),
    Step("reading.get-version-bad", "GET", f"{MAPS}/a", query={"resourceVersion": "abc"}),
    Step("reading.get-version-exact", "GET", f"{MAPS}/a", query={"resourceVersion": "${a.version}"}),
    Step("reading.get-version-future", "GET", f"{MAPS}/a", query={"resourceVersion": "999999999"}),
    # Label selectors.
    _list("labels-in", labelSelector="set=${run},tier in (one,two)"),
    _list("labels-notin", labelSelector="set=${run},tier notin (one,two)"),
    _list("labels-exists", labelSelector="set=${run},tier"),
    _list("labels-not-exists", labelSelector="set=${run},!tier"),
    _list("labels-not-equal", labelSelector="set=${run},tier!=one"),
    _list("labels-double", labelSelector="set=${run},tier==one"),
    _list("labels-none", labelSelector="set=${run},tier=nine"),
    _list("labels-greater", labelSelector="set=${run},tier>1"),
    _list("labels-bad", labelSelector="a=(b"),
    _list("labels-bad-value", labelSelector="a=b c"),
    _list("labels-bad-key", labelSelector="a b=c"),
    _list("labels-empty-set", labelSelector="tier in ()"),
    # Field selectors.
    _list("fields-name", fieldSelector="metadata.name=a"),
    _list("fields-name-not", fieldSelector="metadata.name!=a"),
    _list("fields-two", fieldSelector="metadata.name=a,metadata.namespace=${run}-reading"),
    _list("fields-none", fieldSelector="metadata.name=zz"),
    _list("fields-unsupported", fieldSelector="data.n=a"),
    _list("fields-bad", fieldSelector="metadata.name"),
    _list("fields-empty", fieldSelector=""),
    _list("fields-all-namespaces", "/api/v1/configmaps", fieldSelector="metadata.name=a"),
    Step("reading.pod", "POST", PODS, pod("p", labels=LABELS)),
    _list("pods-by-phase", PODS, fieldSelector="status.phase=Pending"),
    _list("pods-by-node", PODS, fieldSelector="spec.nodeName="),
    _list("pods-by-image", PODS, fieldSelector="spec.containers=x"),
    Step("reading.secret", "POST", inside(F, "secrets"), obj("v1", "Secret", "s", meta={"labels": LABELS})),
    _list("secrets-by-type", inside(F, "secrets"), fieldSelector="type=Opaque"),
    Step(
        "reading.namespace-by-name",
        "GET",
        "/api/v1/namespaces",
        query={"fieldSelector": "metadata.name=${run}-reading"},
    ),
    Step("reading.ticket", "POST", TICKETS, ticket("${run}-read", labels=LABELS), capture=captures("tr")),
    _list("custom", TICKETS),
    _list("custom-all-none", TICKETS, labelSelector="set=nothing"),
    _list("custom-fields-name", TICKETS, fieldSelector="metadata.name=${run}-read"),
    _list("custom-fields-unsupported", TICKETS, fieldSelector="spec.pool=worker"),
    _list("custom-labels-bad", TICKETS, labelSelector="a=(b"),
    _list("custom-version-bad", TICKETS, resourceVersion="abc"),
    _list("custom-limit-bad", TICKETS, limit="many"),
    _list("custom-pretty", TICKETS, pretty="true"),
    Step("reading.custom-delete", "DELETE", f"{TICKETS}/${{run}}-read"),
)
