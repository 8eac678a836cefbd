"""The one way out of gate and broker.

    in touch? → grant → record → in touch? machine at the API → grant again, if a rule changed → bytes

* A door that cannot know releases nothing: while a cache that the grant rests on is out of touch (`trust.touch`), and while the
  API does not answer for the caller's Machine, the answer is 503. Both pass.
* Writing the record takes time, and trust may end in it. So what is decided last comes after it: the Machine is read at the API
  itself, once, and a distrust, a policy or a setting that the caches heard of since makes the whole decision be made again.
* A release that is on the record and did not happen is followed by an entry `withheld` that names the same grant and says why.
  If that cannot be written either, the record tells of one release too many: never of one too few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastness.cluster.clock import Clock
from fastness.domain.attestation.grant import Standing
from fastness.domain.attestation.subject import Basis, Grant
from fastness.observe import logs
from fastness.services.refusals import Refusal
from fastness.trust.errors import CannotKnow
from fastness.trust.ports import Entry, Record
from fastness.trust.tokens import Revocations
from fastness.trust.touch import Touch

OUT_OF_TOUCH: Final = "out-of-touch"
WITHHELD: Final = "withheld"
_log = logs.logger("releases")


class Releases:
    """Lets things out of one door."""

    def __init__(self, record: Record, revocations: Revocations, touch: Touch, clock: Clock) -> None:
        self._record = record
        self._revocations = revocations
        self._touch = touch
        self._clock = clock

    @property
    def changes(self) -> int:
        """How often a rule has changed; taken before a grant is made, and given to `settle` with it."""
        return self._touch.changes

    def demand(self) -> None:
        """Go on only where the door can know; raises Refusal."""
        demand(self._touch)

    async def settle(self, caller: Standing, grant: Grant, entry: Entry, seen: int, again: Callable[[], Grant]) -> None:
        """Write a release down, and return if it may happen still; raises Refusal, RecordError."""
        await self._record.append(entry)
        try:
            await self._confirm(caller)
            if self._touch.changes != seen or not grant.live(self._clock.now()):
                again()
        except Refusal as refusal:
            detail = {"code": refusal.code}
            await self._record.append(
                Entry(WITHHELD, entry.who, entry.resource, entry.verdict, entry.grant, detail=detail)
            )
            raise

    async def _confirm(self, caller: Standing) -> None:
        """The caller is trusted still, as the API says; raises Refusal."""
        if caller.basis is Basis.VERDICT:
            try:
                ended = await self._revocations.ended(caller.claims)
            except CannotKnow as error:
                _log.warning("release.unknown", code=error.code, error=error, hint=error.hint)
                raise Refusal(503, OUT_OF_TOUCH, "the API does not answer for this machine now") from error
            if ended:
                raise Refusal(403, "revoked", "this machine is no longer trusted", caller.verdict)
        self.demand()


def demand(touch: Touch) -> None:
    """Go on only where the door can know; raises Refusal."""
    if not touch.kept:
        raise Refusal(503, OUT_OF_TOUCH, "this door has lost touch with the API: it releases nothing until it is back")
