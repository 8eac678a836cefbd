"""Refusals about objects whose values are secret.

A refusal quotes the value that is wrong. For a Secret that value may be the secret itself, and refusals travel: into terminals,
logs, tickets. So the causes of such kinds keep the field and the rule and lose the value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from fastness.apiserver.catalog import Served
from fastness.kube.errors import Cause

_SECRET_KINDS = frozenset({("", "secrets")})
_PUBLIC = ("metadata", "type")
_QUOTING = frozenset({
    "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueDuplicate",
})  # fmt: skip
_CUT = "…"


def is_concealed(served: Served) -> bool:
    """Whether values of this kind must not be repeated."""
    return served.storage_key in _SECRET_KINDS


def conceal(served: Served, causes: Iterable[Cause]) -> list[Cause]:
    """The causes as they may be told: without values, where the kind is a secret one."""
    if not is_concealed(served):
        return list(causes)
    return [_without_value(cause) for cause in causes]


def _without_value(cause: Cause) -> Cause:
    start, quoted, rest = cause.message.partition(" value: ")
    if not quoted or cause.reason not in _QUOTING or cause.field.startswith(_PUBLIC):
        return cause
    try:
        tail = rest[json.JSONDecoder().raw_decode(rest)[1] :]
    except ValueError:  # no value, or one that was cut
        if _CUT not in rest:
            return cause
        tail = rest.rpartition(_CUT)[2].lstrip("'\"")
    return replace(cause, message=f"{start} value: (not shown){tail}")
