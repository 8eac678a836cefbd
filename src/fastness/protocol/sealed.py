"""Sealed secrets: text that lies in an ordinary Kubernetes Secret and means something only inside an attested guest.

    sealed.<header>.<payload>.<signature>          base64url without padding; after the prefix, a compact JWS

The payload is one of two forms. A `vault` secret names a resource, which the guest asks its broker for. An `envelope` secret
carries the data itself, encrypted with a key that is wrapped by a key which only the broker hands out.

* The header says ES256 and a `kid`: the address of the public key, or the name of a file in the guest. Nothing else is followed.
* Old texts with a made-up header and signature are recognised, and say of themselves that nobody signed them.

Signing, checking and opening are in `workloads.sealed_secrets`.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError
from fastness.kinds.kind import JsonObject
from fastness.protocol.kbs_path import UriError, parse_uri

PREFIX: Final = "sealed."
VERSION: Final = "0.1.0"
MAX_SEALED: Final = 1024 * 1024
PROVIDERS: Final = ("kbs", "aliyun", "aws", "ehsm")
WRAP: Final = "A256GCM"
# The exact words that guest tools put there before signing existed: anything else in their place must be a real signature.
UNSIGNED: Final = ("fakejwsheader", "fakesignature")
SIGNATURE_BYTES: Final = 64
IV_BYTES: Final = 12
_PART: Final = re.compile(r"[A-Za-z0-9_-]+\Z", re.ASCII)
_FILE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_SEALED, max_depth=8)
_VAULT: Final = frozenset({"version", "type", "provider", "name", "provider_settings", "annotations"})
_ENVELOPE: Final = frozenset(
    {"version", "type", "provider", "key_id", "encrypted_key", "encrypted_data", "wrap_type", "iv", "provider_settings",
     "annotations"}
)  # fmt: skip


class SealedError(FormatError):
    """A text that is no sealed secret."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Seal the secret again with `fastness secret seal`.")


@dataclass(frozen=True, slots=True)
class VaultSecret:
    """A secret that lies with a provider, by name."""

    provider: str
    name: str
    settings: JsonObject = field(default_factory=dict)
    annotations: JsonObject = field(default_factory=dict)

    def payload(self) -> JsonObject:
        """The JSON form."""
        return {
            "version": VERSION, "type": "vault", "provider": self.provider, "name": self.name,
            "provider_settings": self.settings, "annotations": self.annotations,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class EnvelopeSecret:
    """A secret that is carried along, encrypted; `iv` belongs to the data."""

    provider: str
    key_id: str
    encrypted_key: bytes
    encrypted_data: bytes
    iv: bytes
    settings: JsonObject = field(default_factory=dict)
    annotations: JsonObject = field(default_factory=dict)

    def payload(self) -> JsonObject:
        """The JSON form."""
        raw = {"encrypted_key": self.encrypted_key, "encrypted_data": self.encrypted_data, "iv": self.iv}
        return {
            "version": VERSION, "type": "envelope", "provider": self.provider, "key_id": self.key_id, "wrap_type": WRAP,
            **{name: base64.b64encode(value).decode() for name, value in raw.items()},
            "provider_settings": self.settings, "annotations": self.annotations,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SealedText:
    """A sealed secret, taken apart; `signed` is what the signature covers, `kid` is empty when nobody signed."""

    secret: VaultSecret | EnvelopeSecret
    kid: str
    signed: bytes
    signature: bytes


def parse_sealed(text: str) -> SealedText:
    """Take a sealed secret apart; raises SealedError. Says nothing about who signed it."""
    if len(text) > MAX_SEALED or not text.startswith(PREFIX):
        raise SealedError("not-sealed", "the text does not begin with `sealed.`, or is too long")
    parts = text.removeprefix(PREFIX).split(".")
    if len(parts) != 3 or not all(map(_PART.match, parts)):
        raise SealedError("not-sealed", "a sealed secret has three parts of base64url after its prefix")
    head, body, tail = parts
    secret = _secret(_object(body, "payload"))
    # Both words exactly: with one of them alone somebody cut a real signature off.
    if (head, tail) == UNSIGNED:
        return SealedText(secret, "", b"", b"")
    signature = _decoded(tail, "signature")
    if len(signature) != SIGNATURE_BYTES:
        raise SealedError("bad-signature", f"a signature has {SIGNATURE_BYTES} bytes", "signature")
    return SealedText(secret, _kid(_object(head, "header")), f"{head}.{body}".encode(), signature)


def is_key_name(kid: str) -> bool:
    """Whether a `kid` is the address of a resource, or the name of a file and no path."""
    if _FILE.match(kid):
        return True
    try:
        parse_uri(kid)
    except UriError:
        return False
    return True


def _kid(header: JsonObject) -> str:
    kid = header.get("kid")
    # As for tokens: a header that brings its own key, or names another algorithm, is refused and never followed.
    if header.get("alg") != "ES256" or not header.keys() <= {"alg", "kid", "typ"}:
        raise SealedError("bad-header", "the header says ES256 and a kid, and nothing else", "header")
    if not isinstance(kid, str) or not is_key_name(kid):
        raise SealedError("bad-header", "kid is neither the address of a resource nor the name of a file", "header.kid")
    return kid


def _secret(payload: JsonObject) -> VaultSecret | EnvelopeSecret:
    kind = payload.get("type")
    members = _VAULT if kind == "vault" else _ENVELOPE
    if kind not in ("vault", "envelope") or payload.get("version") != VERSION:
        raise SealedError("bad-payload", f"the payload is a vault or an envelope of version {VERSION}", "payload")
    if not payload.keys() <= members:
        raise SealedError("unknown-member", f"a {kind} has the members {', '.join(sorted(members))}", "payload")
    provider = payload.get("provider")
    if provider not in PROVIDERS:
        raise SealedError("bad-payload", f"the provider is one of {', '.join(PROVIDERS)}", "payload.provider")
    settings, notes = (_mapping(payload, name) for name in ("provider_settings", "annotations"))
    if kind == "vault":
        return VaultSecret(str(provider), _address(payload, "name", str(provider)), settings, notes)
    if payload.get("wrap_type") != WRAP:
        raise SealedError("bad-payload", f"the data is encrypted with {WRAP}", "payload.wrap_type")
    key, data, iv = (_base64(payload, name) for name in ("encrypted_key", "encrypted_data", "iv"))
    if len(iv) != IV_BYTES:
        raise SealedError("bad-payload", f"iv has {IV_BYTES} bytes", "payload.iv")
    return EnvelopeSecret(str(provider), _address(payload, "key_id", str(provider)), key, data, iv, settings, notes)


def _address(payload: JsonObject, name: str, provider: str) -> str:
    text = payload.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= 1024:
        raise SealedError("bad-payload", f"{name} is missing or no text", f"payload.{name}")
    if provider == "kbs":
        try:
            parse_uri(text)
        except UriError as error:
            raise SealedError("bad-payload", f"{name} is no address of a resource", f"payload.{name}") from error
    return text


def _mapping(payload: JsonObject, name: str) -> JsonObject:
    value = payload.get(name, {})
    if not isinstance(value, dict):
        raise SealedError("bad-payload", f"{name} is not an object", f"payload.{name}")
    return value


def _base64(payload: JsonObject, name: str) -> bytes:
    text = payload.get(name)
    try:
        return base64.b64decode(text.encode("ascii") if isinstance(text, str) else b"!", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise SealedError("bad-payload", f"{name} is not base64", f"payload.{name}") from error


def _object(part: str, where: str) -> JsonObject:
    try:
        value: Any = json.decode(_decoded(part, where), _LIMITS)
    except JsonError as error:
        raise SealedError("not-json", f"the {where} is not JSON", where) from error
    if not isinstance(value, dict):
        raise SealedError("not-json", f"the {where} is not an object", where)
    return value


def _decoded(part: str, where: str) -> bytes:
    try:
        return base64.b64decode(part.encode("ascii") + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise SealedError("not-base64", f"the {where} is not base64url", where) from error
