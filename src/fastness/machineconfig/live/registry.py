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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

import httpx

from fastness.formats import json, oci
from fastness.formats.errors import FormatError
from fastness.formats.oci_layer import file_in_layer
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import Place, RegistryAccess

PLATFORM: Final = "linux/amd64"
MAX_TOKEN: Final = 1024 * 1024
MAX_LAYER: Final = 64 * 1024 * 1024
_TYPES: Final = ", ".join((
    "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
))  # fmt: skip
_TIMEOUT: Final = httpx.Timeout(30.0)
T = TypeVar("T")


class RegistryImages(Protocol):
    """Somebody who looks into images."""

    async def resolve(self, image: str, access: RegistryAccess) -> str:
        """The image that a tag means now, by digest; raises BadStreams."""

    async def labels(self, image: str, access: RegistryAccess) -> Mapping[str, str]:
        """The labels of an image by digest; raises BadStreams."""

    async def file(self, image: str, path: str, access: RegistryAccess) -> bytes:
        """A file of an image by digest; raises BadStreams."""


class _Refused(Exception):
    """One place did not give what was asked for; another may."""


class _Session:
    """One image at one place."""

    def __init__(self, http: httpx.AsyncClient, place: Place) -> None:
        self._http = http
        self._place = place
        self._image = place.reference
        self._authorization: str | None = None

    async def manifest(self) -> oci.Manifest:
        """What the image is made of, for one platform; raises FormatError, _Refused, HTTPError."""
        content = oci.manifest(
            await self._verified(f"manifests/{self._image.digest}", self._image.digest, oci.MAX_MANIFEST)
        )
        if isinstance(content, oci.Index):
            # Labels are the same for all platforms of a stream: which one is looked at does not matter.
            platforms = {image.platform for image in content.images}
            chosen = content.of(PLATFORM) if PLATFORM in platforms or not content.images else content.images[0]
            content = oci.manifest(await self._verified(f"manifests/{chosen.digest}", chosen.digest, oci.MAX_MANIFEST))
        if isinstance(content, oci.Index):
            raise _Refused("a list of images names another list")
        return content

    async def digest(self) -> str:
        """The digest of what a tag names; raises FormatError, _Refused, HTTPError."""
        body = await self._get(f"manifests/{self._image.tag}", oci.MAX_MANIFEST)
        oci.manifest(body)  # a page of an error has a digest, too
        return oci.digest_of(body)

    async def blob(self, part: oci.Descriptor, most: int) -> bytes:
        """A part of the image; raises _Refused, HTTPError, FormatError."""
        return await self._verified(f"blobs/{part.digest}", part.digest, most)

    async def _verified(self, path: str, digest: str, most: int) -> bytes:
        body = await self._get(path, most)
        if not oci.matches(body, digest):
            raise _Refused(f"it answered with something else than {digest}")
        return body

    async def _get(self, path: str, most: int) -> bytes:
        scheme = "http" if self._place.insecure else "https"
        url = f"{scheme}://{self._image.registry}/v2/{self._image.repository}/{path}"
        for attempt in range(2):
            headers = {"accept": _TYPES, **({"authorization": self._authorization} if self._authorization else {})}
            async with self._http.stream("GET", url, headers=headers) as answer:
                if answer.status_code == httpx.codes.UNAUTHORIZED and attempt == 0:
                    challenge = oci.challenge(answer.headers.get("www-authenticate", ""))
                elif answer.status_code != httpx.codes.OK:
                    raise _Refused(f"it answered {answer.status_code} for {path}")
                else:
                    return await _bounded(answer, most)
            self._authorization = await self._authorize(challenge)
        raise _Refused("it wants other credentials")

    async def _authorize(self, challenge: oci.Challenge) -> str:
        """The header that a registry asks for."""
        login = httpx.BasicAuth(*self._place.login) if self._place.login else None
        if challenge.scheme == "basic":
            if login is None:
                raise _Refused("it wants credentials, and the pull secret has none for it")
            request = next(login.auth_flow(httpx.Request("GET", "https://unused.invalid")))
            return str(request.headers["authorization"])
        realm = challenge.parameters.get("realm", "")
        # Without TLS anybody on the way would read the password; a registry that speaks it must not send us to one that does not.
        if not realm.startswith("https://") and not (self._place.insecure and realm.startswith("http://")):
            raise _Refused("it names no server of tokens that speaks TLS")
        query = {
            "service": challenge.parameters.get("service", ""),
            "scope": f"repository:{self._image.repository}:pull",
        }
        request = self._http.build_request("GET", realm, params=query)
        answer = await self._http.send(request, auth=login, stream=True)
        try:
            if answer.status_code != httpx.codes.OK:
                raise _Refused(f"its server of tokens answered {answer.status_code}")
            document = json.decode(await _bounded(answer, MAX_TOKEN))
        finally:
            await answer.aclose()
        token = (document.get("token") or document.get("access_token")) if isinstance(document, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise _Refused("its server of tokens gave none")
        return f"Bearer {token}"


async def _bounded(answer: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > most:
            raise _Refused(f"it answered with more than {most} bytes")
    return bytes(body)


def _trust(bundle: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if bundle:
        context.load_verify_locations(cadata=bundle)
    return context


@asynccontextmanager
async def _session(place: Place, trust: ssl.SSLContext) -> AsyncIterator[_Session]:
    async with httpx.AsyncClient(verify=trust, timeout=_TIMEOUT, follow_redirects=True, max_redirects=5) as http:
        yield _Session(http, place)


class RegistryClient:
    """Asks registries over HTTP."""

    async def resolve(self, image: str, access: RegistryAccess) -> str:
        """The image that a tag means now, by digest and under the name that it was asked for by; raises BadStreams."""
        reference = _reference(image)
        if reference.digest:
            return str(reference)
        return str(reference.at(await self._first(reference, access, _Session.digest)))

    async def labels(self, image: str, access: RegistryAccess) -> Mapping[str, str]:
        """The labels in the configuration of an image; raises BadStreams."""

        async def read(session: _Session) -> Mapping[str, str]:
            manifest = await session.manifest()
            return oci.labels(await session.blob(manifest.config, oci.MAX_CONFIG))

        return await self._asked(image, access, read)

    async def file(self, image: str, path: str, access: RegistryAccess) -> bytes:
        """The topmost file of this path in the layers of an image; raises BadStreams."""

        async def read(session: _Session) -> bytes:
            manifest = await session.manifest()
            for layer in reversed(manifest.layers):
                if layer.size > MAX_LAYER:
                    continue  # the base of an image, never the few files that were put on top
                body = await session.blob(layer, MAX_LAYER)
                content = await asyncio.to_thread(file_in_layer, body, path)
                if content is not None:
                    return content
            raise _Refused(f"it has no file {path}")

        return await self._asked(image, access, read)

    async def _asked(self, image: str, access: RegistryAccess, read: Callable[[_Session], Awaitable[T]]) -> T:
        reference = _reference(image)
        if not reference.digest:
            raise BadStreams(f"{image} is no image by digest")
        return await self._first(reference, access, read)

    async def _first(
        self, reference: oci.Reference, access: RegistryAccess, read: Callable[[_Session], Awaitable[T]]
    ) -> T:
        """What the first place that has the image answers."""
        try:
            trust = await asyncio.to_thread(_trust, access.trust)
        except ssl.SSLError as error:
            raise BadStreams(f"{reference}: {error}") from error
        reasons = []
        for place in access.places(reference):
            try:
                async with _session(place, trust) as session:
                    return await read(session)
            except (_Refused, FormatError) as error:
                reasons.append(f"{place.reference.registry}: {error}")
            except httpx.HTTPError as error:
                reasons.append(f"{place.reference.registry} cannot be asked: {str(error) or type(error).__name__}")
        raise BadStreams(f"{reference} cannot be read: {'; '.join(reasons) or 'nobody may be asked for it'}")


def _reference(image: str) -> oci.Reference:
    try:
        return oci.reference(image)
    except FormatError as error:
        raise BadStreams(f"{image}: {error}") from error
