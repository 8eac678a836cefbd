"""Proofs of the record agree with a tree that is computed by hand, and nothing else passes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto import merkle


def by_hand(leaves: list[bytes]) -> bytes:
    """The definition of RFC 6962, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + by_hand(leaves[:split]) + by_hand(leaves[split:])).digest()


def leaves(count: int) -> list[bytes]:
    return [merkle.leaf_hash(b"entry %d" % number) for number in range(count)]


def proof(ranges: list[tuple[int, int]], all_leaves: list[bytes]) -> list[bytes]:
    return [by_hand(all_leaves[start:end]) for start, end in ranges]


@pytest.mark.parametrize("count", [*range(34), 255, 256, 257])
def test_the_root_is_the_one_of_the_definition(count: int) -> None:
    assert merkle.tree_root(leaves(count)) == by_hand(leaves(count))


def test_every_entry_of_every_small_log_is_proved_and_no_other_leaf_index_or_size_is() -> None:
    for size in range(1, 20):
        rows = leaves(size)
        root = by_hand(rows)
        for index in range(size):
            path = proof(merkle.inclusion_ranges(index, size), rows)
            assert merkle.verify_inclusion(rows[index], index, size, path, root)
            assert not merkle.verify_inclusion(merkle.leaf_hash(b"other"), index, size, path, root)
            assert not merkle.verify_inclusion(rows[index], index, size, [*path, root], root)
            assert not merkle.verify_inclusion(rows[index], size, size, path, root)
            for other in range(size):
                assert (other == index) or not merkle.verify_inclusion(rows[index], other, size, path, root)


def test_every_beginning_of_every_small_log_is_proved_and_a_rewritten_past_is_not() -> None:
    for new in range(1, 20):
        rows = leaves(new)
        for old in range(1, new + 1):
            path = proof(merkle.consistency_ranges(old, new), rows)
            old_root, new_root = by_hand(rows[:old]), by_hand(rows)
            assert merkle.verify_consistency(old, new, path, old_root, new_root)
            forged = by_hand([merkle.leaf_hash(b"forged"), *rows[1:old]])
            assert not merkle.verify_consistency(old, new, path, forged, new_root)
            assert not merkle.verify_consistency(old, new, path, old_root, merkle.leaf_hash(b"forged"))
            if path:
                assert not merkle.verify_consistency(old, new, path[:-1], old_root, new_root)


def test_an_empty_log_is_the_beginning_of_every_log() -> None:
    assert merkle.verify_consistency(0, 5, [], merkle.EMPTY_ROOT, by_hand(leaves(5)))
    assert not merkle.verify_consistency(0, 5, [], by_hand(leaves(1)), by_hand(leaves(5)))
    assert not merkle.verify_consistency(3, 2, [], by_hand(leaves(3)), by_hand(leaves(2)))
    assert not merkle.verify_consistency(0, 5, leaves(1), merkle.EMPTY_ROOT, by_hand(leaves(5)))
    for size in (-1, merkle.MAX_SIZE + 1):
        assert not merkle.verify_consistency(0, size, [], merkle.EMPTY_ROOT, by_hand(leaves(5)))


@pytest.mark.parametrize(("old", "new"), [(0, 5), (-1, 5), (6, 5), (1, merkle.MAX_SIZE + 1)])
def test_a_log_that_cannot_be_the_beginning_of_another_has_no_proof(old: int, new: int) -> None:
    with pytest.raises(ValueError, match="cannot be the beginning"):
        merkle.consistency_ranges(old, new)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_a_range_is_made_of_complete_subtrees_without_gap_or_overlap(start: int, length: int) -> None:
    at = start
    for level, index in merkle.complete_subtrees(start, start + length):
        assert index << level == at
        at = (index + 1) << level
    assert at == start + length


@pytest.mark.parametrize(("index", "size"), [(-1, 5), (5, 5), (0, 0), (0, merkle.MAX_SIZE + 1)])
def test_an_entry_that_is_not_there_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="no entry"):
        merkle.inclusion_ranges(index, size)
