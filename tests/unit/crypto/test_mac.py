"""Texts that only we can have written."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.errors import BadKey
from fastness.crypto.mac import MacKey, MacRing
from fastness.crypto.secret import SecretBytes

OLD, NEW = MacKey(SecretBytes(b"o" * 32)), MacKey(SecretBytes(b"n" * 32))
RING = MacRing([NEW, OLD])


@given(st.binary(max_size=300), st.text(max_size=20))
def test_what_was_written_is_read_for_the_same_purpose(payload: bytes, purpose: str) -> None:
    text = RING.write(purpose, payload)
    assert RING.read(purpose, text) == payload
    assert RING.read(purpose + "x", text) is None


@given(st.data())
def test_a_changed_character_is_not_ours(data: st.DataObject) -> None:
    text = RING.write("p", b"payload")
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("ABCxyz019-_").filter(lambda char: char != text[place]))
    changed = text[:place] + other + text[place + 1 :]
    read = RING.read("p", changed)
    # The last character may have unused bits: another spelling of the same bytes.
    assert read is None or (place == len(text) - 1 and read == b"payload")


def test_the_key_before_is_accepted_and_a_forgotten_one_is_not() -> None:
    text = MacRing([OLD]).write("p", b"x")
    assert RING.read("p", text) == b"x"
    assert MacRing([NEW]).read("p", text) is None


def test_the_first_key_signs() -> None:
    assert base64.urlsafe_b64decode(RING.write("p", b"") + "==")[:4] == NEW.id


@pytest.mark.parametrize("text", ["", "x", "=", "é", "a" * 10_000, "A" * 48, "!!!!"])
def test_damaged_text_is_not_ours(text: str) -> None:
    assert RING.read("p", text) is None


def test_keys_have_their_length_and_a_ring_has_keys() -> None:
    with pytest.raises(BadKey):
        MacKey(SecretBytes(b"short"))
    with pytest.raises(BadKey):
        MacRing([])
