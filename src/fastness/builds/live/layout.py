"""Images as directories (OCI image layout): the base that a build begins with, and what it made.

    name = write_base(directory, manifest, config)     beside blobs that were saved before
    made = collect(out, base, name, words)             what is pushed: a manifest, and where each of its parts lies; `words` say
                                                       of each layer on top of the base what it is

What a build left is hostile: a link, a device, a directory more than a layout has, a part that is missing or another than its
name says, more than may be pushed: each is a failed build. No name that it wrote is opened before it is a digest. Layers of
the base are not taken from it at all. The first layers of what was made must be those of the base, and the bytes that go to the
registry are the bytes that came from there: so the base of an image can be compared with the base that was named. Which layers
these are is remembered by digest outside the directory, for the build could write there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastness.builds.containerfile import LAYER as LAYER_NAME
from fastness.builds.errors import BuildFailed
from fastness.formats import json, oci
from fastness.formats.errors import FormatError

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
MOST_LAYERS: Final = 500
MOST_ENTRIES: Final = 2 * MOST_LAYERS
MOST_PUSHED: Final = 64 * 1024**3
"""What a build may give a registry; a file of zeros that takes no room on a disk is as long as it says here."""
_TODAY: Final = {
    "application/vnd.docker.image.rootfs.diff.tar.gzip": f"{LAYER}+gzip", "application/vnd.docker.image.rootfs.diff.tar": LAYER,
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip": f"{LAYER}+gzip",
}  # fmt: skip


class Part(NamedTuple):
    """A part of an image, and the file that holds it."""

    descriptor: oci.Descriptor
    path: Path


class Made(NamedTuple):
    """An image that can be pushed."""

    manifest: bytes
    parts: tuple[Part, ...]

    @property
    def digest(self) -> str:
        """The digest of the image."""
        return oci.digest_of(self.manifest)


def blob_path(layout: Path, digest: str) -> Path:
    """Where a part lies in a layout."""
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def write_base(layout: Path, manifest: bytes, config: bytes) -> str:
    """Make a layout of an image whose layers were saved, named `base`: its digest there; raises FormatError, OSError."""
    document, settings = json.decode(manifest), json.decode(config)
    if not isinstance(settings, dict):
        raise oci.OciError("image-config", "the configuration of the image is not a JSON object")
    layers = [
        {"mediaType": _today(each.get("mediaType")), "digest": each["digest"], "size": each["size"]}
        for each in document["layers"]
    ]
    if not settings.get("history"):
        # Builders count layers by the history, and makers of images may leave it out.
        settings["history"] = [{"created_by": "base"} for _ in layers]
    described = _stored(layout, json.canonical(settings), CONFIG)
    whole = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": layers}
    entry = _stored(layout, json.canonical(whole), MANIFEST)
    named = {**entry, "annotations": {"org.opencontainers.image.ref.name": "base"}}
    (layout / "index.json").write_bytes(json.canonical({"schemaVersion": 2, "manifests": [named]}))
    (layout / "oci-layout").write_bytes(b'{"imageLayoutVersion":"1.0.0"}')
    return str(entry["digest"])


def _today(media_type: object) -> str:
    """The name that a kind of layer has now; raises FormatError."""
    if media_type is not None and not isinstance(media_type, str):
        raise oci.OciError("image-manifest", "the kind of a layer is no text")
    return _TODAY.get(media_type or "", media_type or f"{LAYER}+gzip")


def _stored(layout: Path, content: bytes, media_type: str) -> dict[str, Any]:
    digest = oci.digest_of(content)
    blob_path(layout, digest).write_bytes(content)
    return {"mediaType": media_type, "digest": digest, "size": len(content)}


def collect(out: Path, base: Path, base_digest: str, words: Sequence[str] = ()) -> Made:
    """What a build made, on the layers of its base; raises BuildFailed."""
    try:
        _require_plain(out)
        _require_plain(base)
        first, first_config = _image(base, base_digest)
        second, config = _image(out, oci.manifest_digest(json.decode(_read(out / "index.json"))))
        before = list(first_config["rootfs"]["diff_ids"])
        after = list(config["rootfs"]["diff_ids"])
        layers = second["layers"]
        if after[: len(before)] != before or len(after) != len(layers) or len(first["layers"]) != len(before):
            raise BuildFailed("the layers of the base image changed in the build")
        unchanged = first["layers"]
        layers = [*unchanged, *_labelled(layers[len(unchanged) :], words)]
        if len(layers) > MOST_LAYERS:
            raise BuildFailed(f"the image has more than {MOST_LAYERS} layers")
        manifest = json.canonical(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": second["config"], "layers": layers}
        )
        image = oci.manifest(manifest)
        if isinstance(image, oci.Index):
            raise BuildFailed("the build made a list of images")
        if sum({part.digest: part.size for part in image.layers}.values()) > MOST_PUSHED:
            raise BuildFailed(f"the image has more than {MOST_PUSHED} bytes")
        places = [base] * len(unchanged) + [out] * (len(layers) - len(unchanged))
        parts = [Part(image.config, blob_path(out, image.config.digest))]
        parts += [
            Part(layer, blob_path(place, layer.digest)) for layer, place in zip(image.layers, places, strict=True)
        ]
        # Each once: a manifest may name one large part as often as it likes.
        for part in dict.fromkeys(parts):
            _require_content(part)
        return Made(manifest, tuple(parts))
    except (FormatError, OSError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BuildFailed(f"what the build left is not an image: {error}") from error


def _labelled(layers: list[dict[str, Any]], words: Sequence[str]) -> list[dict[str, Any]]:
    """Layers with a word about what each is; those beyond the words are more of what the last one is."""
    if not words:
        return layers
    every = [*words, *([words[-1]] * (len(layers) - len(words)))]
    return [
        {**each, "annotations": {**(each.get("annotations") or {}), LAYER_NAME: word}}
        for each, word in zip(layers, every, strict=False)
    ]


def _image(layout: Path, digest: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and configuration of an image of a layout; raises FormatError, OSError, KeyError, TypeError."""
    content = _named(layout, digest)
    parsed = oci.manifest(content)
    if isinstance(parsed, oci.Index):
        raise BuildFailed("the build made a list of images")
    return json.decode(content), json.decode(_named(layout, parsed.config.digest))


def _named(layout: Path, digest: str) -> bytes:
    content = _read(blob_path(layout, digest))
    if oci.digest_of(content) != digest:
        raise BuildFailed(f"a part of the image is not what its name says: {digest}")
    return content


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(oci.MAX_MANIFEST + 1)
    if len(content) > oci.MAX_MANIFEST:
        raise BuildFailed(f"{path.name} of the image is too large")
    return content


def _require_plain(layout: Path) -> None:
    """A layout is two files and one directory of parts: whatever else lies there was put there; raises BuildFailed, OSError."""
    directories = {layout, layout / "blobs", layout / "blobs" / "sha256"}
    for directory in sorted(directories):
        if not stat.S_ISDIR(directory.lstat().st_mode):
            raise BuildFailed(f"the build left something else in the place of the directory {directory.name}")
        with os.scandir(directory) as entries:
            for number, entry in enumerate(entries):
                kind = stat.S_ISDIR if Path(entry.path) in directories else stat.S_ISREG
                if number >= MOST_ENTRIES or not kind(entry.stat(follow_symlinks=False).st_mode):
                    raise BuildFailed(
                        f"the build left {entry.name[:80]!r} in the place of its image, which is no part of one"
                    )


def _require_content(part: Part) -> None:
    if oci.digest_of_file(part.path) != part.descriptor.digest or part.path.stat().st_size != part.descriptor.size:
        raise BuildFailed(f"a part of the image is not what its name says: {part.descriptor.digest}")
