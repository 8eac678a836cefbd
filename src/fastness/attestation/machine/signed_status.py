"""Whose word the status of a Machine is: signed by the part of the control plane that wrote it.

    status.signed {by, key, serial, signature}   Ed25519 over the Machine's uid, the serial, and all else that the status says

On Kubernetes whoever may patch `machines/status` writes there what it likes. So nobody decides by a status that is not signed:

* `content` is what a signature covers. It is the whole status but the signature itself, so a field that is added is covered.
* The uid ties it to one Machine: the status of another one, copied, is not signed for this one.
* The serial rises with every write. Whoever has looked at a later one refuses an earlier one that comes back
  (`attestation.live.statuses`
  remembers); without that memory an old proof counts no longer than `attestedUntil`, which is signed.
* Enrolment signs that a machine enrolled, never that it proved anything (`ENTITLED`).
* What is not believed is read as `disbelieved` gives it: a machine that never attested and has no key, pool or node. What bars
  others (its chip, its endorsement key, a revocation) stays, because taking a signature away must free nobody.

A person can vouch for a status as it stands (`vouched_digest`): after an upgrade from a version that signed nothing, or where
nobody remembers what it was before somebody wrote into it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.crypto.eddsa import Ed25519Signer, Ed25519Verifier
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, metadata
from fastness.kinds.trusted_execution.machine import SIGNERS

FIELD: Final = "signed"
REASON: Final = "StatusNotSigned"
BELIEVED: Final = "Believed"
ENROLMENT: Final = "enrolment"
_CONTEXT: Final = b"fastness.dev/machine-status/v1\n"
_BARS: Final = ("chip", "endorsement", "simulated")
_TOLD: Final = frozenset({FIELD, "standing", "standingReason"})

Object = Mapping[str, Any]


class Doubt(StrEnum):
    """Why a status is not believed."""

    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown-key"
    WRONG = "wrong-signature"
    NOT_ENTITLED = "not-entitled"
    ROLLED_BACK = "rolled-back"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a status says about who signed it."""

    by: str
    key: str
    serial: int
    value: bytes

    def to_json(self) -> JsonObject:
        """As the status carries it."""
        text = base64.b64encode(self.value).decode()
        return {"by": self.by, "key": self.key, "serial": self.serial, "signature": text}


def signature_of(machine: Object) -> Signature | None:
    """The signature that a Machine carries; None for none that could be one."""
    carried = _status_of(machine).get(FIELD)
    if not isinstance(carried, dict) or type(carried.get("serial")) is not int:
        return None
    if str(carried.get("by")) not in SIGNERS:
        return None
    try:
        value = base64.b64decode(str(carried.get("signature")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Signature(str(carried["by"]), str(carried.get("key")), carried["serial"], value)


def _status_of(machine: Object) -> Mapping[str, Any]:
    """A status that may be anything: whoever writes past the schema must not end those who read every Machine."""
    status = machine.get("status")
    return status if isinstance(status, Mapping) else {}


def _conditions_of(status: Mapping[str, Any]) -> list[JsonObject]:
    conditions = status.get("conditions")
    return [entry for entry in conditions if isinstance(entry, dict)] if isinstance(conditions, list) else []


def content(uid: str, status: Object, by: str, serial: int) -> bytes:
    """What a signature covers: everything that the status says, for one Machine, by one part, at one place in the order."""
    covered = {name: value for name, value in status.items() if name != FIELD}
    return _CONTEXT + json.canonical([uid, by, serial, covered])


def sign(uid: str, status: Object, by: str, serial: int, signer: Ed25519Signer) -> Signature:
    """The signature of a part over a status."""
    return Signature(by, signer.verifier.id, serial, signer.sign(content(uid, status, by, serial)))


def doubt_about(machine: Object, signature: Signature, verifier: Ed25519Verifier | None) -> Doubt | None:
    """Why a signed status is not believed; `verifier` is the key that the signature names, if that part has it."""
    status = machine["status"]
    if verifier is None:
        return Doubt.UNKNOWN_KEY
    if not verifier.signed(signature.value, content(uid_of(machine), status, signature.by, signature.serial)):
        return Doubt.WRONG
    return Doubt.NOT_ENTITLED if signature.by == ENROLMENT and _tells_of_a_proof(machine) else None


def _tells_of_a_proof(machine: Object) -> bool:
    status = machine["status"]
    attested = (condition(machine, "Attested") or {}).get("status") == "True"
    return attested or bool(status.get("lastAttested") or status.get("overriddenUntil"))


def disbelieved(machine: Object, doubt: Doubt) -> JsonObject:
    """The Machine as everybody reads it whose status is not believed: it never attested, and bars what it barred."""
    status = _status_of(machine)
    revoked = [entry for entry in _conditions_of(status) if entry.get("type") == "Revoked"]
    doubted = {"type": BELIEVED, "status": "False", "reason": REASON, "message": message(doubt)}
    bars = {name: status[name] for name in _BARS if name in status}
    reading = {**bars, "conditions": [*revoked, doubted], "standing": "Waiting", "standingReason": REASON}
    return {**machine, "status": reading}


def is_disbelieved(machine: Object) -> bool:
    """Whether this is a Machine as `disbelieved` gives it."""
    return (condition(machine, BELIEVED) or {}).get("status") == "False"


def message(doubt: Doubt) -> str:
    """What is wrong, for people, with what they can do."""
    return (
        f"the control plane did not write this status ({doubt}): the machine counts as never attested; "
        "see `fastness machine vouch`"
    )


def vouched_digest(machine: Object) -> str:
    """What a person vouches for: this Machine's status, without what we tell about our doubt."""
    status = _status_of(machine)
    covered: JsonObject = {name: value for name, value in status.items() if name not in _TOLD}
    if "conditions" in covered:
        covered["conditions"] = [entry for entry in _conditions_of(status) if entry.get("type") != BELIEVED]
    return str(sha256(_CONTEXT + json.canonical([uid_of(machine), covered])))


def uid_of(machine: Object) -> str:
    """The uid of a Machine, which a signature is tied to."""
    return str(metadata(machine).get("uid") or "")
