"""Hostile bytes against every parser of the key broker."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.errors import BrokenSeal
from fastness.crypto.jwe import opened, sealed
from fastness.crypto.jwk import public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.mac import MacKey, MacRing
from fastness.crypto.secret import SecretBytes
from fastness.formats.errors import FormatError
from fastness.protocol.kbs import KbsAttestation
from fastness.protocol.kbs_path import parse_path
from fastness.release.handshake import Handshake, HandshakeError
from tests.fuzz.broker import TARGETS
from tests.fuzz.driver import Target, run
from tests.virtual import START, SeededEntropy


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_messages_give_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_a_value_or_a_format_error(target: Target, data: bytes) -> None:
    try:
        target.parse(data)
    except FormatError:
        return


def test_mutated_cookies_open_nothing() -> None:
    macs = MacRing([MacKey(SecretBytes(b"k" * 32))])
    shake = Handshake(macs, "kbs")
    cookie = shake.opened({"sub": "x"}, START.replace(year=2027))
    generator = random.Random(5)
    for _ in range(3000):
        raw = bytearray(base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)))
        raw[generator.randrange(len(raw))] ^= 1 << generator.randrange(8)
        if generator.random() < 0.3:
            del raw[generator.randrange(len(raw)) :]
        text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        with pytest.raises(HandshakeError):
            shake.session(text, START)
        with pytest.raises(HandshakeError):
            shake.answered(text, KbsAttestation("n", {}, {}), START)


def test_mutated_answers_do_not_open() -> None:
    key = PrivateKey.generate(SeededEntropy(1))
    value = json.loads(sealed(SecretBytes(b"secret"), public_key(public_jwk(key)), SeededEntropy(2)))
    generator = random.Random(6)
    for _ in range(400):
        name = generator.choice(list(value))
        part = bytearray(value[name].encode())
        part[generator.randrange(len(part))] = generator.choice(b"ABCabc019_-.=+")
        if part.decode() == value[name]:
            continue
        with pytest.raises(BrokenSeal):
            opened(json.dumps({**value, name: part.decode()}).encode(), key)


@given(st.text(max_size=80))
def test_arbitrary_text_is_a_path_of_three_plain_segments_or_none(text: str) -> None:
    path = parse_path(text)
    assert path is None or (str(path) == text and ".." not in path.segments and "." not in path.segments)
