"""The one place where a Grant is made.

    grant = granted(standing, "machine/…/key", recipient, now)

`Standing` is what a door knows of a caller who proved itself: the subject, the verdict, the key of this boot and until when. A
verdict gives a standing; a token carries one from door to door. Whatever is not live, not of this cluster's kind (simulated or
real) or not allowed by the path is refused here, before anybody looks for the bytes.

* Deny is the default, and each refusal has a stable code.
* A key whose endorsement does not fit its evidence type, or does not count in this cluster any more, opens nothing.
* A Grant is for one resource and one key; it cannot be widened, only asked for again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import Basis, Grant, Subject, is_endorsed


@dataclass(frozen=True, slots=True)
class ProvenCaller:
    """A caller who proved itself, until `expires`."""

    subject: Subject
    verdict: str
    recipient: JsonObject
    expires: datetime
    basis: Basis = Basis.VERDICT
    issued: datetime | None = None
    claims: Mapping[str, Any] = field(default_factory=dict)


class Denied(Exception):
    """No grant. `code` is stable; `detail` may be told to the caller."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class ClusterRules:
    """What the cluster demands of every grant."""

    simulated: bool = False
    enforcing: bool = True
    first_use: bool = False


def granted(standing: ProvenCaller, resource: str, house: ClusterRules, now: datetime) -> Grant:
    """A Grant for a resource whose path was already found to be the subject's; raises Denied."""
    if now >= standing.expires:
        raise Denied("verdict-expired", "the proof of this machine has expired: attest again")
    if standing.subject.simulated and not house.simulated:
        raise Denied("simulated", "evidence of a simulated TEE counts only in a simulated cluster")
    if standing.basis is Basis.AUDIT and house.enforcing:
        raise Denied("audit-basis", "a grant of audit mode counts for nothing while the cluster enforces")
    if standing.basis is Basis.VERDICT and not standing.verdict:
        raise Denied("no-verdict", "there is no verdict that this release could rest on")
    if standing.basis is Basis.VERDICT:
        _endorsed(standing.subject, house)
    return Grant(
        id=_id(standing, resource),
        subject=standing.subject,
        resource=resource,
        recipient=standing.recipient,
        verdict=standing.verdict,
        basis=standing.basis,
        expires=standing.expires,
    )


def _endorsed(subject: Subject, house: ClusterRules) -> None:
    """Raises Denied where the key of the subject is endorsed by nothing that counts here."""
    if not is_endorsed(subject.tee, subject.endorsement):
        raise Denied("not-endorsed", "nothing shows that the key of this machine lives where it says: enrol again")
    if subject.first_use and not house.first_use:
        raise Denied(
            "first-use-not-allowed", "nobody vouches for the TPM of this machine, and trust on first use is off"
        )


def _id(standing: ProvenCaller, resource: str) -> str:
    """The same release has the same id at every door, so a record shows repetitions as such."""
    subject = standing.subject
    who = (subject.machine, subject.tee, subject.endorsement)
    key = (resource, who, standing.verdict, tuple(standing.recipient.items()), standing.expires)
    try:
        return _remembered(*key)
    except TypeError:  # A key may have members that cannot be remembered by, such as a list of operations.
        return _named(*key)


def _named(
    resource: str,
    who: tuple[str, str, str],
    verdict: str,
    recipient: tuple[tuple[str, Any], ...],
    expires: datetime,
) -> str:
    machine, tee, endorsement = who
    named = {
        "resource": resource, "machine": machine, "tee": tee, "endorsement": endorsement, "verdict": verdict,
        "recipient": dict(recipient), "expires": expires.isoformat(),
    }  # fmt: skip
    return f"grant-{sha256(json.canonical(named)).hex[:32]}"


_remembered: Final = lru_cache(maxsize=4096)(_named)
