"""The controllers' own word that they had an image built and pushed for a pool: a signature that stands on the build.

    note = vouch(pool, image, signer)             written by the loop of builds, when whoever built gave it the digest
    is_vouched(note, pool, image, keys)           asked before a standing approval counts

The status of a MachineOSBuild says which image was made, and whoever may write statuses could have it say another. A standing
approval approves without anybody looking, so it is for images alone that carry this word: who changes the status, the labels or
the annotation has no key to go with it. It says nothing about which build it was: the same inputs make the same image, which
another build takes over together with the word. An image that was built elsewhere never has one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, Literal

from fastness.crypto.eddsa import Ed25519Signer, Ed25519Verifier
from fastness.formats import json

PUSHED_HERE: Final = "fastness.dev/pushed-here"
SIGNER: Final[Literal["controllers"]] = "controllers"
# The same key signs batches of the record and statuses of Machines: with another first line neither passes for the other.
_CONTEXT: Final = b"fastness.dev/pushed-here/v1\n"


def vouch(pool: str, image: str, signer: Ed25519Signer) -> str:
    """The word for an image by digest and the pool that it was built for."""
    return f"{signer.verifier.id} {base64.b64encode(signer.sign(_message(pool, image))).decode()}"


def is_vouched(note: str, pool: str, image: str, keys: Mapping[str, Ed25519Verifier]) -> bool:
    """Whether one of these keys says so; total."""
    key, _, text = note.partition(" ")
    verifier = keys.get(key)
    try:
        return verifier is not None and verifier.signed(base64.b64decode(text, validate=True), _message(pool, image))
    except (binascii.Error, ValueError):
        return False


def _message(pool: str, image: str) -> bytes:
    return _CONTEXT + json.canonical({"image": image, "pool": pool})
