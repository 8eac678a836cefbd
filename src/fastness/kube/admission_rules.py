"""Tables of admission rules, and running one over a write.

A row says which writes a rule sees, so that a rule never asks for the kind itself:

* `resource` "*" means every resource; `subresources` empty means the object itself only.
* Deny ends the review. Patches are applied at once, so that later rules judge what will be stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from fastness.formats.patch.jsonpatch import apply_json_patch
from fastness.kube.admission import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Answer,
    Denied,
    Operation,
    Patched,
    Rule,
)

ON_CREATE: Final = frozenset({Operation.CREATE})
ON_UPDATE: Final = frozenset({Operation.UPDATE})
ON_DELETE: Final = frozenset({Operation.DELETE})
ON_WRITE: Final = frozenset({Operation.CREATE, Operation.UPDATE})
ON_ANY: Final = frozenset(Operation)
EVERY_SUBRESOURCE: Final = ("*",)


@dataclass(frozen=True, slots=True)
class Row:
    """One rule and the writes that it sees."""

    rule: Rule
    operations: frozenset[Operation]
    group: str = "*"
    resource: str = "*"
    subresources: tuple[str, ...] = ("",)

    def sees(self, operation: Operation, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule is asked about such a write."""
        return (
            operation in self.operations
            and self.resource in ("*", resource)
            and self.group in ("*", group)
            and (self.subresources == EVERY_SUBRESOURCE or subresource in self.subresources)
        )


class RuleTable:
    """Rules in the order in which they are asked."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        # Looked up once per kind instead of row by row at every write.
        self._seeing = lru_cache(maxsize=1024)(self._find)

    def review(self, request: AdmissionRequest, lookups: AdmissionLookups) -> Answer:
        """Run every rule that sees the write; the first refusal wins, warnings and patches add up."""
        warnings: list[str] = []
        patch: list[Any] = []
        for rule in self._seeing(request.operation, request.group, request.resource, request.subresource):
            answer = rule(request, lookups)
            if answer is None:
                continue
            if isinstance(answer, Denied):
                return answer
            warnings += answer.warnings
            if isinstance(answer, Patched):
                patch += answer.patch
                request = replace(request, object=apply_json_patch(dict(request.new), list(answer.patch)))
        return Patched(tuple(patch), tuple(warnings)) if patch else Allowed(tuple(warnings))

    def _find(self, operation: Operation, group: str, resource: str, subresource: str) -> list[Rule]:
        return [row.rule for row in self.rows if row.sees(operation, group, resource, subresource)]
