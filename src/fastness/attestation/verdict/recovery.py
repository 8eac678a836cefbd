"""Recovery of a disk: its key is given to whoever two approvers of break-glass named, for one volume of one Machine.

    annotation fastness.dev/recover-disk of the Machine:
    {"statement": {"cluster", "machine", "name", "volume", "reason", "membership", "key", "issued", "expires"},
     "agreed": [{"by": name, "signature": base64}, …]}

A machine that is gone for good (its board broke, its image counts no longer) never proves itself again, and nothing else
opens its disk. Where the pool allows it, two people can have that key instead.

* Off unless the pool says `disk.recovery: Approvers`, and approvers count (`approvers`).
* Two different people with two different keys signed the very statement. It names the key that the answer is sealed to, so
  whoever carries the file about, or reads the Machine, gets nothing.
* It says why. It ends four hours after it was issued at most, and is good once: a statement that is as old as the last one that
  was used counts no more, so that it does not open the key that came after it.
* A machine in quarantine, revoked or not approved yet is named as such in what they signed.

Whoever has the vault decides (`attestation.loops.disk_recovery`); nothing rests on admission or on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from fastness.attestation.verdict.breakglass import LONGEST, MOST_BYTES, NEEDED, SKEW, signers
from fastness.crypto.digests import sha256
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import PublicJwk, public_key
from fastness.disks.volumes import APPROVERS, pool_disk, volume_of
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata, rfc3339
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of

Object = Mapping[str, Any]
MOST_REASON: Final = 512
# Other bytes than those of overrides and changes of approvers: a signature over one must never be one over another.
_DOMAIN: Final = b"fastness disk recovery v1\n"
_TEXTS: Final = ("cluster", "expires", "issued", "machine", "membership", "name", "reason", "volume")
_MEMBERS: Final = frozenset({*_TEXTS, "key"})


class BadRecovery(Exception):
    """A statement that opens no disk; `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovery that two people signed, and to whom its answer is sealed."""

    volume: str
    reason: str
    issued: datetime
    expires: datetime
    by: tuple[str, ...]
    recipient: PublicJwk

    @property
    def people(self) -> str:
        """Who agreed, in words."""
        return " and ".join(self.by)


def statement_of(
    cluster: str, machine: Machine, volume: str, reason: str, key: Object, issued: datetime, expires: datetime
) -> JsonObject:
    """What is signed, as JSON; times in UTC."""
    return {
        "cluster": cluster, "machine": machine.metadata.uid, "name": machine.metadata.name, "volume": volume, "reason": reason,
        "membership": str(membership_of(machine)), "key": dict(key), "issued": issue_time(issued),
        "expires": rfc3339(expires),
    }  # fmt: skip


def issue_time(issued: datetime) -> str:
    """When a statement was made, to the microsecond: what is asked for anew within a second is another statement, and newer."""
    return f"{issued.astimezone(UTC).isoformat(timespec='microseconds')[:26]}Z"


def message(statement: Object) -> bytes:
    """The bytes that approvers sign."""
    return _DOMAIN + json.canonical(dict(statement))


def digest_of(text: str) -> str:
    """By which an annotation is known, on the Machine and on the record."""
    return str(sha256(text.encode()))


def concerned_volume(text: str, machine: Machine) -> str:
    """The volume that a statement is about, whether it counts or not; the first where it names none that the machine has."""
    try:
        statement = _document(text)["statement"]
    except BadRecovery:
        statement = None
    named = statement.get("volume") if isinstance(statement, dict) else None
    volumes = [entry.volume for entry in machine.status.disks]
    return named if named in volumes else next(iter(volumes), "")


def agreed_recovery(
    text: str, cluster: Object, machine: Machine, approvers: Mapping[str, str], now: datetime
) -> Recovery:
    """The recovery in the annotation of a Machine; raises BadRecovery. `approvers` are the keys of those who count, by name."""
    settings = pool_disk(cluster, machine.status.pool)
    if settings is None or settings.recovery != APPROVERS:
        raise BadRecovery("recovery-off", f"pool {machine.status.pool} gives keys of disks to nobody but machines")
    document = _document(text)
    statement, key = _statement(document["statement"])
    volume = _about(statement, cluster, machine)
    issued, expires = _times(statement, volume, now)
    membership = membership_of(machine)
    if membership is not Membership.APPROVED and statement["membership"] != str(membership):
        raise BadRecovery("membership-differs", f"the machine is {membership}, and that is not what was signed")
    by = signers(document["agreed"], message(document["statement"]), approvers)
    if len(by) < NEEDED:
        raise BadRecovery("not-agreed", f"{len(by)} of {NEEDED} approvers signed this statement")
    return Recovery(volume.volume, statement["reason"], issued, expires, tuple(sorted(by)), key)


def _document(text: str) -> JsonObject:
    try:
        document = json.decode(text.encode(), json.JsonLimits(max_bytes=MOST_BYTES, max_depth=6))
    except JsonError as error:
        raise BadRecovery("unreadable", "the annotation is not JSON of a sensible size") from error
    if not isinstance(document, dict) or set(document) != {"statement", "agreed"}:
        raise BadRecovery("unreadable", "the annotation is an object with statement and agreed")
    return document


def _statement(statement: Any) -> tuple[dict[str, str], PublicJwk]:
    # No member more: approvers sign all of it, and one that nobody here reads could mean to them that it limits the recovery.
    if not isinstance(statement, dict) or set(statement) != _MEMBERS:
        raise BadRecovery("unreadable", f"a statement has the members {', '.join(sorted(_MEMBERS))}")
    if not all(isinstance(statement[name], str) for name in _TEXTS) or not isinstance(statement["key"], dict):
        raise BadRecovery("unreadable", "the members of a statement are texts, and key is a key")
    if not statement["reason"].strip() or len(statement["reason"]) > MOST_REASON:
        raise BadRecovery("reason-missing", f"a statement says why, in {MOST_REASON} characters at most")
    try:
        return statement, public_key(statement["key"])
    except BadKey as error:
        raise BadRecovery("unreadable", "the key that the answer is sealed to is none") from error


def _about(statement: Mapping[str, str], cluster: Object, machine: Machine) -> VolumeStatus:
    """The volume that a statement is about; raises BadRecovery."""
    # The uids and not the names: a statement about what was deleted says nothing of what has its name now.
    if not metadata(cluster).get("uid") or statement["cluster"] != metadata(cluster).get("uid"):
        raise BadRecovery("other-cluster", "the statement names another ConfidentialCluster")
    if (statement["machine"], statement["name"]) != (machine.metadata.uid, machine.metadata.name):
        raise BadRecovery("other-machine", "the statement names another Machine")
    volume = volume_of(machine, statement["volume"])
    if volume is None:
        raise BadRecovery("no-such-disk", f"the machine has no volume {statement['volume'][:32]}")
    return volume


def _times(statement: Mapping[str, str], volume: VolumeStatus, now: datetime) -> tuple[datetime, datetime]:
    issued, expires = _moment(statement["issued"]), _moment(statement["expires"])
    # From when it was issued, which is signed: nobody prolongs it by editing anything.
    if not issued < expires <= issued + LONGEST:
        raise BadRecovery("too-long", f"a statement counts for at most {LONGEST.total_seconds() / 3600:g} hours")
    if not issued - SKEW <= now < expires:
        raise BadRecovery("expired", f"the statement counts from {statement['issued']} to {statement['expires']}")
    last = volume.recovery.issued if volume.recovery is not None else None
    if last is not None and issued <= datetime.fromisoformat(last):
        raise BadRecovery("statement-used", "this statement, or a later one, was used before: ask anew")
    return issued, expires


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRecovery("unreadable", f"{text[:64]} is no time") from error
    if moment.tzinfo is None:
        raise BadRecovery("unreadable", f"{text[:64]} has no zone")
    return moment
