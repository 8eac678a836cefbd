"""The messages of the KBS protocol, version 0.4.0, as guests in the field send them.

    POST auth    {"version", "tee", "extra-params"}                     → {"nonce", "extra-params"}
    POST attest  {"init-data"?, "runtime-data", "tee-evidence"}         → {"token"}

What a machine must put into its evidence is made here too, because it is a matter of bytes: the runtime data in canonical JSON
(RFC 8785), its digest, and the field of each TEE that carries the digest.

* Parsers are total: a value or `KbsError`, within limits, without repeated or unknown members. A member that nobody reads is one
  that its writer expected to matter.
* The key of the TEE is a closed shape per type. RSA1_5, private members and curves that cannot be sealed to are refused.
* All TEE names of the protocol are known; which of them can be verified is decided behind the door.

`release.handshake` says what the messages mean.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError
from fastness.kinds.kind import JsonObject

# Trustee demands this one to the letter, too: the protocol has no negotiation.
VERSIONS: Final = ("0.4.0",)
TEES: Final = (
    "az-snp-vtpm", "az-tdx-vtpm", "snp", "sgx", "tdx", "cca", "csv", "se", "tpm", "nvidia", "hygondcu", "nvidia-dpu",
    "sample", "sampledevice",
)  # fmt: skip

MAX_AUTH_BYTES: Final = 8 * 1024
# The limit of Trustee, so that what a guest can send there it can send here.
MAX_ATTEST_BYTES: Final = 2 * 1024 * 1024
INIT_DATA_FORMAT: Final = "toml"
MAX_INIT_DATA: Final = 128 * 1024
MAX_NONCE: Final = 128
MAX_ADDITIONAL: Final = 1024 * 1024
DIGEST_BYTES: Final = 48

_AUTH_LIMITS: Final = json.JsonLimits(max_bytes=MAX_AUTH_BYTES, max_depth=8)
_ATTEST_LIMITS: Final = json.JsonLimits(max_bytes=MAX_ATTEST_BYTES, max_depth=32)
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]{1,1400}\Z", re.ASCII)
# REPORT_DATA of SNP, TDX, SGX and CCA has 64 bytes, so the digest is filled up; qualifying data of a TPM is cut to 32.
_FIELD_BYTES: Final = {"tdx": 64, "snp": 64, "sgx": 64, "cca": 64, "tpm": 32, "nvidia": 32}
_KEYS: Final[dict[str, tuple[str, ...]]] = {"EC": ("alg", "crv", "kty", "x", "y"), "RSA": ("alg", "e", "kty", "n")}
# RSA1_5, which Trustee still takes, is left out: its padding can be probed (Bleichenbacher); RFC 8017 §7.2 advises against it.
_ALGORITHMS: Final = {"EC": "ECDH-ES+A256KW", "RSA": "RSA-OAEP-256"}
_CURVES: Final = ("P-256", "P-521")


class KbsError(FormatError):
    """A message that is not of this protocol."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Speak version 0.4.0 of the KBS protocol.")


@dataclass(frozen=True, slots=True)
class KbsRequest:
    """What opens a handshake."""

    version: str
    tee: str


@dataclass(frozen=True, slots=True)
class KbsAttestation:
    """What answers a challenge. `additional` is JSON text as it came: its bytes are what the primary evidence covers."""

    nonce: str
    tee_pubkey: JsonObject
    evidence: JsonObject
    additional: str = ""
    init_data: tuple[str, str] | None = None

    def runtime(self) -> bytes:
        """The runtime data that the primary evidence must carry."""
        return runtime_data(self.nonce, self.tee_pubkey, self.additional)


def parse_request(data: bytes) -> KbsRequest:
    """Read the body of `auth`; raises KbsError."""
    value = _object(data, _AUTH_LIMITS)
    _known(value, ("version", "tee", "extra-params"), "")
    version, tee = _text(value, "version", 64), _text(value, "tee", 64)
    if tee not in TEES:
        raise KbsError("unknown-tee", "this is no TEE of the protocol", "tee", f"Known are {', '.join(TEES)}.")
    return KbsRequest(version, tee)


def parse_attestation(data: bytes) -> KbsAttestation:
    """Read the body of `attest`; raises KbsError."""
    value = _object(data, _ATTEST_LIMITS)
    _known(value, ("init-data", "runtime-data", "tee-evidence"), "")
    runtime = _member(value, "runtime-data")
    _known(runtime, ("nonce", "tee-pubkey"), "runtime-data")
    evidence = _member(value, "tee-evidence")
    _known(evidence, ("primary_evidence", "additional_evidence"), "tee-evidence")
    primary = evidence.get("primary_evidence")
    if not isinstance(primary, dict):
        raise KbsError("bad-message", "the primary evidence is missing or not an object", "tee-evidence")
    return KbsAttestation(
        nonce=_text(runtime, "nonce", MAX_NONCE),
        tee_pubkey=tee_pubkey(runtime.get("tee-pubkey")),
        evidence=primary,
        additional=_text(evidence, "additional_evidence", MAX_ADDITIONAL, default=""),
        init_data=_init_data(value.get("init-data")),
    )


def tee_pubkey(value: Any) -> JsonObject:
    """The public key of a TEE with exactly the members of its type; raises KbsError."""
    where = "runtime-data.tee-pubkey"
    if not isinstance(value, dict):
        raise KbsError("bad-key", "the key of the TEE is missing or not an object", where)
    kind = value.get("kty")
    members = _KEYS.get(kind) if isinstance(kind, str) else None
    if members is None or not isinstance(kind, str):
        raise KbsError("bad-key", "only EC and RSA keys can be sealed to", where, "Use an EC key on P-256.")
    # Refused and not dropped: the key is hashed into the evidence with its members, so both sides must mean the same ones.
    if set(value) != set(members):
        raise KbsError("bad-key", f"a key of type {kind} has the members {', '.join(members)} and no others", where)
    if value["alg"] != _ALGORITHMS[kind]:
        raise KbsError("bad-key", f"a key of type {kind} is used with {_ALGORITHMS[kind]} only", where)
    if kind == "EC" and value["crv"] not in _CURVES:
        raise KbsError("bad-key", f"the curve is one of {', '.join(_CURVES)}", where)
    for name in ("x", "y") if kind == "EC" else ("e", "n"):
        if not isinstance(value[name], str) or _BASE64URL.match(value[name]) is None:
            raise KbsError("bad-key", f"{name} of the key is not base64url without padding", where)
    return value


def runtime_data(nonce: str, tee_pubkey: JsonObject, additional: str | None = "") -> bytes:
    """Canonical runtime data; None for `additional` gives the form that evidence of a device carries."""
    # All that the answer must be bound to is in here: the challenge (nothing is replayed), the key that secrets are sealed to
    # (nobody in between opens them), and the evidence of devices (none is exchanged): pitfalls 12 and 15.
    value: JsonObject = {"nonce": nonce, "tee-pubkey": tee_pubkey}
    if additional is not None:
        value["additional-evidence"] = additional
    return json.canonical(value)  # strings under ASCII names only, for which this equals RFC 8785


def binding(tee: str, canonical: bytes) -> bytes:
    """The bytes that the evidence of a TEE must carry for runtime data: the digest, padded or cut to the field."""
    if tee == "se":
        return hashlib.sha512(canonical).digest()
    # SHA-384 for all of these, cut where the field is shorter: 256 bits of it are left in a TPM quote.
    digest = hashlib.sha384(canonical).digest()
    length = _FIELD_BYTES.get(tee, DIGEST_BYTES)
    return digest[:length].ljust(length, b"\0")


def challenge_message(nonce: str) -> bytes:
    """The answer to `auth`."""
    return json.encode({"nonce": nonce, "extra-params": ""})


def request_message(tee: str, version: str = VERSIONS[0]) -> bytes:
    """The body of `auth`, as a machine sends it."""
    return json.encode({"version": version, "tee": tee, "extra-params": ""})


def attestation_message(answer: KbsAttestation) -> bytes:
    """The body of `attest`, as a machine sends it."""
    value: JsonObject = {
        "runtime-data": {"nonce": answer.nonce, "tee-pubkey": answer.tee_pubkey},
        "tee-evidence": {"primary_evidence": answer.evidence, "additional_evidence": answer.additional},
    }
    if answer.init_data is not None:
        value["init-data"] = {"format": answer.init_data[0], "body": answer.init_data[1]}
    return json.encode(value)


def token_message(token: str) -> bytes:
    """The answer to `attest`."""
    return json.encode({"token": token})


def _object(data: bytes, limits: json.JsonLimits) -> JsonObject:
    try:
        value, repeated = json.decode_reporting_duplicates(data, limits)
    except JsonError as error:
        raise KbsError(error.code, error.message) from error
    if repeated:
        raise KbsError("repeated-member", "the message says a member twice", repeated[0])
    if not isinstance(value, dict):
        raise KbsError("bad-message", "the message is not a JSON object")
    return value


def _known(value: JsonObject, names: tuple[str, ...], where: str) -> None:
    if not value.keys() <= set(names):
        raise KbsError("unknown-member", f"the members are {', '.join(names)} and no others", where)


def _member(value: JsonObject, name: str) -> JsonObject:
    member = value.get(name)
    if not isinstance(member, dict):
        raise KbsError("bad-message", f"{name} is missing or not an object", name)
    return member


def _text(value: JsonObject, name: str, limit: int, default: str | None = None) -> str:
    text = value.get(name, default)
    if not isinstance(text, str) or len(text) > limit or (default is None and not text):
        raise KbsError("bad-message", f"{name} is missing, too long or not text", name)
    return text


def _init_data(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"format", "body"}:
        raise KbsError("bad-init-data", "init-data has the members format and body", "init-data")
    if value["format"] != INIT_DATA_FORMAT:
        raise KbsError("bad-init-data", "the format of init-data is toml", "init-data.format")
    return INIT_DATA_FORMAT, _text(value, "body", MAX_INIT_DATA)
