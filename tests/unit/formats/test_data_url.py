"""Data URLs, gzip and verification hashes."""

import base64
import gzip
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import data_url as dataurl
from fastness.formats.errors import DataUrlError


def refused(url: str) -> str:
    with pytest.raises(DataUrlError) as caught:
        dataurl.decode(url)
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize(
    ("url", "data"),
    [
        ("data:,", b""),
        ("data:,a%20b%0A", b"a b\n"),
        ("data:,a+b", b"a+b"),
        ("data:text/plain;charset=utf-8,%C3%A9", "é".encode()),
        ("data:;base64,AAH/", b"\x00\x01\xff"),
        ("data:text/plain;charset=utf-8;base64,aGk=", b"hi"),
        ('data:text/plain;name="a b";base64,aGk=', b"hi"),
        ("data:x-own/thing,ok", b"ok"),
        ("data:application/vnd.coreos.ignition+json,{}".replace("{}", "%7B%7D"), b"{}"),
    ],
)
def test_contents_come_out(url: str, data: bytes) -> None:
    assert dataurl.decode(url) == data


@pytest.mark.parametrize(
    "url",
    [
        "", "data:", "http://x", "data:text,x", "data:foo/bar,x", "data:;base64", "data:,a b", "data:,a%2", "data:,%zz",
        "data:,é",
        "data:;base64,aGk", "data:;base64,a=Gk", "data:;base64,aGk=\n", "data:;base64,====", "data:;base64;x=y,aGk=", "data:,a<b",
        "data:text/plain;charset=%zz,x", "data:;charset=,x", "DATA:,x",
    ],
)  # fmt: skip
def test_malformed_urls_are_refused(url: str) -> None:
    assert refused(url) == "data-url-malformed"


@given(st.binary(max_size=300))
def test_what_was_encoded_is_decoded(data: bytes) -> None:
    assert dataurl.decode(dataurl.encode(data, "text/plain")) == data
    assert dataurl.gunzip(dataurl.gzip(data)) == data


def test_the_same_bytes_are_packed_the_same_way() -> None:
    assert dataurl.gzip(b"x" * 100) == dataurl.gzip(b"x" * 100)


def test_contents_beyond_the_limit_are_refused_before_and_after_decoding() -> None:
    url = dataurl.encode(b"x" * 100)
    assert dataurl.decode(url, limit=100) == b"x" * 100
    for source in (url, "data:," + "x" * 100):
        with pytest.raises(DataUrlError) as caught:
            dataurl.decode(source, limit=99)
        assert caught.value.code == "contents-too-large"


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 60_000
    with pytest.raises(DataUrlError) as caught:
        dataurl.gunzip(bomb, limit=1_000_000)
    assert caught.value.code == "contents-too-large"


def test_many_members_count_together() -> None:
    member = gzip.compress(b"x" * 1000)
    assert dataurl.gunzip(member * 3, limit=3000) == b"x" * 3000
    with pytest.raises(DataUrlError):
        dataurl.gunzip(member * 3, limit=2999)


@pytest.mark.parametrize(("data", "code"), [(b"plain", "not-gzip"), (gzip.compress(b"x" * 99)[:-9], "gzip-truncated")])
def test_damaged_gzip_is_named(data: bytes, code: str) -> None:
    with pytest.raises(DataUrlError) as caught:
        dataurl.gunzip(data)
    assert caught.value.code == code


@pytest.mark.parametrize("algorithm", ["sha512", "sha256"])
def test_hashes_are_over_what_comes_out_at_the_end(algorithm: str) -> None:
    total = hashlib.new(algorithm, b"text").hexdigest()
    packed = {"source": dataurl.encode(gzip.compress(b"text")), "compression": "gzip"}
    assert dataurl.contents({**packed, "verification": {"hash": f"{algorithm}-{total}"}}) == b"text"
    assert dataurl.contents({**packed, "verification": {"hash": f"{algorithm}-{total.upper()}"}}) == b"text"
    with pytest.raises(DataUrlError) as caught:
        dataurl.contents({"source": "data:,other", "verification": {"hash": f"{algorithm}-{total}"}})
    assert caught.value.code == "hash-mismatch"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sha512", "hash-malformed"),
        ("md5-00", "hash-unrecognised"),
        ("sha512-00", "hash-wrong-size"),
        ("sha256-" + "x" * 64, "hash-not-hexadecimal"),
    ],
)
def test_malformed_hashes_are_named(text: str, code: str) -> None:
    with pytest.raises(DataUrlError) as caught:
        dataurl.verification(text)
    assert caught.value.code == code


def test_a_resource_without_a_source_is_empty_and_one_elsewhere_is_not_fetched() -> None:
    assert dataurl.contents({}) == b""
    assert dataurl.contents({"source": ""}) == b""
    with pytest.raises(DataUrlError) as caught:
        dataurl.contents({"source": "https://example.com/"})
    assert caught.value.code == "not-inline"


def test_long_base64_is_checked_to_the_last_character() -> None:
    text = base64.b64encode(b"x" * 3000).decode()
    for place in (0, 1999, len(text) - 1):
        assert refused(f"data:;base64,{text[:place]}!{text[place + 1 :]}") == "data-url-malformed"
