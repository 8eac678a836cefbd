"""What can be asked of a process for policies, a function elsewhere by its name, and how: in frames over a pipe.

The process and whoever starts it know nothing of what is judged. A task names the function that does (`module:function`), and it
gets the question, as JSON, and a function by which it bounds its own CPU time from step to step.

A frame is four bytes of length, most significant first, and that many bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final

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


HEAD: Final = 4
MAX_FRAME: Final = 32 * 1024**2
_LENGTH: Final = struct.Struct(">I")


def framed(message: bytes) -> bytes:
    """A message with its length; raises ValueError for one that is too long."""
    if len(message) > MAX_FRAME:
        raise ValueError("the message is too long")
    return _LENGTH.pack(len(message)) + message


def frame_length(head: bytes) -> int:
    """The length of the message that follows a head; raises ValueError for one that is too long."""
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME:
        raise ValueError("the message is too long")
    return int(length)
