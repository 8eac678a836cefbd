"""How a machine without a TPM shows which machine it is, and which boot of it: two keys sign what a session proves.

    additional evidence = {"fastness-identity": {"key": <JWK>, "signature": <base64url of r‖s>}, "fastness-boot": {the same}}

The text of the additional evidence is part of the runtime data that the hardware signs, so the report covers the keys; the
signatures cover nonce and the key of the session, so the keys cover the report. Neither can be taken from another machine.

The guest key stays with the machine. The key of a boot is made by the measured agent once a boot, lives in memory alone, and is
asked for where the hardware says nothing that differs between boots (TDX): `attestation.verdict.dispute` compares it. Whoever
booted something else can make as many as it likes, and refuses itself by its measurement; it cannot sign with the key of
a boot that is not its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import decoded, encoded, public_key
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject

MEMBER: Final = "fastness-identity"
# SubjectPublicKeyInfo of a P-256 key, up to the coordinates.
P256_SPKI: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
BOOT_MEMBER: Final = "fastness-boot"
BOOTS_HAVE_KEYS: Final = frozenset({"tdx"})
# The same key signs the challenge of enrolment: with a prefix each, neither signature is good for the other.
_DOMAIN: Final = b"fastness identity\0"
_BOOT_DOMAIN: Final = b"fastness boot\0"


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


class SignedByBoot(NamedTuple):
    """A signature by the key of a boot: that key as DER of SubjectPublicKeyInfo, and r‖s."""

    public: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class ClaimedIdentity:
    """A key that an attempt names, and a signature that nobody has looked at yet."""

    key: AttestationKey
    jwk: JsonObject
    signature: bytes


def claimed_identity(additional: str) -> ClaimedIdentity:
    """The guest key that an attempt says it is from: fit to find out whose it would be, and nothing else; raises BadIdentity."""
    missing = "evidence of this kind must show the guest key that the machine enrolled with"
    return _claimed(additional, MEMBER, BadIdentity("identity-missing", missing))


def proved_identity(claimed: ClaimedIdentity, nonce: str, tee_pubkey: Mapping[str, Any]) -> AttestationKey:
    """The guest key that signed this attempt; raises BadIdentity."""
    # Over the key of the session as well: otherwise a signature that was recorded could be put beside a report of another guest.
    if not public_key(claimed.jwk).signed(claimed.signature, identity_message(nonce, tee_pubkey)):
        raise BadIdentity("identity-unproved", "the guest key did not sign this attempt")
    return claimed.key


def boot_message(nonce: str, tee_pubkey: Mapping[str, Any]) -> bytes:
    """What the key of a boot signs."""
    return _BOOT_DOMAIN + json.canonical({"nonce": nonce, "tee-pubkey": dict(tee_pubkey)})


def boot_member(key: JsonObject, signature: bytes) -> JsonObject:
    """The member of the additional evidence about the boot, as a machine sends it."""
    return {BOOT_MEMBER: {"key": key, "signature": encoded(signature)}}


def proved_boot(tee: str, additional: str, nonce: str, tee_pubkey: Mapping[str, Any]) -> str:
    """SHA-256 of the key of the boot that signed this attempt; empty where evidence itself tells boots apart.

    Raises BadIdentity: a boot that names no key of its own, or one of another boot, could pass for that one.
    """
    if tee not in BOOTS_HAVE_KEYS:
        return ""
    missing = "evidence of this kind must show the key that the machine made when it booted"
    claimed = _claimed(additional, BOOT_MEMBER, BadIdentity("boot-missing", missing))
    if not public_key(claimed.jwk).signed(claimed.signature, boot_message(nonce, tee_pubkey)):
        raise BadIdentity("boot-unproved", "the key of the boot did not sign this attempt")
    return claimed.key.thumbprint.hex


def _claimed(additional: str, member: str, missing: BadIdentity) -> ClaimedIdentity:
    """The key that a member of the additional evidence names, with the signature beside it; raises `missing`."""
    try:
        value = json.decode(additional.encode()) if additional else {}
        jwk = value[member]["key"]
        # Strictly, and first: lengths and curve are checked before the coordinates are put behind a fixed head below.
        public_key(jwk)
        key = AttestationKey(P256_SPKI + decoded(jwk["x"]) + decoded(jwk["y"]))
        return ClaimedIdentity(key, jwk, decoded(value[member]["signature"]))
    except (JsonError, KeyError, TypeError, AttributeError, BadKey) as error:
        raise missing from error
