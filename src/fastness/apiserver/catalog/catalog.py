"""`Catalog`: every lookup that a request needs, immutable, one generation per change.

* Built-in kinds are given once; they cannot be removed, replaced or shadowed by a user's definition.
* A definition is served only when its names are accepted (`definitions.crd_status`); until then it is known but serves nothing.
* A new generation copies a few small dictionaries (about a hundred entries) and shares every `Served`.
* Groups come in the order of discovery, versions in the order of preference, kinds in the order of their plural. The order of
  groups is that of a real server, then by name: it decides which group `kubectl get events` means when two have that name. One
  of ours stands before the rest for the same reason.
  Versions go stable, beta, alpha, each with the larger number first; names of another form last.

`discovery.Discovery(catalog)` and `openapi.OpenApi(catalog)` encode what one generation says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.catalog.crd_rules import require_valid
from fastness.apiserver.catalog.definitions import builtin_crd, name_conflicts
from fastness.apiserver.catalog.served import Served, Source
from fastness.kinds.crd import from_manifest
from fastness.kinds.crd.manifest import describe
from fastness.kinds.kind import JsonObject, Kind
from fastness.kube.errors import Forbidden, NotFound

_VERSION: Final = re.compile(r"v([1-9][0-9]{0,9})(?:(alpha|beta)([1-9][0-9]{0,9}))?")
_STAGE: Final = {None: 0, "beta": 1, "alpha": 2}
_UNUSUAL: Final = 3

GROUP_ORDER: Final = (
    "", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io",
    # Before machine.openshift.io: whoever asks for machines here means those that proved themselves, not those that were ordered.
    "trusted-execution-clusters.io",
)  # fmt: skip
_RANK: Final = {name: rank for rank, name in enumerate(GROUP_ORDER)}


@dataclass(frozen=True, slots=True)
class GroupVersions:
    """One API group with its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...]

    @property
    def preferred(self) -> str:
        """The version that a client uses when it may choose."""
        return self.versions[0]


class Catalog:
    """What is served now."""

    def __init__(self, builtin: Iterable[Served], generation: int = 1) -> None:
        self.generation = generation
        self._builtin = tuple(builtin)
        self._crds: dict[str, tuple[JsonObject, tuple[Served, ...]]] = {}
        self._index(self._builtin)

    @classmethod
    def build(cls, kinds: Iterable[Kind], crds: Iterable[JsonObject] = ()) -> Catalog:
        """The first generation: built-in kinds, and definitions that were stored before; raises Invalid for a bad one."""
        catalog = cls(_serve(kinds, Source.BUILTIN))
        for manifest in crds:
            require_valid(manifest, catalog)
            catalog._add(manifest)
        catalog._index(catalog._by_plural.values())
        return catalog

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """The kind served at these coordinates."""
        return self._by_plural.get((group, version, plural))

    def require(self, group: str, version: str, plural: str) -> Served:
        """The kind served at these coordinates; raises NotFound as an API server words it."""
        served = self.find(group, version, plural)
        if served is None:
            raise NotFound("the server could not find the requested resource")
        return served

    def by_kind(self, group: str, version: str, kind: str) -> Served | None:
        """The kind with this `apiVersion` and `kind`."""
        return self._by_kind.get((group, version, kind))

    def by_name(self, text: str) -> Served | None:
        """What a person means by `machines`, `machine`, `mcp`, `Pod`, `deployments.apps` or `deployments.v1.apps`."""
        name, _, rest = text.lower().partition(".")
        candidates = self._by_name.get(name, ())
        if rest:
            version, _, group = rest.partition(".")
            exact = [served for served in candidates if (served.kind.version, served.kind.group) == (version, group)]
            candidates = tuple(exact or (served for served in candidates if served.kind.group == rest))
        return candidates[0] if candidates else None

    def groups(self) -> tuple[GroupVersions, ...]:
        """All groups in the order of discovery; the core group has the empty name and comes first."""
        return self._groups

    def group(self, name: str) -> GroupVersions | None:
        """One group with its versions."""
        return next((versions for versions in self._groups if versions.name == name), None)

    def kinds(self, group: str, version: str) -> tuple[Served, ...]:
        """The kinds of one group version, by plural."""
        return self._by_version.get((group, version), ())

    def versions_of(self, group: str, plural: str) -> tuple[Served, ...]:
        """All versions of one kind, the preferred one first."""
        group_versions = self.group(group)
        versions = group_versions.versions if group_versions is not None else ()
        kinds = (self._by_plural.get((group, version, plural)) for version in versions)
        return tuple(served for served in kinds if served is not None)

    def all(self) -> Iterable[Served]:
        """Everything that is served."""
        return self._by_plural.values()

    @property
    def crds(self) -> Mapping[str, JsonObject]:
        """Users' definitions by name, served or not."""
        return {name: manifest for name, (manifest, _) in self._crds.items()}

    def is_builtin(self, group: str, plural: str) -> bool:
        """Whether that kind is ours or Kubernetes' own and therefore not a user's to define."""
        return (group, plural) in self._builtin_keys

    def builtin_crds(self, since: datetime, version: str = "1") -> list[JsonObject]:
        """Our own kinds (not those of Kubernetes) as CustomResourceDefinition objects, by name."""
        together: dict[str, list[Kind]] = {}
        for served in self._builtin:
            if not served.kind.native:
                together.setdefault(served.kind.crd_name, []).append(served.kind)
        return [builtin_crd(describe(together[name]), since, version) for name in sorted(together)]

    def refuse_builtin(self, name: str) -> None:
        """Raises Forbidden when that definition describes a built-in kind: it can be read, not written."""
        plural, _, group = name.partition(".")
        if self.is_builtin(group, plural):
            raise Forbidden(
                f'customresourcedefinitions.apiextensions.k8s.io "{name}" is forbidden: '
                "this kind is built into the server; its definition cannot be changed or deleted",
                group="apiextensions.k8s.io", kind="customresourcedefinitions", name=name,
            )  # fmt: skip

    def is_native_group(self, group: str) -> bool:
        """Whether the group belongs to Kubernetes itself."""
        return group in self._native_groups

    def served_in(self, group: str, but: str = "") -> list[tuple[str, Kind]]:
        """(definition name, kind) of everything served in a group, without the definition named `but`."""
        return [
            (served.kind.crd_name, served.kind)
            for served in self._by_plural.values()
            if served.kind.group == group and served.kind.crd_name != but
        ]

    def with_crd(self, manifest: JsonObject) -> Catalog:
        """The next generation, with this definition new or changed; raises Invalid when it may not be served at all."""
        require_valid(manifest, self)
        name = manifest["metadata"]["name"]
        return self._next({**self.crds, name: manifest})

    def without_crd(self, name: str) -> Catalog:
        """The next generation without that definition."""
        return self._next({key: manifest for key, manifest in self.crds.items() if key != name})

    def _next(self, crds: Mapping[str, JsonObject]) -> Catalog:
        following = Catalog(self._builtin, generation=self.generation + 1)
        for name, manifest in crds.items():
            current = self._crds.get(name)
            following._add(manifest, current[1] if current is not None and current[0] is manifest else None)
        following._index(following._by_plural.values())
        return following

    def _add(self, manifest: JsonObject, served: tuple[Served, ...] | None = None) -> None:
        """Take one definition up; the caller indexes once when all are in."""
        name = manifest["metadata"]["name"]
        if name_conflicts(manifest, self):
            self._crds[name] = (manifest, ())
            return
        if not served:
            served = tuple(_serve(from_manifest(manifest), Source.CRD))
        self._crds[name] = (manifest, served)
        self._by_plural.update({_coordinates(kind): kind for kind in served})

    def _index(self, all_served: Iterable[Served]) -> None:
        ordered = sorted(all_served, key=_discovery_key)
        self._by_plural = {_coordinates(served): served for served in ordered}
        self._by_kind = {(served.kind.group, served.kind.version, served.kind.kind): served for served in ordered}
        self._builtin_keys = {(served.kind.group, served.kind.plural) for served in self._builtin}
        self._native_groups = {served.kind.group for served in self._builtin if served.kind.native}
        by_version: dict[tuple[str, str], list[Served]] = {}
        by_name: dict[str, list[Served]] = {}
        for served in ordered:
            by_version.setdefault((served.kind.group, served.kind.version), []).append(served)
            for name in names_of(served.kind):
                by_name.setdefault(name, []).append(served)
        self._by_version = {key: tuple(members) for key, members in by_version.items()}
        self._by_name = {key: tuple(members) for key, members in by_name.items()}
        versions: dict[str, list[str]] = {}
        for group, version in self._by_version:
            versions.setdefault(group, []).append(version)
        self._groups = tuple(GroupVersions(name, tuple(members)) for name, members in versions.items())


def names_of(kind: Kind) -> set[str]:
    """Every name that people type for a kind, in lower case."""
    return {kind.plural, kind.singular, kind.kind.lower(), *kind.short_names}


def _serve(kinds: Iterable[Kind], source: Source) -> Iterable[Served]:
    declared = list(kinds)
    stored = {kind.storage: kind.version for kind in declared if kind.storage_version}
    versions: dict[tuple[str, str], set[str]] = {}
    for kind in declared:
        if kind.served:
            versions.setdefault(kind.storage, set()).add(kind.api_version)
    for kind in declared:
        if kind.served:
            storage = stored.get(kind.storage, kind.version)
            yield Served(kind, source, storage, frozenset(versions[kind.storage]))


def _coordinates(served: Served) -> tuple[str, str, str]:
    return served.kind.group, served.kind.version, served.kind.plural


def _discovery_key(served: Served) -> tuple[Any, ...]:
    return *group_key(served.kind.group), *version_key(served.kind.version), served.kind.plural


def version_key(version: str) -> tuple[int, int, int, str]:
    """A key that sorts versions as Kubernetes prefers them: best first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return _UNUSUAL, 0, 0, version
    return _STAGE[match[2]], -int(match[1]), -int(match[3] or 0), version


def group_key(group: str) -> tuple[int, str]:
    """A key that sorts groups as discovery lists them."""
    return _RANK.get(group, len(GROUP_ORDER)), group
