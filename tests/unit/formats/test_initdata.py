"""Init data: packing, unpacking, writing, with bombs, cuts and any text."""

from __future__ import annotations

import base64
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.initdata import (
    MAX_UNPACKED,
    InitDataError,
    decode_init_data,
    encode_init_data,
    parse_init_data,
    write_init_data,
)

TEXT = b'version = "0.1.0"\nalgorithm = "sha256"\n[data]\n"a" = "b"\n'


def test_the_same_text_always_gives_the_same_characters() -> None:
    assert encode_init_data(b"abc") == "H4sIAAAAAAAC/0tMSgYAwkEkNQMAAAA="
    assert gzip.decompress(base64.b64decode(encode_init_data(TEXT))) == TEXT


@pytest.mark.parametrize("level", [0, 1, 9])
def test_what_other_packers_made_is_unpacked(level: int) -> None:
    packed = base64.b64encode(gzip.compress(TEXT, level, mtime=12345)).decode()
    assert decode_init_data(packed) == TEXT
    assert decode_init_data(packed + "\n") == TEXT


@pytest.mark.parametrize(
    ("encoded", "code"),
    [
        ("not base64!", "init-data-base64"),
        ("é", "init-data-base64"),
        (base64.b64encode(b"plain").decode(), "init-data-gzip"),
        (base64.b64encode(gzip.compress(TEXT)[:-9]).decode(), "init-data-truncated"),
        (base64.b64encode(gzip.compress(TEXT)[:12]).decode(), "init-data-truncated"),
        ("", "init-data-truncated"),
        (base64.b64encode(gzip.compress(TEXT) + b"x").decode(), "init-data-trailing"),
        (base64.b64encode(gzip.compress(TEXT) * 2).decode(), "init-data-trailing"),
        (base64.b64encode(gzip.compress(bytes(MAX_UNPACKED + 1))).decode(), "init-data-bomb"),
        ("A" * (2 * MAX_UNPACKED + 1), "init-data-too-large"),
    ],
)
def test_what_is_not_init_data_is_refused_with_its_code(encoded: str, code: str) -> None:
    with pytest.raises(InitDataError) as caught:
        decode_init_data(encoded)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_changed_byte_of_the_packed_form_is_noticed() -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    with pytest.raises(InitDataError):
        decode_init_data(base64.b64encode(packed).decode())


@given(st.binary(max_size=300))
def test_packing_and_unpacking_are_each_others_reverse(text: bytes) -> None:
    assert decode_init_data(encode_init_data(text)) == text


@given(st.text(max_size=60))
def test_unpacking_any_text_gives_bytes_or_one_kind_of_error(text: str) -> None:
    try:
        assert isinstance(decode_init_data(text), bytes)
    except InitDataError as error:
        problem = error
        assert problem.code


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10), _TEXTS, max_size=3))
def test_a_written_document_reads_back_as_it_was(data: dict[str, str]) -> None:
    text = write_init_data("sha384", data)
    assert parse_init_data(text).data == data
    assert text == write_init_data("sha384", data)


@pytest.mark.parametrize("entry", ["a'''b", "ends with '", "'", "''", "\r\n", "\\", '"""', "\x00\x7f", "\nfirst", ""])
def test_entries_that_need_care_are_kept(entry: str) -> None:
    assert parse_init_data(write_init_data("sha256", {"x": entry})).data == {"x": entry}


def test_an_algorithm_that_does_not_exist_is_not_written() -> None:
    with pytest.raises(InitDataError):
        write_init_data("md5", {})
