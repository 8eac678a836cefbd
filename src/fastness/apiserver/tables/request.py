"""Which form of a list, an object or a watch event the client wants.

* `application/json;as=Table;v=v1;g=meta.k8s.io` (or `v1beta1`): a table.
* `application/json;as=PartialObjectMetadata;…` for one object, `…List` for a list: metadata only.
* Anything with plain JSON, `*/*`, or no `Accept` at all: the objects as they are.

All of them are `application/json` on the way back. When none of the offers is acceptable, `representation` returns None, for
which an API server answers 406.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from fastness.apiserver.accept import JSON, Media, negotiate
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import BadRequest

META_GROUP: Final = "meta.k8s.io"
TABLES: Final = tuple(Media(as_kind="Table", group=META_GROUP, version=version) for version in ("v1", "v1beta1"))
PARTIAL: Final = tuple(
    Media(as_kind=kind, group=META_GROUP, version=version)
    for kind in ("PartialObjectMetadata", "PartialObjectMetadataList")
    for version in ("v1", "v1beta1")
)
OFFERS: Final = (JSON, *TABLES, *PARTIAL)
MAX_KNOWN: Final = 512


class Include(StrEnum):
    """How much of its object a row carries."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A table in one version of its format."""

    version: str = "v1"
    include: Include = Include.METADATA

    @property
    def api_version(self) -> str:
        """`apiVersion` of the table and of the metadata in its rows."""
        return f"{META_GROUP}/{self.version}"

    @classmethod
    def of(cls, media: Media, include_object: str = "") -> TableRequest | None:
        """The table that is asked for, or None for another form; raises BadRequest for an unknown `includeObject`."""
        if media.as_kind != "Table":
            return None
        try:
            include = Include(include_object) if include_object else Include.METADATA
        except ValueError as error:
            raise BadRequest(f'unrecognized includeObject value: "{include_object}"') from error
        return cls(media.version, include)


def representation(accept: str) -> Media | None:
    """The form that the client likes best; None when it accepts nothing that is served here."""
    return _known_representation(accept) if len(accept) <= MAX_KNOWN else negotiate(accept, OFFERS)


@lru_cache(maxsize=256)
def _known_representation(accept: str) -> Media | None:
    """Every request asks, and a client always says the same; the bound keeps long headers from filling the cache."""
    return negotiate(accept, OFFERS)


def partial_object(obj: Mapping[str, Any], api_version: str = f"{META_GROUP}/v1") -> JsonObject:
    """The metadata of an object as a PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj.get("metadata")}
