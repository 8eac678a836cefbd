"""Envelopes open with their key and their context, and in no other way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto import aead
from fastness.crypto.aead import HEADER_BYTES, OVERHEAD, KeyRing, SealKey, key_id_of
from fastness.crypto.errors import BadKey, BrokenSeal, SealKeyExhausted, UnknownSealKey
from fastness.crypto.secret import SecretBytes
from tests.unit.crypto.seeded import Seeded


def ring(seed: int = 1) -> KeyRing:
    return KeyRing([SealKey.generate(Seeded(seed))], Seeded(seed + 100))


@given(st.binary(max_size=300), st.binary(max_size=60))
def test_what_was_sealed_opens_with_the_same_context(plaintext: bytes, context: bytes) -> None:
    keys = ring()
    sealed = keys.seal(plaintext, context)
    assert keys.open(sealed, context) == plaintext
    assert len(sealed) == len(plaintext) + OVERHEAD


@given(st.binary(min_size=8, max_size=60), st.binary(max_size=20), st.binary(max_size=20))
def test_another_context_does_not_open(plaintext: bytes, context: bytes, other: bytes) -> None:
    if context == other:
        return
    keys = ring()
    with pytest.raises(BrokenSeal):
        keys.open(keys.seal(plaintext, context), other)


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=7))
def test_one_flipped_bit_anywhere_does_not_open(position: int, bit: int) -> None:
    keys = ring()
    sealed = bytearray(keys.seal(b"the secret", b"secrets/default/a"))
    sealed[position % len(sealed)] ^= 1 << bit
    with pytest.raises((BrokenSeal, UnknownSealKey)):
        keys.open(bytes(sealed), b"secrets/default/a")


@given(st.binary(max_size=80))
def test_rubbish_is_refused_and_never_crashes(data: bytes) -> None:
    with pytest.raises(BrokenSeal):
        ring().open(data, b"")


def test_every_prefix_of_an_envelope_is_refused() -> None:
    keys = ring()
    sealed = keys.seal(b"the secret", b"c")
    for length in range(len(sealed)):
        with pytest.raises(BrokenSeal):
            keys.open(sealed[:length], b"c")


def test_equal_plaintexts_give_different_envelopes() -> None:
    keys = ring()
    assert len({keys.seal(b"same", b"c") for _ in range(50)}) == 50


def test_unknown_key_is_named_by_its_id() -> None:
    sealed = ring(1).seal(b"x", b"c")
    with pytest.raises(UnknownSealKey, match=key_id_of(sealed).hex()):
        ring(2).open(sealed, b"c")


def test_new_primary_seals_and_old_keys_still_open() -> None:
    old = ring()
    sealed_before = old.seal(b"before", b"c")
    new = old.with_primary(SealKey.generate(Seeded(9)))
    sealed_after = new.seal(b"after", b"c")
    assert new.open(sealed_before, b"c") == b"before"
    assert key_id_of(sealed_after) == new.primary != old.primary
    with pytest.raises(UnknownSealKey):
        old.open(sealed_after, b"c")


def test_swapping_the_key_id_between_known_keys_does_not_open() -> None:
    keys = ring().with_primary(SealKey.generate(Seeded(9)))
    sealed = keys.seal(b"x", b"c")
    other = keys.keys[1].id
    with pytest.raises(BrokenSeal):
        keys.open(sealed[: HEADER_BYTES - len(other)] + other + sealed[HEADER_BYTES:], b"c")


def test_key_stops_before_nonces_could_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aead, "MAX_SEALS_PER_KEY", 2)
    keys = ring()
    keys.seal(b"", b"")
    keys.seal(b"", b"")
    with pytest.raises(SealKeyExhausted) as caught:
        keys.seal(b"", b"")
    assert "rotate" in caught.value.hint


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_keys_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(BadKey):
        SealKey(SecretBytes(bytes(length)))


def test_ring_needs_a_key() -> None:
    with pytest.raises(BadKey):
        KeyRing([], Seeded())


def test_broken_seal_is_a_value_error_as_the_store_expects() -> None:
    assert issubclass(BrokenSeal, ValueError)
    assert issubclass(UnknownSealKey, ValueError)
