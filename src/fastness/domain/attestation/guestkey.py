"""How a machine without a TPM shows which machine it is: its guest key signs what this boot proves.

    additional evidence = {"fastness-identity": {"key": <JWK>, "signature": <base64url of r‖s>}}

The text of the additional evidence is part of the runtime data that the hardware signs, so the report covers the key; the
signature covers nonce and the key of this boot, so the key covers the report. Neither can be taken from another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import decoded, encoded, public_key
from fastness.crypto.verify import AttestationKey
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.model.kind import JsonObject

MEMBER: Final = "fastness-identity"
# SubjectPublicKeyInfo of a P-256 key, up to the coordinates.
P256_SPKI: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_DOMAIN: Final = b"fastness identity\0"


class BadIdentity(Exception):
    """The additional evidence names no identity that can be believed."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


def identity_message(nonce: str, tee_pubkey: Mapping[str, Any]) -> bytes:
    """What the guest key signs."""
    return _DOMAIN + json.canonical({"nonce": nonce, "tee-pubkey": dict(tee_pubkey)})


def identity_member(key: JsonObject, signature: bytes) -> JsonObject:
    """The member of the additional evidence, as a machine sends it."""
    return {MEMBER: {"key": key, "signature": encoded(signature)}}


@dataclass(frozen=True, slots=True)
class ClaimedIdentity:
    """A guest key that an attempt names, and a signature that nobody has looked at yet."""

    key: AttestationKey
    jwk: JsonObject
    signature: bytes


def claimed_identity(additional: str) -> ClaimedIdentity:
    """The guest key that an attempt says it is from: fit to find out whose it would be, and nothing else; raises BadIdentity."""
    try:
        found = json.decode(additional.encode()) if additional else {}
        shown = found[MEMBER]
        jwk = shown["key"]
        public_key(jwk)
        key = AttestationKey(P256_SPKI + decoded(jwk["x"]) + decoded(jwk["y"]))
        return ClaimedIdentity(key, jwk, decoded(shown["signature"]))
    except (JsonError, KeyError, TypeError, AttributeError, BadKey) as error:
        raise BadIdentity(
            "identity-missing", "evidence of this kind must show the guest key that the machine enrolled with"
        ) from error


def proved_identity(claimed: ClaimedIdentity, nonce: str, tee_pubkey: Mapping[str, Any]) -> AttestationKey:
    """The guest key that signed this attempt; raises BadIdentity."""
    if not public_key(claimed.jwk).signed(claimed.signature, identity_message(nonce, tee_pubkey)):
        raise BadIdentity("identity-unproved", "the guest key did not sign this attempt")
    return claimed.key
