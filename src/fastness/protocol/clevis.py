"""What the Clevis pin `trustee` of trusted-execution clusters and the cluster say to each other.

    GET /ignition-clevis-pin-trustee       → `pin_config`: Ignition 3.6 with `storage.luks` and the pin's own configuration
    PUT <registration url>  {"public_key" or "attestation_key": PEM or base64 DER, "uuid"?}   → 201 {"status": "success"}
    GET /kbs/v0/resource/default/<id>/root → {"key_type": "oct", "key": <32 characters>} (`disks.keyring.pin_answer`)

The pin keeps servers and path in the token of the LUKS header, and asks there at every boot. It sends nothing of ours along: no
ticket and no proof of its TPM. What ties its key to a ticket is the registration URL, which has the invitation in it.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.protocol.enrolment import EnrolmentFormatError
from fastness.protocol.kbs_path import pin_key

# An RSA key of 4096 bits takes 800 characters.
MAX_BODY: Final = 8 * 1024
REGISTER: Final = "register-ak"
IGNITION: Final = "3.6.0"
# The first spec that takes any name for a pin: earlier ones know tpm2, tang and sss alone.
PIN: Final = "trustee"
ROOT: Final = "root"
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BODY, max_depth=2)
_KEYS: Final = ("public_key", "attestation_key")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registration:
    """A key that the pin registers: bytes that nobody has looked into yet, and the id that it was told, if it says it."""

    key: bytes
    uuid: str = ""


def parse_registration(data: bytes) -> Registration:
    """Read what the pin sends; raises EnrolmentFormatError."""
    try:
        value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
    except JsonError as error:
        raise EnrolmentFormatError(error.code, error.message, hint=error.hint) from error
    if not isinstance(value, dict) or repeated:
        raise EnrolmentFormatError("bad-message", "the body is a JSON object that says each member once")
    strange = sorted(set(value) - {*_KEYS, "uuid"})
    if strange:
        raise EnrolmentFormatError("unknown-member", f"unknown member {strange[0][:64]!r}", strange[0])
    named = [name for name in _KEYS if name in value]
    # One of the two: which of two keys is meant must not depend on who reads.
    if len(named) != 1:
        raise EnrolmentFormatError("bad-member", "send public_key, once", "public_key")
    uuid = value.get("uuid") or ""
    if not isinstance(uuid, str) or (uuid and _UUID.match(uuid) is None):
        raise EnrolmentFormatError("bad-member", "uuid is the id that the config named", "uuid")
    return Registration(_key(value[named[0]], named[0]), uuid)


def _key(value: Any, name: str) -> bytes:
    if not isinstance(value, str) or not value or not value.isascii():
        raise EnrolmentFormatError("bad-member", f"{name} is a public key as PEM, or base64 of its DER", name)
    if value.lstrip().startswith("-----BEGIN"):
        return value.encode()
    try:
        return base64.b64decode(value.encode(), validate=True)
    except binascii.Error as error:
        raise EnrolmentFormatError("bad-base64", f"{name} is not standard base64", name) from error


def pin_config(identity: str, broker: str, registration: str, authorities: str) -> JsonObject:
    """What Ignition gets: a root that is encrypted anew, with a passphrase that the pin wraps under the key of this machine."""
    pin: JsonObject = {
        "servers": [{"url": broker, "cert": authorities}],
        "path": str(pin_key(identity)),
        "attestation_key": {"registration": {"url": registration, "uuid": identity, "cert": authorities}},
    }
    luks: JsonObject = {
        "name": ROOT, "device": f"/dev/disk/by-partlabel/{ROOT}", "label": ROOT, "wipeVolume": True,
        "clevis": {"custom": {"pin": PIN, "needsNetwork": True, "config": json.encode(pin).decode()}},
    }  # fmt: skip
    filesystem: JsonObject = {
        "device": f"/dev/mapper/{ROOT}", "format": "ext4", "label": ROOT, "wipeFilesystem": True,
    }  # fmt: skip
    return {"ignition": {"version": IGNITION}, "storage": {"luks": [luks], "filesystems": [filesystem]}}
