"""What `cfsctl` prints: the images of a composefs repository, what a pull brought, and the root on a command line.

    stored_images(data)      `cfsctl oci images --json`
    pulled_manifest(text)    `cfsctl oci pull`: the digest of the manifest that came
    root_on(line)            the word `composefs.digest=v1-sha512-12:…` of a kernel command line
    tag_of(image)            the name under which an image is kept: tags there cannot hold a digest as it is written

A root is named by the fs-verity digest of its EROFS image, which has the digest of every file in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fastness.formats import json
from fastness.formats.errors import ImageReferenceError, JsonError, OsStatusError
from fastness.formats.image_reference import parse_image

KARG: Final = "composefs.digest="
MAX_IMAGES: Final = 256
_ROOT: Final = re.compile(r"v1-sha512-12:([0-9a-f]{128})\Z", re.ASCII)
_MANIFEST: Final = re.compile(r"^manifest\s+(sha256:[0-9a-f]{64})\s*$", re.MULTILINE | re.ASCII)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_TAG: Final = re.compile(r"(?P<repository>.+):sha256-(?P<hex>[0-9a-f]{64})\Z", re.ASCII)
_HINT: Final = "Look at it with `cfsctl oci images --json` on that machine."


@dataclass(frozen=True, slots=True)
class Stored:
    """An image of a repository: its name there, and which image that is, by digest."""

    name: str
    image: str


def tag_of(image: str) -> str:
    """The name of an image in a repository; raises OsStatusError for one without a digest."""
    try:
        parsed = parse_image(image)
    except ImageReferenceError as error:
        raise OsStatusError("composefs-image", error.message, hint=error.hint) from error
    if not _DIGEST.match(parsed.digest):
        raise OsStatusError("composefs-image", f"{image[:80]} names no digest", hint="Name it as …@sha256:….")
    return f"{parsed.repository}:{parsed.digest.replace(':', '-')}"


def stored_images(data: bytes) -> tuple[Stored, ...]:
    """The images that are there; raises OsStatusError."""
    try:
        document = json.decode(data)
    except JsonError as error:
        raise OsStatusError("composefs-images", f"is not JSON: {error}", hint=_HINT) from error
    rows = document.get("images") if isinstance(document, dict) else None
    if not isinstance(rows, list) or len(rows) > MAX_IMAGES:
        raise OsStatusError("composefs-images", f"is no list images of at most {MAX_IMAGES}", "images", _HINT)
    return tuple(_stored(row) for row in rows)


def _stored(row: object) -> Stored:
    name, digest = (row.get("name"), row.get("manifest_digest")) if isinstance(row, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(digest, str) or not _DIGEST.match(digest):
        raise OsStatusError("composefs-images", "has an entry without name or digest", "images", _HINT)
    ours = _TAG.match(name)
    # Whoever installed the machine may have named its first image otherwise: the digest says which one it is.
    return Stored(name, f"{ours['repository'] if ours else 'installed.invalid/image'}@{digest}")


def pulled_manifest(text: str) -> str:
    """The digest of the manifest that a pull brought; empty where it says none."""
    match = _MANIFEST.search(text)
    return match[1] if match else ""


def root_on(line: str) -> str:
    """The root that a kernel command line names, in hex; empty where it names none, or more than one.

    With `?` a kernel may go on without comparing: that is no name of a root.
    """
    words = [word.removeprefix(KARG) for word in line.split() if word.startswith(KARG)]
    match = _ROOT.match(words[0]) if len(words) == 1 else None
    return match[1] if match else ""
