"""The layers of an image in a directory (OCI image layout): read as they lie there, nothing of them unpacked.

    layers = read_layers(directory, "01")           by its name in the index, or by its digest

Every part is compared with its digest as it is read: the directory may be anybody's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from fastness.formats import json, oci
from fastness.formats.errors import FormatError, JsonError
from fastness.formats.oci_tree import Layer, LayerReader, Room, Wants
from fastness.machineconfig.live.saved_images import MOST_BYTES, MOST_LAYERS
from fastness.runtime.errors import FastnessError

NAME: Final = "org.opencontainers.image.ref.name"
MOST_PATHS: Final = 1_000_000
MOST_INDEX: Final = 4 * 1024 * 1024
_STEP: Final = 1024 * 1024


class NoLayout(FastnessError):
    """A directory holds no image that can be read."""

    code = "no-image-layout"
    hint = "`skopeo copy docker://IMAGE oci:DIR:NAME` and `fastness image replay` write such directories."


def read_layers(directory: Path, name: str, wants: Wants, hashes: Wants) -> list[Layer]:
    """The layers of an image, the lowest first; raises NoLayout."""
    try:
        manifest = oci.manifest(_part(directory, digest_named(directory, name), oci.MAX_MANIFEST))
        if isinstance(manifest, oci.Index):
            raise NoLayout(f"{name} in {directory} is a list of images", "Name the image of one platform.")
        if manifest.size > MOST_BYTES or len(manifest.layers) > MOST_LAYERS:
            raise NoLayout(f"{name} has more than {MOST_BYTES} bytes or {MOST_LAYERS} layers")
        room = Room()
        return [_layer(directory, part.digest, wants, hashes, room) for part in manifest.layers]
    except FormatError as error:
        raise NoLayout(f"{name} in {directory} cannot be read: {error}") from error


def digest_named(directory: Path, name: str) -> str:
    """The digest of an image by its name in the index; the only one where no name is given; raises NoLayout."""
    if name.startswith("sha256:"):
        return name
    try:
        index = json.decode((directory / "index.json").read_bytes()[:MOST_INDEX])
        entries = {
            str((each.get("annotations") or {}).get(NAME, "")): str(each["digest"]) for each in index["manifests"]
        }
    except OSError as error:
        raise NoLayout(f"{directory}/index.json: {error.strerror}") from error
    except (JsonError, KeyError, TypeError, AttributeError) as error:
        raise NoLayout(f"{directory}/index.json is no index of images") from error
    if not name and len(entries) == 1:
        return next(iter(entries.values()))
    if name not in entries:
        raise NoLayout(f"{directory} has no image {name!r}", f"It has {', '.join(sorted(entries)) or 'none'}.")
    return entries[name]


def _layer(directory: Path, digest: str, wants: Wants, hashes: Wants, room: Room) -> Layer:
    reader, compared = LayerReader(wants, room, hashes=hashes, most_paths=MOST_PATHS), hashlib.sha256()
    try:
        with _blob(directory, digest).open("rb") as file:
            while piece := file.read(_STEP):
                compared.update(piece)
                reader.feed(piece)
    except OSError as error:
        raise NoLayout(f"{directory} lacks the layer {digest}: {error.strerror}") from error
    if f"sha256:{compared.hexdigest()}" != digest:
        raise NoLayout(f"the layer {digest} in {directory} has another digest")
    return reader.finish()


def _part(directory: Path, digest: str, most: int) -> bytes:
    try:
        content = _blob(directory, digest).read_bytes()
    except OSError as error:
        raise NoLayout(f"{directory} has no image {digest}: {error.strerror}") from error
    if len(content) > most or f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise NoLayout(f"{digest} in {directory} is too large, or has another digest")
    return content


def _blob(directory: Path, digest: str) -> Path:
    algorithm, _, hexadecimal = digest.partition(":")
    if algorithm != "sha256" or len(hexadecimal) != 64 or not set(hexadecimal) <= set("0123456789abcdef"):
        raise NoLayout(f"{digest[:80]!r} is no digest in sha256")
    return directory / "blobs" / algorithm / hexadecimal
