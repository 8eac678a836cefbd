"""Tiles, bundles and checkpoints are read as they are written; anything else is one kind of error."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import tlog


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (tlog.tile_path(0, 0), "tile/0/000"),
        (tlog.tile_path(1, 1234067), "tile/1/x001/x234/067"),
        (tlog.tile_path(2, 999, 17), "tile/2/999.p/17"),
        (tlog.entries_path(1000), "tile/entries/x001/000"),
        (tlog.entries_path(5, 1), "tile/entries/005.p/1"),
    ],
)
def test_paths_are_those_of_the_public_layout(path: str, expected: str) -> None:
    assert path == expected


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=20))
def test_a_bundle_gives_back_its_entries(entries: list[bytes]) -> None:
    assert tlog.decode_bundle(tlog.encode_bundle(entries), len(entries)) == entries


@given(st.binary(max_size=200), st.integers(0, 300))
def test_any_bytes_are_a_bundle_or_a_tile_or_an_error(data: bytes, width: int) -> None:
    for decode in (tlog.decode_bundle, tlog.decode_hashes):
        with contextlib.suppress(tlog.TlogError):
            assert len(decode(data, width)) == width


@given(st.text(max_size=200))
def test_any_text_is_a_checkpoint_or_an_error(text: str) -> None:
    with contextlib.suppress(tlog.TlogError):
        tlog.parse_checkpoint(text)


def test_a_checkpoint_is_read_as_it_is_written() -> None:
    checkpoint = tlog.Checkpoint("fastness.dev/record", 7, bytes(32))
    assert tlog.parse_checkpoint(checkpoint.text()) == checkpoint


@pytest.mark.parametrize(
    "text",
    ["o\n01\n" + "A" * 43 + "=\n", "o\n1\nAAAA\n", "\n1\n" + "A" * 43 + "=\n", "o\n-1\n" + "A" * 43 + "=\n", "o\n1"],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(tlog.TlogError):
        tlog.parse_checkpoint(text)


def test_an_entry_that_does_not_fit_is_refused() -> None:
    with pytest.raises(tlog.TlogError):
        tlog.encode_bundle([bytes(tlog.MAX_ENTRY + 1)])
