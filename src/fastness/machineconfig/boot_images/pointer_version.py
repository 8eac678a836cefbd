"""Of which Ignition version a pointer is: what the boot images of all machine sets that use it read.

    choice = pointer_version(pool, makers, stream)
    choice.version      the pointer's
    choice.problem      what cannot be served, empty when all can
    choice.note         why this version, for whoever asks

* Each set is worth the newest spec that its boot image reads (`releases`), or what its annotation `fastness.dev/pointer-version`
  says; the lowest of them is what all can read.
* Sets whose boot image is not known count as the default, and the note names them.
* The same annotation on the pool overrides all of that. One that names a version that does not exist, or that cannot carry the
  ticket, is refused, and the pointer is made as if it were not there: authorities and tickets in it must go on changing.
* A set whose image reads less than a pointer needs cannot be served by any: that is the problem, and the others are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.coreos_stream import Stream
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.boot_images.makers import boot_image, user_data_of
from fastness.machineconfig.boot_images.releases import newest_spec
from fastness.machineconfig.render.errors import BadPointer
from fastness.protocol.ignition_spec import SPEC3, SUPPORTED

Object = Mapping[str, Any]
DEFAULT_VERSION: Final = "3.2.0"
LOWEST: Final = "3.1.0"
ALL_WELL: Final = "AsExpected"
BAD_VERSION: Final = "BadPointerVersion"
TOO_OLD: Final = "BootImageTooOld"
UNKNOWN: Final = "BootImageUnknown"
_MOST_SETS: Final = 5


@dataclass(frozen=True, slots=True)
class PointerVersion:
    """A version, and why; `problem` is what cannot be served, `unknown` the sets whose boot image nobody knows."""

    version: str
    reason: str = ALL_WELL
    problem: str = ""
    note: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """A machine set that uses a pointer: its name, what it boots, and the newest version that reads; empty when unknown."""

    name: str
    image: str
    reads: str


def pointer_version(pool: Object, makers: Iterable[Object], stream: Stream | None) -> PointerVersion:
    """The version of a pool's pointer."""
    secret = f"{object_name(pool).name}{names.USER_DATA_SUFFIX}"
    try:
        readers = readers_of(secret, makers, stream)
    except BadPointer as error:
        return PointerVersion(DEFAULT_VERSION, BAD_VERSION, f"{error.message}: {error.hint}")
    chosen = _of_readers(readers)
    annotated = annotations_of(pool).get(names.POINTER_VERSION)
    if not annotated:
        return chosen
    try:
        version = usable_version(annotated)
    except BadPointer as error:
        problem = f"{error.message}: {error.hint}. Version {chosen.version} is used"
        return PointerVersion(chosen.version, BAD_VERSION, problem, chosen.note, chosen.unknown)
    return _overridden(version, readers)


def readers_of(secret: str, makers: Iterable[Object], stream: Stream | None) -> list[Reader]:
    """The machine sets that use a Secret; raises BadPointer for one whose annotation names no version."""
    return [_reader(maker, stream) for maker in makers if user_data_of(maker) == secret]


def read_by_all(secret: str, makers: Iterable[Object], stream: Stream | None) -> str:
    """The version that the boot images of all machine sets which use a Secret read; empty when none does or one is unknown.

    Raises BadPointer for a machine set that names a version which does not exist.
    """
    versions = {reader.reads for reader in readers_of(secret, makers, stream)}
    return min(versions) if versions else ""


def usable_version(text: str) -> str:
    """A version that a pointer can be of, as it was written; raises BadPointer with the reason why not."""
    version = text if text.count(".") == 2 else f"{text}.0"
    usable = f"use one of {', '.join(supported for supported in SPEC3 if supported >= LOWEST)}"
    if version not in SUPPORTED:
        raise BadPointer(f"there is no Ignition spec {text[:32]!r} that this control plane can write", usable)
    if version < LOWEST:
        raise BadPointer(
            f"a pointer cannot be of version {version}: it shows its ticket in a header, which Ignition has since {LOWEST}",
            usable,
        )
    return version


def _reader(maker: Object, stream: Stream | None) -> Reader:
    name, image = object_name(maker).name, boot_image(maker, stream)
    annotated = annotations_of(maker).get(names.POINTER_VERSION, "")
    if annotated:
        version = annotated if annotated.count(".") == 2 else f"{annotated}.0"
        if version not in SUPPORTED:
            hint = f"use one of {', '.join(SUPPORTED)}"
            raise BadPointer(f"{object_name(maker)} says that its boot image reads Ignition {annotated[:32]}", hint)
        return Reader(name, image.release or image.image or "its boot image", version)
    # An image that a set does not name is the business of whoever makes its machines: it says nothing about Ignition.
    return Reader(name, image.release or image.image, newest_spec(image.release) or "")


def _of_readers(readers: list[Reader]) -> PointerVersion:
    # A set without an image at all (our own virtual machines) reads whatever this program writes.
    named = [reader for reader in readers if reader.image or reader.reads]
    unable = [reader for reader in named if reader.reads and reader.reads < LOWEST]
    able = [reader for reader in named if reader.reads >= LOWEST]
    unknown = [reader for reader in named if not reader.reads]
    candidates = [reader.reads for reader in able] + [DEFAULT_VERSION] * bool(unknown)
    version = min(candidates, default=DEFAULT_VERSION)
    if unable:
        return PointerVersion(version, TOO_OLD, _too_old(unable, LOWEST), unknown=_names(unknown))
    if unknown:
        note = (
            f"Ignition {version}: nobody knows what {_listed(unknown)} reads, so no more than {DEFAULT_VERSION} is asked of it; "
            f"say it with the annotation {names.POINTER_VERSION} of the machine set"
        )
        return PointerVersion(version, UNKNOWN, note=note, unknown=_names(unknown))
    note = f"Ignition {version}: the newest that {_listed(able)} reads" if able else ""
    return PointerVersion(version, note=note)


def _overridden(version: str, readers: list[Reader]) -> PointerVersion:
    unable = [reader for reader in readers if reader.reads and reader.reads < version]
    note = f"Ignition {version}: the annotation {names.POINTER_VERSION} of the pool says so"
    if unable:
        return PointerVersion(version, TOO_OLD, f"{_too_old(unable, version)} ({note})", note)
    return PointerVersion(version, note=note)


def _too_old(unable: list[Reader], version: str) -> str:
    reads = ", ".join(sorted({reader.reads for reader in unable}))
    return (
        f"{_listed(unable)} reads Ignition {reads} and no later one, and this pointer is of {version}: "
        "give these machine sets a newer boot image, or leave them with the Secret that their installer made"
    )


def _listed(readers: list[Reader]) -> str:
    texts = [f"{reader.name} ({reader.image or 'its boot image'})" for reader in readers[:_MOST_SETS]]
    more = len(readers) - len(texts)
    return "machine set " + ", ".join(texts) + (f" and {more} more" if more else "")


def _names(readers: list[Reader]) -> tuple[str, ...]:
    return tuple(reader.name for reader in readers)
