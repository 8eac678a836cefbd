"""The boot files of an image in a registry, read out of its layers as they come; nothing of it is kept on a disk.

    contents = await read_contents(session)         # within an answer of one registry (`registry_session`)
    contents.tree                                   # path → what is there in the end, hard links followed
    contents.problem                                # why the image cannot be read whoever is asked, or None

A layer is believed when its digest was compared, and that is at its end: a registry that sends something else is refused, and
another is asked. Bytes that are what was asked for and are no good layer are the image's own fault, which nobody else can mend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.formats.oci import OciError
from fastness.formats.oci_tree import Layer, LayerReader, Room, Wants, merged
from fastness.formats.tar_stream import Member, MemberKind, clean_path
from fastness.machineconfig.live.registry_session import PLATFORM, Session
from fastness.runtime.cache import BoundedCache

MAX_PULLED: Final = 8 * 1024**3
MAX_LAYERS: Final = 500
MAX_SECONDS: Final = 1800.0
_SMALL: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Contents:
    """What was asked for of an image, and its labels; with a `problem` nothing of it counts."""

    tree: Mapping[str, Member] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    problem: FormatError | None = None


class TreeReader:
    """Reads trees of images; layers that hold little of what is asked for are remembered, as images share them."""

    def __init__(self, wants: Wants) -> None:
        self._wants = wants
        self._layers = BoundedCache[str, Layer](256)

    async def read_contents(self, session: Session) -> Contents:
        """What is asked for of an image; raises FormatError, Refused, HTTPError, TimeoutError."""
        manifest = await session.manifest_for(PLATFORM)
        labels = oci.labels(await session.blob(manifest.config, oci.MAX_CONFIG))
        if manifest.size > MAX_PULLED or len(manifest.layers) > MAX_LAYERS:
            text = f"the image has more than {MAX_PULLED} bytes or {MAX_LAYERS} layers"
            return Contents(problem=OciError("image-too-large", text))
        room, layers = Room(), list[Layer]()
        async with asyncio.timeout(MAX_SECONDS):
            for part in manifest.layers:
                layer = await self._layer(session, part, room)
                if isinstance(layer, FormatError):
                    return Contents(problem=layer)
                layers.append(layer)
            try:
                tree = await asyncio.to_thread(merged, layers)
            except FormatError as error:
                return Contents(problem=error)
            return await self._followed(session, manifest, tree, labels, room)

    async def _layer(self, session: Session, part: oci.Descriptor, room: Room) -> Layer | FormatError:
        remembered = self._layers.get(part.digest)
        if remembered is not None:
            return remembered
        layer = await _read(session, part, self._wants, room)
        if isinstance(layer, Layer) and sum(len(each.content or b"") for each in layer.members.values()) <= _SMALL:
            self._layers.put(part.digest, layer)
        return layer

    async def _followed(
        self, session: Session, manifest: oci.Manifest, tree: Mapping[str, tuple[int, Member]], labels: Mapping[str, str],
        room: Room,
    ) -> Contents:  # fmt: skip
        """The tree with the contents of hard links, which are other names of files in the same layer."""
        contents = {path: member for path, (_, member) in tree.items()}
        try:
            links = {
                path: (layer, clean_path(member.target.encode("utf-8", "surrogateescape")))
                for path, (layer, member) in tree.items() if member.kind is MemberKind.HARD_LINK
            }  # fmt: skip
        except OciError as error:
            return Contents(problem=error)
        for number in sorted({layer for layer, _ in links.values()}):
            targets = {target for layer, target in links.values() if layer == number}
            read = await _read(session, manifest.layers[number], targets.__contains__, room)
            if isinstance(read, FormatError):
                return Contents(problem=read)
            for path, (layer, target) in links.items():
                if layer != number:
                    continue
                file = read.members.get(target)
                if file is None or file.kind is not MemberKind.FILE:
                    text = f"/{path} is another name of /{target}, which is no file of the same layer"
                    return Contents(problem=OciError("layer-link", text))
                contents[path] = replace(file, path=path)
        return Contents(contents, labels)


async def _read(session: Session, part: oci.Descriptor, wants: Wants, room: Room) -> Layer | FormatError:
    """One layer to its end, whose digest is compared there; raises Refused, HTTPError."""
    reader = LayerReader(wants, room)
    problem: FormatError | None = None
    async for chunk in session.pieces(part):
        if problem is None:
            try:
                await asyncio.to_thread(reader.feed, chunk)
            except FormatError as error:
                problem = error
    try:
        return problem or reader.finish()
    except FormatError as error:
        return error
