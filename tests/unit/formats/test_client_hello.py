"""The server name in a ClientHello, as real clients send it, cut anywhere, and as nobody sends it."""

from __future__ import annotations

import ssl

import pytest

from fastness.formats.client_hello import server_name


def client_hello(name: str | None, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The first flight of a real client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, newest
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_name_of_a_real_client_is_read(newest: ssl.TLSVersion) -> None:
    assert server_name(client_hello("API-int.Old.example.com", newest)) == "api-int.old.example.com"
    assert server_name(client_hello(None, newest)) == "", "none was asked for"
    assert server_name(client_hello("127.0.0.1", newest)) == "", "addresses are no names"


def test_more_bytes_are_waited_for_until_the_record_is_whole() -> None:
    hello = client_hello("a.example")
    assert {server_name(hello[:end]) for end in range(len(hello))} == {None}
    assert server_name(hello + b"more") == "a.example"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x00",
        b"\x80",
    ],
)
def test_what_is_no_client_hello_has_no_name(data: bytes) -> None:
    assert server_name(data) == ""


def test_every_flipped_byte_gives_a_name_or_none() -> None:
    hello = client_hello("a.example", ssl.TLSVersion.TLSv1_2)
    for place in range(5, len(hello)):
        for value in (0, 0xFF, hello[place] ^ 0x80):
            changed = bytes([*hello[:place], value, *hello[place + 1 :]])
            assert isinstance(server_name(changed), str)
