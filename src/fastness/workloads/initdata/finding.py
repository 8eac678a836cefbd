"""One thing that is wrong with init data or an agent policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fastness.kinds.kind import JsonObject


class Severity(StrEnum):
    """How bad it is. Errors do not work at all; critical and high findings give the host what it must not have."""

    ERROR = "error"
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    WARNING = "warning"
    INFO = "info"


FATAL = frozenset({Severity.ERROR, Severity.CRITICAL, Severity.HIGH})


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, where, and what to do."""

    code: str
    severity: Severity
    message: str
    hint: str
    where: str = ""

    def as_json(self) -> JsonObject:
        """The finding as JSON, for programs."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "hint": self.hint,
            "where": self.where,
        }


def fatal(findings: Iterable[Finding], *, strict: bool = False) -> bool:
    """Whether any finding must stop a workload; strictly, everything but information does."""
    return any(finding.severity in FATAL or (strict and finding.severity is not Severity.INFO) for finding in findings)
