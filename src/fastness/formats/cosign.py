"""Signatures of images as cosign writes them: a manifest under a tag made of the digest, and a small document that was signed.

    signature_tag("sha256:ab…")         "sha256-ab….sig", in the repository of the image
    parts(manifest)                     the documents, each with its signature
    signed_digest(document)             which image a document speaks of

What is signed is JSON that names the digest ("simple signing"); the signature is an annotation beside it, base64 of DER.
Whether a key made it is asked elsewhere (`images/signatures.py`).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json, oci
from fastness.formats.errors import FormatError, JsonError

MEDIA_TYPE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
ANNOTATION: Final = "dev.cosignproject.cosign/signature"
KIND: Final = "cosign container image signature"
MAX_SIGNATURES: Final = 32
MAX_DOCUMENT: Final = 64 * 1024
MAX_SIGNATURE: Final = 1024
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)
_HINT: Final = "Sign the image anew: `cosign sign --key KEY IMAGE@sha256:…`."


class SignatureError(FormatError):
    """This is not a signature of an image."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, "", _HINT)


@dataclass(frozen=True, slots=True)
class Signature:
    """A document that somebody signed, and the signature."""

    document: bytes
    signature: bytes


def signature_tag(digest: str) -> str:
    """Where the signatures of an image are."""
    return f"{digest.replace(':', '-')}.sig"


def parts(manifest: bytes) -> list[tuple[oci.Descriptor, bytes]]:
    """The documents that a manifest of signatures lists, each with its signature; raises SignatureError, OciError."""
    listed = oci.manifest(manifest)
    if isinstance(listed, oci.Index):
        raise SignatureError("signatures", "what is in the place of signatures is a list of images")
    layers: list[Any] = json.decode(manifest)["layers"]
    if len(layers) > MAX_SIGNATURES:
        raise SignatureError("signatures", f"there are more than {MAX_SIGNATURES} signatures")
    documents = []
    for layer, part in zip(layers, listed.layers, strict=True):
        notes = layer.get("annotations")
        text = notes.get(ANNOTATION) if isinstance(notes, dict) else None
        # Other kinds of statements live under the same tag; they are not signatures by a key.
        if layer.get("mediaType") == MEDIA_TYPE and isinstance(text, str):
            documents.append((part, _bytes(text)))
    return documents


def signed_digest(document: bytes) -> str:
    """The digest of the image that a signed document speaks of; raises SignatureError."""
    try:
        content = json.decode(document, json.JsonLimits(max_bytes=MAX_DOCUMENT))
    except JsonError as error:
        raise SignatureError("signed-document", f"what was signed is not JSON: {error}") from error
    critical = content.get("critical") if isinstance(content, dict) else None
    image = critical.get("image") if isinstance(critical, dict) else None
    digest = image.get("docker-manifest-digest") if isinstance(image, dict) else None
    if not isinstance(critical, dict) or critical.get("type") != KIND:
        raise SignatureError("signed-document", "what was signed is no statement about an image")
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise SignatureError("signed-document", "what was signed names no image by its digest")
    return digest


def _bytes(text: str) -> bytes:
    try:
        if len(text) > MAX_SIGNATURE:
            raise ValueError
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SignatureError("signatures", "a signature is not base64") from error
