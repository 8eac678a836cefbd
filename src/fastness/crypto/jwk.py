"""Public keys as machines name them: JWK of the types that the key broker seals to.

`public_key(jwk)` reads EC keys on P-256 and P-521 and RSA keys, with exact lengths: a coordinate has the length of its curve, a
modulus no leading zero. The point must lie on its curve. Reading costs a check of the curve equation, so keys that were read are
remembered, up to a bound; nothing secret is in them.

The thumbprint is that of RFC 7638. Sealing is in `jwe.py`; `signed` checks ES256 signatures of proofs of possession.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from fastness.crypto.errors import BadKey
from fastness.crypto.keys import PrivateKey
from fastness.crypto.silicon.verify import p256

# Below, the key can be factored; far above, whoever sends a key decides how much each use of it costs us.
MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
# What keys in the field have. A large one makes each use as dear as its sender likes, and with 1 nothing is encrypted.
RSA_EXPONENT: Final = 65537
REMEMBERED: Final = 8192
CURVES: Final[dict[str, tuple[ec.EllipticCurve, int]]] = {
    "P-256": (ec.SECP256R1(), 32),
    # Without P-384: guests of the KBS protocol have these two and RSA (Trustee's kbs_protocol), and each more is one more way in.
    "P-521": (ec.SECP521R1(), 66),
}

# Base64url as plain base64; what is only in plain base64 becomes something that is in none.
_FROM_URL: Final = bytes.maketrans(b"-_+/=", b"+/!!!")
# A last character whose bits are all used: two characters carry one byte, three carry two.
_LAST: Final = {1: b"", 2: b"AQgw", 3: b"AEIMQUYcgkosw048"}

Handle = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class PublicJwk:
    """A public key that was read, with its thumbprint."""

    __slots__ = ("curve", "handle", "thumbprint")

    def __init__(self, handle: Handle, curve: str, thumbprint: str) -> None:
        self.handle = handle
        self.curve = curve
        self.thumbprint = thumbprint

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Whether this key made an ES256 signature (r‖s); no for keys that are not on P-256."""
        handle = self.handle
        return self.curve == "P-256" and not isinstance(handle, rsa.RSAPublicKey) and p256(handle, signature, message)


def public_key(jwk: Mapping[str, Any]) -> PublicJwk:
    """Read a public key; raises BadKey. Members that do not make the key are not looked at."""
    kind = jwk.get("kty")
    names = ("crv", "kty", "x", "y") if kind == "EC" else ("e", "kty", "n")
    # Nothing else of the JWK reaches the cache below: a stranger could fill it with one key and a thousand values of `kid`.
    values = tuple(jwk.get(name) for name in names)
    if kind not in ("EC", "RSA") or not all(isinstance(value, str) for value in values):
        raise BadKey("the key is neither an EC nor an RSA key in JWK form")
    return _read(names, values)


@lru_cache(maxsize=REMEMBERED)
def _read(names: tuple[str, ...], values: tuple[str, ...]) -> PublicJwk:
    jwk = dict(zip(names, values, strict=True))
    # Only the members that make the key, in the order of their names (RFC 7638 §3): the same key has one thumbprint, whatever
    # else its JWK says.
    digest = hashlib.sha256(orjson.dumps(jwk, option=orjson.OPT_SORT_KEYS)).digest()
    thumbprint = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    if jwk["kty"] == "RSA":
        return PublicJwk(_rsa(jwk), "", thumbprint)
    curve = CURVES.get(jwk["crv"])
    if curve is None:
        raise BadKey(f"the curve of the key is none of {', '.join(CURVES)}")
    x, y = (_decoded(jwk[name]) for name in ("x", "y"))
    # The full length of the curve (RFC 7518 §6.2.1.2): shortened coordinates would give one key several thumbprints.
    if len(x) != curve[1] or len(y) != curve[1]:
        raise BadKey(f"a coordinate on {jwk['crv']} has {curve[1]} bytes")
    try:
        # The library checks that the point is on the curve, and refuses infinity: agreeing with an invalid point leaks the
        # private key.
        handle = ec.EllipticCurvePublicKey.from_encoded_point(curve[0], b"\x04" + x + y)
    except ValueError as error:
        raise BadKey(f"the key is no point on {jwk['crv']}") from error
    return PublicJwk(handle, jwk["crv"], thumbprint)


def _rsa(jwk: Mapping[str, str]) -> rsa.RSAPublicKey:
    modulus, exponent = _decoded(jwk["n"]), int.from_bytes(_decoded(jwk["e"]), "big")
    number = int.from_bytes(modulus, "big")
    # No leading zero (RFC 7518 §6.3.1.1), for the same reason: one key, one spelling, one thumbprint.
    if modulus[:1] == b"\0" or not MIN_RSA_BITS <= number.bit_length() <= MAX_RSA_BITS or not number & 1:
        raise BadKey(f"an RSA key has {MIN_RSA_BITS} to {MAX_RSA_BITS} bits")
    if exponent != RSA_EXPONENT:
        raise BadKey(f"the exponent of an RSA key is {RSA_EXPONENT}")
    try:
        return rsa.RSAPublicNumbers(exponent, number).public_key()
    except ValueError as error:
        raise BadKey("the RSA key cannot be used") from error


def private_key(jwk: Mapping[str, Any]) -> PrivateKey:
    """Read a P-256 private key; raises BadKey when it is none, or its halves do not belong together."""
    public = public_key(jwk)
    scalar = jwk.get("d")
    if public.curve != "P-256" or not isinstance(scalar, str) or len(raw := _decoded(scalar)) != 32:
        raise BadKey("the key is no private key on P-256 in JWK form")
    try:
        key = PrivateKey(ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1()))
    except ValueError:
        # Not `from` the original: it may speak of the scalar.
        raise BadKey("the private half of the key is out of range") from None
    if public_key(public_jwk(key)).thumbprint != public.thumbprint:
        raise BadKey("the halves of the key do not belong together")
    return key


def public_jwk(key: PrivateKey, algorithm: str = "ECDH-ES+A256KW") -> dict[str, str]:
    """The public half of a P-256 key, as a machine sends it to the key broker."""
    return {"alg": algorithm, **ec_members(key.handle.public_key(), "P-256")}


def ec_members(key: ec.EllipticCurvePublicKey, curve: str) -> dict[str, str]:
    """The members that make an EC key (RFC 7518 §6.2.1), in the order of its thumbprint."""
    numbers, length = key.public_numbers(), CURVES[curve][1]
    x, y = (encoded(value.to_bytes(length, "big")) for value in (numbers.x, numbers.y))
    return {"crv": curve, "kty": "EC", "x": x, "y": y}


def encoded(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(text: str) -> bytes:
    """Bytes of base64url without padding, in its one spelling; raises BadKey."""
    return _decoded(text)


def _decoded(text: str) -> bytes:
    over = len(text) % 4
    try:
        raw = text.encode("ascii").translate(_FROM_URL)
        data = binascii.a2b_base64(raw + b"=" * (-over % 4), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise BadKey("not base64url without padding") from error
    if over and raw[-1] not in _LAST[over]:
        raise BadKey("not the one spelling of its base64url")
    return data
