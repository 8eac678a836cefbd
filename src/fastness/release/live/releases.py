"""The one way out of gate and broker.

    in touch? → grant → record → in touch? machine at the API → grant again, if a rule changed → bytes

* A door that cannot know releases nothing: while a cache that the grant rests on is out of touch (`http.freshness`), and while
  the API does not answer for the caller's Machine, the answer is 503. Both pass.
* Writing the record takes time, and trust may end in it. So what is decided last comes after it: the Machine is read at the API
  itself, once, and a distrust, a policy or a setting that the caches heard of since makes the whole decision be made again. A
  rendered config must be written on that Machine still: one that was taken back in between does not leave. Deciding again may
  wait for policies of users; what changes meanwhile has it decided once more, and where that does not end nothing leaves.
* An API that was stopped neither answers nor refuses. Whoever waits for it, to find what is released or to write it down, waits
  ten seconds at most; then the answer is 503 too.
* A release that is on the record and did not happen is followed by an entry `withheld` that names the same grant and says why.
  If that cannot be written either, the record tells of one release too many: never of one too few.

A rendered config that is asked for by name must be meant for the machine that asks (`Assignments`). The controllers write a
Machine's configs on it before they tell its Node. A cache may be behind them, and a config that was taken back must not leave a
door that has not heard of it; so the Machine is read at the API, for every request of a running machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from fastness.attestation.live.machines import find_machine
from fastness.attestation.machine.machine import is_subject
from fastness.attestation.policy.query import Answer, Query, drive
from fastness.http import Request
from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal, demand_home
from fastness.keys.errors import CannotKnow, RecordError
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject, key_kind
from fastness.kube.errors import BadRequest
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.assigned import is_assigned
from fastness.observe import logs
from fastness.protocol.delivered import DeliveredError, parse_rendered
from fastness.protocol.kbs_path import ResourcePath
from fastness.record.entry import Record, RecordEntry
from fastness.release.authorise import ClusterRules, Denial, Remedy, authorise
from fastness.release.live.settings import PolicyDecider, Settings
from fastness.release.live.tokens import Revocations
from fastness.runtime.clock import Clock

OUT_OF_TOUCH: Final = "out-of-touch"
WITHHELD: Final = "withheld"
FIND_SECONDS: Final = 10.0
RECORD_SECONDS: Final = 10.0
# Rules that change without end would have a request decide for ever; somebody who edits in a loop keeps nobody busy.
MOST_DECISIONS: Final = 4
# Clients of the KBS protocol attest again at each 401: a refusal for good must not be one, or they come for ever (pitfall 28).
_STATUSES: Final = {Remedy.NOTHING: 403, Remedy.TIME: 503, Remedy.PROOF: 401}
_log = logs.logger("releases")


class Releases:
    """Lets things out of one door, to machines that attested."""

    def __init__(
        self,
        record: Record,
        revocations: Revocations,
        touch: Touch,
        clock: Clock,
        *,
        settings: Settings,
        policies: PolicyDecider,
        bindings: Informer | None = None,
        break_glass: bool = False,
        words: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """`words` are the door's own code and reason for denials, by the code of `authorise`."""
        self._record = record
        self._revocations = revocations
        self._touch = touch
        self._clock = clock
        self._settings = settings
        self._policies = policies
        self._bindings = bindings
        self._break_glass = break_glass
        self._words = words or {}

    @property
    def changes(self) -> int:
        """How often a rule has changed; taken before a grant is made, and given to `settle` with it."""
        return self._touch.changes

    def demand(self) -> None:
        """Go on only where the door can know; raises Refusal."""
        demand(self._touch)

    async def grant(self, caller: ProvenCaller, path: ResourcePath, query: Mapping[str, str] | None = None) -> Grant:
        """Leave for a caller to have a resource, as the caches know the rules now; raises Refusal."""
        # Nothing that a ticket stands for can be revoked: whoever takes a ticket looks at the ticket itself.
        revoked = caller.basis is Basis.VERDICT and self._revocations.revoked(caller.claims)
        outcome = await self._policies.decide(
            authorise(
                caller, path, self._settings.current.rules, self._policies.current,
                self._bindings.list() if self._bindings is not None else (),
                revoked=revoked, now=self._clock.now(), query=query, break_glass=self._break_glass,
            )
        )  # fmt: skip
        return granted(outcome, caller.verdict, self._words)

    async def settle(
        self,
        grant: Grant,
        path: ResourcePath,
        entry: RecordEntry,
        changes: int,
        *,
        query: Mapping[str, str] | None = None,
        rendered: str = "",
    ) -> None:
        """Write a release down, and return if it may happen still; raises Refusal, RecordError.

        `changes` is what that property was before the grant; `rendered` the config that a running machine asked for by name.
        """
        # Written before anything leaves: a process that dies here leaves an entry too many, never a release that nobody knows of.
        await written(self._record, entry)
        try:
            await self._confirm(grant.caller, rendered)
            await self._decided(grant, path, changes, query)
        except Refusal as refusal:
            await written(self._record, withheld_entry(entry, refusal))
            raise

    async def _decided(self, grant: Grant, path: ResourcePath, changes: int, query: Mapping[str, str] | None) -> None:
        """Return when a decision rests on the rules as they are now; raises Refusal."""
        for _ in range(MOST_DECISIONS):
            # The common case costs one comparison of numbers; only a rule that changed between grant and record is worth deciding
            # again (decision 21).
            if self._touch.changes == changes and grant.live(self._clock.now()):
                return
            changes = self._touch.changes
            grant = await self.grant(grant.caller, path, query)
        raise Refusal(503, OUT_OF_TOUCH, "the rules change while they are looked at: come again")

    async def _confirm(self, caller: ProvenCaller, rendered: str) -> None:
        """The caller is trusted and sent to the config still, as the API says; raises Refusal."""

        def look(machine: Machine) -> None:
            if rendered and not is_assigned(machine, rendered):
                raise not_assigned(caller.verdict)

        if caller.basis is Basis.VERDICT:
            try:
                ended = await self._revocations.ended(caller.claims, look)
            except CannotKnow as error:
                _log.warning("release.unknown", code=error.code, error=error, hint=error.hint)
                raise Refusal(503, OUT_OF_TOUCH, "the API does not answer for this machine now") from error
            # 403 and not 401: a new proof of the same machine would be refused too, and clients attest again at each 401.
            if ended:
                raise Refusal(403, "revoked", "this machine is no longer trusted", caller.verdict)
        self.demand()


class Assignments:
    """Knows which rendered configs are whose."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def check(self, subject: Subject, rendered: str, verdict: str = "") -> None:
        """Let a machine have a rendered config, and the overlays that its name has, while it is the subject that it proved to be.

        Raises Refusal, ApiError.
        """
        machine = await find_machine(self._cluster, key_kind(subject.tee), subject.thumbprint)
        # The subject of the token and not only its key: a Machine that was deleted and enrolled again is another one.
        if machine is None or not is_subject(machine, subject) or not is_assigned(machine, rendered):
            raise not_assigned(verdict)


def not_assigned(verdict: str) -> Refusal:
    """The same words whether there is such a config or not: names of other machines' configs are not told."""
    return Refusal(403, "not-assigned", "this is neither the desired nor the current config of the machine", verdict)


def rendered_in(request: Request) -> str:
    """The rendered config that a request names, empty for one of a machine that boots; raises Refusal."""
    try:
        return parse_rendered(request.query)
    except BadRequest as error:
        raise Refusal(400, "bad-query", error.message) from error
    except DeliveredError as error:
        raise Refusal(400, error.code, error.message) from error


def granted(outcome: Grant | Denial, verdict: str = "", words: Mapping[str, tuple[str, str]] | None = None) -> Grant:
    """The Grant, or the denial in the words of a door; raises Refusal.

    Whoever may come again with a new proof is told 401, whoever only has to wait 503, everybody else a final 403.
    """
    if isinstance(outcome, Denial):
        code, reason = (words or {}).get(outcome.code, (outcome.code, outcome.reason))
        raise Refusal(_STATUSES[outcome.remedy], code, reason, verdict)
    return outcome


def grant_here(
    caller: ProvenCaller,
    path: ResourcePath,
    rules: ClusterRules,
    now: datetime,
    *,
    revoked: bool = False,
    words: Mapping[str, tuple[str, str]] | None = None,
) -> Grant:
    """A Grant of the config server, which asks no policies: the door that a machine came to has asked them. Raises Refusal."""
    decision = authorise(caller, path, rules, None, revoked=revoked, now=now)
    return granted(drive(decision, _unanswered), caller.verdict, words)


def _unanswered(_query: Query) -> Answer:
    """Nobody is asked here; should something ask all the same, silence allows nothing."""
    return Answer(exceeded="this door asks no policies")


async def written(record: Record, entry: RecordEntry) -> None:
    """Write an entry down, and wait for that no longer than a caller does; raises RecordError."""
    try:
        async with asyncio.timeout(RECORD_SECONDS):
            await record.append(entry)
    except TimeoutError as error:
        raise RecordError("the record could not be written in time", "Look at the API server.") from error


def withheld_entry(entry: RecordEntry, refusal: Refusal) -> RecordEntry:
    """What follows the entry of a release that did not happen."""
    return RecordEntry(WITHHELD, entry.who, entry.resource, entry.verdict, entry.grant, detail={"code": refusal.code})


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Find what is to be released, while the caller still waits; raises Refusal."""
    try:
        async with asyncio.timeout(FIND_SECONDS):
            yield
    except TimeoutError as error:
        raise Refusal(503, OUT_OF_TOUCH, "the API does not answer in time") from error


def demand(touch: Touch) -> None:
    """Go on only where the door can know; raises Refusal."""
    demand_home(touch)
    if not touch.in_touch:
        raise Refusal(503, OUT_OF_TOUCH, "this door has lost touch with the API: it releases nothing until it is back")
