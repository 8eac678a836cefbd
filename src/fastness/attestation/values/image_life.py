"""The life of an image's reference values: published before a machine may need them, gone when none can any more.

    approved ─▶ (nobody names it) ─ a pool wants it ─▶ Transition ─ a machine has it ─▶ Current
                                                                                       │ no pool wants it
                     Retired ◀─ a soak later ─ Retiring ◀─ the last machine has left ──┘ Retiring

Two promises, which hold together for any order of updates, reboots and failures:

* No machine that follows the plan is refused: a node is told to go to an image only when its values count (`values_missing`), and
  values of an image count as long as a pool wants it, or a node has it, aims at it, or may still fall back to it. Machines are
  compared with whole images (`tuples`): an update that leaves them between two (new boot loader, old kernel) needs that state
  as a variant of the new image's values.
* No value outlives its need: an image that was in use and that nobody needs is retired after a soak, though its approval stands.
  A pool that names it again, or a new approval, publishes it again.

An image that no pool ever named is left alone: it was approved for an update to come, or machines start from it. So is one
that its approval says to keep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from fastness.attestation.values.measured import COMPARED_NAMES
from fastness.attestation.values.tuples import IMAGE, uncovered
from fastness.attestation.values.values import ReferenceValues, Validity, standing_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, rfc3339

Object = Mapping[str, Any]
# A node that has just left may fall back at its next boot; taking its values away at once would lock it out.
SOAK: Final = timedelta(hours=1)
STAGE: Final = "fastness.dev/image-stage"
LEFT: Final = "fastness.dev/image-left"
KEEP: Final = "fastness.dev/keep-values"


class Need(StrEnum):
    """Who needs the values of an image."""

    WANTED = "Wanted"
    USED = "Used"
    NOBODY = "Nobody"


class Stage(StrEnum):
    """Where an image is in its life; FRESH as long as nobody named it."""

    FRESH = ""
    TRANSITION = "Transition"
    CURRENT = "Current"
    RETIRING = "Retiring"
    RETIRED = "Retired"


# Only what is known to be desired cannot be taken away while a node is on its way to it.
_HERE_TO_STAY: Final = frozenset({Stage.TRANSITION, Stage.CURRENT})


@dataclass(frozen=True, slots=True)
class Life:
    """What is remembered of an image; `left` is when the last machine was seen to have left it."""

    stage: Stage = Stage.FRESH
    left: datetime | None = None

    def to_json(self) -> dict[str, str | None]:
        """As annotations of the set, for a merge patch."""
        return {STAGE: str(self.stage) or None, LEFT: rfc3339(self.left) if self.left else None}


@dataclass(frozen=True, slots=True)
class Uses:
    """Which images are needed now, by digest.

    `desired` by the config of a pool, `used` by the configs that nodes have or aim at, `booted` by what machines proved last;
    `uncertain` when the image of some node cannot be told.
    """

    desired: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    booted: frozenset[str] = frozenset()
    uncertain: bool = False

    def need(self, image: str) -> Need:
        """Who needs an image. What cannot be told counts as a use: values stay."""
        digest = digest_of(image)
        if digest in self.desired:
            return Need.WANTED
        # Values that stay too long accept an old image for an hour more; values that go too early refuse machines that did
        # nothing wrong.
        return Need.USED if digest in self.used | self.booted or self.uncertain else Need.NOBODY


def digest_of(image: str) -> str:
    """What makes two names the same image; the name itself where there is no digest."""
    return image.rpartition("@")[2]


def life_of(values: Object) -> Life:
    """What a set remembers of its image; total."""
    notes = annotations_of(values)
    try:
        stage = Stage(notes.get(STAGE, ""))
        left = datetime.fromisoformat(notes[LEFT]) if LEFT in notes else None
    except ValueError:
        return Life()
    return Life(stage, left if left is not None and left.tzinfo is not None else None)


def advanced(life: Life, image: str, uses: Uses, now: datetime, *, renewed: bool = False, keep: bool = False) -> Life:
    """The life of an image after a look at who needs it.

    `renewed` says that it was approved again after it was left, `keep` that its approval wants its values kept.
    """
    need = uses.need(image)
    if need is Need.WANTED:
        return Life(Stage.CURRENT if digest_of(image) in uses.used else Stage.TRANSITION)
    if keep:
        return Life(Stage.CURRENT)
    if life.stage is Stage.FRESH or (renewed and life.stage is Stage.RETIRED):
        # What no config ever named is left alone: machines may start from it.
        return Life(Stage.RETIRING) if digest_of(image) in uses.used else Life()
    if need is Need.USED:
        return Life(Stage.RETIRING)
    # The earlier one: a clock that ran ahead once must not postpone the end for ever.
    left = min(life.left, now) if life.left is not None else now
    return Life(Stage.RETIRED if now >= left + SOAK else Stage.RETIRING, left)


def retires_at(life: Life) -> datetime | None:
    """When an image that was left retires."""
    return life.left + SOAK if life.stage is Stage.RETIRING and life.left is not None else None


def with_stage(spec: JsonObject, stage: Stage) -> JsonObject:
    """The set of an image with the state that its values have at this stage."""
    if stage not in (Stage.TRANSITION, Stage.RETIRING):
        return spec
    return {**spec, "values": [{**value, "state": str(stage)} for value in spec["values"]]}


def values_missing(
    image: str,
    sets: Iterable[Object],
    book: ReferenceValues,
    now: datetime,
    *,
    tees: Set[str],
    approved: frozenset[str],
    distrusted: Collection[str] = (),
) -> str | None:
    """Why machines of these kinds of TEE cannot be sent to an image yet; None when its values count."""
    # A tag can be moved after it was approved, and machines would boot what nobody measured.
    if "@sha256:" not in image:
        return f"{image} names no digest, so nobody can say what a machine measures that boots it"
    of_image = [entry for entry in sets if _is_of(entry.get("spec"), image)]
    counting = [entry for entry in of_image if standing_of(entry["spec"], now, approved, distrusted) is Validity.COUNTS]
    if not counting:
        why = standing_of(of_image[0]["spec"], now, approved, distrusted) if of_image else "no ApprovedImage"
        return f"the values of {image} do not count ({why}): fastness image approve"
    if not any(life_of(entry).stage in _HERE_TO_STAY for entry in counting):
        return f"the values of {image} are not held for a rollout yet"
    names = {str(value.get("name")) for entry in counting for value in entry["spec"].get("values") or ()}
    reference = str(counting[0]["spec"]["image"])
    for tee in sorted(tees & COMPARED_NAMES.keys()):
        missing = sorted(uncovered(tee, book.tuples(tee), reference))
        if not COMPARED_NAMES[tee] & names or missing:
            return f"the values of {image} do not cover {', '.join(missing) or tee}"
    return None


def _is_of(spec: Any, image: str) -> bool:
    return (
        isinstance(spec, dict)
        and spec.get("source") == IMAGE
        and digest_of(str(spec.get("image", ""))) == digest_of(image)
    )
