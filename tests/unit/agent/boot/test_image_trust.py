"""The file of the image: whom a machine believes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.boot.image_trust import BadTrust, ImageTrust
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.protocol.door import is_origin

KEY = Ed25519Signer(SecretBytes(b"k" * 32)).verifier
CA = trustme.CA().cert_pem.bytes().decode()


def written(**change: Any) -> bytes:
    value = {"ca": CA, "configKeys": [KEY.jwk()], **change}
    return json.encode({name: member for name, member in value.items() if member is not None})


def test_a_good_file_names_authorities_and_keys() -> None:
    trust = ImageTrust.parse(written())
    assert set(trust.keys) == {KEY.id}
    assert len(trust.tls.get_ca_certs()) == 1
    assert trust.tls.check_hostname
    assert trust.believes("https://anywhere.example:8000")


def test_a_file_is_read_from_its_place(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_bytes(written(origin="https://one.example:8000/"))
    trust = ImageTrust.load(tmp_path / "trust.json")
    assert trust.believes("https://one.example:8000")
    assert not trust.believes("https://one.example:8001")
    with pytest.raises(BadTrust, match="cannot be read"):
        ImageTrust.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{", written(ca=None), written(ca=7), written(ca=""), written(ca="no certificate"), written(ca="é"),
        written(configKeys=None), written(configKeys=[]), written(configKeys=[7]), written(configKeys={}),
        written(configKeys=[{"kty": "EC"}]), written(configKeys=[{**KEY.jwk(), "x": "AAAA"}]),
        written(configKeys=[KEY.jwk()] * 17), written(origin="http://one.example"), written(origin=7),
        written(configKey=KEY.jwk()), b'{"ca":"a","ca":"b","configKeys":[]}',
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_relied_on_is_refused(data: bytes) -> None:
    with pytest.raises(BadTrust) as refused:
        ImageTrust.parse(data)
    assert refused.value.hint


@pytest.mark.parametrize("url", ["https://a", "https://a:1", "https://a/", "https://[::1]:8000"])
def test_addresses_of_servers(url: str) -> None:
    assert is_origin(url)


@pytest.mark.parametrize(
    "url",
    [
        "", "https://", "http://a", "https://a/b", "https://a?x", "https://a#x", "https://u@a", "https://a:0", "https://a:99999",
        "https://a:x", "https://a b", "https://a\n", "https://[::1", "https://" + "a" * 600, "https://ä", None, 7,
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_server(url: Any) -> None:
    assert not is_origin(url)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_trust_or_an_error(data: bytes) -> None:
    with suppress(BadTrust):
        ImageTrust.parse(data)
