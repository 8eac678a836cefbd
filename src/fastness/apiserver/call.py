"""One request to the embedded API, without HTTP.

HTTP handlers and the in-process adapter make the same `Call`, so that a controller and a kubectl go through one pipeline.
Warnings collect on the call and become `Warning` headers, or nothing in process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fastness.kube.access import User
from fastness.kube.admission import shortened

FieldValidation = Literal["Ignore", "Warn", "Strict"]
MAX_WARNINGS = 32


@dataclass(slots=True)
class Call:
    """Who asks, in which way; `size` is how many bytes the body has."""

    user: User
    manager: str = "unknown"
    dry_run: bool = False
    force: bool = False
    validation: FieldValidation = "Warn"
    correlation: str = ""
    creating: str = ""
    """The name of what a create is about; its path does not have it."""
    size: int = 0
    duplicates: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Tell the caller something that does not stop the request."""
        short = shortened(text)
        if len(self.warnings) < MAX_WARNINGS and short not in self.warnings:
            self.warnings.append(short)
