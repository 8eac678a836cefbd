"""What is to be pinned, whether there is room for it, and what is reported about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.agent.errors import PinsRefused
from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.references import is_digested
from fastness.kinds.objects import condition, labels_of, metadata, object_name
from fastness.runtime.retries import Backoff

Object = Mapping[str, Any]
RESERVED: Final = 16 * 1024**3
# An image lies there twice for a moment, as layers and as files, and files of one are larger than its layers.
FACTOR: Final = 2
MAX_ERROR: Final = 4096
_MOST_TOLD: Final = 5
_BETWEEN: Final = Backoff(first=1.0, most=10.0)
_AGAIN: Final = Backoff(first=30.0, most=600.0)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long pinning waits for what, in seconds, and how much it does at a time."""

    timeout: float = 300.0
    pause: float = 1.0
    tries: int = 5
    between: Backoff = _BETWEEN
    workers: int = 5
    again: Backoff = _AGAIN
    resync: float = 600.0


@dataclass(frozen=True, slots=True)
class PinSet:
    """A PinnedImageSet as it was read."""

    name: str
    generation: int
    images: frozenset[str]


def read_set(obj: Object) -> PinSet:
    """A PinnedImageSet; raises PinsRefused for a name that is no digest.

    The API checked that before. Names end up in a file of the container runtime and as arguments of programs, so they are
    checked where they are used as well: in pools that enforce attestation a machine does not rely on what an API checked.
    """
    name = object_name(obj).name
    images = [str(entry.get("name")) for entry in (obj.get("spec") or {}).get("pinnedImages") or ()]
    for image in images:
        if len(image) > 447 or not is_digested(image):
            raise PinsRefused(f"PinnedImageSet {name}: {image[:447]!r} is not an image by digest")
    return PinSet(name, int(metadata(obj).get("generation") or 1), frozenset(images))


def images_of(sets: Iterable[PinSet]) -> list[str]:
    """All images, each once, by name."""
    return sorted({image for each in sets for image in each.images})


def unready(node: Object) -> str:
    """Why a node should not pull now; empty where it may."""
    if (condition(node, "Ready") or {}).get("status") != "True":
        return "the node is not ready"
    if (condition(node, "DiskPressure") or {}).get("status") == "True":
        return "the node is under disk pressure"
    free = allocatable(node)
    return f"storage available is less than minimum required: {free} of {RESERVED} bytes" if free < RESERVED else ""


def allocatable(node: Object) -> int:
    """The bytes of ephemeral storage that a node has for pods; 0 where it does not say."""
    text = ((node.get("status") or {}).get("allocatable") or {}).get("ephemeral-storage")
    try:
        return int(parse_quantity(str(text))) if text is not None else 0
    except QuantityError:
        return 0


def lacks_room(node: Object, sizes: Iterable[int]) -> str:
    """Why missing images of these compressed sizes do not fit; empty where they do."""
    needed, room = FACTOR * sum(sizes), allocatable(node) - RESERVED
    if needed < room:
        return ""
    return f"storage available is less than minimum required: missing images need {needed} bytes, there are {room}"


def workers(node: Object, most: int) -> int:
    """How many images are pulled at a time: control planes have better things to do."""
    return 1 if names.MASTER_LABEL in labels_of(node) else most


def summary(failures: Mapping[str, str]) -> str:
    """Why images are not there, for people."""
    told = [f"{image}: {why}" for image, why in sorted(failures.items())]
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return "; ".join(told[:_MOST_TOLD]) + more


def reported(before: Sequence[Object], sets: Sequence[PinSet], error: str, absent: frozenset[str]) -> list[JsonObject]:
    """What is told of each set: its generation is current once all is pinned; `absent` are images that are not here.

    A set that failed keeps the generation that it has, unless an image of it went away: then it has none.
    """
    earlier = {entry.get("name"): entry for entry in before}
    return [_entry(earlier.get(each.name) or {}, each, error, absent) for each in sorted(sets, key=lambda s: s.name)]


def _entry(before: Object, each: PinSet, error: str, absent: frozenset[str]) -> JsonObject:
    entry: JsonObject = {"name": each.name, "desiredGeneration": each.generation}
    if not error:
        return {**entry, "currentGeneration": each.generation}
    current = before.get("currentGeneration")
    whole = not each.images & absent
    if isinstance(current, int) and current <= each.generation and whole:
        entry["currentGeneration"] = current
    if current == each.generation and whole:
        return entry
    return {**entry, "lastFailedGeneration": each.generation, "lastFailedGenerationError": error[:MAX_ERROR]}


def begun(before: Sequence[Object], sets: Sequence[PinSet]) -> list[JsonObject]:
    """What is told of each set while it is pulled: the generation that it has stays, an earlier failure is not over yet."""
    earlier = {entry.get("name"): entry for entry in before}
    entries = []
    for each in sorted(sets, key=lambda s: s.name):
        old = earlier.get(each.name) or {}
        stays = {
            key: old[key]
            for key in ("currentGeneration", "lastFailedGeneration", "lastFailedGenerationError")
            if key in old and (key == "lastFailedGenerationError" or old[key] <= each.generation)
        }
        entries.append({"name": each.name, "desiredGeneration": each.generation, **stays})
    return entries


def restarted(before: Sequence[Object], after: Sequence[Object]) -> frozenset[str]:
    """Sets that were deleted and made again: their generations begin anew, which no update of an entry may do."""
    earlier = {entry.get("name"): entry.get("desiredGeneration") or 0 for entry in before}
    return frozenset(
        str(entry["name"]) for entry in after if entry["desiredGeneration"] < earlier.get(entry["name"], 0)
    )
