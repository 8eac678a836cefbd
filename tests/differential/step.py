"""A step of the conversation: one request, what to remember of its answer, and how long to ask again.

`${name}` in path, query, headers or body stands for a value that an earlier step captured; `${run}` is the word that makes the
names of this run unique. Captures are dotted paths into the answer, where a number is an index.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{([\w.-]+)\}")
JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Step:
    """One request. `events` makes it a watch that reads so many events; `until` repeats it until that code comes; `bare`
    sends it without the administrator's credential."""

    id: str
    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    type: str = JSON
    capture: Mapping[str, str] = field(default_factory=dict)
    events: int = 0
    until: int = 0
    bare: bool = False

    def content(self, captured: Mapping[str, str]) -> bytes | None:
        """The bytes to send: JSON of the body, or the raw bytes that it is."""
        if self.body is None:
            return None
        if isinstance(self.body, bytes):
            return fill(self.body.decode("latin-1"), captured).encode("latin-1")
        return fill(json.dumps(self.body), captured).encode()


def fill(text: str, captured: Mapping[str, str]) -> str:
    """Put captured values in the place of their names; an unknown name stays, which makes the request fail visibly."""
    return _PLACEHOLDER.sub(lambda placeholder: captured.get(placeholder[1], placeholder[0]), text)


def pick(value: Any, path: str) -> str | None:
    """The value at a dotted path as text, or None."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return None if value is None else str(value)


def as_user(name: str, *groups: str) -> dict[str, str]:
    """Headers by which the administrator acts as somebody else; one group at most, because headers are a mapping here."""
    headers = {"Impersonate-User": name}
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return headers
