"""TPM structures: exact lengths, known numbers, nothing behind the end."""

from __future__ import annotations

import json
import struct

import pytest

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tpm.attest import parse_quote
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.formats.evidence.tpm.signature import parse_signature
from tests.evidence import tpm

ALL = tpm.selection("sha256", range(24))


def refusal(parse: object, data: bytes) -> str:
    with pytest.raises(EvidenceError) as caught:
        parse(data)  # type: ignore[operator]
    assert caught.value.hint
    return caught.value.code


def test_a_quote_reads_field_by_field() -> None:
    quote = parse_quote(tpm.message(b"\x07" * 32, [tpm.selection("sha256", (0, 8, 23))], b"nonce"))
    assert quote.extra_data == b"nonce"
    assert quote.digest == b"\x07" * 32
    assert [(entry.bank.name, entry.registers) for entry in quote.selections] == [("sha256", (0, 8, 23))]
    assert (quote.clock.milliseconds, quote.clock.resets, quote.clock.restarts, quote.clock.safe) == (1000, 2, 3, True)


def test_every_prefix_of_a_quote_and_of_a_signature_is_refused() -> None:
    for data, parse in (
        (tpm.message(bytes(32), [ALL], b"n"), parse_quote),
        (tpm.sign(tpm.rsa_key(), b"x"), parse_signature),
    ):
        for end in range(len(data)):
            assert refusal(parse, data[:end]) == "cut-off"


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 70, b"x"])
def test_nothing_may_follow_not_even_zeros(tail: bytes) -> None:
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL]) + tail) == "trailing-bytes"
    assert refusal(parse_signature, tpm.sign(tpm.ec_key(), b"x", "ECDSA") + tail) == "trailing-bytes"


def test_other_structures_of_a_tpm_are_no_quotes() -> None:
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL], magic=0x12345678)) == "not-a-quote"
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL], kind=0x8017)) == "not-a-quote"
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL], safe=2)) == "bad-flag"
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL, ALL])) == "repeated-bank"
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL] * 17)) == "too-many-banks"
    assert refusal(parse_quote, tpm.message(bytes(32), [struct.pack(">HB3s", 0x99, 3, b"\xff" * 3)])) == "unknown-hash"
    assert refusal(parse_quote, tpm.message(bytes(32), [ALL], b"n" * 67)) == "too-long"


def test_unknown_signature_schemes_are_refused() -> None:
    assert refusal(parse_signature, b"\x00\x05\x00\x0b\x00\x00") == "unknown-scheme"
    assert refusal(parse_signature, b"\x00\x14\x00\x99\x00\x00") == "unknown-hash"
    assert refusal(parse_signature, b"\x00\x14\x00\x0b\xff\xff") == "too-long"


def test_envelopes_refuse_what_they_do_not_know() -> None:
    good = json.loads(tpm.quoted(tpm.values()))
    assert parse_envelope(json.dumps(good).encode()).bank == "sha256"
    inner = good["tpm_quote"]
    cases = {
        "unknown-member": {**good, "surprise": 1},
        "bad-envelope": {"ak_public": good["ak_public"]},
        "bad-base64": {**good, "ak_public": "not base64!"},
        "bad-pcrs": {**good, "tpm_quote": {**inner, "pcrs": inner["pcrs"][:-1]}},
    }
    for code, value in cases.items():
        assert refusal(parse_envelope, json.dumps(value).encode()) == code
    for pcrs in ({"bank": "md5", "values": {}}, {"bank": "sha256", "values": {"24": "00" * 32}},
                 {"bank": "sha256", "values": {"07": "00" * 32}}, {"bank": "sha256", "values": {"7": "00" * 31}}, 5):  # fmt: skip
        assert (
            refusal(parse_envelope, json.dumps({**good, "tpm_quote": {**inner, "pcrs": pcrs}}).encode()) == "bad-pcrs"
        )
    assert refusal(parse_envelope, b'{"ak_public": "", "ak_public": "", "tpm_quote": {}}') == "repeated-member"
    assert refusal(parse_envelope, b"[]") == "bad-envelope"
    assert refusal(parse_envelope, b"x" * (2 * 1024 * 1024 + 1)) == "too-long"
