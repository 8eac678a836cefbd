"""A talk with one registry about one image: manifests and blobs, read and written, with `Basic` and `Bearer`.

    async with opened(place, trust) as session:
        await session.manifest()
        await session.save(layer, path, most)          # large blobs go to the disk, compared with their digest on the way
    async with opened(place, trust, WRITE) as session:
        await session.upload(blob, path); await session.publish("tag", manifest, media_type)

Whoever answers is not believed: every body is compared with the digest that was asked for. A password goes to the registry that
it is for, and to the server of tokens that this one names, which must speak TLS where the registry does. What is written goes to
the registry itself: an upload that is sent on to another host is refused, for nobody said that this one may have the image.
Bodies are read as they come over the wire: packed once more, or three times, a few kilobytes would be all the memory there is.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx

from fastness.formats import json, oci
from fastness.machineconfig.streams.access import Place

PLATFORM: Final = "linux/amd64"
MAX_TOKEN: Final = 1024 * 1024
CHUNK: Final = 1024 * 1024
READ: Final = "pull"
WRITE: Final = "pull,push"
DELETE: Final = "pull,delete"
_TYPES: Final = ", ".join((
    "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
))  # fmt: skip
_TIMEOUT: Final = httpx.Timeout(30.0)


class Refused(Exception):
    """One place did not give what was asked for; another may. `status` is what it answered, 0 where it answered well."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def unanswered(place: Place, error: httpx.HTTPError) -> str:
    """Why a registry gave no answer, and what to do where that is plain."""
    text = f"{place.reference.registry} cannot be asked: {str(error) or type(error).__name__}"
    # What OpenSSL says of a server that answers a TLS greeting with HTTP; it names neither TLS nor a way out.
    if "WRONG_VERSION_NUMBER" in text:
        return (
            f"{place.reference.registry} answers without TLS: name it in registrySources.insecureRegistries of the Image "
            "`cluster` (config.openshift.io/v1) if nobody can come between"
        )
    return text


class Session:
    """One image at one place."""

    def __init__(self, http: httpx.AsyncClient, place: Place, actions: str = READ) -> None:
        self._http = http
        self._actions = actions
        self._place = place
        self._image = place.reference
        self._authorization: str | None = None

    async def manifest(self) -> oci.Manifest:
        """What the image is made of, for one platform; raises FormatError, Refused, HTTPError."""
        content = oci.manifest(await self.manifest_bytes())
        if isinstance(content, oci.Index):
            raise Refused("a list of images names another list")
        return content

    async def manifest_bytes(self) -> bytes:
        """The manifest of the image for one platform, as the registry has it; raises FormatError, Refused, HTTPError."""
        body = await self._verified(f"manifests/{self._image.digest}", self._image.digest, oci.MAX_MANIFEST)
        content = oci.manifest(body)
        if isinstance(content, oci.Index):
            # Labels are the same for all platforms of a stream: which one is looked at does not matter.
            platforms = {image.platform for image in content.images}
            chosen = content.of(PLATFORM) if PLATFORM in platforms or not content.images else content.images[0]
            body = await self._verified(f"manifests/{chosen.digest}", chosen.digest, oci.MAX_MANIFEST)
        return body

    async def digest(self) -> str:
        """The digest of what a tag names; raises FormatError, Refused, HTTPError."""
        return oci.digest_of(await self.tagged())

    async def tagged(self) -> bytes:
        """The manifest that a tag names, on the registry's word; raises FormatError, Refused, HTTPError."""
        body = await self._get(f"manifests/{self._image.tag}", oci.MAX_MANIFEST)
        oci.manifest(body)  # a page of an error has a digest, too
        return body

    async def blob(self, part: oci.Descriptor, most: int) -> bytes:
        """A part of the image; raises Refused, HTTPError, FormatError."""
        return await self._verified(f"blobs/{part.digest}", part.digest, most)

    async def _verified(self, path: str, digest: str, most: int) -> bytes:
        body = await self._get(path, most)
        if not oci.matches(body, digest):
            raise Refused(f"it answered with something else than {digest}")
        return body

    async def _get(self, path: str, most: int) -> bytes:
        async with self._answered("GET", path) as answer:
            return await _bounded(answer, most)

    async def save(self, part: oci.Descriptor, path: Path, look: Callable[[], None] = lambda: None) -> None:
        """A part of the image as a file; `look` may end it; raises Refused, HTTPError, FormatError, OSError."""
        with path.open("wb") as file:
            async for chunk in self.pieces(part):
                look()
                await asyncio.to_thread(file.write, chunk)

    async def pieces(self, part: oci.Descriptor) -> AsyncIterator[bytes]:
        """A part of the image as it comes; raises Refused, HTTPError, FormatError, Refused at the end where it is another one.

        What was read before the end is nobody's word yet: whoever reads believes none of it until this is through.
        """
        seen, count = hashlib.sha256(), 0
        async with self._answered("GET", f"blobs/{part.digest}") as answer:
            async for chunk in answer.aiter_raw(CHUNK):
                count += len(chunk)
                if count > part.size:
                    raise Refused(f"it answered with more than the {part.size} bytes of {part.digest}")
                seen.update(chunk)
                yield chunk
        if f"sha256:{seen.hexdigest()}" != part.digest:
            raise Refused(f"it answered with something else than {part.digest}")

    async def manifest_for(self, platform: str) -> oci.Manifest:
        """What the image for a platform is made of, and no other; raises FormatError, Refused, HTTPError."""
        body = await self._verified(f"manifests/{self._image.digest}", self._image.digest, oci.MAX_MANIFEST)
        content = oci.manifest(body)
        if isinstance(content, oci.Index):
            chosen = content.of(platform)
            content = oci.manifest(await self._verified(f"manifests/{chosen.digest}", chosen.digest, oci.MAX_MANIFEST))
        if isinstance(content, oci.Index):
            raise Refused("a list of images names another list")
        return content

    async def upload(self, part: oci.Descriptor, content: Path | bytes) -> None:
        """Have a part of an image in the registry, from a file or memory; raises Refused, HTTPError, FormatError, OSError."""
        try:
            async with self._answered("HEAD", f"blobs/{part.digest}"):
                return
        except Refused as refusal:
            if refusal.status != httpx.codes.NOT_FOUND:
                raise
        async with self._answered("POST", "blobs/uploads/", good=httpx.codes.ACCEPTED) as answer:
            place = _joined(self._base, answer.headers.get("location", ""))
        mine = httpx.URL(self._base)
        if (place.scheme, place.netloc) != (mine.scheme, mine.netloc):
            raise Refused(f"it sends uploads on to {place.host}")
        url = str(place.copy_merge_params({"digest": part.digest}))
        length = {"content-length": str(part.size), "content-type": "application/octet-stream"}
        async with self._answered("PUT", url, length, content, good=httpx.codes.CREATED):
            return

    async def publish(self, tag: str, manifest: bytes, media_type: str) -> None:
        """Give a manifest a tag; raises Refused, HTTPError, FormatError."""
        headers = {"content-type": media_type}
        async with self._answered("PUT", f"manifests/{tag}", headers, manifest, good=httpx.codes.CREATED):
            return

    async def exists(self) -> None:
        """Whether the registry has the image by its digest; raises Refused, HTTPError, FormatError."""
        await self._verified(f"manifests/{self._image.digest}", self._image.digest, oci.MAX_MANIFEST)

    async def delete(self) -> None:
        """Take the image away; raises Refused, HTTPError, FormatError."""
        async with self._answered("DELETE", f"manifests/{self._image.digest}", good=httpx.codes.ACCEPTED):
            return

    @property
    def _base(self) -> str:
        scheme = "http" if self._place.insecure else "https"
        return f"{scheme}://{self._image.registry}/v2/{self._image.repository}/"

    @asynccontextmanager
    async def _answered(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | Path = b"",
        good: int = httpx.codes.OK,
    ) -> AsyncIterator[httpx.Response]:  # fmt: skip
        """A good answer to a request, asked again with credentials where the registry wants some."""
        url = path if path.startswith(("http://", "https://")) else f"{self._base}{path}"
        for attempt in range(2):
            own = {
                "accept": _TYPES,
                "accept-encoding": "identity",
                **(headers or {}),
                **({"authorization": self._authorization} if self._authorization else {}),
            }
            body = _chunks(content) if isinstance(content, Path) else content or None
            reads = method in ("GET", "HEAD")
            request = self._http.build_request(method, url, headers=own, content=body)
            answer = await self._sent(request, follow=reads)
            try:
                if answer.status_code == good:
                    yield answer
                    return
                if answer.status_code != httpx.codes.UNAUTHORIZED or attempt:
                    raise Refused(f"it answered {answer.status_code} for {path.partition('?')[0]}", answer.status_code)
                challenge = oci.challenge(answer.headers.get("www-authenticate", ""))
            finally:
                await answer.aclose()
            self._authorization = await self._authorize(challenge)
        raise Refused("it wants other credentials", httpx.codes.UNAUTHORIZED)

    async def _sent(
        self, request: httpx.Request, login: httpx.Auth | None = None, *, follow: bool = True
    ) -> httpx.Response:
        """An answer, to be closed; raises Refused where a registry leads to no address, HTTPError."""
        try:
            return await self._http.send(request, auth=login, stream=True, follow_redirects=follow)
        except (httpx.InvalidURL, UnicodeError) as error:
            # A name that no resolver takes comes back as it is, from below the library.
            raise Refused(f"it names a place that is none: {error}") from error

    async def _authorize(self, challenge: oci.Challenge) -> str:
        """The header that a registry asks for."""
        login = httpx.BasicAuth(*self._place.login) if self._place.login else None
        if challenge.scheme == "basic":
            if login is None:
                raise Refused("it wants credentials, and the pull secret has none for it")
            request = next(login.auth_flow(httpx.Request("GET", "https://unused.invalid")))
            return str(request.headers["authorization"])
        realm = challenge.parameters.get("realm", "")
        # Without TLS anybody on the way would read the password; a registry that speaks it must not send us to one that does not.
        if not realm.startswith("https://") and not (self._place.insecure and realm.startswith("http://")):
            raise Refused("it names no server of tokens that speaks TLS")
        query = {
            "service": challenge.parameters.get("service", ""),
            "scope": f"repository:{self._image.repository}:{self._actions}",
        }
        request = self._http.build_request(
            "GET", _joined(realm, ""), params=query, headers={"accept-encoding": "identity"}
        )
        answer = await self._sent(request, login)
        try:
            if answer.status_code != httpx.codes.OK:
                raise Refused(f"its server of tokens answered {answer.status_code}")
            document = json.decode(await _bounded(answer, MAX_TOKEN))
        finally:
            await answer.aclose()
        token = (document.get("token") or document.get("access_token")) if isinstance(document, dict) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise Refused("its server of tokens gave none")
        return f"Bearer {token}"


def _joined(base: str, place: str) -> httpx.URL:
    """A place that a registry names; raises Refused for what is none."""
    try:
        return httpx.URL(base).join(place)
    except httpx.InvalidURL as error:
        raise Refused(f"it names a place that is none: {error}") from error


async def _bounded(answer: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > most:
            raise Refused(f"it answered with more than {most} bytes")
    return bytes(body)


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


def trust_in(bundle: str) -> ssl.SSLContext:
    """Whom to believe: the system's authorities, and these in PEM; raises SSLError."""
    context = ssl.create_default_context()
    if bundle:
        context.load_verify_locations(cadata=bundle)
    return context


@asynccontextmanager
async def opened(place: Place, trust: ssl.SSLContext, actions: str = READ) -> AsyncIterator[Session]:
    """A talk with the registry of a place, for the time of the block."""
    hooks = {"request": [_require_port]}
    async with httpx.AsyncClient(
        verify=trust, timeout=_TIMEOUT, follow_redirects=True, max_redirects=5, event_hooks=hooks
    ) as http:
        yield Session(http, place, actions)


async def _require_port(request: httpx.Request) -> None:
    """Whatever led here, there is such a port; raises Refused."""
    if not 0 < (request.url.port or 443) < 2**16:
        raise Refused(f"it names a place that is none: port {request.url.port}")
