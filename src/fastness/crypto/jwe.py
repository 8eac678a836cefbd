"""Sealing to a machine's key: JWE in flattened JSON, as guests of the KBS protocol open it.

    {"protected", "encrypted_key", "iv", "ciphertext", "tag"}      RFC 7516, content always A256GCM

    EC P-256, P-521    ECDH-ES+A256KW: ephemeral key, Concat KDF (RFC 7518 §4.6.2), AES key wrap
    RSA                RSA-OAEP-256

* Algorithms are fixed by the type of the key. `opened` refuses a header that names others, and reads no key out of it but the
  ephemeral one.
* Content key, nonce and ephemeral key are fresh for every answer and come from the entropy that is handed in. That is why no
  library for JOSE does it: those draw from the system themselves. Tests open what is made here with one, and the reverse.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey, BrokenSeal
from fastness.crypto.jwk import CURVES, PublicJwk, decoded, ec_members, encoded, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes

ECDH: Final = "ECDH-ES+A256KW"
RSA_OAEP: Final = "RSA-OAEP-256"
CONTENT: Final = "A256GCM"
# Before JSON and base64 are decoded: the agent opens this in the memory of a booting machine.
MAX_SEALED: Final = 4 * 1024 * 1024
_KEY_BYTES: Final = 32
# 96 bits, the only length that A256GCM has in JWE (RFC 7518 §5.3).
_IV_BYTES: Final = 12
_TAG_BYTES: Final = 16
_MEMBERS: Final = frozenset({"protected", "encrypted_key", "iv", "ciphertext", "tag"})
# AlgorithmID, two empty parties and the key length (RFC 7518 §4.6.2). The algorithm is in it, so a key that was derived for
# one use is not the key of another.
OTHER_INFO: Final = struct.pack(">I", len(ECDH)) + ECDH.encode() + struct.pack(">III", 0, 0, 256)
# One hash throughout (RFC 8017 §7.1). Whether the padding was wrong cannot be told from outside, unlike with RSA1_5.
_OAEP: Final = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


def sealed(plaintext: SecretBytes, to: PublicJwk, entropy: RandomBytes) -> bytes:
    """A JWE that only the holder of the key opens."""
    # A new content key each time: an IV that came twice under one GCM key would give away the key of its tags.
    content_key, iv = entropy.token(_KEY_BYTES), entropy.token(_IV_BYTES)
    if isinstance(to.handle, ec.EllipticCurvePublicKey):
        ephemeral = _ephemeral(to.curve, entropy)
        wrapping = _agreed(ephemeral, to.handle)
        header: dict[str, Any] = {"alg": ECDH, "enc": CONTENT, "epk": ec_members(ephemeral.public_key(), to.curve)}
        wrapped = aes_key_wrap(wrapping, content_key)
    else:
        header = {"alg": RSA_OAEP, "enc": CONTENT}
        wrapped = to.handle.encrypt(content_key, _OAEP)
    protected = encoded(orjson.dumps(header))
    # The header is authenticated as it was encoded (RFC 7516 §5.1): who changes `alg` or `epk` on the way breaks the tag.
    ciphertext = AESGCM(content_key).encrypt(iv, plaintext.reveal(), protected.encode())
    return orjson.dumps({
        "protected": protected, "encrypted_key": encoded(wrapped), "iv": encoded(iv),
        "ciphertext": encoded(ciphertext[:-_TAG_BYTES]), "tag": encoded(ciphertext[-_TAG_BYTES:]),
    })  # fmt: skip


def opened(data: bytes, key: PrivateKey) -> SecretBytes:
    """What was sealed to a P-256 key; raises BrokenSeal."""
    parts = _parts(data)
    try:
        header = orjson.loads(decoded(parts["protected"]))
        if not isinstance(header, dict) or set(header) != {"alg", "enc", "epk"}:
            raise BrokenSeal("the header of the sealed answer has other members than alg, enc and epk")
        if header["alg"] != ECDH or header["enc"] != CONTENT or not isinstance(header["epk"], dict):
            raise BrokenSeal(f"the sealed answer is not made with {ECDH} and {CONTENT}")
        ephemeral = public_key(header["epk"])
        # `public_key` saw to it that the point is on the curve: agreeing with others gives the private key away, bit by bit.
        if ephemeral.curve != "P-256" or not isinstance(ephemeral.handle, ec.EllipticCurvePublicKey):
            raise BrokenSeal("the ephemeral key of the sealed answer is not on P-256")
        # Key wrap has an integrity check of its own (RFC 3394 §2.2.3): a wrong key ends here and not as garbage.
        content_key = aes_key_unwrap(_agreed(key.handle, ephemeral.handle), decoded(parts["encrypted_key"]))
        body = decoded(parts["ciphertext"]) + decoded(parts["tag"])
        plain = AESGCM(content_key).decrypt(decoded(parts["iv"]), body, parts["protected"].encode())
    except (BadKey, InvalidTag, InvalidUnwrap, ValueError) as error:
        if isinstance(error, BrokenSeal):
            raise
        # One answer for all of them: which step failed would help whoever forges more than whoever debugs.
        raise BrokenSeal("the sealed answer was changed, or is for another key") from error
    return SecretBytes(plain)


def _parts(data: bytes) -> dict[str, str]:
    if len(data) > MAX_SEALED:
        raise BrokenSeal("the sealed answer is too long")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BrokenSeal("the sealed answer is not JSON") from error
    if (
        not isinstance(value, dict)
        or set(value) != _MEMBERS
        or not all(isinstance(part, str) for part in value.values())
    ):
        raise BrokenSeal("the sealed answer is no flattened JWE")
    return value


def _ephemeral(curve: str, entropy: RandomBytes) -> ec.EllipticCurvePrivateKey:
    if curve == "P-256":
        return PrivateKey.generate(entropy).handle
    kind, length = CURVES[curve]
    # A draw 64 bits longer than the order leaves no bias that could be seen (FIPS 186-5 A.2.1).
    scalar = int.from_bytes(entropy.token(length + 8), "big") % ((1 << (kind.key_size - 1)) - 1) + 1
    return ec.derive_private_key(scalar, kind)


def _agreed(private: ec.EllipticCurvePrivateKey, public: ec.EllipticCurvePublicKey) -> bytes:
    shared = private.exchange(ec.ECDH(), public)
    return ConcatKDFHash(hashes.SHA256(), _KEY_BYTES, OTHER_INFO).derive(shared)
