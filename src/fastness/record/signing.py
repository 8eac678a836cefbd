"""Whose a batch is: signed by the key of its door, under that door's name, and not of a time that is over.

    door "gate-5f2c…"  →  role "gate"  →  the keys that are registered for that role

Whoever may create an AuditBatch could otherwise write into the record in the name of another door, or put an entry into the past.
An entry is not older than the last one of its door. That says nothing about a door that is new or has been silent for long, and
whoever stole the key of a role can name a door as it likes. So an entry is not older either than `LATEST` before the API server
took the batch, by that server's clock: doors write before anything leaves, so between the two lie moments and a wrong clock.

A batch that is refused here never gets into the record. What is in its place is an entry of the sequencer that says so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from fastness.crypto.eddsa import Ed25519Signer, Ed25519Verifier
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.record.order import Head

Object = Mapping[str, Any]
Registered = Mapping[str, Mapping[str, Ed25519Verifier]]
"""The keys of each role, by their ids."""
LATEST: Final = timedelta(hours=1)
# The same keys sign statuses of Machines: with another first line neither passes for the other.
_CONTEXT: Final = b"fastness.dev/audit-batch/v1\n"


class BatchProblem(StrEnum):
    """Why a batch does not count."""

    WRONG_NAME = "wrong-name"
    UNKNOWN_DOOR = "unknown-door"
    UNKNOWN_KEY = "unknown-key"
    BAD_SIGNATURE = "bad-signature"
    BACKDATED = "backdated"


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """A batch that does not count, by its name, with the door that it claims to be of."""

    name: str
    door: str
    problem: BatchProblem


def batch_name(door: str, sequence: int) -> str:
    """The name of a door's batch of a number: two of one number cannot be there at the same time."""
    return f"{door}-{sequence:012d}"


def role_of(door: str) -> str:
    """The role that the name of a door claims."""
    # From the right: the random part of a door's name has no dash, a role may have.
    return door.rpartition("-")[0]


def signed(spec: JsonObject, signer: Ed25519Signer) -> JsonObject:
    """The spec of a batch with the signature of its door."""
    named = {**spec, "key": signer.verifier.id}
    return {**named, "signature": base64.b64encode(signer.sign(_message(named))).decode()}


def key_of(batch: Object) -> tuple[str, str]:
    """The role and the id of the key that a batch claims to be signed with."""
    spec = batch["spec"]
    return role_of(str(spec["door"])), str(spec.get("key", ""))


def admitted(
    heads: Mapping[str, Head], batches: Iterable[Object], registered: Registered
) -> tuple[list[Object], list[RefusedBatch]]:
    """Tell batches, given in their order, that count from those that do not."""
    latest = {door: head.time for door, head in heads.items()}
    good, refused = [], []
    for batch in batches:
        spec, name = batch["spec"], str(batch["metadata"]["name"])
        problem = (
            _problem(name, spec, registered)
            or _in_the_past(latest.get(spec["door"], ""), spec["entries"])
            or _long_ago(str(batch["metadata"].get("creationTimestamp") or ""), spec["entries"][0])
        )
        if problem is not None:
            refused.append(RefusedBatch(name, str(spec["door"]), problem))
            continue
        # Only of batches that count: a refused one must not move the time on and make the door's next batch late.
        latest[spec["door"]] = str(spec["entries"][-1]["time"])
        good.append(batch)
    return good, refused


def is_genuine(batch: Object, registered: Registered) -> bool:
    """Whether the key of its door signed a batch under its name; nothing is said about its time."""
    return _problem(str(batch["metadata"]["name"]), batch["spec"], registered) is None


def _problem(name: str, spec: Object, registered: Registered) -> BatchProblem | None:
    # The signature covers the spec and not the object's name: a copy under another name is not the door's.
    if name != batch_name(spec["door"], spec["sequence"]):
        return BatchProblem.WRONG_NAME
    # Only the keys of the role in the name: the key of a gate that was taken over signs nothing as the broker.
    keys = registered.get(role_of(spec["door"]))
    if not keys:
        return BatchProblem.UNKNOWN_DOOR
    key = keys.get(str(spec.get("key", "")))
    if key is None:
        return BatchProblem.UNKNOWN_KEY
    try:
        signature = base64.b64decode(str(spec.get("signature", "")), validate=True)
    except binascii.Error:
        return BatchProblem.BAD_SIGNATURE
    # Everything else, also members that this version does not know: what is not signed must not be in an entry.
    unsigned = {field: value for field, value in spec.items() if field != "signature"}
    return None if key.signed(signature, _message(unsigned)) else BatchProblem.BAD_SIGNATURE


def _in_the_past(latest: str, entries: Iterable[Object]) -> BatchProblem | None:
    """A door never writes an entry of an earlier time than its last one, also when its clock was set back."""
    try:
        last = datetime.fromisoformat(latest) if latest else None
        for entry in entries:
            moment = datetime.fromisoformat(str(entry["time"]))
            if last is not None and moment < last:
                return BatchProblem.BACKDATED
            last = moment
    except (ValueError, TypeError):
        return BatchProblem.BACKDATED
    return None


def _long_ago(taken: str, first: Object) -> BatchProblem | None:
    """Whether a batch, whose entries are in their order, begins long before the API server took it."""
    try:
        # By the API server's clock and not ours: a sequencer that was away for a day must not call the batches of that day late.
        late = datetime.fromisoformat(taken) - datetime.fromisoformat(str(first["time"])) > LATEST
    except (ValueError, TypeError):
        return BatchProblem.BACKDATED
    return BatchProblem.BACKDATED if late else None


def _message(spec: Object) -> bytes:
    return _CONTEXT + json.canonical(spec)
