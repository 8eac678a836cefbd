"""Making, checking and opening sealed secrets.

    text = seal(VaultSecret("kbs", "kbs:///default/db/password"), "kbs:///default/sealing/pub", key)
    secret = checked(text, public)          # who signed it is who should have
    data = opened(secret, wrapping)         # an envelope, with the key that wraps

* A secret that nobody signed is never accepted here; guests that accept it say so in their own settings.
* An envelope is AES-256-GCM twice: the data under a fresh key, that key under the one that the broker hands out. The nonce of the
  second lies in the annotations, under `iv`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from fastness.crypto.aead import SealKey
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadSignature, BrokenSeal
from fastness.crypto.jwk import PublicJwk
from fastness.crypto.jws import signed_by
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.protocol.sealed import (
    IV_BYTES,
    PREFIX,
    EnvelopeSecret,
    SealedError,
    VaultSecret,
    is_key_name,
    parse_sealed,
)

KEY_IV: Final = "iv"


def seal(secret: VaultSecret | EnvelopeSecret, kid: str, key: PrivateKey) -> str:
    """The text of a secret, signed; raises SealedError for a `kid` that no guest would follow."""
    if not is_key_name(kid):
        raise SealedError("bad-header", "kid is neither the address of a resource nor the name of a file", "header.kid")
    text = PREFIX + signed_by(key, {"alg": "ES256", "kid": kid}, json.encode(secret.payload()))
    parse_sealed(text)  # what a guest could not read must not leave here
    return text


def envelope(data: SecretBytes, key_id: str, wrapping: SecretBytes, entropy: RandomBytes) -> EnvelopeSecret:
    """A secret that carries its data; `wrapping` is the 32-byte resource at `key_id`; raises BadKey."""
    fresh, outer = SealKey.generate(entropy), SealKey(wrapping)
    # The wrapping key lives long, and random nonces are good for 2^32 uses of a key (NIST SP 800-38D, 8.3): more than anybody
    # seals. The data has a key of its own.
    iv, key_iv = entropy.token(IV_BYTES), entropy.token(IV_BYTES)
    return EnvelopeSecret(
        "kbs", key_id, outer.encrypt(key_iv, fresh.material.reveal(), b""), fresh.encrypt(iv, data.reveal(), b""), iv,
        annotations={KEY_IV: base64.b64encode(key_iv).decode()},
    )  # fmt: skip


def checked(text: str, signer: PublicJwk) -> VaultSecret | EnvelopeSecret:
    """The secret in a text that this key signed; raises SealedError, BadSignature."""
    sealed = parse_sealed(text)
    if not sealed.kid:
        raise BadSignature("nobody signed this secret", "Seal it again with a key.")
    if not signer.signed(sealed.signature, sealed.signed):
        raise BadSignature("another key signed this secret", "Use the public key that its kid names.")
    return sealed.secret


def opened(secret: EnvelopeSecret, wrapping: SecretBytes) -> SecretBytes:
    """The data of an envelope; raises BadKey, BrokenSeal, SealedError."""
    try:
        key_iv = base64.b64decode(str(secret.annotations.get(KEY_IV, "")).encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise SealedError("bad-payload", "the annotation iv is not base64", "payload.annotations.iv") from error
    if len(key_iv) != IV_BYTES:
        raise SealedError("bad-payload", f"the annotation iv has {IV_BYTES} bytes", "payload.annotations.iv")
    inner = SealKey(wrapping).decrypt(key_iv, secret.encrypted_key, b"")
    if len(inner) != 32:
        raise BrokenSeal("the wrapped key has another length")
    return SecretBytes(SealKey(SecretBytes(inner)).decrypt(secret.iv, secret.encrypted_data, b""))
