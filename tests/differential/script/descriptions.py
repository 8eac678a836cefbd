"""What the server says about itself: discovery and tables."""

from __future__ import annotations

from tests.differential.script.objects import POOLS, TICKETS, begin, config_map, inside, obj, pod, ticket
from tests.differential.step import Step

F = "descriptions"
TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"}
TABLE_ONLY = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
LABELS = {"set": "${run}"}
OURS = {"labelSelector": "set=${run}"}
GROUPS = (
    "apps",
    "policy",
    "coordination.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
    "authorization.k8s.io",
    "authentication.k8s.io",
    "apiextensions.k8s.io",
    "certificates.k8s.io",
    "scheduling.k8s.io",
)


def _table(label: str, path: str, **query: str) -> Step:
    return Step(f"descriptions.table-{label}", "GET", path, query=query, headers=TABLE)


STEPS = (
    begin(F),
    *(Step(f"descriptions.group-{group}", "GET", f"/apis/{group}/v1") for group in GROUPS),
    Step("descriptions.core", "GET", "/api/v1"),
    Step("descriptions.group", "GET", "/apis/apps"),
    Step("descriptions.unknown-group", "GET", "/apis/nowhere.example"),
    Step("descriptions.unknown-version", "GET", "/apis/apps/v9"),
    Step("descriptions.versions", "GET", "/api"),
    Step("descriptions.health", "GET", "/healthz"),
    Step("descriptions.ready", "GET", "/readyz"),
    Step("descriptions.discovery-text", "GET", "/apis/apps", headers={"Accept": "text/plain"}),
    Step("descriptions.discovery-yaml", "GET", "/apis/apps/v1", headers={"Accept": "application/yaml"}),
    # Tables.
    Step("descriptions.map", "POST", inside(F, "configmaps"), config_map("m", {"a": "1", "b": "2"}, labels=LABELS)),
    Step("descriptions.pod", "POST", inside(F, "pods"), pod("p", labels=LABELS)),
    Step("descriptions.node", "POST", "/api/v1/nodes", obj("v1", "Node", "${run}-n", meta={"labels": LABELS})),
    Step("descriptions.ticket", "POST", TICKETS, ticket("${run}-t", labels=LABELS)),
    Step(
        "descriptions.secret",
        "POST",
        inside(F, "secrets"),
        obj("v1", "Secret", "s", meta={"labels": LABELS}, stringData={"a": "1"}),
    ),
    _table("maps", inside(F, "configmaps"), **OURS),
    _table("maps-objects", inside(F, "configmaps"), includeObject="Object", **OURS),
    _table("maps-none", inside(F, "configmaps"), includeObject="None", **OURS),
    _table("maps-bad-include", inside(F, "configmaps"), includeObject="Some", **OURS),
    _table("map", inside(F, "configmaps", "m")),
    _table("map-missing", inside(F, "configmaps", "none")),
    _table("pods", inside(F, "pods")),
    _table("nodes", "/api/v1/nodes", **OURS),
    _table("secrets", inside(F, "secrets")),
    _table("namespace", "/api/v1/namespaces/${run}-descriptions"),
    _table("tickets", TICKETS, **OURS),
    _table("ticket", f"{TICKETS}/${{run}}-t"),
    _table("empty", inside(F, "services")),
    _table("empty-custom", POOLS, labelSelector="set=none"),
    _table("paged", inside(F, "configmaps"), limit="1", labelSelector="set"),
    Step("descriptions.table-created", "POST", inside(F, "configmaps"), config_map("n"), headers=TABLE_ONLY),
    Step("descriptions.partial", "GET", inside(F, "configmaps", "m"), headers=PARTIAL),
    Step("descriptions.partial-list", "GET", inside(F, "configmaps"), query=OURS, headers=PARTIAL_LIST),
    Step("descriptions.partial-of-list", "GET", inside(F, "configmaps"), query=OURS, headers=PARTIAL),
    Step("descriptions.partial-custom", "GET", f"{TICKETS}/${{run}}-t", headers=PARTIAL),
    Step("descriptions.yaml", "GET", inside(F, "configmaps", "m"), headers={"Accept": "application/yaml"}),
    Step("descriptions.ticket-delete", "DELETE", f"{TICKETS}/${{run}}-t"),
    Step("descriptions.node-delete", "DELETE", "/api/v1/nodes/${run}-n"),
)
