"""CoreOS stream metadata: which boot images a release has, on every platform and architecture.

    stream = parse_stream(data)
    stream.architectures["x86_64"].amis["eu-west-1"].image      the AMI of a region
    stream.architectures["x86_64"].disks                        files to download, each with its hash
    stream.release_of_ami("ami-0d4a…")                          the release that an AMI was made of

The document is published with every release of the operating system, and lies in a ConfigMap of the cluster. Members that nobody
here asks for are passed over, whatever they hold: the format grows. What is read is text of a bounded length, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, StreamError

MAX_BYTES: Final = 1024 * 1024
MAX_ENTRIES: Final = 4096
MAX_TEXT: Final = 512
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=16)
_HINT: Final = "Put the stream metadata of the release into the key `stream`, as its installer does."
_EXTENSIONS: Final = "rhel-coreos-extensions"


@dataclass(frozen=True, slots=True)
class CloudImage:
    """An image that a cloud has already: how the cloud calls it, and the release that it was made of."""

    image: str
    release: str


@dataclass(frozen=True, slots=True)
class Disk:
    """A file to download: where it is, its SHA-256 as it lies there, and its release."""

    location: str
    sha256: str
    release: str


@dataclass(frozen=True, slots=True)
class MarketplaceImage:
    """An image in the marketplace of Azure."""

    publisher: str
    offer: str
    sku: str
    version: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a release has for one architecture; `marketplace` is by variant and generation: `no-purchase-plan`, `hyperVGen2`."""

    releases: Mapping[str, str]
    disks: tuple[Disk, ...]
    amis: Mapping[str, CloudImage]
    gcp_project: str
    gcp: CloudImage | None
    marketplace: Mapping[tuple[str, str], MarketplaceImage]


@dataclass(frozen=True, slots=True)
class Stream:
    """The boot images of a release."""

    name: str
    architectures: Mapping[str, Architecture]

    def release_of_ami(self, ami: str) -> str:
        """The release that an AMI was made of; empty when it is none of this stream."""
        images = (image for arch in self.architectures.values() for image in arch.amis.values())
        return next((image.release for image in images if image.image == ami), "")


def parse_stream(data: bytes) -> Stream:
    """Read stream metadata; raises StreamError."""
    try:
        document = json.decode(data, _LIMITS)
    except JsonError as error:
        raise StreamError("stream-json", f"stream metadata is no JSON: {error.message}", hint=_HINT) from error
    if not isinstance(document, dict) or not isinstance(document.get("architectures"), dict):
        raise StreamError("stream-shape", "stream metadata names no architectures", "architectures", _HINT)
    entries = _members(document["architectures"], "architectures")
    return Stream(_text(document, "stream"), {name: _architecture(value, name) for name, value in entries})


def _architecture(value: Mapping[str, Any], name: str) -> Architecture:
    artifacts = list(_members(value.get("artifacts"), f"architectures.{name}.artifacts"))
    images = _table(value, "images")
    gcp, aws = _table(images, "gcp"), _table(images, "aws")
    regions = _members(aws.get("regions"), f"architectures.{name}.images.aws.regions")
    gcp_name = _text(gcp, "name")
    return Architecture(
        releases={platform: _text(artifact, "release") for platform, artifact in artifacts},
        disks=tuple(disk for _, artifact in artifacts for disk in _disks(artifact)),
        amis={region: CloudImage(_text(entry, "image"), _text(entry, "release")) for region, entry in regions},
        gcp_project=_text(gcp, "project"),
        gcp=CloudImage(gcp_name, _text(gcp, "release")) if gcp_name else None,
        marketplace=dict(_marketplace(_table(_table(value, _EXTENSIONS), "marketplace"))),
    )


def _disks(artifact: Mapping[str, Any]) -> Iterator[Disk]:
    release = _text(artifact, "release")
    for _, kind in _members(artifact.get("formats"), "formats"):
        disk = _table(kind, "disk")
        if _text(disk, "location") and _text(disk, "sha256"):
            yield Disk(_text(disk, "location"), _text(disk, "sha256"), release)


def _marketplace(value: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], MarketplaceImage]]:
    for variant, generations in _members(value.get("azure"), "marketplace.azure"):
        for generation, image in _members(generations, f"marketplace.azure.{variant}"):
            parts = [_text(image, part) for part in ("publisher", "offer", "sku", "version")]
            if all(parts):
                yield (variant, generation), MarketplaceImage(*parts)


def _members(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The members of an object that are objects themselves; raises StreamError for more than anybody could mean."""
    if not isinstance(value, dict):
        return
    if len(value) > MAX_ENTRIES:
        raise StreamError("stream-too-large", f"it has more than {MAX_ENTRIES} members", path, _HINT)
    yield from ((name, entry) for name, entry in value.items() if isinstance(entry, dict))


def _table(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    below = value.get(name)
    return below if isinstance(below, dict) else {}


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) and len(text) <= MAX_TEXT else ""
