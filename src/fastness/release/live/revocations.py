"""Whether a token still counts: its machine must still be one of ours, and nothing that it proved distrusted since.

`revoked` answers from the caches, on every release and for introspection: a quarantine, a revocation, a deletion or a Distrust
stops all tokens of the machine as soon as they hear of it, long before they expire. `ended` reads the Machine at the API itself,
once for each release, just before the bytes leave: caches are always a little late, and sometimes much. Whether the caches can be
believed at all is asked elsewhere (`http.freshness`).

* The Machine is looked up by the kind of its key, and must still be the subject of the token: same object, evidence type, key and
  endorsement.
* A token that was found good is good for as long as the same Machine and the same Distrusts stand: objects in the cache are never
  changed, they are replaced, and a Distrust that stands can only end. So asking again costs three comparisons.
* The epoch of a Machine rises whenever trust in it ends. A token of a lower epoch never comes to life again, also when the trust
  does; no clock is compared for that.
* A token of an unlock session names its Machine by the uid, and by the name that goes with it: there is no key to look it up by.
* What the API said and the cache does not know yet is remembered until the cache says something else: a machine that is found out
  costs one read, not one for each time that it asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from fastness.attestation.live.caches import Distrusts
from fastness.attestation.live.machines import find_subject, known_machine, known_subject
from fastness.attestation.machine.machine import is_subject
from fastness.attestation.verdict.distrust import Distrusted, about_claims, about_machine
from fastness.keys.errors import CannotKnow
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind, Subject, key_kind
from fastness.kube.errors import ApiError
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.release.ear import subject_in
from fastness.release.live.tokens import unseen
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

# As long as a cache may be behind a Machine that enrolled at another replica; a token that old must have its Machine.
GRACE_SECONDS: Final = 2.0
# As decision 21 says: an API that was stopped must not hold a request, and a machine that waits comes again.
ASK_SECONDS: Final = 3.0
REMEMBERED: Final = 8192
V = TypeVar("V")
Key = tuple[KeyKind, str]


class _Good(NamedTuple):
    """A token that was found good, and what was looked at."""

    claims: Mapping[str, Any]
    machine: JsonObject
    distrusts: tuple[Distrusted, ...]


class MachineRevocations:
    """Revocation by the state of the Machine and by what is distrusted."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._machines: Informer = informers.of(MACHINE.resource)
        self._distrusts = Distrusts(informers)
        self._clock = clock
        self._good = BoundedCache[Key, _Good](REMEMBERED)
        # Whose trust has ended at the API, and what the cache held then.
        self._ahead = BoundedCache[Key, tuple[Any, JsonObject | None]](REMEMBERED)

    async def synced(self) -> None:
        """Wait until the state of all machines is known."""
        await self._machines.synced()
        await self._distrusts.synced()

    def enrolled(self, thumbprint: str) -> bool:
        """Whether the cache knows a machine with this key."""
        return any(known_machine(self._machines, kind, thumbprint) for kind in KeyKind)

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine of a token is gone, replaced, no longer approved, or distrusted."""
        subject = subject_in(claims)
        if subject is None:
            return True
        good = self._good.get(_key(subject))
        # Identity, not equality: an object that was replaced is looked at again, even if it says the same.
        if good is not None and good.claims is claims and good.distrusts is self._distrusts.all:
            meta = good.machine["metadata"]
            if self._machines.get(NAMESPACE, meta["name"]) is good.machine:
                return False
        return self._ended_at_the_api(subject, claims) or self._examined(subject, claims)

    async def ended(self, claims: Mapping[str, Any], look: Callable[[Machine], None] = unseen) -> bool:
        """Whether the machine of a token is gone, replaced or no longer approved, as the API says now; raises CannotKnow.

        A machine that counts is shown to `look`: whoever must know more of it does not read it a second time.
        """
        subject = subject_in(claims)
        if subject is None:
            return True
        try:
            async with asyncio.timeout(ASK_SECONDS):
                machine = await find_subject(self._cluster, subject)
        except (ApiError, TimeoutError) as error:
            raise CannotKnow("the API does not answer for this machine", "Look at the API server.") from error
        if machine is not None and _counts(machine, subject):
            # By what stands on the Machine, not only by the claims: a Distrust may name a chip that the token does not tell of.
            if self._distrusts.against(about_machine(machine), self._clock.now()):
                return True
            look(machine)
            return False
        self._good.pop(_key(subject))
        # Until the cache has heard of it: without this note the next request would be granted from the cache and refused here,
        # again and again.
        self._ahead.put(_key(subject), (claims.get("fastness"), self._cached(subject)))
        return True

    def _ended_at_the_api(self, subject: Subject, claims: Mapping[str, Any]) -> bool:
        ended = self._ahead.get(_key(subject))
        if ended is None or ended[0] != claims.get("fastness"):
            return False
        if ended[1] is self._cached(subject):
            return True
        self._ahead.pop(_key(subject))
        return False

    def _cached(self, subject: Subject) -> JsonObject | None:
        machine = known_subject(self._machines, subject)
        return self._machines.get(NAMESPACE, machine.metadata.name) if machine is not None else None

    def _examined(self, subject: Subject, claims: Mapping[str, Any]) -> bool:
        now = self._clock.now()
        if self._distrusts.against(about_claims(claims), now):
            return True
        machine = known_subject(self._machines, subject)
        if machine is None:
            # It may have enrolled at another replica a moment ago; a cache that is that far behind catches up in time.
            issued = claims.get("iat")
            # Closed by default: a token whose Machine is nowhere belongs to one that was deleted, unless it is a moment old.
            return not isinstance(issued, int) or now.timestamp() - issued > GRACE_SECONDS
        if not _counts(machine, subject) or self._distrusts.against(about_machine(machine), now):
            return True
        stored = self._machines.get(NAMESPACE, machine.metadata.name)
        if stored is not None:
            self._good.put(_key(subject), _Good(claims, stored, self._distrusts.all))
        return False


def _key(subject: Subject) -> Key:
    """What a subject is remembered by: an AK and a guest key are never one entry."""
    return key_kind(subject.tee), subject.thumbprint


def _counts(machine: Machine, subject: Subject) -> bool:
    """Whether a Machine is still the subject of a token, of its present epoch, and approved."""
    approved = membership_of(machine) is Membership.APPROVED
    return is_subject(machine, subject) and approved and subject.epoch >= machine.status.epoch
