"""Bodies that are too large, too deep, broken or packed: the right code, and a server that stays calm."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from tests.component.apiserver.door.raw import CONFIGMAPS, HOST, connect, exchange, post, read_reply
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

MEBIBYTE = 1024 * 1024
LIMIT = 3 * MEBIBYTE


def configmap(**data: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}).encode()


def padded(size: int) -> bytes:
    body = configmap()
    return body + b" " * (size - len(body))


DEEP = 100_000
BROKEN = {
    "nothing": b"",
    "not-json": b"{",
    "deep-list": b"[" * DEEP + b"]" * DEEP,
    "deep-object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "bad-utf8": b'{"metadata":{"name":"\xff\xfe"}}',
    "lone-surrogate": b'{"metadata":{"name":"\\ud800"}}',
    "nan": b'{"metadata":{"name":"a","generation":NaN}}',
    "infinity": b'{"metadata":{"name":"a","generation":1e999}}',
    "byte-order-mark": b"\xef\xbb\xbf" + configmap(),
    "two-documents": configmap() + configmap(),
    "a-list": b"[]",
    "a-string": b'"x"',
    "null": b"null",
    "numbers-for-names": b'{"metadata":{"name":7}}',
    "metadata-is-a-list": b'{"metadata":[]}',
    "protobuf-without-content": b"k8s\x00",
    "protobuf-damaged": b"k8s\x00\x0a\xff\xff\xff\xff\x7f",
}


async def test_broken_bodies_are_refused(calm: Embedded) -> None:
    for name, body in BROKEN.items():
        reply = await exchange(calm, post(CONFIGMAPS, body))
        assert (name, reply.code, json.loads(reply.body)["kind"]) == (name, 400, "Status"), reply.body


async def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_not(calm: Embedded) -> None:
    assert (await exchange(calm, post(CONFIGMAPS, padded(LIMIT)))).code == 201
    reply = await exchange(calm, post(CONFIGMAPS, padded(LIMIT + 1)))
    assert (reply.code, json.loads(reply.body)["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_declared_hundred_megabytes_are_refused_before_a_byte_is_sent(calm: Embedded) -> None:
    head = b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + b"content-length: 104857600\r\n\r\n"
    assert (await exchange(calm, head)).code == 413


@pytest.mark.parametrize("framing", ["declared", "chunked"])
async def test_a_client_that_sends_on_after_413_is_cut_off(calm: Embedded, framing: str) -> None:
    reader, writer = await connect(calm)
    length = b"content-length: 104857600" if framing == "declared" else b"transfer-encoding: chunked"
    writer.write(b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + length + b"\r\n\r\n")
    piece = b"z" * MEBIBYTE if framing == "declared" else b"%x\r\n" % MEBIBYTE + b"z" * MEBIBYTE + b"\r\n"
    sending = asyncio.create_task(_send(writer, piece))
    assert (await read_reply(reader)).code == 413
    async with asyncio.timeout(PATIENCE):
        assert await sending < 50
    writer.transport.abort()


async def _send(writer: asyncio.StreamWriter, piece: bytes) -> int:
    for number in range(100):
        try:
            writer.write(piece)
            await writer.drain()
        except ConnectionError:
            return number
    return 100


async def test_a_refused_small_body_keeps_the_connection(calm: Embedded) -> None:
    reader, writer = await connect(calm, certificate=False)
    for _ in range(3):
        writer.write(post(CONFIGMAPS, b"x" * 50_000))
        assert (await read_reply(reader)).code == 401
    writer.transport.abort()


async def test_a_huge_string_is_an_object_that_is_too_large(calm: Embedded) -> None:
    assert (await exchange(calm, post(CONFIGMAPS, configmap(big="x" * 10 * MEBIBYTE)))).code == 413
    assert (await exchange(calm, post(CONFIGMAPS, configmap(big="x" * 2 * MEBIBYTE)))).code == 422


async def test_duplicate_keys_follow_the_wish_of_the_client(calm: Embedded) -> None:
    body = b'{"metadata":{"name":"c"},"data":{"a":"1","a":"2"}}'
    for validation, code in (("Strict", 400), ("Warn", 201), ("Ignore", 201)):
        reply = await exchange(calm, post(f"{CONFIGMAPS}?fieldValidation={validation}&dryRun=All", body))
        assert reply.code == code
        assert (b"warning: 299" in reply.head) is (validation == "Warn")


async def test_a_field_name_cannot_end_a_header(calm: Embedded) -> None:
    body = json.dumps({"metadata": {"name": "c"}, 'x\r\nset-cookie: a=b\r\n\r\n"\\\x00\x7f': 1}).encode()
    reply = await exchange(calm, post(f"{CONFIGMAPS}?fieldValidation=Warn", body))
    assert reply.code == 201
    assert b"\r\nset-cookie" not in reply.head
    assert json.loads(reply.body)["metadata"]["name"] == "c"


async def test_packed_bodies_are_not_unpacked(calm: Embedded) -> None:
    bomb = gzip.compress(b" " * 50 * MEBIBYTE)
    for encoding in (b"gzip", b"deflate", b"br", b"gzip, identity"):
        reply = await exchange(calm, post(CONFIGMAPS, bomb, b"content-encoding: " + encoding))
        assert reply.code == 415


async def test_unknown_media_types_are_refused_for_objects_and_patches(calm: Embedded) -> None:
    async with calm.client() as client:
        created = await client.post(CONFIGMAPS, content=configmap(), headers={"content-type": "text/html"})
        assert created.status_code == 415
        patched = await client.patch(f"{CONFIGMAPS}/c", content=b"{}", headers={"content-type": "application/json"})
        assert patched.status_code == 415


async def test_yaml_bombs_are_refused(calm: Embedded) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    async with calm.client() as client:
        answer = await client.post(
            CONFIGMAPS, content="\n".join(lines).encode(), headers={"content-type": "application/yaml"}
        )
    assert answer.status_code == 400
