"""One kind in one version, as the REST engine uses it.

Compiled parts (`schema` for pruning, defaulting and validation; `fields` for server-side apply) cost milliseconds and most
kinds are never touched in a process's life, so each is made on first use and kept with the `Served`. Catalogs share `Served`
instances across generations: a new CRD does not recompile what was there.

`api_versions` are all the versions in which the kind is served. They are stored under one key, in `storage_version`; without
conversion they differ in `apiVersion` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from fastness.apiserver.fields.schema import TypedSchema
from fastness.apiserver.schema import CompiledSchema
from fastness.apiserver.tables.columns import column_printer
from fastness.apiserver.tables.native import native_printer
from fastness.apiserver.tables.printer import Printer
from fastness.kinds.kind import Kind, Resource, Schema
from fastness.kinds.kubernetes.definitions import REFERENCE, definition


class Source(StrEnum):
    """Where a kind comes from: ours and Kubernetes' own, or a user's CustomResourceDefinition."""

    BUILTIN = "builtin"
    CRD = "crd"


@dataclass(frozen=True, eq=False)
class Served:
    """A kind that is served, with what is compiled from it."""

    kind: Kind
    source: Source = Source.BUILTIN
    storage_version: str = ""
    api_versions: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage_version", self.storage_version or self.kind.version)
        object.__setattr__(self, "api_versions", self.api_versions or frozenset((self.kind.api_version,)))

    @property
    def resource(self) -> Resource:
        """Where the objects are, for a client."""
        return self.kind.resource

    @cached_property
    def storage_key(self) -> tuple[str, str]:
        """(group, plural) under which objects are stored: the same for all versions of a kind."""
        return self.kind.storage

    @cached_property
    def storage_api_version(self) -> str:
        """`apiVersion` as objects of this kind are stored."""
        group = self.kind.storage[0]
        return f"{group}/{self.storage_version}" if group else self.storage_version

    @property
    def openapi(self) -> Schema:
        """The schema of the kind; that of a native kind refers to the definitions of Kubernetes."""
        return definition(self.kind.definition) if self.kind.definition and not self.kind.schema else self.kind.schema

    @cached_property
    def schema(self) -> CompiledSchema:
        """What prunes, defaults and validates objects of this kind."""
        return CompiledSchema(self.openapi, resolve=resolve, native=self.kind.native)

    @cached_property
    def fields(self) -> TypedSchema:
        """Which parts of an object managers own one by one."""
        return TypedSchema(self.openapi, lookup=resolve, api_versions=self.api_versions, native=self.kind.native)

    @cached_property
    def printer(self) -> Printer:
        """How objects print in a table."""
        return native_printer(self.kind) if self.kind.native else column_printer(self.kind)

    def __repr__(self) -> str:
        return f"Served({self.kind.api_version} {self.kind.plural}, {self.source.value})"


def resolve(reference: str) -> Schema:
    """The native definition that a `$ref` names, in full or by its last part; raises KeyError."""
    return definition(reference.removeprefix(REFERENCE))
