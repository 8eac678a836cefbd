"""The keys of a node's certificates: named in an attested session, good for one certificate, replaced by the next.

    additional evidence = {…, "fastness-node-keys": {"client": "sha256:…", "serving": "sha256:…"}}

    named_keys(additional)          what a session names: digests of public keys that the machine is about to ask for
    keys_change(status, named, now) what that makes of the Machine: named keys become current, those before them replaced
    key_use(machine, purpose, key)  what a request with a key is: of a current one, of a replaced one, of one that nobody named

The text of the additional evidence is part of the runtime data that the TPM or the processor signs, so a name is as good as the
proof that carries it: whoever took over the node's credential, or its token, names nothing, and a machine that booted something
else is not affirmed and names nothing either.

* A session that names no key changes nothing: proofs come every quarter of an hour, certificates are renewed when it is time.
* A key that was replaced is never current again. Only a copy of an older disk, or a thief, still has it: that is an alarm
  (`KeyReused`), which stands for a day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339, with_condition
from fastness.kinds.trusted_execution.machine import MOST_REPLACED_KEYS, Machine

MEMBER: Final = "fastness-node-keys"
CLIENT, SERVING = PURPOSES = ("client", "serving")
KEY_REUSED: Final = "KeyReused"
REUSED: Final = (
    "a key of its node that was replaced is used again: somebody has a copy of the machine's disk, or of the key"
)
ALARM_STANDS: Final = timedelta(days=1)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=64 * 1024, max_depth=8)


class BadNames(Exception):
    """The session names keys, and not understandably."""

    code = "node-keys-unreadable"
    detail = "keys of the node are named by purpose, client or serving, each by the SHA-256 of its public key"


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """The keys that a machine is about to ask certificates for, as `sha256:<hex>` of their SubjectPublicKeyInfo."""

    client: str = ""
    serving: str = ""

    def __bool__(self) -> bool:
        return bool(self.client or self.serving)

    def described(self) -> dict[str, str]:
        """What the record says of them."""
        return {f"{purpose}-key": getattr(self, purpose) for purpose in PURPOSES if getattr(self, purpose)}

    def member(self) -> JsonObject:
        """The member of the additional evidence; empty without a key."""
        named = {purpose: getattr(self, purpose) for purpose in PURPOSES if getattr(self, purpose)}
        return {MEMBER: named} if named else {}


class KeyUse(StrEnum):
    """What a request for a certificate means, by its key."""

    CURRENT = "Current"
    REPLACED = "Replaced"
    UNNAMED = "Unnamed"


def named_keys(additional: str) -> NamedKeys:
    """The keys that the additional evidence of an attempt names; raises BadNames."""
    # A look at the text first: it may have a megabyte, and most sessions name no key.
    if MEMBER not in additional:
        return NamedKeys()
    try:
        value = json.decode(additional.encode(), _LIMITS)
    except JsonError as error:
        raise BadNames from error
    named = value.get(MEMBER) if isinstance(value, dict) else None
    # An error and not an empty answer: a machine that named keys and was not understood would wait for certificates for ever.
    if not isinstance(named, dict) or not named.keys() <= set(PURPOSES):
        raise BadNames
    if not all(isinstance(key, str) and _DIGEST.match(key) for key in named.values()):
        raise BadNames
    return NamedKeys(**named)


def keys_change(status: Mapping[str, Any], named: NamedKeys, now: datetime) -> JsonObject:
    """What of a Machine's status changes when an affirmed session names keys; empty when it says all that already.

    A key that was replaced before is not taken, and raises the alarm instead.
    """
    held = status.get("nodeKeys") or {}
    replaced = list(held.get("replaced") or ())
    fresh: JsonObject = {}
    for purpose in PURPOSES:
        key, before = getattr(named, purpose), (held.get(purpose) or {}).get("key", "")
        if not key or key == before:
            continue
        # Nothing is taken over, not even the other key of this session: whoever has an old disk may have named both.
        if key in replaced:
            return alarm(status, f"a session named the {purpose} key {key}: {REUSED}", now)
        fresh[purpose] = {"key": key, "named": rfc3339(now)}
        # Remembered for good, within a bound: the copy of a disk that turns up after months still holds an old key.
        replaced += [before] if before else []
    if not fresh:
        return {}
    recent = replaced[-MOST_REPLACED_KEYS:]
    return {"nodeKeys": {**fresh, **({"replaced": recent} if recent else {})}, **_alarm_over(status, now)}


def names_replaced(machine: Machine, named: NamedKeys) -> bool:
    """Whether a session names a key that was replaced before."""
    return not {named.client, named.serving}.isdisjoint(machine.status.node_keys.replaced)


def alarm(status: Mapping[str, Any], message: str, now: datetime) -> JsonObject:
    """The conditions of a machine whose replaced key was used; empty when they say so already."""
    held = status.get("conditions") or []
    conditions = with_condition(
        held, kind=KEY_REUSED, status="True", reason="ReplacedKeyUsed", message=message[:1024], now=now
    )
    return {} if conditions == held else {"conditions": conditions}


def key_use(machine: Machine, purpose: str, key: str) -> KeyUse:
    """What a key is to a machine, for certificates of one purpose."""
    keys = machine.status.node_keys
    current = keys.client if purpose == CLIENT else keys.serving
    if current is not None and current.key == key:
        return KeyUse.CURRENT
    return KeyUse.REPLACED if key in keys.replaced else KeyUse.UNNAMED


def _alarm_over(status: Mapping[str, Any], now: datetime) -> JsonObject:
    """The conditions without an alarm that stood for its time."""
    held = status.get("conditions") or []
    old = [entry for entry in held if entry.get("type") == KEY_REUSED and _since(entry) + ALARM_STANDS <= now]
    return {"conditions": [entry for entry in held if entry not in old]} if old else {}


def _since(entry: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(entry["lastTransitionTime"])
