"""How informers are used wrongly.

InformerError    code, hint: an index that does not exist, or that two callers define differently

What a cluster answers is never raised here: an informer waits and tries again.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class InformerError(FastnessError):
    """A caller asked for what was not declared."""

    code = "informer"
