"""How a kind that is only stored is declared.

`spec` and `status` keep whatever they hold, and the status is written through its own subresource. The label marks the
definition as one that another operator may already have brought.
"""

from __future__ import annotations

from typing import Any

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.openshift import LABELS


def stored(group: str, version: str, kind: str, plural: str, scope: Scope, description: str, **more: Any) -> Kind:
    """A kind whose spec and status keep whatever they hold; `more` are fields of `Kind`."""
    schema = s.obj({"spec": s.anything("What is wanted."), "status": s.anything("What was observed.")})
    settings: dict[str, Any] = {"schema": schema, "subresources": ("status",), "labels": LABELS, **more}
    return Kind(
        group=group, version=version, kind=kind, plural=plural, scope=scope, description=description, **settings
    )


def condition(kind: str, field: str = "status") -> str:
    """The path of a field of a condition."""
    return f'.status.conditions[?(@.type=="{kind}")].{field}'
