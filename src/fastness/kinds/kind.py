"""A kind, as data.

A `Kind` is the single source for everything that the API says about one kind of object in one version: where it is served,
what it may contain, how it prints. Rules:

* One `Kind` is one (group, version, kind). CRDs with several versions become several kinds that share their `storage`, as do
  kinds that two groups serve (Event); exactly one version of a CRD is the `storage_version`.
* `schema` is a structural OpenAPI v3 schema (see `schema.py`) of the whole object without `apiVersion`, `kind`, `metadata`,
  which every object has. Native kinds take theirs from `kinds/kubernetes`.
* `native` kinds belong to Kubernetes itself: a real API server serves them, so no CRD is generated for them; `definition` is
  the name of their OpenAPI definition. `computed` kinds are questions (reviews): the answer is computed, nothing is stored.
* `renamed` says of fields that the kind had once, by path, what to write today; whoever sends one reads that.
* `columns` are those of kubectl *after* NAME; AGE is written out like any other column.

The flow goes on in `registry.py` (all kinds), `crd` (manifests) and `apiserver/catalog` (what is served).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

JsonObject = dict[str, Any]
Schema = Mapping[str, Any]


class Scope(StrEnum):
    """Whether objects of a kind live in a namespace."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True)
class Column:
    """One printer column: `path` is the JSONPath of a CRD's additionalPrinterColumns."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Resource:
    """What a client must know to address objects: the coordinates of a REST collection."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The REST path of the collection, of one object or of its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *(part for part in (name, subresource) if part)]
        return "/".join(parts)


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Everything the API says about one kind in one version."""

    group: str
    version: str
    kind: str
    plural: str
    scope: Scope
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    description: str = ""
    schema: Schema = field(default_factory=dict)
    columns: tuple[Column, ...] = (AGE,)
    subresources: tuple[str, ...] = ()
    scale: Mapping[str, str] | None = None
    verbs: tuple[str, ...] = ALL_VERBS
    native: bool = False
    computed: bool = False
    definition: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    storage: tuple[str, str] = ("", "")
    served: bool = True
    storage_version: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""
    selectable_fields: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    resource: Resource = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular", self.singular or self.kind.lower())
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")
        object.__setattr__(self, "storage", self.storage if self.storage[1] else (self.group, self.plural))
        object.__setattr__(
            self,
            "resource",
            Resource(self.group, self.version, self.plural, self.kind, self.scope is Scope.NAMESPACED),
        )

    @property
    def namespaced(self) -> bool:
        """Whether objects live in a namespace."""
        return self.scope is Scope.NAMESPACED

    @property
    def api_version(self) -> str:
        """`v1` or `group/version`, as objects carry it."""
        return self.resource.api_version

    @property
    def crd_name(self) -> str:
        """The name of the CustomResourceDefinition that describes this kind."""
        return f"{self.plural}.{self.group}"

    @property
    def has_status(self) -> bool:
        """Whether `status` is written through its own subresource only."""
        return "status" in self.subresources
