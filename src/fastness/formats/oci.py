"""Images of a registry, as bytes and headers: references, manifests, configurations, challenges, credentials.

    reference("quay.example/team/app@sha256:…").repository     quay.example is asked for team/app
    manifest(body).size                                        what a pull would transfer
    labels(config)                                             what the maker of the image says about it

The layouts are those of the OCI image and distribution specifications and of Docker's second schema, which are read alike. What
a registry answers is believed by nobody: whoever fetches compares with the digest that was asked for (`matches`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import FormatError, ImageReferenceError, JsonError
from fastness.formats.image_reference import parse_image

MAX_MANIFEST: Final = 4 * 1024 * 1024  # the limit that registries have for what is pushed
MAX_CONFIG: Final = 4 * 1024 * 1024
MAX_CREDENTIALS: Final = 1024 * 1024
MAX_ENTRIES: Final = 1024
MAX_HEADER: Final = 4096
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_MANIFEST)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_PARAMETER: Final = re.compile(r'([a-z_]{1,32})="([^"\\]{0,2048})"', re.ASCII)
_MAX_LAYER: Final = 2**62
_IMAGES: Final = frozenset((
    "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
))  # fmt: skip
_LISTS: Final = frozenset((
    "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
))  # fmt: skip


class OciError(FormatError):
    """Not an image, not a name of one, or beyond a limit."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(
            code, message, path, hint or "Look at the image with `skopeo inspect`; push it anew if it is damaged."
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an image is: which registry is asked, for which repository, and for which tag or digest of it."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """What a registry is asked for: the digest, which says exactly which bytes, before any tag."""
        return self.digest or self.tag

    def at(self, digest: str) -> Reference:
        """Other bytes of the same repository."""
        return Reference(self.registry, self.repository, digest=digest)

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}{f'@{self.digest}' if self.digest else f':{self.tag}'}"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One part of an image, by digest; `platform` is empty where nothing says for which machine it is."""

    digest: str
    size: int
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An image for one platform."""

    config: Descriptor
    layers: tuple[Descriptor, ...]

    @property
    def size(self) -> int:
        """The bytes of all layers as they are transferred: compressed."""
        return sum(layer.size for layer in self.layers)


@dataclass(frozen=True, slots=True)
class Index:
    """Images for several platforms."""

    images: tuple[Descriptor, ...]

    def of(self, platform: str) -> Descriptor:
        """The image for a platform, as `linux/amd64`; raises OciError."""
        for image in self.images:
            if image.platform == platform:
                return image
        offered = ", ".join(sorted({image.platform for image in self.images if image.platform})) or "none"
        raise OciError("image-platform", f"there is no image for {platform} (there are: {offered})")


@dataclass(frozen=True, slots=True)
class Challenge:
    """How a registry wants to be asked: `basic`, or `bearer` with a token of the server that `realm` names."""

    scheme: str
    parameters: Mapping[str, str]


def reference(text: str) -> Reference:
    """A full name of an image, with the registry in front; raises OciError."""
    try:
        image = parse_image(text)
    except ImageReferenceError as error:
        raise OciError("image-reference", error.message, hint=error.hint) from error
    registry, _, repository = image.repository.partition("/")
    # A first part without a dot or a port is a short name: which registry that means differs from machine to machine.
    short = "." not in registry and ":" not in registry and registry != "localhost"
    if short or (image.digest and not _DIGEST.match(image.digest)):
        hint = "Write it as HOST[:PORT]/REPOSITORY@sha256:DIGEST."
        raise OciError("image-reference", f"{text!r} is not the full name of an image", hint=hint)
    return Reference(registry, repository, image.tag if image.tag or image.digest else "latest", image.digest)


def digest_of(content: bytes) -> str:
    """The name that content has everywhere."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def digest_of_file(path: Path) -> str:
    """The name of what a file holds, however large; raises OSError."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, hashlib.sha256).hexdigest()}"


def manifest_digest(index: Mapping[str, Any]) -> str:
    """The one image of a layout, by its index; raises OciError."""
    entries = index.get("manifests")
    if not isinstance(entries, list) or len(entries) != 1:
        raise OciError("image-layout", "the layout does not hold one image")
    return _descriptor(entries[0]).digest


def matches(content: bytes, digest: str) -> bool:
    """Whether these are the bytes that a digest names."""
    return digest_of(content) == digest


def manifest(content: bytes) -> Manifest | Index:
    """What a registry answers for an image; raises OciError."""
    document = _document(content, MAX_MANIFEST, "manifest")
    _require_one_meaning(document)
    if isinstance(document.get("manifests"), list):
        return Index(tuple(_descriptor(entry) for entry in _entries(document["manifests"])))
    if not isinstance(document.get("layers"), list):
        raise OciError("image-manifest", "this is neither an image nor a list of images")
    return Manifest(_descriptor(document.get("config")), tuple(map(_descriptor, _entries(document["layers"]))))


def _require_one_meaning(document: Mapping[str, Any]) -> None:
    """A document that one program reads as an image and another as a list of images is neither (CVE-2021-41190)."""
    kind = document.get("mediaType")
    is_list = "manifests" in document
    if is_list and document.keys() & {"layers", "config", "fsLayers"}:
        raise OciError("image-manifest", "this is an image and a list of images at once")
    if kind is not None and (not isinstance(kind, str) or kind not in (_LISTS if is_list else _IMAGES)):
        raise OciError("image-manifest", f"this is not the {str(kind)[:80]!r} that it says it is")


def labels(content: bytes) -> dict[str, str]:
    """The labels in the configuration of an image; raises OciError."""
    config = _document(content, MAX_CONFIG, "configuration").get("config")
    values = config.get("Labels") if isinstance(config, dict) else None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise OciError("image-labels", "labels are not a map", "config.Labels")
    return {key: value for key, value in values.items() if isinstance(value, str)}


def challenge(header: str) -> Challenge:
    """The first challenge of a `WWW-Authenticate` header (RFC 9110, 11.6.1); raises OciError for another scheme."""
    scheme, _, rest = header[:MAX_HEADER].strip().partition(" ")
    if scheme.lower() not in ("basic", "bearer"):
        raise OciError("registry-challenge", f"the registry asks for {scheme[:32]!r}, which is not supported")
    return Challenge(scheme.lower(), dict(_PARAMETER.findall(rest)))


def credentials(content: bytes, image: Reference) -> tuple[str, str] | None:
    """User and password for an image out of a file of `podman login`, None where it has none; raises OciError.

    The longest entry that the name of the image lies in counts: a repository of its own before the whole registry.
    """
    entries = _document(content, MAX_CREDENTIALS, "file with credentials").get("auths")
    if not isinstance(entries, dict):
        return None
    place = f"{image.registry}/{image.repository}"
    while place:
        entry = entries.get(place)
        if isinstance(entry, dict):
            return _user_and_password(entry)
        place = place.rpartition("/")[0]
    return None


def passwords(content: bytes) -> list[str]:
    """Everything in a file of `podman login` by which somebody could log in; nothing where it cannot be read."""
    try:
        entries = _document(content, MAX_CREDENTIALS, "file with credentials").get("auths")
        given = [each for each in entries.values() if isinstance(each, dict)] if isinstance(entries, dict) else []
        logins = [login for each in given if (login := _user_and_password(each)) is not None]
    except OciError:
        return []
    written = [str(each[key]) for each in given for key in ("auth", "identitytoken", "registrytoken") if each.get(key)]
    return [*written, *(password for _, password in logins)]


def _user_and_password(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    if isinstance(entry.get("username"), str) and isinstance(entry.get("password"), str):
        return entry["username"], entry["password"]
    if not isinstance(entry.get("auth"), str):
        return None
    try:
        user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise OciError("registry-credentials", "an entry is not base64 of user:password", "auths") from error
    return (user, password) if user else None


def _document(content: bytes, limit: int, what: str) -> dict[str, Any]:
    if len(content) > limit:
        raise OciError("image-too-large", f"the {what} has more than {limit} bytes")
    try:
        document = json.decode(content, _LIMITS)
    except JsonError as error:
        raise OciError("image-json", f"the {what} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise OciError("image-json", f"the {what} is not a JSON object")
    return document


def _entries(values: list[Any]) -> list[Any]:
    if len(values) > MAX_ENTRIES:
        raise OciError("image-manifest", f"more than {MAX_ENTRIES} entries")
    return values


def _descriptor(value: Any) -> Descriptor:
    digest, size = (value.get("digest"), value.get("size")) if isinstance(value, dict) else (None, None)
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise OciError("image-manifest", "a part of the image has no digest of SHA-256")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_LAYER:
        raise OciError("image-manifest", "a part of the image has no size")
    given = value.get("platform")
    platform = f"{given.get('os')}/{given.get('architecture')}" if isinstance(given, dict) else ""
    return Descriptor(digest, size, platform)
