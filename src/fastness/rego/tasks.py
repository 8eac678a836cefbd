"""What can be asked of a process for policies: a function elsewhere, by its name.

The process and whoever starts it know nothing of what is judged. A task names the function that does (`module:function`), and it
gets the question, as JSON, and a function by which it bounds its own CPU time from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any

from fastness.kinds.kind import JsonObject

Bound = Callable[[float], None]
Work = Callable[[Mapping[str, Any], Bound], JsonObject]


class Task(Enum):
    """What a process for policies can be asked, by the function that does it."""

    EVIDENCE = "fastness.attestation.policy.tasks:about_evidence"
    RESOURCE = "fastness.attestation.policy.tasks:about_resource"
    TRIAL = "fastness.attestation.policy.tasks:trial"
    AGENT = "fastness.workloads.agent_policy.decide:about_requests"

    def load(self) -> Work:
        """The function; raises ImportError, AttributeError."""
        module, _, function = self.value.partition(":")
        work: Work = getattr(import_module(module), function)
        return work
