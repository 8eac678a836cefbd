"""A request as handlers see it: bounded before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fastness.http.request import MAX_PARAMETERS, MAX_QUERY, ClientGone, Request, SlowBody
from fastness.kube.errors import ApiError, BadRequest, TooLarge, UnsupportedMedia

Message = Mapping[str, Any]


def request(
    *chunks: bytes, query: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = (), gone: bool = False
) -> Request:
    last = len(chunks) - 1
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": gone or index < last} for index, chunk in enumerate(chunks)
    ]

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    scope = {"method": "POST", "raw_path": b"/x", "query_string": query, "headers": list(headers)}
    return Request(scope, receive)


async def test_a_body_in_pieces_is_put_together() -> None:
    assert await request(b"ab", b"", b"cd").body(10) == b"abcd"


@pytest.mark.parametrize("length", [b"11", b"9" * 18, b"9" * 4000])
async def test_a_declared_length_over_the_limit_is_refused_unread(length: bytes) -> None:
    with pytest.raises(TooLarge):
        await request(headers=((b"content-length", length),)).body(10)


async def test_an_undeclared_length_is_refused_when_it_is_exceeded() -> None:
    with pytest.raises(TooLarge):
        await request(b"x" * 6, b"x" * 6, b"never read").body(10)


@pytest.mark.parametrize("length", [b"-1", b"+1", b"0x1", b"\xb2", b"1e3", b" "])
async def test_a_length_that_is_no_number_is_refused(length: bytes) -> None:
    with pytest.raises(BadRequest):
        await request(b"", headers=((b"content-length", length),)).body(10)


@pytest.mark.parametrize("encoding", [b"gzip", b"DEFLATE", b"br, gzip"])
async def test_packed_bodies_are_refused(encoding: bytes) -> None:
    with pytest.raises(UnsupportedMedia):
        await request(b"x", headers=((b"content-encoding", encoding),)).body(10)


async def test_identity_is_no_packing() -> None:
    assert await request(b"x", headers=((b"content-encoding", b"identity"),)).body(10) == b"x"


async def test_a_client_that_leaves_in_the_middle_is_noticed() -> None:
    with pytest.raises(ClientGone):
        await request(b"half", gone=True).body(10)


def test_the_first_of_repeated_parameters_counts() -> None:
    assert dict(request(query=b"a=1&a=2&b=&c").query) == {"a": "1", "b": "", "c": ""}


@pytest.mark.parametrize(
    "query", [b"a=%ff", b"a" * (MAX_QUERY + 1), b"a=1&" * (MAX_PARAMETERS + 1), b"\xff=1"],
    ids=["bad-utf8", "long", "many", "not-ascii"],
)  # fmt: skip
def test_queries_beyond_the_bounds_are_refused(query: bytes) -> None:
    with pytest.raises(BadRequest):
        _ = request(query=query).query


def test_a_slow_body_is_an_answer_with_a_hint() -> None:
    error: ApiError = SlowBody("late")
    assert (error.code, error.status()["reason"], bool(error.hint)) == (408, "Timeout", True)


async def test_a_body_that_is_here_already_has_the_same_limit() -> None:
    async def receive() -> Message:
        raise AssertionError("nothing is left to be read")

    scope = {
        "method": "POST",
        "raw_path": b"/x",
        "query_string": b"",
        "headers": [],
        "fastness.arrived": lambda: b"x" * 10,
    }
    whole = Request(scope, receive)
    assert whole.complete
    assert await whole.body(10) == b"x" * 10
    with pytest.raises(TooLarge):
        await whole.body(9)


def test_a_body_that_is_still_on_its_way_is_not_complete() -> None:
    assert not request(b"x").complete
    waiting = request(b"x")
    waiting.scope["fastness.arrived"] = lambda: None  # type: ignore[index]  # as the listener fills it in
    assert not waiting.complete
