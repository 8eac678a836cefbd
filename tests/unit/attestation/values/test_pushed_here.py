"""The controllers' word for an image is for this image and this pool, and nobody else can give it."""

from __future__ import annotations

import pytest

from fastness.attestation.values.pushed_here import is_vouched, vouch
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes

OURS, STRANGER = (Ed25519Signer(SecretBytes(seed * 32)) for seed in (b"o", b"s"))
KEYS = {OURS.verifier.id: OURS.verifier}
IMAGE = f"registry.example/os@sha256:{'a' * 64}"
WORD = vouch("worker", IMAGE, OURS)


def test_the_word_of_a_published_key_counts() -> None:
    assert is_vouched(WORD, "worker", IMAGE, KEYS)


@pytest.mark.parametrize(
    ("word", "pool", "image"),
    [
        (WORD, "gpu", IMAGE),
        (WORD, "worker", IMAGE.replace("a" * 64, "b" * 64)),
        (WORD, "worker", IMAGE.replace("registry", "other")),
        (vouch("worker", IMAGE, STRANGER), "worker", IMAGE),
        (f"{OURS.verifier.id} {vouch('worker', IMAGE, STRANGER).partition(' ')[2]}", "worker", IMAGE),
        ("", "worker", IMAGE),
        (OURS.verifier.id, "worker", IMAGE),
        (f"{OURS.verifier.id} %%%", "worker", IMAGE),
        (f"{OURS.verifier.id} ü", "worker", IMAGE),
    ],
)
def test_any_other_word_counts_for_nothing(word: str, pool: str, image: str) -> None:
    assert not is_vouched(word, pool, image, KEYS)


def test_without_keys_nothing_counts() -> None:
    assert not is_vouched(WORD, "worker", IMAGE, {})
