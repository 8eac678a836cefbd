"""LUKS2 headers as bytes: what is read, what is refused, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fastness.formats.errors import Luks2Error
from fastness.formats.luks2.binary import parse_binary
from fastness.formats.luks2.header import HEADER_BYTES, HeaderCopy, encode_copy, parse_header
from fastness.formats.luks2.integrity import parse_superblock
from fastness.formats.luks2.metadata import (
    AntiForensic,
    Area,
    Integrity,
    Kdf,
    KeyDigest,
    Keyslot,
    Metadata,
    Segment,
    Settings,
    Token,
    encode_metadata,
    parse_metadata,
)
from tests.volumes import COPY, Json, changed, text_of, volume, with_binary, with_text


def header(data: bytes) -> bytes:
    return data[:HEADER_BYTES]


def refusal(data: bytes) -> str:
    with pytest.raises(Luks2Error) as caught:
        parse_header(header(data))
    assert caught.value.hint
    return caught.value.code


EVERYTHING = Metadata(
    keyslots={
        3: Keyslot("luks2", 64, Area("raw", 32768, 258048, "aes-xts-plain64", 64), Kdf("argon2id", b"salt", 4, memory=9, cpus=2),
                   AntiForensic("luks1", 4000, "sha256"), priority=2),
    },
    segments={
        0: Segment("crypt", 2**40, 2**63, 5, "aes-xts-plain64", 4096, Integrity("hmac(sha256)", "none", "none", 32), ("a",)),
        1: Segment("linear", 0, None),
    },
    digests={0: KeyDigest("pbkdf2", (3,), (0,), "sha256", 1000, b"s", b"d")},
    tokens={31: Token("other", (3,), {"key": {"a": [1, None]}})},
    config=Settings(12288, 2**32, ("allow-discards",), ("online-reencrypt",)),
)  # fmt: skip


def test_whatever_is_written_is_read_back_the_same() -> None:
    assert parse_metadata(encode_metadata(EVERYTHING)) == EVERYTHING


def test_copies_are_read_and_written_to_the_byte() -> None:
    whole = parse_header(header(volume()))
    for position, copy in enumerate(whole.copies):
        assert copy is not None
        again = parse_header(encode_copy(copy, 0) + encode_copy(copy, 1))
        assert again.copies[position] == copy
    assert whole.newest == 0


def test_metadata_that_does_not_fit_is_not_written() -> None:
    token = Token("other", (), {"text": "x" * 12288})
    with pytest.raises(Luks2Error, match="fit"):
        encode_metadata(replace(EVERYTHING, tokens={0: token}))


@pytest.mark.parametrize(
    ("offset", "value", "code"),
    [
        (6, b"\0\1", "wrong-version"),
        (8, (4 * 1024**2).to_bytes(8, "big"), "wrong-size"),
        (8, (16 * 1024**2).to_bytes(8, "big"), "wrong-size"),
        (8, bytes(8), "wrong-size"),
        (72, b"sha1\0\0", "wrong-checksum-name"),
        (72, b"sha256\0x", "wrong-checksum-name"),
        (168, b"NOT-A-UUID", "wrong-uuid"),
        (206, b"x", "wrong-uuid"),
        (256, (4096).to_bytes(8, "big"), "wrong-offset"),
        (300, b"x", "trailing-bytes"),
        (2000, b"x", "trailing-bytes"),
        (24, b"label\0x", "wrong-text"),
        (208, b"\xff", "wrong-text"),
    ],
)
@pytest.mark.parametrize("position", [0, 1])
def test_a_copy_that_is_whole_and_says_something_wrong_is_refused(
    position: int, offset: int, value: bytes, code: str
) -> None:
    assert refusal(with_binary(volume(), position, offset, value)) == code


@pytest.mark.parametrize("offset", [0, 110, 5000])
def test_a_torn_copy_counts_as_absent_and_two_are_no_header(offset: int) -> None:
    data = bytearray(volume())
    data[offset] ^= 1
    whole = parse_header(header(bytes(data)))
    assert whole.copies[0] is None
    assert whole.newest == 1
    data[COPY + offset] ^= 1
    assert refusal(bytes(data)) == "torn-copy"


def test_the_newer_copy_counts() -> None:
    whole = parse_header(header(with_binary(volume(), 1, 16, (9).to_bytes(8, "big"))))
    assert whole.newest == 1
    assert [copy.binary.sequence for copy in whole.whole] == [9, 1]


@pytest.mark.parametrize("size", [0, 100, HEADER_BYTES - 1, HEADER_BYTES + 1])
def test_bytes_of_another_length_are_no_header(size: int) -> None:
    with pytest.raises(Luks2Error, match="bytes"):
        parse_header(bytes(size))
    with pytest.raises(Luks2Error, match="bytes"):
        parse_binary(bytes(size), 0)


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("keyslots", [], "wrong-type"),
        ("keyslots.x", {}, "bad-number"),
        ("keyslots.00", {}, "bad-number"),
        ("keyslots.32", {}, "bad-number"),
        ("keyslots.0.type", "reencrypt", "unknown-type"),
        ("keyslots.0.key_size", "64", "wrong-type"),
        ("keyslots.0.key_size", -1, "wrong-type"),
        ("keyslots.0.key_size", True, "wrong-type"),
        ("keyslots.0.key_size", 64.0, "wrong-type"),
        ("keyslots.0.secret", 1, "unknown-field"),
        ("keyslots.0.area.type", "journal", "unknown-type"),
        ("keyslots.0.area.offset", 32768, "wrong-type"),
        ("keyslots.0.area.offset", "032768", "wrong-type"),
        ("keyslots.0.area.offset", "-1", "wrong-type"),
        ("keyslots.0.area.offset", str(2**64), "wrong-type"),
        ("keyslots.0.area.offset", "1" * 400, "wrong-type"),
        ("keyslots.0.area.encryption", "aes xts", "wrong-type"),
        ("keyslots.0.area.encryption", "", "wrong-type"),
        ("keyslots.0.kdf.type", "scrypt", "unknown-type"),
        ("keyslots.0.kdf.salt", "!!!!", "wrong-type"),
        ("keyslots.0.kdf.salt", "", "wrong-type"),
        ("keyslots.0.kdf.salt", "AB==", "wrong-type"),
        ("keyslots.0.kdf.salt", "A" * 1024, "wrong-type"),
        ("keyslots.0.af.type", "luks9", "unknown-type"),
        ("segments.0.type", "zero", "unknown-type"),
        ("segments.0.size", "dynamics", "wrong-type"),
        ("segments.0.sector_size", "4096", "wrong-type"),
        ("segments.0.flags", "x", "wrong-type"),
        ("segments.0.flags", ["a", "a"], "repeated-name"),
        ("segments.0.integrity", {"type": "x"}, "missing-field"),
        ("digests.0.type", "argon2", "unknown-type"),
        ("digests.0.keyslots", ["0", "0"], "repeated-name"),
        ("digests.0.keyslots", [0], "wrong-type"),
        ("digests.0.segments", ["99"], "bad-number"),
        ("tokens.0", "x", "wrong-type"),
        ("config.requirements", ["x"], "wrong-type"),
        ("config.requirements", {"optional": []}, "unknown-field"),
        ("config.more", 1, "unknown-field"),
        ("more", 1, "unknown-field"),
    ],
)
def test_a_member_that_is_something_else_is_refused_with_its_place(path: str, value: object, code: str) -> None:
    *parents, name = path.split(".")

    def change(document: Json) -> None:
        for parent in parents:
            document = document[parent]
        document[name] = value

    assert refusal(changed(volume(), change)) == code


def test_a_member_that_is_missing_is_refused_with_its_place() -> None:
    with pytest.raises(Luks2Error, match=r"^keyslots\.0\.kdf: is missing"):
        parse_header(header(changed(volume(), lambda document: document["keyslots"]["0"].pop("kdf"))))


@pytest.mark.parametrize(
    "again",
    [
        b'"encryption":"aes-xts-plain64","encryption":"cipher_null-ecb"',
        b'"encryption":"aes-xts-plain64","encrypti\\u006fn":"cipher_null-ecb"',
        b'"encryption":"aes-xts-plain64","x\\u003a":"","encryption":"cipher_null-ecb"',
    ],
)
def test_a_key_that_stands_twice_is_refused_however_it_is_spelled(again: bytes) -> None:
    text = json.dumps(text_of(volume()), separators=(",", ":")).encode()
    text = text.replace(b'"encryption":"aes-xts-plain64"', again, 1)
    assert refusal(with_text(volume(), text, 0)) == "repeated-key"


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"1e999", b"[" * 6000, b'{"a":' * 2000])
def test_what_is_no_json_object_or_nests_deeply_is_refused(text: bytes) -> None:
    assert refusal(with_text(volume(), text, 0)) in ("bad-json", "wrong-type")


def test_nothing_stands_behind_the_json() -> None:
    text = json.dumps(text_of(volume())).encode() + b"\0" * 100 + b"{}"
    assert refusal(with_text(volume(), text, 1)) == "trailing-bytes"


def test_a_header_has_at_most_32_entries_of_a_kind() -> None:
    def change(document: Json) -> None:
        document["tokens"] = {str(number): {"type": "x", "keyslots": []} for number in range(33)}

    assert refusal(changed(volume(), change)) in ("too-many", "bad-number")


def test_a_superblock_gives_its_sectors_and_nothing_that_it_cannot_hold() -> None:
    good = b"integrt\0" + bytes([4, 15]) + (32).to_bytes(2, "little") + bytes(4) + (99).to_bytes(8, "little")
    block = parse_superblock(good + (8).to_bytes(4, "little") + b"\3")
    assert (block.provided_sectors, block.tag_size, block.block_sectors, block.flags) == (99, 32, 8, 8)
    for bad in (b"", good[:20], bytes(64), good[:8] + b"\x09" + good[9:] + bytes(5), good + bytes(4) + b"\xff"):
        with pytest.raises(Luks2Error):
            parse_superblock(bad)


def test_copies_are_of_one_position_only() -> None:
    copy = parse_header(header(volume())).copies[0]
    assert isinstance(copy, HeaderCopy)
    with pytest.raises(Luks2Error, match="does not begin"):
        parse_binary(encode_copy(copy, 0), 1)
