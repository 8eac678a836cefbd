"""A signature beside an image: found where cosign puts it, believed for its digest and its key alone."""

from __future__ import annotations

import hashlib

from fastness.builds.signing import signature_of
from fastness.crypto.keys import PrivateKey
from fastness.formats import json
from fastness.formats.cosign import Signature, parts, signature_tag
from fastness.images.signatures import key_id, signed_by
from fastness.kinds.fastness_dev.image_approval import ImageSigner
from fastness.runtime.clock import SystemEntropy

DIGEST = f"sha256:{'1' * 64}"
IMAGE = f"registry.example/os/worker@{DIGEST}"
KEY, OTHER = (PrivateKey.generate(SystemEntropy()) for _ in range(2))


def signer(key: PrivateKey) -> ImageSigner:
    return ImageSigner(name="cluster", key=key.public_pem())


def test_what_is_beside_an_image_is_what_the_reader_of_signatures_finds() -> None:
    beside = signature_of(IMAGE, KEY.sign_der)
    assert beside.tag == signature_tag(DIGEST)
    signatures = [Signature(beside.parts[part.digest], signature) for part, signature in parts(beside.manifest)]
    mine, other = signer(KEY), signer(OTHER)
    assert signed_by(DIGEST, [mine, other], signatures) == {key_id(mine)}
    assert signed_by(f"sha256:{'2' * 64}", [mine], signatures) == frozenset()


def test_every_part_has_the_digest_and_the_size_that_the_manifest_says() -> None:
    beside = signature_of(IMAGE, KEY.sign_der)
    manifest = json.decode(beside.manifest)
    for part in (manifest["config"], *manifest["layers"]):
        content = beside.parts[part["digest"]]
        assert part["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert part["size"] == len(content)
    assert json.decode(beside.parts[manifest["config"]["digest"]])["rootfs"]["diff_ids"] == [
        manifest["layers"][0]["digest"]
    ]
