"""Images as OCI layouts: a directory of blobs by digest, with an index that names them.

    add(layout, image, tag)            one more image in a layout
    read(layout)                       what its index names
    archive(layout, target)            the same as one file, which skopeo, podman and ctr read

Documents are written sorted and without spaces to spare, so the same image has the same digest wherever it is written.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tools.release.errors import ReleaseError
from tools.release.layer import Layer, add_tree, placed

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
REF: Final = "org.opencontainers.image.ref.name"
MAX_DOCUMENT: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Built:
    """An image in a layout on this machine: what a test or a release needs to know of it."""

    name: str
    layout: Path
    tag: str
    digest: str
    size: int
    """What a node transfers, in bytes."""
    layers: tuple[Layer, ...] = field(repr=False)


def encode(document: object) -> bytes:
    """A document in its one form."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest_of(content: bytes) -> str:
    """The name of some bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def begin(layout: Path) -> None:
    """An empty layout."""
    (layout / "blobs/sha256").mkdir(parents=True)
    (layout / "oci-layout").write_bytes(encode({"imageLayoutVersion": "1.0.0"}))
    (layout / "index.json").write_bytes(encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}))


def add_image(
    layout: Path, config: Mapping[str, Any], layers: Sequence[Layer], tag: str, annotations: Mapping[str, str]
) -> str:
    """Write an image under a tag; its digest."""
    for layer in layers:
        target = _blob(layout, layer.digest)
        if not target.exists():
            placed(layer.blob, target)
    descriptors = [{"mediaType": LAYER, "digest": layer.digest, "size": layer.size} for layer in layers]
    return add_manifest(layout, encode(config), descriptors, tag, annotations)


def add_manifest(
    layout: Path, config: bytes, layers: Sequence[Mapping[str, Any]], tag: str, annotations: Mapping[str, str]
) -> str:
    """Write a manifest whose layers are there already; its digest."""
    manifest: dict[str, Any] = {
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": add_blob(layout, config), "size": len(config)}, "layers": list(layers),
    }  # fmt: skip
    if annotations:
        manifest["annotations"] = dict(annotations)
    content = encode(manifest)
    digest = add_blob(layout, content)
    entry = {"mediaType": MANIFEST, "digest": digest, "size": len(content), "annotations": {REF: tag}}
    others = [each for each in entries(layout) if each["annotations"][REF] != tag]
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*others, entry]}
    (layout / "index.json").write_bytes(encode(index))
    return digest


def add_blob(layout: Path, content: bytes) -> str:
    """Write some bytes; their digest."""
    digest = digest_of(content)
    _blob(layout, digest).write_bytes(content)
    return digest


def entries(layout: Path) -> list[dict[str, Any]]:
    """What the index names."""
    listed: list[dict[str, Any]] = json.loads((layout / "index.json").read_bytes())["manifests"]
    return listed


def tagged(layout: Path, tag: str) -> str | None:
    """The digest under a tag."""
    return next((entry["digest"] for entry in entries(layout) if entry.get("annotations", {}).get(REF) == tag), None)


def document(layout: Path, digest: str) -> dict[str, Any]:
    """A manifest or configuration, compared with its digest; raises ReleaseError."""
    content = read_blob(layout, digest)
    parsed = json.loads(content)
    if not isinstance(parsed, dict):
        raise ReleaseError("layout-document", f"{digest} is not a document", "Get the image anew.")
    return parsed


def read_blob(layout: Path, digest: str) -> bytes:
    """Small bytes by digest, compared with it; raises ReleaseError."""
    path = _blob(layout, digest)
    if not path.is_file() or path.stat().st_size > MAX_DOCUMENT:
        raise ReleaseError("layout-blob", f"{digest} is missing or too large for a document", "Get the image anew.")
    content = path.read_bytes()
    if digest_of(content) != digest:
        raise ReleaseError("layout-changed", f"what is stored as {digest} is something else", "Get the image anew.")
    return content


def blob_path(layout: Path, digest: str) -> Path:
    """The file of a digest."""
    return _blob(layout, digest)


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, name = digest.partition(":")
    if algorithm != "sha256" or len(name) != 64 or not set(name) <= set("0123456789abcdef"):
        raise ReleaseError("layout-digest", f"{digest[:80]!r} is not a digest of SHA-256", "Get the image anew.")
    return layout / "blobs" / "sha256" / name


def archive(layout: Path, target: Path) -> None:
    """Write a layout as one file, always the same."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as sink:
        add_tree(sink, layout)
