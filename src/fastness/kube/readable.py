"""How large and how deep an object may be that anything here reads, and what becomes of one that is beyond that.

JSON decoders and Python's own stack end at about a thousand levels; a real API server takes ten thousand. An object near that end
is decoded by one part and kills the next one that walks it. So there is one bound for all, well below what any of them stands,
and it is checked where objects enter: by the embedded API before it stores (`apiserver/storable.py`), by the client of a real one
when it reads (`kube/`). A test tries every recursive walk at this bound.

What is beyond it is **set aside**: it travels as its bare identity with the reason, so that one object costs itself alone.
"""

from __future__ import annotations

from typing import Any, Final

from fastness.formats.errors import JsonError
from fastness.formats.json import JsonLimits, check_depth
from fastness.kinds.kind import JsonObject

READABLE: Final = JsonLimits(max_bytes=8 * 1024 * 1024, max_depth=160)
_NAMING: Final = ("name", "namespace", "uid", "resourceVersion")


def too_deep(obj: Any) -> str | None:
    """Why a decoded object is not to be walked; None for one that may be."""
    try:
        check_depth(obj, READABLE.max_depth)
    except JsonError as error:
        return error.message
    return None


def identity_of(obj: JsonObject) -> JsonObject:
    """All that is passed on of an object that is set aside; raises KeyError, TypeError when it has no name."""
    meta = obj["metadata"]
    named: JsonObject = {field: meta[field] for field in _NAMING if isinstance(meta.get(field), str)}
    if "name" not in named or "resourceVersion" not in named:
        raise KeyError("an object has a name and a version")
    return {"metadata": named}
