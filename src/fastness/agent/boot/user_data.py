"""What the agent takes from its host: pool, ticket and server, read strictly, measured, and asked of the cluster.

    ask = await ask_of_host(places, attester, accept, patience, tell)

    places ─ bytes, or init-data ─▶ parse_user_data ─ three words ─▶ measure ─ PCR 15 or RTMR 3 ─▶ Ask ─▶ boot.py
      ▲─ not there yet: again ─┘   └─ anything else: refused, with its path

* Ignition does not see user-data where the image carries the pointer (`protocol.pointer`); this is the only reader.
* Measured before it is used: what a machine was told is in its evidence, also when what follows fails.
* An init-data document is kept as it was read and goes with every evidence of this boot: the disk could show another one later.
* A place that cannot be read now is tried again, because the network or a disk may come later; user-data that says too much is
  final, and the console tells which member of it.
* What was read stays in memory; only the digest of the ticket and the two checked names reach the log of measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import BootRefused, BootRequest
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.host.errors import BadUserData, UserDataFailure
from fastness.agent.host.user_data import UserDataSource
from fastness.crypto.secret import SecretText
from fastness.formats.errors import UserDataError
from fastness.formats.initdata import InitData
from fastness.protocol.user_data import CODE, ENTRY, UserData, parse_user_data, user_data_in
from fastness.protocol.user_data_event import user_data_event

MISSING: Final = "user-data-missing"
GRACE_SECONDS: Final = 120.0
"""How long every place may be empty: disks and their names appear while the machine starts."""
LONGEST_PAUSE: Final = 30.0
_GIVE: Final = "Give the machine the user-data of its pool: fastness userdata POOL prints it."
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Given:
    """User-data that somebody has already; virtual machines are started with it."""

    data: bytes
    name: str = "user-data"

    async def read(self) -> bytes | None:
        """The user-data; None where it is empty."""
        return self.data or None


async def ask_of_host(
    places: Sequence[UserDataSource],
    attester: Attester,
    accept: str,
    patience: RetryBudget,
    tell: Tell = lambda _: None,
) -> BootRequest:
    """What this machine asks the cluster for, as its host tells; raises BootRefused, DriverError."""
    content = await _wait_for_user_data(places, patience, tell)
    user_data = _parsed(content)
    # Also when there is none: an attempt of this boot before may have read one, and this one did not.
    await attester.started_with(content.text.decode() if isinstance(content, InitData) else "")
    # Before the ticket goes anywhere: evidence then says what this machine was told, also if the host tells it otherwise later.
    await attester.measure(user_data_event(user_data))
    return BootRequest(user_data.pool, SecretText(user_data.ticket), user_data.server, accept)


async def _wait_for_user_data(places: Sequence[UserDataSource], patience: RetryBudget, tell: Tell) -> bytes | InitData:
    clock, last_reason, pause = patience.clock, "", patience.pause
    empty_until, end = clock.monotonic() + GRACE_SECONDS, clock.monotonic() + patience.seconds
    while True:
        data, failure = await _first(places)
        if data is not None:
            return data
        reason = failure.message if failure else f"there is no user-data: {', '.join(place.name for place in places)}"
        if clock.monotonic() + pause >= (end if failure else min(empty_until, end)):
            raise BootRefused(MISSING, reason, _GIVE)
        if reason != last_reason:
            tell(f"waiting for user-data: {reason}")
            last_reason = reason
        await clock.sleep(pause * (1 + patience.entropy.fraction()))
        pause = min(pause * 2, LONGEST_PAUSE)


async def _first(places: Sequence[UserDataSource]) -> tuple[bytes | InitData | None, UserDataFailure | None]:
    """The first user-data there is, or what kept one place from being read; raises BootRefused."""
    failure: UserDataFailure | None = None
    for place in places:
        try:
            data = await place.read()
        # Final at once, and no other place is tried: the good part of bad user-data would hide that somebody tried.
        except BadUserData as error:
            raise BootRefused(CODE, f"user-data is refused: {error.message}", error.hint) from error
        except UserDataFailure as error:
            failure = error
        else:
            if data is not None:
                return data, None
    return None, failure


def _parsed(content: bytes | InitData) -> UserData:
    try:
        user_data = user_data_in(content) if isinstance(content, InitData) else parse_user_data(content)
    except UserDataError as error:
        where = f"user-data is refused at {error.path}" if error.path else "user-data is refused"
        raise BootRefused(CODE, f"{where}: {error.message}", error.hint) from error
    # Init-data for something else is no user-data: taking what else the host attaches would let it choose between two.
    if user_data is None:
        raise BootRefused(CODE, f"user-data is refused: the init-data has no {ENTRY}", _GIVE)
    return user_data
