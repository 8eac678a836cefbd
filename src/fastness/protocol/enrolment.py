"""The messages of enrolment, as they go over the wire.

    POST /v1/enrol            {"tee": "tpm", "ek_certificates": [b64 DER…], "ak_public": b64 TPM2B_PUBLIC, "pool"?, "ek_public"?}
                              {"tee": "snp"|"tdx", "key": <JWK P-256>, "pool"?}
                           → {"enrolment": text, "credential": {"credential": b64, "secret": b64}}     for a TPM
                           → {"enrolment": text, "challenge": b64}                                     for a guest key
    POST /v1/enrol/complete   {"enrolment": text, "activated": b64}  or  {"enrolment": text, "signature": b64 r‖s}
                           → {"machine": uid, "name", "nodeName", "pool", "state": "Approved"|"Pending",
                              "doors"?: {"broker": url, "gate": url, "via": "Gate"|"Broker"}}
    GET /v1/doors          → {"doors"?: …}, the same, for a machine that was off while a door moved

* Total and strict: a member that is not in this table is an error that names the closest known one.
* Every text has a bound before it is decoded; base64 is the standard alphabet with padding.
* What a guest key signs is `signed_message(challenge)`: a prefix keeps the signature from meaning anything elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError

MAX_BODY: Final = 64 * 1024
# A chain has two or three links; each certificate costs as much to read as a signature.
MAX_CERTIFICATES: Final = 8
MAX_CERTIFICATE: Final = 8 * 1024
MAX_PUBLIC: Final = 2 * 1024
MAX_ENROLMENT: Final = 16 * 1024
MAX_ACTIVATED: Final = 64
SIGNATURE_BYTES: Final = 64
DOORS: Final = "/v1/doors"
TPM: Final = "tpm"
GUEST_KEY_TEES: Final = ("snp", "tdx")
SIGNED_PREFIX: Final = b"fastness enrolment v1\x00"

_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BODY, max_depth=4)
# `\Z` and not `$`, which would let a line break through into names of objects and lines of logs.
_POOL: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z", re.ASCII)
_COORDINATE: Final = re.compile(r"[A-Za-z0-9_-]{43}\Z", re.ASCII)
_ENROLMENT: Final = re.compile(r"[A-Za-z0-9._~=-]+\Z", re.ASCII)
_TPM_MEMBERS: Final = frozenset({"tee", "pool", "ek_certificates", "ek_public", "ak_public"})
_GUEST_MEMBERS: Final = frozenset({"tee", "pool", "key"})


class EnrolmentFormatError(FormatError):
    """A message of enrolment that cannot be understood."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "send exactly the members of the message, each in its form")


@dataclass(frozen=True, slots=True)
class TpmRequest:
    """A machine with a TPM asks. Certificates and public areas are bytes that nobody has looked into yet."""

    pool: str
    ek_certificates: tuple[bytes, ...]
    ek_public: bytes
    ak_public: bytes
    tee: str = TPM


@dataclass(frozen=True, slots=True)
class GuestRequest:
    """A machine with a guest key asks; the key is x‖y of a point that nobody has checked yet."""

    tee: str
    pool: str
    key: bytes


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to what enrolment asked; exactly one of the two proofs is there."""

    enrolment: str
    activated: bytes = b""
    signature: bytes = b""


Request = TpmRequest | GuestRequest


def signed_message(challenge: bytes) -> bytes:
    """What a guest key signs to prove that it is there."""
    return SIGNED_PREFIX + challenge


def parse_request(data: bytes) -> Request:
    """Read the first message; raises EnrolmentFormatError."""
    value = _object(data)
    tee = value.get("tee")
    if tee == TPM:
        # By the kind that is claimed: a guest that sends `ek_certificates` along believes that they are looked at.
        _known(value, _TPM_MEMBERS)
        return TpmRequest(
            _pool(value),
            _certificates(value.get("ek_certificates", [])),
            _bytes(value, "ek_public", MAX_PUBLIC) if "ek_public" in value else b"",
            _bytes(value, "ak_public", MAX_PUBLIC),
        )
    if tee in GUEST_KEY_TEES:
        _known(value, _GUEST_MEMBERS)
        return GuestRequest(str(tee), _pool(value), _point(value.get("key")))
    kinds = ", ".join((TPM, *GUEST_KEY_TEES))
    raise EnrolmentFormatError("unknown-tee", f"tee must be one of {kinds}", "tee")


def parse_completion(data: bytes) -> Completion:
    """Read the second message; raises EnrolmentFormatError."""
    value = _object(data)
    _known(value, {"enrolment", "activated", "signature"})
    enrolment = value.get("enrolment")
    if not isinstance(enrolment, str) or len(enrolment) > MAX_ENROLMENT or _ENROLMENT.match(enrolment) is None:
        raise EnrolmentFormatError("bad-member", "enrolment is the text that was answered", "enrolment")
    # Exactly one: with both, the proof of the weaker kind might be taken for that of the stronger.
    if ("activated" in value) == ("signature" in value):
        raise EnrolmentFormatError("bad-member", "send either activated or signature", "activated")
    if "activated" in value:
        return Completion(enrolment, activated=_bytes(value, "activated", MAX_ACTIVATED))
    signature = _bytes(value, "signature", SIGNATURE_BYTES)
    if len(signature) != SIGNATURE_BYTES:
        raise EnrolmentFormatError("bad-member", f"a signature has {SIGNATURE_BYTES} bytes", "signature")
    return Completion(enrolment, signature=signature)


def jwk_of(point: bytes) -> dict[str, str]:
    """The JWK of a P-256 point x‖y."""
    x, y = (base64.urlsafe_b64encode(half).decode().rstrip("=") for half in (point[:32], point[32:]))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def text(data: bytes) -> str:
    """Bytes as messages carry them."""
    return base64.b64encode(data).decode()


def decoded(value: Any, name: str, most: int) -> bytes:
    """Bytes of a member; raises EnrolmentFormatError."""
    # The text is bounded before it is decoded, and the bytes once more after: padding hides up to two of them.
    if not isinstance(value, str) or not value or len(value) > (most + 2) // 3 * 4:
        raise EnrolmentFormatError("bad-member", f"{name} is base64 of at most {most} bytes", name)
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise EnrolmentFormatError("bad-base64", f"{name} is not standard base64", name) from error
    if len(data) > most:
        raise EnrolmentFormatError("bad-member", f"{name} has at most {most} bytes", name)
    return data


def _object(data: bytes) -> dict[str, Any]:
    try:
        value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
    except JsonError as error:
        raise EnrolmentFormatError(error.code, error.message, hint=error.hint) from error
    if not isinstance(value, dict):
        raise EnrolmentFormatError("bad-message", "the body is a JSON object")
    if repeated:
        raise EnrolmentFormatError("repeated-member", f"the body says {repeated[0][:64]} twice", repeated[0])
    return value


def _known(value: Mapping[str, Any], members: Collection[str]) -> None:
    strange = sorted(set(value) - set(members))
    if strange:
        near = difflib.get_close_matches(strange[0], members, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(members))}"
        raise EnrolmentFormatError("unknown-member", f"unknown member {strange[0][:64]!r}: {hint}", strange[0], hint)


def _pool(value: Mapping[str, Any]) -> str:
    pool = value.get("pool", "")
    if pool != "" and (not isinstance(pool, str) or _POOL.match(pool) is None):
        raise EnrolmentFormatError("bad-member", "pool is the name of a pool", "pool")
    return str(pool)


def _certificates(value: Any) -> tuple[bytes, ...]:
    if not isinstance(value, list) or len(value) > MAX_CERTIFICATES:
        raise EnrolmentFormatError(
            "bad-member", f"ek_certificates is a list of at most {MAX_CERTIFICATES}", "ek_certificates"
        )
    return tuple(decoded(entry, f"ek_certificates[{index}]", MAX_CERTIFICATE) for index, entry in enumerate(value))


def _bytes(value: Mapping[str, Any], name: str, most: int) -> bytes:
    return decoded(value.get(name), name, most)


def _point(key: Any) -> bytes:
    if not isinstance(key, dict) or key.get("kty") != "EC" or key.get("crv") != "P-256":
        raise EnrolmentFormatError("bad-key", "key is a JWK of type EC on P-256", "key")
    _known(key, {"kty", "crv", "x", "y"})
    return _coordinate(key, "x") + _coordinate(key, "y")


def _coordinate(key: Mapping[str, Any], name: str) -> bytes:
    value = key.get(name)
    if not isinstance(value, str) or _COORDINATE.match(value) is None:
        raise EnrolmentFormatError("bad-key", f"key.{name} is 32 bytes in base64url without padding", f"key.{name}")
    data = base64.urlsafe_b64decode(value + "=")
    # The last character of 43 has unused bits: set ones would give one key several texts (RFC 4648 §3.5).
    if base64.urlsafe_b64encode(data).decode().rstrip("=") != value:
        raise EnrolmentFormatError("bad-key", f"key.{name} is not canonical base64url", f"key.{name}")
    return data
