"""An answer that is encoded once and served many times: discovery and OpenAPI.

The tag is a digest of the bytes, so that two generations of the catalog that say the same have the same tag, and a client
that has the document already gets 304 instead of a megabyte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes with their type and tag; `location` set: go there instead (301)."""

    body: bytes
    content_type: str
    digest: str
    headers: Mapping[str, str] = field(default_factory=dict)
    location: str = ""

    @classmethod
    def of(cls, value: Any, content_type: str = "application/json") -> Document:
        """Encode a JSON value."""
        return cls.encoded(orjson.dumps(value), content_type)

    @classmethod
    def encoded(cls, body: bytes, content_type: str) -> Document:
        """Bytes that are encoded already."""
        return cls(body, content_type, hashlib.sha256(body).hexdigest().upper())

    @property
    def etag(self) -> str:
        """The value of the `ETag` header."""
        return f'"{self.digest}"'

    def known_to(self, if_none_match: str) -> bool:
        """Whether the client has these bytes already: answer 304."""
        tags = (tag.strip().removeprefix("W/") for tag in if_none_match.split(","))
        return any(tag in ("*", self.etag) for tag in tags)
