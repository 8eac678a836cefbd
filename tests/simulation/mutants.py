"""Does the simulation notice? One check of the product is taken out at a time, and seeds are run until one of them finds it.

    python -m tests.simulation.mutants                      # all, up to 200 seeds each: which seed found it, and what it said
    python -m tests.simulation.mutants revocation --seeds 20

A check that no seed misses is one that a change could remove without anybody hearing of it: then it is the simulation that lacks
something. Only a broken invariant counts as found; a run that ends in another way proves nothing about the check.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from fastness.attestation.verdict.dispute import Boot
from fastness.crypto import merkle
from fastness.crypto.x509 import Credential
from fastness.formats.tlog import WIDTH, decode_hashes, encode_hashes, tile_path
from fastness.kinds.trusted_execution.machine import BootMark
from fastness.kinds.trusted_execution.membership import Membership
from fastness.kube.controllers.controller import Done
from fastness.machineconfig.rollout.rollout import Choice
from fastness.record.live.tiles import TileStore
from tests.simulation.invariants import Broken
from tests.simulation.loop import run
from tests.simulation.story import tell

SEEDS = 200


def _says(answer: Any) -> Callable[..., Any]:
    def always(*_: Any, **__: Any) -> Any:
        return answer

    return always


def _answers(answer: Any = None) -> Callable[..., Any]:
    async def always(*_: Any, **__: Any) -> Any:
        return answer

    return always


def _everybody(nodes: Sequence[Any], *_: object, **__: object) -> Choice:
    """Who comes first, and who comes last."""
    return Choice(tuple(nodes), len(nodes))


def _due_by_its_end(credential: Credential, now: Any) -> bool:
    """A certificate is renewed when it is old, and never because it is too young."""
    certificate = credential.certificate
    return bool(certificate.not_after - now < (certificate.not_after - certificate.not_before) / 3)


def _not_the_same_boot(boot: Boot, mark: BootMark, _: object) -> bool:
    """A boot counts for as long as no other one came, whichever is later."""
    return (boot.launch, boot.resets) != (mark.launch, mark.resets)


async def _grow_over_gaps(tiles: TileStore, level: int, before: int, fresh: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Grow the record, whether its last tile is there or not."""
    number, held = before // WIDTH, before % WIDTH
    data = await tiles.read(tile_path(level, number, held)) if held else None
    row = [*(decode_hashes(data, held) if data is not None else [bytes(32)] * held), *fresh]
    whole = []
    for at in range(0, len(row), WIDTH):
        part = row[at : at + WIDTH]
        await tiles.write(tile_path(level, number + at // WIDTH, len(part)), encode_hashes(part))
        if len(part) == WIDTH:
            whole.append(merkle.perfect_root(part))
    return whole, before // WIDTH


@dataclass(frozen=True, slots=True)
class Mutant:
    """A check, and what stands in its place when it is taken out."""

    name: str
    check: str
    instead: Mapping[str, Any]

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The product without the check, for the time of the block."""
        with ExitStack() as stack:
            for target, replacement in self.instead.items():
                stack.enter_context(patch(target, replacement))
            yield


MUTANTS = (
    Mutant("revocation", "a token of a machine whose trust has ended counts no more", {
        "fastness.release.live.revocations.MachineRevocations.revoked": _says(False),
        "fastness.release.live.revocations.MachineRevocations.ended": _answers(False),
    }),
    Mutant("quarantine", "a machine that is not approved gets nothing, with an old token or a new one", {
        "fastness.release.live.revocations._counts": _says(True),
        "fastness.attestation.live.verifier.membership_of": _says(Membership.APPROVED),
    }),
    Mutant("record", "what is released is on the record before it leaves", {
        "fastness.record.live.record.ClusterRecord.append": _answers(),
    }),
    Mutant("values", "a machine is affirmed only with the values of a published image", {
        "fastness.attestation.verdict.conclude.differences": _says([]),
        "fastness.attestation.policy.claims.TrustVector.affirms": _says(True),
    }),
    Mutant("simulated", "roots of a simulated vendor count only in a simulated cluster", {
        "fastness.attestation.live.verifier.anchors_of": lambda _cluster, _tee, simulated: [simulated] if simulated else [],
    }),
    Mutant("ticket", "a ticket for one machine lets one in", {
        "fastness.enrolment.live.tickets.TicketUses.check": _answers(),
        "fastness.enrolment.live.tickets.TicketUses.spend": _answers(),
    }),
    Mutant("budget", "a rollout takes no more nodes than its pool allows", {
        "fastness.machineconfig.rollout.rollout.candidates": _everybody,
    }),
    Mutant("put-back", "a node that has its configuration is put back to work", {
        "fastness.machineconfig.loops.updates.drain.Drains._put_back": _answers(Done()),
    }),
    Mutant("certificate", "a certificate of a time that has not come is replaced", {
        "fastness.keys.certificates.is_due": _due_by_its_end,
    }),
    Mutant("reboot", "a machine that boots again is taken for itself", {
        "fastness.attestation.verdict.dispute._is_over": _not_the_same_boot,
    }),
    Mutant("tiles", "a record whose tiles are lost does not grow", {"fastness.record.live.log._grow": _grow_over_gaps}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hunted:
    """The seed that missed a check, and what it said; no seed when none did."""

    seed: int | None
    tried: int
    complaint: str = ""


def hunt(mutant: Mutant, seeds: Sequence[int]) -> Hunted:
    """Run seeds until one of them finds the mutant."""
    for tried, seed in enumerate(seeds, 1):
        with mutant.alive():
            try:
                run(tell(seed))
            except Broken as error:
                return Hunted(seed, tried, str(error))
            except Exception as error:  # noqa: BLE001  # it proves nothing about the check; the next seed may
                print(f"{mutant.name}: seed {seed} ended with {type(error).__name__}", file=sys.stderr)
    return Hunted(None, len(seeds))


def main() -> int:
    """Hunt those that were asked for; 1 when one of them gets away."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mutants", nargs="*", choices=[[], *(mutant.name for mutant in MUTANTS)], help="default all")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    missed = 0
    for mutant in MUTANTS:
        if not options.mutants or mutant.name in options.mutants:
            hunted = hunt(mutant, range(options.first, options.first + options.seeds))
            missed += hunted.seed is None
            where = f"found by seed {hunted.seed}, number {hunted.tried}" if hunted.seed is not None else "NOT FOUND"
            print(f"{mutant.name:12} {where}: {hunted.complaint[:160]}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
