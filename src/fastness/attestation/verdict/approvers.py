"""Who may agree to an override, and from when: an appointment counts when everybody had time to see it.

    spec.breakGlass.approvers                        who is asked for
    ConfigMap fastness-system/break-glass-approvers  who counts, and who will from when: written by controllers for verifiers

Two people are needed for an override, so one person must not be able to make up the other: nobody may appoint two keys of their
own and use them at once. Therefore

* the first approvers count after `breakGlass.delay` (an hour), counted by the delay that held before the change;
* later changes count at once if two of those who count now signed that very change (annotation `fastness.dev/approvers-change`);
* a change that nobody signed counts after a day. That is the way back when keys were lost. Until then those who count go on
  counting; it is announced by an Event, a condition that the page shows as a banner, and an entry of the record;
* a shorter delay holds only after the longer one has passed.

`settle` is the whole decision: what was known, the cluster and the time in; what is known now and what has to be told out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.verdict.breakglass import MOST_BYTES, NEEDED, BadOverride, listed_approvers, signers
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import DurationError, JsonError
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata, rfc3339, view

Object = Mapping[str, Any]
People = Mapping[str, str]
"""Keys by name, base64."""
NAMESPACE: Final = "fastness-system"
CONFIG_MAP: Final = "break-glass-approvers"
CONTENT: Final = "approvers.json"
CHANGE: Final = "fastness.dev/approvers-change"
LOST: Final = "fastness.dev/lost-approvers"
# A day for somebody to notice: the way back when keys were lost must not be the way in for whoever edits the list (decision 35).
UNSIGNED: Final = timedelta(days=1)
# Long enough for somebody else to see the announcement before the first approvers can open anything.
DELAY: Final = timedelta(hours=1)
# Other bytes than those of an override: a signature over one must never be a signature over the other.
_DOMAIN: Final = b"fastness approvers v1\n"


@dataclass(frozen=True, slots=True)
class Appointments:
    """Who counts; who will, from when; and the delay that holds, with a shorter one that will."""

    counting: People
    pending: People | None = None
    pending_from: datetime | None = None
    delay: timedelta = DELAY
    next_delay: timedelta | None = None
    next_delay_from: datetime | None = None

    def to_json(self) -> JsonObject:
        """As the ConfigMap keeps it."""
        return {
            "counting": dict(self.counting),
            "pending": None if self.pending is None else dict(self.pending),
            "pendingFrom": _text(self.pending_from),
            "delay": self.delay.total_seconds(),
            "nextDelay": None if self.next_delay is None else self.next_delay.total_seconds(),
            "nextDelayFrom": _text(self.next_delay_from),
        }


@dataclass(frozen=True, slots=True)
class Announcement:
    """What has to be told: on the record under `what`, as an Event under `reason`."""

    what: str
    reason: str
    text: str


def read_appointments(config_map: Object | None) -> Appointments:
    """What a ConfigMap says; nobody counts when it is not there or cannot be read."""
    try:
        document = json.decode(str(((config_map or {}).get("data") or {}).get(CONTENT, "")).encode())
        return Appointments(
            {str(name): str(key) for name, key in document["counting"].items()},
            None if document["pending"] is None else {str(name): str(key) for name, key in document["pending"].items()},
            _moment(document["pendingFrom"]), timedelta(seconds=document["delay"]),
            None if document["nextDelay"] is None else timedelta(seconds=document["nextDelay"]),
            _moment(document["nextDelayFrom"]),
        )  # fmt: skip
    # Nobody counts: a ConfigMap that somebody damaged must not make approvers of whoever is listed.
    except (JsonError, KeyError, TypeError, ValueError, AttributeError):
        return Appointments({})


def change_statement(cluster: Object, present: People, proposed: People) -> JsonObject:
    """What approvers sign to change who they are: from these to those, in this cluster."""
    return {"cluster": str(metadata(cluster).get("uid") or ""), "from": _digest(present), "approvers": dict(proposed)}


def change_message(statement: Object) -> bytes:
    """The bytes that approvers sign."""
    return _DOMAIN + json.canonical(dict(statement))


def signed_by(cluster: Object, present: People) -> tuple[str, ...]:
    """Those who count and signed the change to what the cluster lists now; raises BadOverride for an unreadable statement."""
    text = annotations_of(cluster).get(CHANGE)
    if text is None:
        return ()
    try:
        document = json.decode(text.encode(), json.JsonLimits(max_bytes=MOST_BYTES, max_depth=6))
        statement, agreed = document["statement"], document["agreed"]
    except (JsonError, KeyError, TypeError) as error:
        raise BadOverride("unreadable", f"the annotation {CHANGE} is an object with statement and agreed") from error
    # The list that it leads from is in the statement: a change that was undone is not good a second time.
    if statement != change_statement(cluster, present, listed_approvers(cluster)):
        return ()
    return tuple(sorted(signers(agreed, change_message(statement), present)))


def is_signed(cluster: Object, present: People) -> bool:
    """Whether two who count signed the change to what the cluster lists now."""
    try:
        return len(signed_by(cluster, present)) >= NEEDED
    except BadOverride:
        return False


def settle(appointments: Appointments, cluster: Object, now: datetime) -> tuple[Appointments, tuple[Announcement, ...]]:
    """Who counts after a look at the cluster, and what has to be told."""
    held = _with_delay(appointments, cluster, now)
    proposed = listed_approvers(cluster)
    if proposed == held.counting:
        after = replace(held, pending=None, pending_from=None)
        announcement = (
            ("approvers-withdrawn", "ApproversStay", f"approvers stay {_names(proposed)}")
            if held.pending is not None
            else None
        )
    # By those who count, not by those who are proposed: the new ones would sign anything that appoints them.
    elif is_signed(cluster, held.counting):
        by = " and ".join(signed_by(cluster, held.counting))
        after = replace(held, counting=proposed, pending=None, pending_from=None)
        announcement = ("approvers-changed", "ApproversChanged", f"approvers are {_names(proposed)}, signed by {by}")
    # The same list as announced. Each edit starts the wait anew, or a harmless list could wait the day for another one.
    elif held.pending == proposed and held.pending_from is not None:
        if now < held.pending_from:
            return held, ()
        after = replace(held, counting=proposed, pending=None, pending_from=None)
        announcement = ("approvers-in-effect", "ApproversInEffect", f"approvers are {_names(proposed)}")
    else:
        # The first ones wait, too: who may edit the cluster could appoint two keys of their own and use them at once.
        start = now + (UNSIGNED if held.counting else held.delay)
        after = replace(held, pending=proposed, pending_from=start)
        announcement = ("approvers-pending", "ApproversPending", pending_text(after))
    return after, (Announcement(*announcement),) if announcement is not None else ()


def pending_text(appointments: Appointments) -> str:
    """What is about to happen, for people; empty when nothing is."""
    if appointments.pending is None or appointments.pending_from is None:
        return ""
    signed = "nobody who counts now signed that" if appointments.counting else "they are the first"
    return f"from {rfc3339(appointments.pending_from)} approvers will be {_names(appointments.pending)}; {signed}"


def _with_delay(appointments: Appointments, cluster: Object, now: datetime) -> Appointments:
    """The delay that holds: a longer one at once, a shorter one when the one before has passed."""
    try:
        demanded = duration(view(cluster, ConfidentialCluster).spec.break_glass.delay, "delay")
    except DurationError:
        demanded = appointments.delay
    # Longer at once, shorter after the old one has passed: lowering it to nothing would be the first step of an attack.
    if demanded >= appointments.delay:
        return replace(appointments, delay=demanded, next_delay=None, next_delay_from=None)
    if appointments.next_delay != demanded or appointments.next_delay_from is None:
        return replace(appointments, next_delay=demanded, next_delay_from=now + appointments.delay)
    if now < appointments.next_delay_from:
        return appointments
    return replace(appointments, delay=demanded, next_delay=None, next_delay_from=None)


def _names(people: People) -> str:
    return ", ".join(sorted(people)) or "nobody"


def _digest(people: People) -> str:
    return str(sha256(json.canonical(dict(people))))


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _moment(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
