"""What doors tell the people of a cluster: releases and refusals, as Events of the object that they are about.

    tell → counted in memory → every few seconds: warnings, then some of the rest, one write per kind of event

A fetch never waits for an event and never causes a write of its own. Whatever happens again before it was told is counted; good
news that was told is not told again for a minute.

* An event is about the Machine; about the JoinTicket while the machine is not known; about the ConfidentialCluster for strangers;
  about the AppraisalPolicy that gave no answer.
* Strangers cannot fill the store: what is told of them is one event per door and code. Nor can machines: so many writes per
  round and no more; good news of the others is one event about the ConfidentialCluster; what still does not fit is dropped
  and counted. The record names each release; events are for eyes.
* Several doors of a kind add to the same event.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from fastness.attestation.policy.query import ActivePolicy
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import Subject
from fastness.kube.errors import AlreadyExists, ApiError, Conflict
from fastness.kube.events import Recorder
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster
from fastness.observe import logs, metrics
from fastness.protocol.node_keys import KEY_REUSED
from fastness.runtime.clock import Clock

GATHER_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
MOST_WAITING: Final = 2048
MOST_WARNINGS, MOST_NORMAL = 32, 16
MAX_DETAIL: Final = 200
NORMAL, WARNING = "Normal", "Warning"
RELEASED, ENROLLED, REFUSED, STRANGERS = "Released", "Enrolled", "Refused", "StrangersRefused"
OVERRIDDEN = "Overridden"
POLICY_EXCEEDED = "PolicyExceeded"
_KINDS: Final = {
    MACHINE.kind: (MACHINE, NAMESPACE),
    JOIN_TICKET.kind: (JOIN_TICKET, ""),
    CONFIDENTIAL_CLUSTER.kind: (CONFIDENTIAL_CLUSTER, ""),
    APPRAISAL_POLICY.kind: (APPRAISAL_POLICY, ""),
}
_log = logs.logger("doors")


class EventSink(Protocol):
    """Where a door tells what it did; telling never waits and never fails."""

    def released(self, who: Subject, what: str) -> None:
        """Something was handed to a machine."""

    def admitted(self, machine: JsonObject) -> None:
        """A machine was taken in."""

    def overridden(self, who: Subject, override: str) -> None:
        """A machine that proved nothing was let in by an override."""

    def alarmed(self, who: Subject, alarm: str) -> None:
        """A machine was let in, and somebody must look at it."""

    def refused(self, who: Subject, refusal: Refusal) -> None:
        """A machine that is known was refused."""

    def ticket_refused(self, name: str, uid: str, refusal: Refusal) -> None:
        """The holder of a ticket was refused."""

    def stranger_refused(self, refusal: Refusal) -> None:
        """Somebody of whom nothing is known was refused."""


class NullSink:
    """Tells nobody."""

    def released(self, who: Subject, what: str) -> None:
        """Nothing."""

    def admitted(self, machine: JsonObject) -> None:
        """Nothing."""

    def overridden(self, who: Subject, override: str) -> None:
        """Nothing."""

    def alarmed(self, who: Subject, alarm: str) -> None:
        """Nothing."""

    def refused(self, who: Subject, refusal: Refusal) -> None:
        """Nothing."""

    def ticket_refused(self, name: str, uid: str, refusal: Refusal) -> None:
        """Nothing."""

    def stranger_refused(self, refusal: Refusal) -> None:
        """Nothing."""


class _Place(NamedTuple):
    """What makes events one and the same."""

    kind: str
    name: str
    uid: str
    type: str
    reason: str
    key: str

    @property
    def about(self) -> JsonObject:
        """The object that the event is about, as far as an event names it."""
        kind, namespace = _KINDS[self.kind]
        meta = {"name": self.name, "namespace": namespace, "uid": self.uid}
        named = {name: value for name, value in meta.items() if value}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named}


@dataclass(slots=True)
class _News:
    """What is told of a place, and how often it happened."""

    message: str
    times: int = 1


class DoorEvents:
    """Gathers the events of one door and tells them in the background."""

    def __init__(self, cluster: Cluster, door: str, clock: Clock, confidential: Informer) -> None:
        self._recorder = Recorder(cluster, f"fastness-{door}", clock)
        self._door = door
        self._clock = clock
        self._confidential = confidential
        self._waiting: dict[_Place, _News] = {}
        # Good news that was told, the latest last: when it may be told again.
        self._quiet: OrderedDict[_Place, float] = OrderedDict()
        self._bell = asyncio.Event()

    def released(self, who: Subject, what: str) -> None:
        """A resource was handed to a machine, or under an audit to the holder of a ticket."""
        self._tell(self._machine(who, NORMAL, RELEASED, what), f"the {self._door} released {what}")

    def admitted(self, machine: JsonObject) -> None:
        """A machine was taken in."""
        meta = machine["metadata"]
        place = _Place(MACHINE.kind, str(meta["name"]), str(meta.get("uid", "")), NORMAL, ENROLLED, "")
        self._tell(place, "the machine proved its key, and is known from now on")

    def overridden(self, who: Subject, override: str) -> None:
        """A machine that proved nothing was let in by an override."""
        message = f"the {self._door} let the machine in without proof, by an override: {override[:MAX_DETAIL]}"
        self._tell(self._machine(who, WARNING, OVERRIDDEN, override), message)

    def alarmed(self, who: Subject, alarm: str) -> None:
        """A key of the machine's node, once replaced, was named again."""
        self._tell(self._machine(who, WARNING, KEY_REUSED, ""), alarm[:MAX_DETAIL])

    def refused(self, who: Subject, refusal: Refusal) -> None:
        """A machine that is known was refused."""
        self._tell(self._machine(who, WARNING, REFUSED, refusal.code), self._said(refusal))

    def ticket_refused(self, name: str, uid: str, refusal: Refusal) -> None:
        """The holder of a ticket was refused."""
        self._tell(_Place(JOIN_TICKET.kind, name, uid, WARNING, REFUSED, refusal.code), self._said(refusal))

    def stranger_refused(self, refusal: Refusal) -> None:
        """Somebody of whom nothing is known was refused."""
        message = f"the {self._door} refused callers that did not prove who they are, reason: {refusal.code}"
        self._tell(self._cluster_place(WARNING, STRANGERS, refusal.code), message)

    def policy_exceeded(self, policy: ActivePolicy, reason: str) -> None:
        """A policy of a user gave no answer within its bounds."""
        message = f"the {self._door} got no answer from version {policy.version}: {reason[:MAX_DETAIL]}"
        self._tell(
            _Place(APPRAISAL_POLICY.kind, policy.name, policy.uid, WARNING, POLICY_EXCEEDED, policy.version), message
        )

    async def run(self) -> None:
        """Tell what was gathered, in rounds, until cancelled."""
        while True:
            await self._bell.wait()
            await self._clock.sleep(GATHER_SECONDS)
            await self.flush()

    async def flush(self, *, last: bool = False) -> None:
        """One round. What cannot be written is lost: telling must never hold up doing. The last round tells what is held back."""
        self._bell.clear()
        waiting, self._waiting = self._waiting, {}
        warnings = [item for item in waiting.items() if item[0].type == WARNING]
        normal = [item for item in waiting.items() if item[0].type == NORMAL and (last or not self._held_back(*item))]
        for place, news in warnings[MOST_WARNINGS:]:
            self._tell(place, news.message, news.times)
        rest = [item for item in self._folded(normal[MOST_NORMAL:]) if last or not self._held_back(*item)]
        batch = [*warnings[:MOST_WARNINGS], *normal[:MOST_NORMAL], *rest]
        try:
            while batch:
                await self._told(*batch[0])
                batch.pop(0)
        except ApiError as error:
            _log.warning("event.lost", reason=batch[0][0].reason, error=error)
        finally:
            metrics.EVENTS_LOST.inc(sum(news.times for _, news in batch))

    def _held_back(self, place: _Place, news: _News) -> bool:
        """Whether this was told a moment ago; then it waits for a later round."""
        now = self._clock.monotonic()
        while self._quiet and next(iter(self._quiet.values())) <= now:
            self._quiet.popitem(last=False)
        if place not in self._quiet:
            return False
        self._tell(place, news.message, news.times)
        return True

    async def _told(self, place: _Place, news: _News) -> None:
        try:
            await self._recorder.add_repeats(place.about, place.type, place.reason, news.message, news.times, place.key)
        except (AlreadyExists, Conflict):
            # Another door told the same at this very moment; the next round adds to what it wrote.
            self._tell(place, news.message, news.times)
            return
        if place.type == NORMAL:
            self._quiet[place] = self._clock.monotonic() + QUIET_SECONDS
            self._quiet.move_to_end(place)

    async def close(self) -> None:
        """Tell the rest, for a moment: a cluster that does not answer holds up nobody who wants to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.flush(last=True)

    def _folded(self, rest: Iterable[tuple[_Place, _News]]) -> Iterable[tuple[_Place, _News]]:
        """Good news of many machines as one event for each reason."""
        folded: dict[_Place, _News] = {}
        for place, news in rest:
            message = f"the {self._door} has such news of more machines than it tells one by one: the record names each"
            folded.setdefault(self._cluster_place(NORMAL, place.reason, "many"), _News(message, 0)).times += news.times
        return folded.items()

    def _said(self, refusal: Refusal) -> str:
        return f"the {self._door} refused: {refusal.code}: {refusal.detail[:MAX_DETAIL]}"

    def _tell(self, place: _Place, message: str, times: int = 1) -> None:
        waiting = self._waiting.get(place)
        if waiting is not None:
            waiting.times += times
            waiting.message = message
        elif len(self._waiting) < MOST_WAITING:
            self._waiting[place] = _News(message, times)
            self._bell.set()
        else:
            metrics.EVENTS_LOST.inc(times)

    def _machine(self, who: Subject, kind: str, reason: str, key: str) -> _Place:
        if not who.machine:
            return self._cluster_place(kind, reason, key)
        return _Place(MACHINE.kind, who.name, who.machine, kind, reason, key)

    def _cluster_place(self, kind: str, reason: str, key: str) -> _Place:
        cluster = self._confidential.get("", NAME)
        return _Place(
            CONFIDENTIAL_CLUSTER.kind, NAME, str(cluster["metadata"]["uid"]) if cluster else "", kind, reason, key
        )
