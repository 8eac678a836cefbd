"""Images from and to registries: what the people of a registry are asked, outside of every sandbox.

    way = Way.to_read(access, reference)       who is asked, with which login, believing whom; all that a transfer needs
    await pull(way, base)                      the base as a directory
    await push(way, made, tag)                 what was built, under its tag

A way is what is left of a cluster's settings for one image: the login of its own registry, and no other. A registry that gives
byte after byte for ever is left after `MOST_SECONDS`, and one that would fill the disk when little is left on it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from fastness.builds.errors import TransferFailed
from fastness.builds.live.layout import MANIFEST, Made, blob_path, write_base
from fastness.builds.signing import Beside
from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.machineconfig.live.registry_session import (
    DELETE,
    READ,
    WRITE,
    Refused,
    Session,
    opened,
    trust_in,
    unanswered,
)
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import Place, RegistryAccess
from fastness.runtime.tasks import uninterrupted

MOST_BASE: Final = 32 * 1024**3
MOST_SECONDS: Final = 3600.0


class Way(NamedTuple):
    """Everybody who is asked for one image, in order, and whom to believe; `problem` is why nobody can be."""

    image: str
    places: tuple[Place, ...] = ()
    trust: str = ""
    problem: str = ""

    @classmethod
    def to_read(cls, access: RegistryAccess, image: str) -> Way:
        """Mirrors first, as nodes do."""
        try:
            return cls(image, tuple(access.places(oci.reference(image))), access.trust)
        except BadStreams as error:
            return cls(image, problem=str(error))

    @classmethod
    def to_write(cls, access: RegistryAccess, image: str) -> Way:
        """The registry that an image is named after, and nobody else."""
        try:
            return cls(image, (access.place(oci.reference(image)),), access.trust)
        except BadStreams as error:
            return cls(image, problem=str(error))

    @property
    def logins(self) -> list[tuple[str, str] | None]:
        """The credentials along this way."""
        return [place.login for place in self.places]

    def to_json(self) -> dict[str, Any]:
        """As it goes to whoever transfers elsewhere."""
        places = [
            {"image": str(each.reference), "insecure": each.insecure, "login": list(each.login) if each.login else None}
            for each in self.places
        ]
        return {"image": self.image, "places": places, "trust": self.trust, "problem": self.problem}

    @classmethod
    def of_json(cls, document: dict[str, Any]) -> Way:
        """The way that was written so; raises KeyError, TypeError, FormatError."""
        places = tuple(
            Place(oci.reference(str(each["image"])), bool(each["insecure"]), _login(each["login"]))
            for each in document["places"]
        )
        return cls(str(document["image"]), places, str(document["trust"]), str(document["problem"]))


def _login(written: Any) -> tuple[str, str] | None:
    return (str(written[0]), str(written[1])) if written else None


async def pull(way: Way, base: Path, what: str = "base image", look: Callable[[], None] = lambda: None) -> str:
    """An image by digest as a directory; the digest under which `collect` finds it there; raises TransferFailed, OSError.

    `look` is asked before each piece is written, and raises what ends the pull.
    """
    written = ""

    async def save(session: Session) -> None:
        nonlocal written
        body = await session.manifest_bytes()
        manifest = oci.manifest(body)
        if isinstance(manifest, oci.Index) or manifest.size > MOST_BASE:
            raise Refused(f"the image is a list of lists, or larger than {MOST_BASE} bytes")
        for layer in manifest.layers:
            await session.save(layer, blob_path(base, layer.digest), look)
        config = await session.blob(manifest.config, oci.MAX_CONFIG)
        written = await uninterrupted(lambda: write_base(base, body, config))

    await _asked(way, READ, save, f"the {what} {way.image} cannot be pulled")
    return written


async def push(way: Way, made: Made) -> str:
    """What was built, under the tag that its way names: the image by digest; raises TransferFailed, OSError."""
    reference = oci.reference(way.image)

    async def give(session: Session) -> None:
        for part in made.parts:
            await session.upload(part.descriptor, part.path)
        await session.publish(reference.tag, made.manifest, MANIFEST)

    await _asked(way, WRITE, give, f"{way.image} was not pushed")
    return str(reference.at(made.digest))


async def put_beside(way: Way, beside: Beside) -> None:
    """What belongs to an image, under a tag of its own in the repository of the image; raises TransferFailed."""

    async def give(session: Session) -> None:
        for digest, content in beside.parts.items():
            await session.upload(oci.Descriptor(digest, len(content)), content)
        await session.publish(beside.tag, beside.manifest, MANIFEST)

    await _asked(way, WRITE, give, f"{beside.tag} was not put beside {way.image}")


async def require(image: str, access: RegistryAccess) -> None:
    """Have the registry show an image; raises TransferFailed."""
    await _asked(Way.to_write(access, image), READ, Session.exists, f"{image} is not in its registry")


async def delete(image: str, access: RegistryAccess) -> None:
    """Take an image out of its registry; raises TransferFailed."""
    await _asked(Way.to_write(access, image), DELETE, Session.delete, f"{image} was not deleted")


Ask = Callable[[Session], Awaitable[None]]


async def _asked(way: Way, actions: str, ask: Ask, failure: str) -> None:
    """Ask one after the other; raises TransferFailed."""
    reasons, absent = [way.problem] if way.problem else [], bool(way.places)
    try:
        trust = await asyncio.to_thread(trust_in, way.trust)
        for place in way.places:
            try:
                async with asyncio.timeout(MOST_SECONDS), opened(place, trust, actions) as session:
                    return await ask(session)
            except (Refused, FormatError) as error:
                absent = absent and getattr(error, "status", 0) == httpx.codes.NOT_FOUND
                reasons.append(f"{place.reference.registry}: {error}")
            except TimeoutError:
                absent = False
                reasons.append(f"{place.reference.registry} was not done within {MOST_SECONDS:.0f} seconds")
            except httpx.HTTPError as error:
                absent = False
                reasons.append(unanswered(place, error))
    except (ssl.SSLError, BadStreams) as error:
        absent = False
        reasons.append(str(error))
    text = f"{failure}: {'; '.join(reasons) or 'nobody may be asked'}"
    raise TransferFailed(text, absent=absent, pushing=actions == WRITE)
