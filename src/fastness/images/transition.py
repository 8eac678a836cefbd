"""What machines may measure while an image replaces another: every state that a rollout goes through, none that mixes two.

    turn = transition(before, after, firmware, secure_boot=False)
    manifest(turn.after)          for the approval of the new image: booted, and started by the boot loader of the old one
    manifest(turn.before)         for the old one: booted, and, for machines that go back, started by the new boot loader

A machine pulls the new image beside the old one, boots it once, and keeps it when it is healthy and attested. Its boot loader is
replaced last, after that. So the new image first runs under the old boot loader, and a machine that goes back later runs the old
image under the new one. What both share, the firmware and its keys and the partition table, does not change on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.images.firmware import FirmwareVars
from fastness.images.measure import BootChain, predict
from fastness.images.measurement import Measurement

BOOTED: Final = "booted"
OLD_LOADER: Final = "old-boot-loader"
NEW_LOADER: Final = "new-boot-loader"
States = Mapping[str, Measurement]


@dataclass(frozen=True, slots=True)
class Transition:
    """What machines may measure with the old image, and with the new one; each state by a name, the usual one first."""

    before: States
    after: States


def transition(before: BootChain, after: BootChain, firmware: FirmwareVars, *, secure_boot: bool) -> Transition:
    """Every state between two images; raises ImageError, Unpredictable, NotBootable."""

    def measured(chain: BootChain) -> Measurement:
        return predict(chain, firmware, secure_boot=secure_boot)

    old, new = {BOOTED: measured(before)}, {BOOTED: measured(after)}
    # Where either image brings no boot loader the one that is there stays, and there is nothing between.
    if before.loader and after.loader and before.loader != after.loader:
        new[OLD_LOADER] = measured(replace(after, loader=before.loader))
        old[NEW_LOADER] = measured(replace(before, loader=after.loader))
    return Transition(old, new)


def manifest(states: States) -> dict[str, Any]:
    """The manifest of an approval with all these states, of which one is the usual."""
    variants = {name: state.to_manifest() for name, state in states.items() if name != BOOTED}
    return {**states[BOOTED].to_manifest(), **({"variants": variants} if variants else {})}
