"""How a problem is written: the path of a field, and the cause types of Kubernetes.

Paths come in two spellings, because Kubernetes has two: the schema's own checks write a key of a map as a field
(`spec.labels.app`), everything after them in brackets (`spec.labels[app]`). A problem that belongs to no single field has the
path `<nil>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from fastness.kube.errors import Cause

NOWHERE: Final = "<nil>"

REQUIRED: Final = "FieldValueRequired"
INVALID: Final = "FieldValueInvalid"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TYPE_INVALID: Final = "FieldValueTypeInvalid"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"
DUPLICATE: Final = "FieldValueDuplicate"
FORBIDDEN: Final = "FieldValueForbidden"

_SHOWN: Final = 256


def child(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}.{name}" if path else name


def key(path: str, name: str) -> str:
    """The path of a key of a map."""
    return f"{path}[{name}]"


def excerpt(value: Any) -> str:
    """A value as a message shows it: JSON, cut when long."""
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        text = str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def required(path: str, detail: str = "") -> Cause:
    """A field that must be there."""
    return Cause(path or NOWHERE, REQUIRED, "Required value" + (f": {detail}" if detail else ""))


def invalid(path: str, value: Any, detail: str) -> Cause:
    """A value that breaks a rule."""
    return Cause(path or NOWHERE, INVALID, f"Invalid value: {excerpt(value)}: {detail}")


def type_invalid(path: str, value: Any, detail: str) -> Cause:
    """A value of the wrong type or format."""
    return Cause(path or NOWHERE, TYPE_INVALID, f"Invalid value: {excerpt(value)}: {detail}")


def not_supported(path: str, value: Any, supported: Sequence[Any]) -> Cause:
    """A value that is none of a closed set."""
    names = ", ".join(excerpt(entry) for entry in supported)
    return Cause(path or NOWHERE, NOT_SUPPORTED, f"Unsupported value: {excerpt(value)}: supported values: {names}")


def too_long(path: str, limit: int) -> Cause:
    """A text over its limit."""
    return Cause(path or NOWHERE, TOO_LONG, f"Too long: may not be more than {limit} characters")


def too_many(path: str, count: int, limit: int) -> Cause:
    """An array or an object with too many entries."""
    return Cause(path or NOWHERE, TOO_MANY, f"Too many: {count}: must have at most {limit} entries")


def duplicate(path: str, value: Any) -> Cause:
    """An entry that is there already."""
    return Cause(path or NOWHERE, DUPLICATE, f"Duplicate value: {excerpt(value)}")


def forbidden(path: str, detail: str) -> Cause:
    """Something that may not be given here."""
    return Cause(path or NOWHERE, FORBIDDEN, f"Forbidden: {detail}")
