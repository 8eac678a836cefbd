"""Head and body of an answer leave together, and nothing waits for a body that never comes."""

from __future__ import annotations

import asyncio
from typing import cast

from fastness.http.protocol import Whole
from tests.component.apiserver.door.raw import CONFIGMAPS, HOST, connect, get, read_reply
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"whole"}}'


class Recorder:
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def whole() -> tuple[Whole, Recorder]:
    recorder = Recorder()
    return Whole(cast("asyncio.Transport", recorder)), recorder


def test_head_and_body_are_one_write_and_later_chunks_go_at_once() -> None:
    answer, recorder = whole()
    answer.write(b"head")
    assert recorder.writes == []
    answer.write(b"body")
    answer.write(b"more")
    assert recorder.writes == [b"headbody", b"more"]


def test_an_empty_first_chunk_of_a_stream_lets_the_head_go() -> None:
    answer, recorder = whole()
    answer.write(b"head")
    answer.write(b"")
    assert recorder.writes == [b"head"]


def test_closing_sends_a_head_that_has_no_body() -> None:
    answer, recorder = whole()
    answer.write(b"head")
    answer.close()
    assert recorder.writes == [b"head"]
    assert answer.is_closing()


async def test_head_request_is_answered_on_a_connection_that_stays(calm: Embedded) -> None:
    reader, writer = await connect(calm)
    for _ in range(2):
        writer.write(get("/version").replace(b"GET", b"HEAD"))
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
    writer.transport.abort()


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(calm: Embedded) -> None:
    reader, writer = await connect(calm)
    length = f"content-length: {len(BODY)}\r\nexpect: 100-continue\r\n".encode()
    writer.write(b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + length + b"\r\n")
    async with asyncio.timeout(PATIENCE):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(BODY)
        assert (await read_reply(reader)).code == 201
    writer.transport.abort()
