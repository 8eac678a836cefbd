"""Our definitions as a later release could have them, for a program that does not know of it.

Every kind of ours is stored in a version that this program never heard of, still served in the one that it speaks, and has new
members in its spec and in its status.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from fastness.kinds.crd.sets import own_names

Object = dict[str, Any]
VERSION = "v1beta1"
MEMBER = "ofTomorrow"
_SCHEMA: Object = {"type": "object", "properties": {"word": {"type": "string"}}}


def of_tomorrow(definitions: Iterable[Object]) -> Iterator[Object]:
    """The same definitions, ours as a later release has them."""
    for definition in definitions:
        yield _later(definition) if definition["metadata"]["name"] in own_names() else definition


def _later(definition: Object) -> Object:
    later = copy.deepcopy(definition)
    (present,) = later["spec"]["versions"]
    members = present["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        schema = members.get(part) or {}
        if "properties" in schema:
            schema["properties"][MEMBER] = copy.deepcopy(_SCHEMA)
    newer = copy.deepcopy(present) | {"name": VERSION}
    present["storage"] = False
    later["spec"]["versions"] = [newer, present]
    return later
