"""One kind in one version, as the REST engine uses it.

Compiled parts (`schema` for pruning, defaulting and validation; `fields` for server-side apply) cost milliseconds and most
kinds are never touched in a process's life, so each is made on first use and kept with the `Served`. Catalogs share `Served`
instances across generations: a new CRD does not recompile what was there.

All versions of a kind are stored under one key, in `storage_version`; without conversion they differ in `apiVersion` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from fastness.cluster.embedded.tables.columns import column_printer
from fastness.cluster.embedded.tables.native import native_printer
from fastness.cluster.embedded.tables.printer import Printer
from fastness.model.kind import Kind, Resource


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage_version", self.storage_version or self.kind.version)

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

    @cached_property
    def printer(self) -> Printer:
        """How objects print in a table."""
        return native_printer(self.kind) if self.kind.native else column_printer(self.kind)

    def __repr__(self) -> str:
        return f"Served({self.kind.api_version} {self.kind.plural}, {self.source.value})"
