"""What goes into the images of tests: a trust.json with keys of its own."""

from __future__ import annotations

import trustme

from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json


def trust_document() -> bytes:
    """A trust.json that agents read."""
    authority = trustme.CA().cert_pem.bytes().decode()
    return json.encode({"ca": authority, "configKeys": [Ed25519Signer(SecretBytes(b"k" * 32)).verifier.jwk()]})
