"""Discovery: which groups, versions and resources there are.

Two dialects, both encoded at most once per generation of the catalog:

* legacy: `/api`, `/apis`, `/api/v1`, `/apis/<group>`, `/apis/<group>/<version>`;
* aggregated: `/api` and `/apis` with `Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList` (v2beta1 too)
  say everything in two answers; clients check that exact `Content-Type`.

Rules: a subresource is a row `plural/name` in the legacy dialect and nested in the aggregated one; it may speak another kind
(`eviction`, `scale`, `token`), of another group. Groups and versions come in the catalog's order, which is that of preference.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from fastness.apiserver.accept import JSON, Media, negotiate
from fastness.apiserver.catalog import Catalog, GroupVersions, Served
from fastness.apiserver.documents.document import Document
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes import definitions

GROUP: Final = "apidiscovery.k8s.io"
AGGREGATED: Final = tuple(
    Media(as_kind="APIGroupDiscoveryList", group=GROUP, version=version) for version in ("v2", "v2beta1")
)
STATUS_VERBS: Final = ("get", "patch", "update")
_CUSTOM_ORDER: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource and the kind that it speaks."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class Discovery:
    """All discovery answers of one catalog."""

    def __init__(self, catalog: Catalog, address: str = "") -> None:
        self._catalog = catalog
        self._address = address
        self._documents: dict[tuple[str, Media], Document] = {}

    def answer(self, path: str, accept: str = "") -> Document | None:
        """The answer for a discovery path, in the dialect that the client likes; None: there is no such path here."""
        parts = path.strip("/").split("/")
        offers = (JSON, *AGGREGATED) if len(parts) == 1 else (JSON,)
        media = negotiate(accept, offers) or JSON
        cached = self._documents.get((path, media))
        if cached is not None:
            return cached
        value = self._aggregated(parts, media) if media.as_kind else self._legacy(parts)
        if value is None:
            return None
        document = Document.of(value, media.qualified)
        self._documents[path, media] = document
        return document

    def _legacy(self, parts: list[str]) -> JsonObject | None:
        match parts:
            case ["api"]:
                return self._versions()
            case ["apis"]:
                groups = [_group(group_versions) for group_versions in self._catalog.groups() if group_versions.name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", name] if name and (group_versions := self._catalog.group(name)) is not None:
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(group_versions)}
            case ["api", version]:
                return self._resources("", version)
            case ["apis", name, version] if name:
                return self._resources(name, version)
        return None

    def _versions(self) -> JsonObject:
        core = self._catalog.group("")
        return {
            "kind": "APIVersions",
            "versions": list(core.versions) if core else [],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}],
        }

    def _resources(self, group: str, version: str) -> JsonObject | None:
        served = self._catalog.kinds(group, version)
        if not served:
            return None
        api_version = f"{group}/{version}" if group else version
        rows = [row for kind in served for row in _legacy_rows(kind)]
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
        return {**head, "groupVersion": api_version, "resources": rows}

    def _aggregated(self, parts: list[str], media: Media) -> JsonObject | None:
        chosen: Callable[[GroupVersions], bool] = (
            (lambda group: not group.name) if parts == ["api"] else (lambda group: bool(group.name))
        )
        if parts not in (["api"], ["apis"]):
            return None
        items = [self._aggregated_group(group) for group in self._catalog.groups() if chosen(group)]
        api_version = f"{GROUP}/{media.version}"
        return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}

    def _aggregated_group(self, group: GroupVersions) -> JsonObject:
        versions = [
            {
                "version": version,
                "resources": [_aggregated_row(served) for served in self._catalog.kinds(group.name, version)],
                "freshness": "Current",
            }
            for version in group.versions
        ]
        metadata: JsonObject = {"name": group.name} if group.name else {}
        return {"metadata": {**metadata, "creationTimestamp": None}, "versions": versions}


def subresources_of(kind: Kind) -> Iterator[Subresource]:
    """The subresources that a kind serves, with what each speaks, by name."""
    native = {
        subresource.name: subresource
        for subresource in _native_subresources().get((kind.group, kind.version, kind.plural), ())
    }
    # A real server lists the subresources of custom kinds in this order, and its own by name.
    for name in sorted(kind.subresources, key=lambda name: (not kind.native and name != "status", name)):
        if name in native:
            subresource = native[name]
            yield Subresource(name, subresource.group, subresource.version, subresource.kind, tuple(subresource.verbs))
        elif name == "scale":
            yield Subresource(name, "autoscaling", "v1", "Scale", STATUS_VERBS)
        else:
            yield Subresource(name, kind.group, kind.version, kind.kind, STATUS_VERBS)


@cache
def _native_subresources() -> dict[tuple[str, str, str], tuple[definitions.NativeSubresource, ...]]:
    return {
        (resource.group, resource.version, resource.plural): resource.subresources
        for resource in definitions.resources()
    }


def _group(group: GroupVersions) -> JsonObject:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _legacy_rows(served: Served) -> Iterator[JsonObject]:
    kind = served.kind
    row: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if not kind.computed:
        row["storageVersionHash"] = _storage_hash(served)
    yield row
    for subresource in subresources_of(kind):
        foreign = (subresource.group, subresource.version) != (kind.group, kind.version)
        yield {
            "name": f"{kind.plural}/{subresource.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **({"group": subresource.group, "version": subresource.version} if foreign else {}),
            "kind": subresource.kind,
            "verbs": sorted(subresource.verbs),
        }


def _aggregated_row(served: Served) -> JsonObject:
    kind = served.kind
    row: JsonObject = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.group, kind.version, kind.kind),
        "scope": kind.scope.value,
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    nested = [
        {
            "subresource": subresource.name,
            "responseKind": _response_kind(kind, subresource.group, subresource.version, subresource.kind),
            "verbs": sorted(subresource.verbs),
        }
        for subresource in subresources_of(kind)
    ]
    return {**row, "subresources": nested} if nested else row


def _verbs(kind: Kind) -> list[str]:
    """Verbs in the order in which a real server lists them: by name for its own kinds, by handler for custom ones."""
    return sorted(kind.verbs) if kind.native else [verb for verb in _CUSTOM_ORDER if verb in kind.verbs]


def _response_kind(parent: Kind, group: str, version: str, name: str) -> JsonObject:
    """A native kind of the listed group version leaves both empty, a custom kind writes them out: as real servers do."""
    implied = parent.native and (group, version) == (parent.group, parent.version)
    return {"group": "" if implied else group, "version": "" if implied else version, "kind": name}


def _storage_hash(served: Served) -> str:
    """What Kubernetes calls the storage version hash: clients see from it that the stored form changed."""
    text = f"{served.storage_key[0]}/{served.storage_version}/{served.kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
