"""The registry of a simulated cluster: which images of operating systems exist, and what machines that boot them measure.

    STATE/registry/index.json      every image: by digest, its version, whether it is on offer
    STATE/registry/sha256-…        the manifest of an image: what it measures, of which the digest is made

An image is its manifest, so its digest follows from what a machine that boots it measures, and an approval of it carries the same
bytes. What is not in the index cannot be pulled, whatever it is called; a manifest that somebody changed is refused as a registry
client refuses it. The image that virtual machines are installed with is always there.

What is named after another registry is asked for there (`elsewhere`): virtual machines boot what a real registry has, and nothing
that it has not. Such an image measures by its digest: another image, other values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from fastness.agent.host.errors import ImageFailure
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import ImageReferenceError, JsonError
from fastness.formats.image_reference import ImageReference, digest_of, parse_image
from fastness.sim.tee.images import default_image

SIMULATED: Final = "simulated.fastness.dev/"
REPOSITORY: Final = f"{SIMULATED}machine"
INSTALLED_VERSION: Final = "42.1"
MOST: Final = 100
INDEX: Final = "index.json"
_LIST: Final = "`fastness sim images` lists what there is, `fastness sim push VERSION` makes another."
_VERSION: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}", re.ASCII)


class SimImage(NamedTuple):
    """One image: its reference by digest, its version, which is its tag, and whether it can be pulled."""

    reference: str
    version: str
    offered: bool = True

    @property
    def tagged(self) -> str:
        """Its reference by tag."""
        return f"{self.reference.partition('@')[0]}:{self.version}"


class SimRegistry:
    """The images below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.elsewhere: Callable[[str], str] | None = None

    @property
    def installed(self) -> str:
        """What virtual machines are installed with."""
        return _image(REPOSITORY, INSTALLED_VERSION).reference

    def images(self) -> list[SimImage]:
        """Every image that can be pulled, in order of names; raises ImageFailure."""
        return [image for image in self._images() if image.offered]

    def push(self, image: str) -> SimImage:
        """Make an image, named `version` or `repository:version`; again changes nothing; raises ImageFailure."""
        name = _named(image)
        made = _image(name.repository, name.tag)
        others = [entry for entry in self._images() if entry.tagged != made.tagged]
        if len(others) >= MOST:
            raise ImageFailure(f"the simulated registry holds at most {MOST} images")
        self._write(_file(made.reference), _manifest(made.version))
        self._save([*others, made])
        return made

    def withdraw(self, image: str) -> SimImage:
        """Take an image away; machines that run it go on running it; raises ImageFailure."""
        tagged = "" if "@" in image else str(_named(image))
        entry = next((entry for entry in self.images() if image == entry.reference or tagged == entry.tagged), None)
        if entry is None:
            raise ImageFailure(f"the simulated registry has no image {image}", _LIST)
        gone = entry._replace(offered=False)
        self._save([gone if each == entry else each for each in self._images()])
        return gone

    def pull(self, image: str) -> str:
        """The image that a reference means, by digest; raises ImageFailure."""
        try:
            name = parse_image(image)
        except ImageReferenceError as error:
            raise ImageFailure(f"image {image} cannot be pulled: {error.message}", error.hint) from error
        for entry in self.images():
            same = digest_of(entry.reference) == name.digest if name.digest else entry.version == name.tag
            if same and entry.reference.startswith(f"{name.repository}@"):
                self._check(entry)
                return entry.reference
        if self.elsewhere is not None and not name.repository.startswith(SIMULATED):
            return self.elsewhere(image)
        raise ImageFailure(f"image {image} cannot be pulled: the simulated registry has no such manifest", _LIST)

    def version(self, image: str) -> str:
        """The version of an image that a machine runs, also of one that was withdrawn."""
        digest = digest_of(image)
        versions = {digest_of(entry.reference): entry.version for entry in self._images()}
        # Of an image of another registry nothing is known but its digest, and that is what it measures by.
        unlisted = digest.partition(":")[2] if digest and not image.startswith(SIMULATED) else INSTALLED_VERSION
        return versions.get(digest, unlisted)

    def manifest(self, image: str) -> bytes:
        """What machines measure that boot an image, as its approval carries it; raises ImageFailure."""
        reference = self.pull(image)
        if not any(entry.reference == reference for entry in self.images()):
            return _manifest(self.version(reference))
        return self._check(next(entry for entry in self.images() if entry.reference == reference))

    def _check(self, image: SimImage) -> bytes:
        path = self._directory / _file(image.reference)
        if image.reference == self.installed and not path.exists():
            return _manifest(INSTALLED_VERSION)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ImageFailure(f"the simulated registry lost {image.reference}: {error.strerror}") from error
        if str(sha256(content)) != digest_of(image.reference):
            raise ImageFailure(f"the simulated registry holds other bytes under {image.reference}")
        return content

    def _images(self) -> list[SimImage]:
        path, base = self._directory / INDEX, _image(REPOSITORY, INSTALLED_VERSION)
        try:
            stored = json.decode(path.read_bytes()) if path.exists() else []
            images = [SimImage(str(each["image"]), str(each["version"]), bool(each["offered"])) for each in stored]
        except (OSError, JsonError, KeyError, TypeError) as error:
            raise ImageFailure(f"{path} cannot be read: {error}") from error
        listed = any(image.tagged == base.tagged for image in images)
        return sorted(images if listed else [*images, base])

    def _save(self, images: list[SimImage]) -> None:
        rows = [{"image": each.reference, "version": each.version, "offered": each.offered} for each in images]
        self._write(INDEX, json.encode(rows))

    def _write(self, name: str, content: bytes) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = self._directory / f".{name}.new"
            partial.write_bytes(content)
            partial.replace(self._directory / name)
        except OSError as error:
            raise ImageFailure(f"{self._directory / name} cannot be written: {error.strerror}") from error


@lru_cache(maxsize=8)
def _manifest(version: str) -> bytes:
    return json.canonical(default_image(version).manifest())


def _image(repository: str, version: str) -> SimImage:
    return SimImage(f"{repository}@{sha256(_manifest(version))}", version)


def _file(reference: str) -> str:
    return digest_of(reference).replace(":", "-")


def _named(image: str) -> ImageReference:
    """An image to be made: `version`, or `repository:version`."""
    text = image if ":" in image or "/" in image else f"{REPOSITORY}:{image}"
    try:
        reference = parse_image(text)
    except ImageReferenceError as error:
        raise ImageFailure(f"{image!r} is not the name of an image", "Write a version such as 43.0.") from error
    if not _VERSION.fullmatch(reference.tag) or reference.digest:
        raise ImageFailure(f"{image!r} has no version", "Write a version such as 43.0, or repository:43.0.")
    return reference
