"""Unlock sessions: how a machine whose state is on an encrypted disk asks for the key, before it has its own identity.

    additional evidence = {…, "fastness-unlock": {"machine": <uid>, "key": <JWK>, "signature": <base64url of r‖s>}}

The uid is the disk's word and worth nothing by itself: the quote's key, the chip or the guest key must be that Machine's
(`attestation.live.unlocking`). The unlock key is made in the initrd, is the same for all retries of a boot, and is forgotten
before the initrd is left. The text of the additional evidence is part of what the hardware signs, and the signature covers nonce
and session key, so the member cannot be put beside another machine's report.

A session with this member is an unlock session and nothing else: the `sub` of its token is `unlock:<uid>`, which opens
`machine/<uid>/disk-<volume>` of that Machine and no other resource. A session without it opens no disk key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import decoded, encoded, public_key
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import UNLOCK

MEMBER: Final = "fastness-unlock"
# A prefix of its own: the same key, or a careless agent, must not make a signature that is good as an identity or as a boot.
_DOMAIN: Final = b"fastness unlock\0"
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=64 * 1024, max_depth=8)
_MEMBERS: Final = {"machine", "key", "signature"}


class BadUnlock(Exception):
    """The session asks for an unlock, and not understandably or not provably."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class ClaimedUnlock:
    """A Machine and an unlock key that an attempt names, and a signature that nobody has looked at yet."""

    machine: str
    jwk: JsonObject
    signature: bytes


def unlock_message(nonce: str, tee_pubkey: Mapping[str, Any], machine: str) -> bytes:
    """What the unlock key signs."""
    return _DOMAIN + json.canonical({"machine": machine, "nonce": nonce, "tee-pubkey": dict(tee_pubkey)})


def unlock_member(machine: str, jwk: JsonObject, signature: bytes) -> JsonObject:
    """The member of the additional evidence, as a machine sends it."""
    return {MEMBER: {"machine": machine, "key": jwk, "signature": encoded(signature)}}


def claimed_unlock(additional: str) -> ClaimedUnlock | None:
    """The unlock that an attempt asks for; None for an ordinary session; raises BadUnlock."""
    # A look at the text first: it may have a megabyte, and most sessions ask for no unlock. JSON can spell the name in other ways
    # (`\u0066…`); a session that hides the member is an ordinary one, whose token opens no disk key.
    if MEMBER not in additional:
        return None
    try:
        value, repeated = json.decode_reporting_duplicates(additional.encode(), _LIMITS)
        if not isinstance(value, dict) or (MEMBER not in value and not repeated):
            return None
        member = value.get(MEMBER)
        # Strictly: of two members, or of one that nobody reads, two readers could mean different Machines.
        if repeated or not isinstance(member, dict) or set(member) != _MEMBERS:
            raise KeyError(MEMBER)
        machine, jwk, signature = member["machine"], member["key"], decoded(member["signature"])
        public_key(jwk)
    except (JsonError, KeyError, TypeError, AttributeError, BadKey) as error:
        text = "an unlock names the uid of a Machine, a P-256 key as JWK and its signature"
        raise BadUnlock("unlock-unreadable", text) from error
    if not isinstance(machine, str) or _UID.match(machine) is None:
        raise BadUnlock("unlock-unreadable", "an unlock names a Machine by its uid")
    return ClaimedUnlock(machine, jwk, signature)


def proved_unlock(claimed: ClaimedUnlock, nonce: str, tee_pubkey: Mapping[str, Any]) -> str:
    """SHA-256 of the unlock key that signed this attempt; raises BadUnlock."""
    key = public_key(claimed.jwk)
    if not key.signed(claimed.signature, unlock_message(nonce, tee_pubkey, claimed.machine)):
        raise BadUnlock("unlock-unproved", "the unlock key did not sign this attempt")
    return sha256(key.thumbprint.encode()).hex


def unlock_subject(machine: str) -> str:
    """The `sub` of a token that opens the disks of a Machine."""
    return f"{UNLOCK}{machine}"
