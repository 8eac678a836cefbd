"""Write the table of native Kubernetes types that the embedded API serves, by asking a real API server.

The embedded API must know for every native kind what a real one knows: fields and their types, list types and merge
keys, names and verbs of resources, table columns, default roles. Those are facts of the interface, so they are read
from a server of the pinned release and never typed by hand.

- Only facts are kept, no prose: every `description` is dropped.
- Only what is reachable from the kinds in SERVED.
- The file is deterministic, one entry per line, so that a new release is a diff that people can read.

`python tools/kube_types.py` starts the pinned server and writes the file; `--check` compares instead (exit 1 when it is
stale). `fastness.kinds.kubernetes.definitions` reads what is written here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from tests.realkube import RealKube  # noqa: E402  (the repository's root must be on the path first)
from tools.realkube import ensure  # noqa: E402

Json = dict[str, Any]

TARGET = ROOT / "src" / "fastness" / "kinds" / "kubernetes" / "types.json"
REFERENCE = "#/components/schemas/"
LISTS = ("", "List")

SERVED: dict[str, tuple[str, ...]] = {
    "v1": (
        "Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume",
        "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service",
        "ServiceAccount", "DeleteOptions", "Status", "WatchEvent", "APIResourceList",
    ),
    "admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "apiregistration.k8s.io/v1": ("APIService",),
    "apps/v1": ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "authentication.k8s.io/v1": ("SelfSubjectReview", "TokenRequest", "TokenReview"),
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
    ),
    "autoscaling/v1": ("Scale",),
    "batch/v1": ("CronJob", "Job"),
    "certificates.k8s.io/v1": ("CertificateSigningRequest",),
    "coordination.k8s.io/v1": ("Lease",),
    "discovery.k8s.io/v1": ("EndpointSlice",),
    "events.k8s.io/v1": ("Event",),
    "networking.k8s.io/v1": ("Ingress", "IngressClass", "NetworkPolicy"),
    "node.k8s.io/v1": ("RuntimeClass",),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
    "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "storage.k8s.io/v1": ("CSIDriver", "CSINode", "StorageClass"),
}  # fmt: skip

SCHEMA_FACTS = frozenset({
    "$ref", "additionalProperties", "allOf", "anyOf", "default", "enum", "exclusiveMaximum", "exclusiveMinimum",
    "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties",
    "minimum", "multipleOf", "not", "nullable", "oneOf", "pattern", "properties", "required", "type", "uniqueItems",
    "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-unions", "x-kubernetes-validations",
})  # fmt: skip
PROSE = frozenset({"description", "title", "example", "externalDocs", "x-kubernetes-group-version-kind"})


class UnknownFact(Exception):
    """The server says something that this tool has no rule for; dropping it silently would be a hole in the table."""

    code = "UnknownFact"
    hint = "decide in tools/kube_types.py whether it is a fact to keep or prose to drop"


# ---------------------------------------------------------------- definitions


def facts(schema: Json) -> Json:
    """A schema without prose. Raises UnknownFact for a keyword without a rule."""
    unknown = schema.keys() - SCHEMA_FACTS - PROSE
    if unknown:
        raise UnknownFact(f"schema keywords {sorted(unknown)}")
    return {keyword: fact(keyword, value) for keyword, value in schema.items() if keyword in SCHEMA_FACTS}


def fact(keyword: str, value: Any) -> Any:
    """The value of one keyword with nested schemas stripped; names of properties and defaults are left alone."""
    match keyword:
        case "properties":
            return {name: facts(schema) for name, schema in value.items()}
        case "items" | "not":
            return facts(value)
        case "additionalProperties":
            return facts(value) if isinstance(value, dict) else value
        case "allOf" | "anyOf" | "oneOf":
            return [facts(schema) for schema in value]
        case _:
            return value


def references(schema: Any) -> Iterator[str]:
    """Names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        target = schema.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix(REFERENCE)
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def reachable(schemas: Json, roots: Iterable[str]) -> Json:
    """The roots and everything they refer to, stripped to facts."""
    types: Json = {}
    queue = list(roots)
    while queue:
        name = queue.pop()
        if name not in types:
            types[name] = facts(schemas[name])
            queue.extend(references(types[name]))
    return types


def kinds_of(schemas: Json) -> dict[str, str]:
    """Name of the definition by `apiVersion/Kind`, for the served kinds and their lists."""
    served = {f"{version}/{kind}{suffix}" for version, kinds in SERVED.items() for kind in kinds for suffix in LISTS}
    names = {
        f"{api_version(entry['group'], entry['version'])}/{entry['kind']}": name
        for name, schema in sorted(schemas.items())
        for entry in schema.get("x-kubernetes-group-version-kind", [])
    }
    absent = {key for key in served - names.keys() if not key.endswith("List")}
    if absent:
        raise UnknownFact(f"the server has no definition of {sorted(absent)}")
    return {key: name for key, name in names.items() if key in served}


def api_version(group: str, version: str) -> str:
    """`v1` or `group/version`."""
    return f"{group}/{version}" if group else version


def root_of(version: str) -> str:
    """Path of a group version below the server and below /openapi/v3."""
    return f"apis/{version}" if "/" in version else f"api/{version}"


def fetch(api: httpx.Client, path: str, accept: str = "application/json", **query: str) -> Json:
    """A JSON document of the server."""
    answer = api.get(path, headers={"Accept": accept}, params=query).raise_for_status().json()
    if not isinstance(answer, dict):
        raise UnknownFact(f"{path} is not an object")
    return answer


def fetch_schemas(api: httpx.Client) -> Json:
    """Every schema of the served group versions. The same name means the same thing in all of them."""
    merged: Json = {}
    for version in SERVED:
        for name, schema in fetch(api, f"/openapi/v3/{root_of(version)}")["components"]["schemas"].items():
            earlier = merged.setdefault(name, schema)
            if facts(earlier) != facts(schema):
                raise UnknownFact(f"{name} differs between group versions")
    return merged


# ---------------------------------------------------------------- resources and columns

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def fetch_resources(api: httpx.Client) -> list[Json]:
    """Resources of the served kinds, from discovery."""
    resources = []
    for path in ("/api", "/apis"):
        for group in fetch(api, path, AGGREGATED)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                served = SERVED.get(api_version(name, version["version"]), ())
                resources += [
                    resource(name, version["version"], entry)
                    for entry in version["resources"]
                    if entry["responseKind"]["kind"] in served
                ]
    return sorted(resources, key=lambda entry: (entry["group"], entry["version"], entry["plural"]))


def resource(group: str, version: str, entry: Json) -> Json:
    """One resource as the table holds it."""
    return {
        "group": group,
        "version": version,
        "plural": entry["resource"],
        "singular": entry["singularResource"],
        "kind": entry["responseKind"]["kind"],
        "namespaced": entry["scope"] == "Namespaced",
        "verbs": sorted(entry["verbs"]),
        "shortNames": entry.get("shortNames", []),
        "categories": entry.get("categories", []),
        "subresources": sorted(
            (subresource(group, version, child) for child in entry.get("subresources", [])),
            key=lambda child: str(child["name"]),
        ),
    }


def subresource(group: str, version: str, entry: Json) -> Json:
    """One subresource: the kind it speaks, which may be of another group (Scale, Eviction, TokenRequest)."""
    kind = entry["responseKind"]
    # Discovery leaves out both when they are those of the resource; an empty group with a version is the core group.
    own = not kind.get("version")
    return {
        "name": entry["subresource"],
        "group": group if own else kind["group"],
        "version": version if own else kind["version"],
        "kind": kind["kind"],
        "verbs": sorted(entry["verbs"]),
    }


def fetch_columns(api: httpx.Client, resources: Iterable[Json]) -> dict[str, list[Json]]:
    """Table columns by `group/plural` (`/plural` in the core group) of everything that can be listed."""
    columns = {}
    for entry in resources:
        if "list" in entry["verbs"]:
            path = f"/{root_of(api_version(entry['group'], entry['version']))}/{entry['plural']}"
            table = fetch(api, path, TABLE, limit="1")
            columns[f"{entry['group']}/{entry['plural']}"] = [
                {key: column[key] for key in ("name", "type", "format", "priority")}
                for column in table["columnDefinitions"]
            ]
    return columns


# ---------------------------------------------------------------- roles

RBAC = "rbac.authorization.k8s.io/v1"
ROLE_FACTS = ("rules", "aggregationRule", "roleRef", "subjects")


def fetch_roles(api: httpx.Client) -> list[Json]:
    """The cluster roles and bindings that the server makes at its first start, as manifests."""
    roles = []
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        path = f"/apis/{RBAC}/{kind.lower()}s"
        items = fetch(api, path, labelSelector="kubernetes.io/bootstrapping=rbac-defaults")["items"]
        roles += [role(kind, item) for item in sorted(items, key=lambda item: str(item["metadata"]["name"]))]
    return roles


def role(kind: str, item: Json) -> Json:
    """A manifest with the parts that a server decides: no uid, versions, times or managers."""
    metadata = {key: item["metadata"][key] for key in ("name", "labels", "annotations") if item["metadata"].get(key)}
    contents = {key: item[key] for key in ROLE_FACTS if item.get(key)}
    return {"apiVersion": RBAC, "kind": kind, "metadata": metadata, **contents}


def unsettled(roles: list[Json]) -> list[str]:
    """Names of aggregated roles that do not have all rules of the roles they select yet."""
    cluster_roles = [entry for entry in roles if entry["kind"] == "ClusterRole"]
    return [
        entry["metadata"]["name"]
        for entry in cluster_roles
        for selector in entry.get("aggregationRule", {}).get("clusterRoleSelectors", [])
        for part in cluster_roles
        if selector["matchLabels"].items() <= part["metadata"].get("labels", {}).items()
        and any(rule not in entry.get("rules", []) for rule in part.get("rules", []))
    ]


def fetch_settled_roles(api: httpx.Client, patience: float = 30.0) -> list[Json]:
    """The default roles once the aggregation controller is done with admin, edit and view."""
    deadline = time.monotonic() + patience
    while unsettled(roles := fetch_roles(api)):
        if time.monotonic() > deadline:
            raise UnknownFact(f"aggregated roles lack rules: {sorted(set(unsettled(roles)))}")
        time.sleep(0.2)
    return roles


# ---------------------------------------------------------------- the table


def collect(api: httpx.Client) -> Json:
    """The whole table, as a server gives it."""
    schemas = fetch_schemas(api)
    kinds = kinds_of(schemas)
    resources = fetch_resources(api)
    return {
        "kubernetes": fetch(api, "/version")["gitVersion"],
        "definitions": reachable(schemas, kinds.values()),
        "kinds": kinds,
        "resources": resources,
        "columns": fetch_columns(api, resources),
        "roles": fetch_settled_roles(api),
    }


def render(table: Json) -> str:
    """The text of the table: valid JSON, sorted, one entry of a section per line."""
    sections = [f'"{name}":{render_section(section)}' for name, section in table.items()]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def render_section(section: Any) -> str:
    """One section; a plain value stays on the line."""
    if isinstance(section, dict):
        lines = [f"{compact(key)}:{compact(section[key])}" for key in sorted(section)]
        return "{\n" + ",\n".join(lines) + "\n}"
    if isinstance(section, list):
        return "[\n" + ",\n".join(compact(entry) for entry in section) + "\n]"
    return compact(section)


def compact(value: Any) -> str:
    """JSON without spaces and with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def collect_from_pinned() -> Json:
    """The table of the pinned release, from a server that is started for this."""
    with tempfile.TemporaryDirectory(prefix="kube-types-") as directory:
        binaries = ensure(os.environ)
        with RealKube.start(Path(directory), binaries, unsafe_no_fsync=True) as kube, kube.client() as api:
            return collect(api)


def main(arguments: list[str]) -> int:
    """Write the table, or compare it with `--check`."""
    parser = argparse.ArgumentParser(prog="kube_types.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    check = parser.parse_args(arguments).check
    text = render(collect_from_pinned())
    if not check:
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is stale: run `python tools/kube_types.py`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
