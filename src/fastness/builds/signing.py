"""A signature beside an image that was built here, as cosign writes and finds it.

    beside = signature_of("registry.example/os/worker@sha256:…", key.sign_der)
    beside.tag, beside.parts, beside.manifest       what goes to the repository of the image

What is signed names the digest of the image and where it was pushed. The same image and key give another signature each time
(ECDSA), so one that is there is not made anew.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

from fastness.formats import json
from fastness.formats.cosign import ANNOTATION, KIND, MEDIA_TYPE, signature_tag

MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"


class Beside(NamedTuple):
    """Something that lies beside an image: its tag, its parts by digest, and the manifest that lists them."""

    tag: str
    parts: dict[str, bytes]
    manifest: bytes


def signature_of(image: str, sign: Callable[[bytes], bytes]) -> Beside:
    """The signature of an image by digest; `sign` gives ECDSA on P-256 over SHA-256, as DER."""
    repository, _, digest = image.partition("@")
    critical = {
        "identity": {"docker-reference": repository}, "image": {"docker-manifest-digest": digest}, "type": KIND,
    }  # fmt: skip
    document = json.canonical({"critical": critical, "optional": {"creator": "fastness"}})
    layer = _part(MEDIA_TYPE, document)
    config = json.canonical({
        "architecture": "", "os": "", "config": {}, "history": [{"created": "0001-01-01T00:00:00Z"}],
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    })  # fmt: skip
    noted = {**layer, "annotations": {ANNOTATION: base64.b64encode(sign(document)).decode()}}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": _part(CONFIG, config), "layers": [noted]}
    parts = {_digest(content): content for content in (config, document)}
    return Beside(signature_tag(digest), parts, json.canonical(manifest))


def _part(media_type: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{sha256(content).hexdigest()}"
