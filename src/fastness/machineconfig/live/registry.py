"""Images in registries: which one a tag means, their labels and single files, read without pulling them.

    by_digest = await registry.resolve(tagged, access)
    labels = await registry.labels(image, access)
    content = await registry.file(image, "release-manifests/image-references", access)

A client of the OCI distribution specification, as small as these questions need: manifests, blobs, `Basic` and `Bearer`.
Whoever answers is not believed: every body is compared with the digest that was asked for, so a mirror can refuse and not lie.
What a tag means is the registry's own word, and the digest is that of the bytes which came, whatever its headers say.

* A password goes to the registry that it is for, and to the server of tokens that this one names, which must speak TLS where
  the registry does. A redirection to another host takes no password along.
* Everything has a bound: bodies, layers that are looked through, time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

import httpx

from fastness.formats import oci
from fastness.formats.cosign import Signature, signature_tag
from fastness.formats.errors import FormatError
from fastness.formats.oci_layer import file_in_layer
from fastness.machineconfig.live.image_signatures import read_signatures
from fastness.machineconfig.live.image_tree import Contents, TreeReader
from fastness.machineconfig.live.registry_session import Refused, Session, opened, trust_in, unanswered
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import RegistryAccess

MAX_LAYER: Final = 64 * 1024 * 1024
T = TypeVar("T")


class RegistryImages(Protocol):
    """Somebody who looks into images."""

    async def resolve(self, image: str, access: RegistryAccess) -> str:
        """The image that a tag means now, by digest; raises BadStreams."""

    async def labels(self, image: str, access: RegistryAccess) -> Mapping[str, str]:
        """The labels of an image by digest; raises BadStreams."""

    async def file(self, image: str, path: str, access: RegistryAccess) -> bytes:
        """A file of an image by digest; raises BadStreams."""


class RegistryClient:
    """Asks registries over HTTP."""

    async def resolve(self, image: str, access: RegistryAccess) -> str:
        """The image that a tag means now, by digest and under the name that it was asked for by; raises BadStreams."""
        reference = _reference(image)
        if reference.digest:
            return str(reference)
        return str(reference.at(await self._first(reference, access, Session.digest)))

    async def labels(self, image: str, access: RegistryAccess) -> Mapping[str, str]:
        """The labels in the configuration of an image; raises BadStreams."""

        async def read(session: Session) -> Mapping[str, str]:
            manifest = await session.manifest()
            return oci.labels(await session.blob(manifest.config, oci.MAX_CONFIG))

        return await self._asked(image, access, read)

    async def file(self, image: str, path: str, access: RegistryAccess) -> bytes:
        """The topmost file of this path in the layers of an image; raises BadStreams."""

        async def read(session: Session) -> bytes:
            manifest = await session.manifest()
            for layer in reversed(manifest.layers):
                if layer.size > MAX_LAYER:
                    continue  # the base of an image, never the few files that were put on top
                body = await session.blob(layer, MAX_LAYER)
                content = await asyncio.to_thread(file_in_layer, body, path)
                if content is not None:
                    return content
            raise Refused(f"it has no file {path}")

        return await self._asked(image, access, read)

    async def contents(self, image: str, access: RegistryAccess, reader: TreeReader) -> Contents:
        """What a reader of trees asks for of an image by digest; raises BadStreams."""
        try:
            return await self._asked(image, access, reader.read_contents)
        except TimeoutError as error:
            raise BadStreams(f"{image} takes too long to read") from error

    async def signatures(self, image: str, access: RegistryAccess) -> list[Signature]:
        """The signatures beside an image by digest, where cosign puts them; none where there are none; raises BadStreams."""
        reference = _reference(image)
        tagged = oci.Reference(reference.registry, reference.repository, signature_tag(reference.digest))
        return await self._first(tagged, access, read_signatures)

    async def _asked(self, image: str, access: RegistryAccess, read: Callable[[Session], Awaitable[T]]) -> T:
        reference = _reference(image)
        if not reference.digest:
            raise BadStreams(f"{image} is no image by digest")
        return await self._first(reference, access, read)

    async def _first(
        self, reference: oci.Reference, access: RegistryAccess, read: Callable[[Session], Awaitable[T]]
    ) -> T:
        """What the first place that has the image answers."""
        try:
            trust = await asyncio.to_thread(trust_in, access.trust)
        except ssl.SSLError as error:
            raise BadStreams(f"{reference}: {error}") from error
        reasons = []
        for place in access.places(reference):
            try:
                async with opened(place, trust) as session:
                    return await read(session)
            except (Refused, FormatError) as error:
                reasons.append(f"{place.reference.registry}: {error}")
            except httpx.HTTPError as error:
                reasons.append(unanswered(place, error))
        raise BadStreams(f"{reference} cannot be read: {'; '.join(reasons) or 'nobody may be asked for it'}")


def _reference(image: str) -> oci.Reference:
    try:
        return oci.reference(image)
    except FormatError as error:
        raise BadStreams(f"{image}: {error}") from error
