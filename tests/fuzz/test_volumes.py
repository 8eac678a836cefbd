"""Hostile bytes against the parsers of LUKS2 headers, and against everything that happens before a key is touched."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.rules import checked_header
from fastness.formats.luks2.header import HEADER_BYTES
from tests.fuzz.driver import Target, run
from tests.fuzz.volumes import TARGETS, whole
from tests.volumes import DISK_BYTES, changed, volume

FACTS = checked_header(volume()[:HEADER_BYTES], DISK_BYTES).facts
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.sampled_from(["", "0", "dynamic", "cipher_null-ecb", "linear"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["0", "1", "type", "offset"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_PLACES = st.sampled_from([
    ("segments", "0", "encryption"), ("segments", "0", "type"), ("segments", "0", "offset"), ("segments", "0", "size"),
    ("segments", "0", "integrity"), ("segments", "0", "flags"), ("segments", "1"), ("keyslots", "0", "area", "encryption"),
    ("keyslots", "0", "kdf"), ("keyslots", "0", "area", "offset"), ("keyslots", "1"), ("digests", "0", "segments"),
    ("digests", "0", "keyslots"), ("tokens", "1"), ("config", "requirements"), ("config", "keyslots_size"),
])  # fmt: skip


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_headers_give_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_before_a_key_is_touched(data: bytes) -> None:
    with contextlib.suppress(DiskError):
        checked_header(data.ljust(HEADER_BYTES, b"\0"), DISK_BYTES)
        raise AssertionError("a header out of nothing was accepted")


@given(st.lists(st.tuples(_PLACES, _VALUES), min_size=1, max_size=3))
def test_whatever_a_host_changes_the_segment_that_is_opened_is_encrypted(
    edits: list[tuple[tuple[str, ...], object]],
) -> None:
    def change(document: dict[str, object]) -> None:
        for (*parents, name), value in edits:
            inner = document
            for parent in parents:
                inner = inner[parent]  # type: ignore[assignment]
            inner[name] = value

    with contextlib.suppress(KeyError, TypeError, DiskError):
        checked = checked_header(changed(volume(), change)[:HEADER_BYTES], DISK_BYTES)
        assert checked.segment.type == "crypt"
        assert checked.segment.encryption == "aes-xts-plain64"
        assert all(slot.area.encryption == "aes-xts-plain64" for slot in checked.metadata.keyslots.values())
        assert checked.facts.uuid == FACTS.uuid


def test_the_encoder_writes_what_the_corpus_is_made_of() -> None:
    assert whole() == volume()[:HEADER_BYTES]
