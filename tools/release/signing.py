"""Signatures as cosign makes and finds them: ECDSA on P-256 with SHA-256, next to the image, under a tag made of its digest.

    sign_image(layout, digest, key, "fastness")     one more manifest in the layout: `sha256-….sig`
    check_image(layout, digest, public)             raises ReleaseError unless this key signed this digest
    sign(key, content)                              base64, as `cosign sign-blob` writes it and `openssl dgst` reads it

What is signed is a small document that names the digest ("simple signing"). A signature of the same bytes with the same key is
always the same one (RFC 6979), so a whole release can be made again and compared.
"""

from __future__ import annotations

import base64
import binascii
import json
import stat
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tools.release import layout as layouts
from tools.release.errors import ReleaseError

PAYLOAD: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
ANNOTATION: Final = "dev.cosignproject.cosign/signature"
KIND: Final = "cosign container image signature"
_MAKE: Final = (
    "Make one by `openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out release.key`."
)

PrivateKey = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey


def private_key(path: Path) -> PrivateKey:
    """The key of a release from a file that only its owner reads; raises ReleaseError."""
    if not path.is_file():
        raise ReleaseError("key-missing", f"there is no key in {path}", _MAKE)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ReleaseError("key-exposed", f"others than its owner may read {path}", f"chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ReleaseError("key-form", f"{path} is not an unencrypted private key in PEM", _MAKE) from error
    if not isinstance(key, PrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ReleaseError("key-kind", f"{path} is not an ECDSA key on P-256", _MAKE)
    return key


def public_key(pem: bytes) -> PublicKey:
    """A public key from PEM; raises ReleaseError."""
    hint = "Give the public key of the release, as `openssl pkey -pubout` writes it."
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ReleaseError("key-form", "this is not a public key in PEM", hint) from error
    if not isinstance(key, PublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ReleaseError("key-kind", "this is not an ECDSA key on P-256", hint)
    return key


def public_pem(key: PrivateKey) -> bytes:
    """The public half, for those who verify."""
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )  # fmt: skip


def sign(key: PrivateKey, content: bytes) -> str:
    """A signature of some bytes, as base64 of its DER form."""
    return base64.b64encode(key.sign(content, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))).decode()


def check(key: PublicKey, content: bytes, signature: str) -> None:
    """Raise ReleaseError unless the key signed these bytes."""
    hint = "Do not use it: get the release anew, and compare the key with the one that the project publishes."
    try:
        key.verify(base64.b64decode(signature.strip(), validate=True), content, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise ReleaseError("signature", "the signature is not of these bytes by this key", hint) from error


def signature_tag(digest: str) -> str:
    """Where cosign looks for the signatures of an image."""
    return f"{digest.replace(':', '-')}.sig"


def payload(digest: str, reference: str) -> bytes:
    """What is signed in place of an image."""
    image = {"docker-manifest-digest": digest}
    critical = {"identity": {"docker-reference": reference}, "image": image, "type": KIND}
    return layouts.encode({"critical": critical, "optional": None})


def sign_image(layout: Path, digest: str, key: PrivateKey, reference: str) -> str:
    """Put a signature of an image beside it; the signature itself."""
    content = payload(digest, reference)
    signature = sign(key, content)
    blob = layouts.add_blob(layout, content)
    part = {"mediaType": PAYLOAD, "digest": blob, "size": len(content), "annotations": {ANNOTATION: signature}}
    config = {"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": [blob]}}
    layouts.add_manifest(layout, layouts.encode(config), [part], signature_tag(digest), {})
    return signature


def check_image(layout: Path, digest: str, key: PublicKey) -> None:
    """Raise ReleaseError unless a signature beside the image is of its digest and by this key."""
    place = layouts.tagged(layout, signature_tag(digest))
    hint = "Do not use the image, or verify it by a signature that you have from elsewhere."
    if place is None:
        raise ReleaseError("unsigned", f"{digest} has no signature", hint)
    for part in layouts.document(layout, place)["layers"]:
        content = layouts.read_blob(layout, part["digest"])
        check(key, content, str(part.get("annotations", {}).get(ANNOTATION, "")))
        # Signed by the right key, but for another image: a signature that was moved here.
        if json.loads(content)["critical"]["image"]["docker-manifest-digest"] != digest:
            raise ReleaseError("signature-moved", f"the signature beside {digest} is of another image", hint)
