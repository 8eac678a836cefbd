"""How informers are used wrongly.

InformerError    code, hint: an index that does not exist, or that two callers define differently

What a cluster answers is never raised here: an informer waits and tries again.
"""

from __future__ import annotations

from typing import ClassVar


class InformerError(Exception):
    """A caller asked for what was not declared."""

    code: ClassVar[str] = "informer"

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
