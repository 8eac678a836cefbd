"""Opening a machine's volumes in its initial file system: prove, fetch the keys, make or open, count, report.

    first boot     enrol ─▶ unlock session ─▶ format, open ─▶ normal session, with the report ─▶ Ignition
    later boots    the note beside the volume ─▶ unlock session ─▶ (re-key ─▶) open ─▶ the system, whose sessions carry the report

    disks = await Unlock(attester, tls, volumes, key, patience, tell).run(UnlockTarget(machine, names, broker, first_boot=…))

* Nothing is opened without the broker, and there is no other way on: a broker that is away or slow is waited for, with words on
  the console; one that refuses ends the attempt with the reason. No path leads to a system on an unencrypted disk.
* The unlock key is the same for all attempts of a boot: where the phase cannot be measured (SNP) the first session of a launch
  binds it, and a lost answer is asked for again with it.
* The first unlock must come before every other session of a launch, for the same reason; so it stands between enrolment, which
  is no session, and the normal one.
* Only a first boot formats, and only what the cluster says was never made. A later boot that is told so stops: formatting would
  destroy what somebody misses.
* The header that was recorded is compared before anything is opened, the generation afterwards, by the cluster.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.boot import ATTEMPTS, BootRefused, hint_for
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.generation import count_opening
from fastness.agent.boot.prove import UNREACHABLE, BrokerClient, DoorRefused, UnlockClaim
from fastness.agent.boot.volumes import DiskRefused, OpenVolume, Volumes, state_of
from fastness.crypto.keys import PrivateKey
from fastness.protocol.disk_keys import BadDiskAnswer, DiskAnswer, disk_resource, read_answer
from fastness.protocol.disk_report import DiskReport
from fastness.runtime.retries import retry
from fastness.runtime.tasks import uninterrupted

LONGEST_PAUSE: Final = 60.0
_NOT_MADE: Final = (
    "Its record was lost, or its first boot never came to its end: replace the machine, or bring the record back from a "
    "backup."
)
_NO_VOLUME: Final = (
    "Give the pool the volume in spec.pools[].disk of the ConfidentialCluster, or build the image without it: a machine whose "
    "image has a volume does not boot without it."
)
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class UnlockTarget:
    """Whose volumes are opened, which ones, where the broker is, and whether this is the boot that makes them."""

    machine: str
    volumes: tuple[str, ...]
    broker: Callable[[], str]
    first_boot: bool
    lost: Callable[[], Awaitable[None]] | None = None
    """Looks for the broker where it may have gone, when nobody answers at its address."""


class Unlock:
    """The volumes of one machine, in one boot."""

    def __init__(
        self, attester: Attester, tls: ssl.SSLContext, volumes: Volumes, key: PrivateKey, patience: RetryBudget,
        tell: Tell,
    ) -> None:  # fmt: skip
        self._attester = attester
        self._tls = tls
        self._volumes = volumes
        self._key = key
        self._patience = patience
        self._tell = tell
        self._opened: dict[str, tuple[OpenVolume, DiskReport]] = {}
        self._machine = ""
        self._last_words = ""

    @property
    def open_volumes(self) -> dict[str, OpenVolume]:
        """Those that are open now, by name."""
        return {name: volume for name, (volume, _) in self._opened.items()}

    async def run(self, target: UnlockTarget) -> tuple[DiskReport, ...]:
        """Open all volumes; raises BootRefused, DiskRefused, DriverError, and DoorRefused at the end of patience."""
        if self._machine not in ("", target.machine):
            # Enrolled anew in the middle of a boot: what was opened is encrypted under keys of somebody who is gone.
            raise DiskRefused(
                "machine-changed", "this machine was enrolled anew after its volumes were opened", "Reboot it."
            )
        self._machine = target.machine
        end = self._patience.clock.monotonic() + self._patience.seconds
        waited = unbelieved = 0

        def pause(error: DoorRefused) -> float:
            nonlocal waited, unbelieved
            unbelieved = unbelieved + 1 if error.status == 401 else 0
            if not error.passing and not 0 < unbelieved < ATTEMPTS:
                raise self._refused(error, target) from error
            seconds = self._pause(error, waited)
            waited += 1
            if self._patience.clock.monotonic() + seconds >= end:
                raise error
            self._say(f"waiting for the keys of this machine's volumes ({error.reason}): {error.message}")
            return seconds

        await retry(lambda: self._once(target), DoorRefused, pause, self._patience.clock)
        reports = tuple(report for _, report in self._opened.values())
        await self._attester.opened(reports)
        return reports

    async def _once(self, target: UnlockTarget) -> None:
        """One unlock session, for what is not open yet; raises DoorRefused, BootRefused, DiskRefused, DriverError."""
        claim = UnlockClaim(target.machine, self._key, with_identity=target.first_boot)
        try:
            await self._session(target, claim)
        except DoorRefused as error:
            if error.reason == UNREACHABLE and target.lost is not None:
                await target.lost()
            raise

    async def _session(self, target: UnlockTarget, claim: UnlockClaim) -> None:
        async with BrokerClient(target.broker(), self._tls, self._attester, self._patience.entropy) as broker:
            await broker.attest(unlock=claim)
            for volume in target.volumes:
                if volume not in self._opened:
                    answer = await self._answer(broker, target.machine, volume)
                    # To its end, whatever happens meanwhile: a format that is cut off has destroyed the header already.
                    self._opened[volume] = await uninterrupted(partial(self._made_or_opened, answer, target.first_boot))

    async def _answer(self, broker: BrokerClient, machine: str, volume: str) -> DiskAnswer:
        try:
            return read_answer(await broker.resource(disk_resource(machine, volume)), volume)
        except BadDiskAnswer as error:
            raise DiskRefused(error.code, f"the broker's answer about volume {volume}: {error}") from error

    def _made_or_opened(self, answer: DiskAnswer, first_boot: bool) -> tuple[OpenVolume, DiskReport]:
        volume = answer.volume
        if answer.expect is None:
            if not first_boot:
                raise DiskRefused(
                    "disk-not-made", f"the cluster knows of no volume {volume} of this machine", _NOT_MADE
                )
            self._tell(f"volume {volume}: made anew, under key {answer.newest.id}")
            self._volumes.make(volume, answer.newest, answer.integrity)
        elif len(answer.keys) > 1:
            self._rekey(answer)
        opened = self._volumes.open(volume, answer.keys, answer.expect)
        try:
            place = opened.directory / state_of(volume)
            generation = count_opening(place, answer.opening, answer.recorded)
            self._volumes.settle(volume)
        except OSError as error:
            text = f"volume {volume} is open and cannot be written: {error.strerror}"
            raise DiskRefused("disk-unwritable", text, "Free space on it, or let a person look at the disk.") from error
        self._tell(f"volume {volume}: open, by key {opened.key}, generation {generation.number}")
        number, after, since = generation
        return opened, DiskReport(volume, number, after, opened.key, opened.header, since)

    def _rekey(self, answer: DiskAnswer) -> None:
        """Give a volume its new key, before it is open and busy; where that fails the old one stays, until the next boot."""
        try:
            key = self._volumes.rekey(answer.volume, answer.keys, answer.expect)
        except DiskRefused as error:
            self._tell(f"volume {answer.volume}: not under its new key yet ({error.reason}): {error.message}")
        else:
            self._tell(f"volume {answer.volume}: key {key} is the only one that opens it from now on")

    def _refused(self, error: DoorRefused, target: UnlockTarget) -> BootRefused | DiskRefused:
        if error.status == 404:
            return DiskRefused(
                "no-volume", f"the cluster has no key for a volume of this machine: {error.message}", _NO_VOLUME
            )
        return BootRefused(error.reason, error.message, hint_for(error.reason, "", target.machine))

    def _pause(self, error: DoorRefused, waited: int) -> float:
        grown = min(self._patience.pause * math.pow(2, min(waited, 10)), LONGEST_PAUSE)
        return max(error.retry_after, grown) * (1 + self._patience.entropy.fraction())

    def _say(self, words: str) -> None:
        """To the console, once for each news: a wait of a night must not scroll away why."""
        if words != self._last_words:
            self._tell(words)
            self._last_words = words


def described(reports: Sequence[DiskReport]) -> str:
    """What is open, for people."""
    return ", ".join(f"{report.volume} (key {report.key}, generation {report.generation})" for report in reports)
