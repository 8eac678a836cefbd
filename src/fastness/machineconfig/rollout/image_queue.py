"""What a node booted, in order: which image, when, of which build, with which config and what that was made of.

    queue = queue_of(config_node)             as an annotation of its MachineConfigNode holds it
    queue = queue.after(Boot(…))              one more; the same again changes nothing
    queue.images                              each image once for every time that the node came to it

The control plane writes it when a node says that it is well with what it booted, because builds and rendered configs are pruned
and nobody could tell afterwards. What is in it about the image is the node's own word; where machines attest, the record says
what they proved. Bounds: so many boots, so many sources of each, so many bytes. What fell out at the old end is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.image_reference import same_image
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name

Object = Mapping[str, Any]
MOST: Final = 32
MOST_SOURCES: Final = 64
MAX_BYTES: Final = 32 * 1024


class Boot(NamedTuple):
    """An image that a node runs with a config; `build` is empty for an image that was not built here."""

    at: str
    image: str
    config: str
    build: str = ""
    sources: tuple[str, ...] = ()

    def same_as(self, other: Boot) -> bool:
        """Whether the node has what it had."""
        return self.config == other.config and same_image(self.image, other.image)

    def to_json(self) -> JsonObject:
        """As it is stored and printed."""
        return {
            "at": self.at, "image": self.image, "config": self.config, "build": self.build, "sources": list(self.sources),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImageQueue:
    """The boots of a node, oldest first, and how many fell out before them."""

    boots: tuple[Boot, ...] = ()
    dropped: int = 0

    def after(self, boot: Boot) -> ImageQueue:
        """With one more boot at the end."""
        if self.boots and self.boots[-1].same_as(boot):
            return self
        bounded = boot._replace(sources=boot.sources[:MOST_SOURCES])
        longer = ImageQueue((*self.boots, bounded), self.dropped)
        while len(longer.boots) > MOST or (len(longer.boots) > 1 and len(longer.text()) > MAX_BYTES):
            longer = ImageQueue(longer.boots[1:], longer.dropped + 1)
        return longer

    @property
    def images(self) -> tuple[Boot, ...]:
        """The boots that brought another image than the one before."""
        pairs = zip((None, *self.boots), self.boots, strict=False)
        return tuple(boot for before, boot in pairs if before is None or not same_image(before.image, boot.image))

    def text(self) -> str:
        """As the annotation holds it."""
        return json.encode({"dropped": self.dropped, "boots": [boot.to_json() for boot in self.boots]}).decode()


def queue_of(config_node: Object) -> ImageQueue:
    """The queue on a MachineConfigNode; an empty one where there is none that can be read."""
    try:
        stored = json.decode(annotations_of(config_node).get(names.IMAGE_QUEUE, "").encode())
        boots = tuple(
            Boot(
                str(each["at"]), str(each["image"]), str(each["config"]), str(each.get("build") or ""),
                tuple(str(source) for source in each.get("sources") or ()),
            )
            for each in stored["boots"]
        )  # fmt: skip
        return ImageQueue(boots[-MOST:], int(stored.get("dropped") or 0))
    except (JsonError, KeyError, TypeError, ValueError, AttributeError):
        return ImageQueue()


def booted(node: Object, pools: Iterable[Object], builds: Iterable[Object], now: str) -> Boot | None:
    """What a node says that it is well with; None for one that is on its way, is not well, or boots no image."""
    notes = annotations_of(node)
    image, config = notes.get(names.BOOTED_IMAGE, ""), notes.get(names.CURRENT_CONFIG, "")
    if not image or not config or notes.get(names.STATE) != names.NodeState.DONE:
        return None
    return Boot(now, image, config, _build_of(image, builds), _sources(config, pools))


def _build_of(image: str, builds: Iterable[Object]) -> str:
    """The newest build that made an image."""
    made = (each for each in builds if same_image(image, _made(each)))
    newest = max(made, key=lambda each: str((each.get("status") or {}).get("buildEnd") or ""), default=None)
    return object_name(newest).name if newest is not None else ""


def _made(build: Object) -> str:
    return str((build.get("status") or {}).get("digestedImagePushSpec") or "no image")


def _sources(config: str, pools: Iterable[Object]) -> tuple[str, ...]:
    for pool in pools:
        for part in (pool.get("spec") or {}, pool.get("status") or {}):
            configuration = part.get("configuration") or {}
            if configuration.get("name") == config:
                return tuple(str(each.get("name")) for each in configuration.get("source") or ())
    return ()
