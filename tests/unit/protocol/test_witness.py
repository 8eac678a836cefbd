"""Requests to a witness as bytes: total, and one reading for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.tlog import TlogError
from fastness.protocol.witness import MAX_HASHES, MAX_REQUEST, AddCheckpoint, parse_add_checkpoint, parse_latest

HASHES = st.lists(st.binary(min_size=32, max_size=32), max_size=63).map(tuple)


@given(st.integers(0, 10**17), HASHES, st.text(st.characters(codec="utf-8"), max_size=200))
def test_what_is_written_is_read_back(old: int, proof: tuple[bytes, ...], note: str) -> None:
    request = AddCheckpoint(old, proof, note)
    assert parse_add_checkpoint(request.encode()) == request


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=100).map(lambda data: b"old 1\n" + data)))
def test_arbitrary_bytes_give_a_request_or_one_error(data: bytes) -> None:
    try:
        request = parse_add_checkpoint(data)
    except TlogError:
        return
    assert request.encode() == data


@pytest.mark.parametrize(
    "body",
    [
        b"old 1\n", b"1\n\nnote", b"new 1\n\nnote", b"old -1\n\nnote", b"old 1\nAA==\n\nnote", b"old 1\n!\n\nnote",
        b"\xff\n\nnote",
        AddCheckpoint(1, (bytes(32),) * (MAX_HASHES + 1), "note").encode(), AddCheckpoint(1, (), "x" * MAX_REQUEST).encode(),
    ],
    ids=lambda body: repr(body[:12]),
)  # fmt: skip
def test_a_request_of_another_shape_or_size_is_refused(body: bytes) -> None:
    with pytest.raises(TlogError):
        parse_add_checkpoint(body)


@pytest.mark.parametrize("body", [b"", b"7", b"77", b"07\n", b"-1\n", b"7\n8\n", b"\xff\n", b"9" * 40 + b"\n"])
def test_a_size_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(TlogError):
        parse_latest(body)
