"""Break-glass: an override that two named people sign, for one pool, for a few hours at most.

    annotation fastness.dev/break-glass of the ConfidentialCluster:
    {"statement": {"cluster": uid, "pool", "reason", "issued", "expires"}, "agreed": [{"by": name, "signature": base64}, …]}

When what is broken is attestation itself (values published wrongly, a policy that refuses everybody) machines that are what they
should be cannot come up. With an override, authentic and fresh evidence of an enrolled, approved machine of that pool is accepted
although policy or values do not affirm it. Nothing else is overridden: a bad signature, a debug mode, old firmware, a distrust, a
quarantine and the wrong kind of cluster refuse as ever. The trust vector stays as it is, so policies of resources that ask for
affirmed machines still say no: an override gives configuration and a place in the cluster, no secrets.

* Off unless the cluster names approvers, and they count (`approvers`). Two different people with two different keys must have
  signed the very statement; who may write the annotation is not enough. Every verifier checks that itself, so nothing rests on
  admission.
* It ends by itself, at most four hours after it was issued, or when the annotation goes; only a new statement prolongs it.
* It says so everywhere: the verdict, the Machine (`Attested` for the reason BreakGlass), the cluster's condition `Overridden`,
  the record.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.errors import BadKey
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata

Object = Mapping[str, Any]
ANNOTATION: Final = "fastness.dev/break-glass"
LONGEST: Final = timedelta(hours=4)
# The clock of whoever signs may be ahead of ours.
SKEW: Final = timedelta(minutes=5)
CODE: Final = "break-glass"
REASON: Final = "BreakGlass"
# Two, so that one stolen or coerced key opens nothing (decision 14).
NEEDED: Final = 2
# Every verifier reads the annotation for every machine, and whoever may edit the cluster writes it.
MOST_BYTES: Final = 8192
# Approvers may use their keys elsewhere: what they signed there must not be an override here.
_DOMAIN: Final = b"fastness break-glass v1\n"
_MEMBERS: Final = ("cluster", "expires", "issued", "pool", "reason")


class BadOverride(Exception):
    """An override that counts for nothing; `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Override:
    """An override that two people signed."""

    pool: str
    reason: str
    issued: datetime
    expires: datetime
    by: tuple[str, ...]

    def live(self, now: datetime) -> bool:
        """Whether it counts at a time."""
        return self.issued - SKEW <= now < self.expires

    @property
    def line(self) -> str:
        """Pool, approvers and end in one line, for verdicts and conditions."""
        return f"pool {self.pool}, agreed by {' and '.join(self.by)}, until {self.expires:%Y-%m-%dT%H:%M:%SZ}"


def statement_of(cluster: str, pool: str, reason: str, issued: datetime, expires: datetime) -> JsonObject:
    """What is signed, as JSON; times in UTC."""
    times = {"issued": f"{issued:%Y-%m-%dT%H:%M:%SZ}", "expires": f"{expires:%Y-%m-%dT%H:%M:%SZ}"}
    return {"cluster": cluster, "pool": pool, "reason": reason, **times}


def message(statement: Object) -> bytes:
    """The bytes that approvers sign."""
    return _DOMAIN + json.canonical(dict(statement))


def agreed_override(cluster: Object, approvers: Mapping[str, str]) -> Override | None:
    """The override in the annotation of a ConfidentialCluster, whatever the time; None without one; raises BadOverride.

    `approvers` are the keys of those who count, by name: who decides takes them from their appointments, never from the object
    that carries the override.
    """
    text = annotations_of(cluster).get(ANNOTATION)
    if text is None:
        return None
    document = _document(text)
    statement = _statement(document.get("statement"))
    # The uid and not the name: a statement of a cluster that was deleted says nothing of one that has its name now.
    if not metadata(cluster).get("uid") or statement["cluster"] != metadata(cluster).get("uid"):
        raise BadOverride("other-cluster", "the statement names another ConfidentialCluster")
    issued, expires = _moment(statement["issued"]), _moment(statement["expires"])
    # From when it was issued, which is signed: nobody prolongs an override by editing anything.
    if not issued < expires <= issued + LONGEST:
        raise BadOverride("too-long", f"an override lasts at most {LONGEST.total_seconds() / 3600:g} hours")
    by = signers(document.get("agreed"), message(statement), approvers)
    if len(by) < NEEDED:
        raise BadOverride("not-agreed", f"{len(by)} of {NEEDED} approvers signed this statement")
    return Override(statement["pool"], statement["reason"], issued, expires, tuple(sorted(by)))


def live_override(cluster: Object | None, now: datetime, approvers: Mapping[str, str]) -> Override | None:
    """The override that counts now; None in every other case."""
    try:
        override = agreed_override(cluster or {}, approvers)
    except BadOverride:
        return None
    return override if override is not None and override.live(now) else None


def _document(text: str) -> JsonObject:
    try:
        document = json.decode(text.encode(), json.JsonLimits(max_bytes=MOST_BYTES, max_depth=6))
    except JsonError as error:
        raise BadOverride("unreadable", "the annotation is not JSON of a sensible size") from error
    if not isinstance(document, dict) or set(document) != {"statement", "agreed"}:
        raise BadOverride("unreadable", "the annotation is an object with statement and agreed")
    return document


def _statement(statement: Any) -> dict[str, str]:
    # No member more: an approver signs all of it, and one that nobody here reads could mean to them that it limits the override.
    if not isinstance(statement, dict) or tuple(sorted(statement)) != _MEMBERS:
        raise BadOverride("unreadable", f"a statement has the members {', '.join(_MEMBERS)}")
    if not all(isinstance(value, str) and value for value in statement.values()):
        raise BadOverride("unreadable", "the members of a statement are texts")
    return statement


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadOverride("unreadable", f"{text[:64]} is no time") from error
    if moment.tzinfo is None:
        raise BadOverride("unreadable", f"{text[:64]} has no zone")
    return moment


def listed_approvers(cluster: Object | None) -> dict[str, str]:
    """The keys of the approvers that a cluster lists, by name, whether they count or not."""
    spec = (cluster or {}).get("spec") or {}
    listed = (spec.get("breakGlass") or {}).get("approvers") or []
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {str(entry["name"]): str(entry["key"]) for entry in entries if entry.get("name") and entry.get("key")}


def _verifier(key: str | None) -> Ed25519Verifier | None:
    """The key of an approver; one that cannot be read counts for nobody."""
    try:
        return Ed25519Verifier(base64.b64decode(key or "", validate=True))
    except (binascii.Error, BadKey):
        return None


def signers(agreed: Any, signed: bytes, approvers: Mapping[str, str]) -> set[str]:
    """The approvers who signed, each person and each key once."""
    people: dict[bytes, str] = {}
    # A bound, because each costs a verification of a signature, for every machine that attests.
    for entry in agreed[:16] if isinstance(agreed, list) else []:
        by = entry.get("by") if isinstance(entry, dict) else None
        key = _verifier(approvers.get(by)) if isinstance(by, str) else None
        if key is None or not isinstance(by, str):
            continue
        try:
            signature = base64.b64decode(str(entry.get("signature", "")), validate=True)
        except binascii.Error:
            continue
        if key.signed(signature, signed):
            # By key: one person who is listed under two names is still one.
            people.setdefault(key.raw, by)
    return set(people.values())
