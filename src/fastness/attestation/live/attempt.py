"""What a door asks of whoever judges evidence for it: an attempt goes in, a judgement comes out.

The broker knows this port. `attestation.live.verifier` stands behind it in a cluster; tests and the simulator may put others
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import Subject


@dataclass(frozen=True, slots=True)
class Attempt:
    """Evidence as it came, with what it must be bound to.

    `runtime` is the canonical runtime data whose digest the evidence must carry; `nonce` and `tee_pubkey` are what it was
    made of. `init_data` is format and text, where the caller sent them.
    """

    tee: str
    evidence: JsonObject
    runtime: bytes
    nonce: str
    tee_pubkey: JsonObject
    challenge_expires: datetime
    init_data: tuple[str, str] | None = None
    additional: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What came of an attempt. `subject` is None when nobody who enrolled could be recognised.

    `retry` says that the refusal may pass by itself: values not published yet, collateral stale, the machine not approved.
    `alarm` is what somebody must look at although the machine is accepted.
    """

    accepted: bool
    code: str
    detail: str
    subject: Subject | None = None
    verdict: JsonObject | None = None
    vector: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    expires: datetime | None = None
    retry: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    alarm: str = ""

    @property
    def verdict_name(self) -> str:
        """Name of the Verdict object; empty when none was written."""
        return str(self.verdict["metadata"]["name"]) if self.verdict else ""


class Verifier(Protocol):
    """Judges evidence. Writes the Verdict and spends the challenge before it accepts."""

    async def appraise(self, attempt: Attempt) -> Judgement:
        """Judge an attempt; raises ApiError when the cluster cannot be asked, ReplayedChallenge when it was answered before."""
