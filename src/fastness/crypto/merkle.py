"""The Merkle tree of the record: hashing and proofs of RFC 6962.

    leaf = leaf_hash(entry)            # 0x00 in front of a leaf, 0x01 in front of a node: neither passes for the other
    root == fold(hashes of complete_subtrees(0, size))

A proof is a list of hashes of ranges of leaves. `inclusion_ranges` and `consistency_ranges` say which ranges;
`complete_subtrees` says of which stored hashes a range consists. So whoever holds the tiles computes proofs without holding the
tree, and this module neither reads nor writes.

* Verification takes nothing on trust: sizes, index and the length of a proof are checked, and every hash of it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from fastness.crypto.digests import same

HASH_SIZE: Final = 32
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
# Sizes come from notes and requests of others; a bound keeps every shift and loop below small.
MAX_SIZE: Final = 1 << 62

Range = tuple[int, int]


def leaf_hash(data: bytes) -> bytes:
    """The hash of an entry."""
    # Another prefix than that of nodes (RFC 6962 §2.1): otherwise the two children of a node, taken as an entry, would have its
    # hash, and a proof could show an entry that nobody wrote.
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def complete_subtrees(start: int, end: int) -> list[tuple[int, int]]:
    """The complete subtrees, as (level, index), that leaves `start` to `end` consist of, left to right."""
    subtrees: list[tuple[int, int]] = []
    while start < end:
        level = (end - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        subtrees.append((level, start >> level))
        start += 1 << level
    return subtrees


def fold(hashes: Sequence[bytes]) -> bytes:
    """The hash of a range out of the hashes of its complete subtrees."""
    if not hashes:
        return EMPTY_ROOT
    result = hashes[-1]
    for subtree in reversed(hashes[:-1]):
        result = node_hash(subtree, result)
    return result


def perfect_root(hashes: Sequence[bytes]) -> bytes:
    """The hash of a complete subtree out of the hashes of its 2^n parts."""
    row = list(hashes)
    while len(row) > 1:
        row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes that are all at hand."""
    parts = complete_subtrees(0, len(leaves))
    return fold([perfect_root(leaves[index << level : (index + 1) << level]) for level, index in parts])


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """The ranges whose hashes prove that leaf `index` is in a tree of `size`, from the leaf upwards."""
    if not 0 <= index < size <= MAX_SIZE:
        raise ValueError(f"there is no entry {index} in a log of {size}")
    start, end, siblings = 0, size, []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            siblings.append((middle, end))
            end = middle
        else:
            siblings.append((start, middle))
            start = middle
    return siblings[::-1]


def consistency_ranges(old: int, new: int) -> list[Range]:
    """The ranges whose hashes prove that a tree of `old` is the beginning of one of `new`."""
    if not 0 < old <= new <= MAX_SIZE:
        raise ValueError(f"a log of {old} cannot be the beginning of one of {new}")
    start, end, ranges = 0, new, []
    whole = True
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start, whole = middle, False
    if not whole:
        ranges.append((start, end))
    return ranges[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the proof shows that the entry with this leaf hash is number `index` of the log with this root."""
    try:
        ranges = inclusion_ranges(index, size)
    except ValueError:
        return False
    if len(ranges) != len(proof) or not _hashes(proof):
        return False
    result = leaf
    for (start, _), sibling in zip(ranges, proof, strict=True):
        result = node_hash(sibling, result) if start < index else node_hash(result, sibling)
    return same(result, root)


def verify_consistency(old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> bool:
    """Whether the proof shows that the log with the old root is the beginning of the one with the new root."""
    # Everything continues the empty log, so a proof would prove nothing: it must be empty, or it could carry anything.
    if old == 0:
        return not proof and same(old_root, EMPTY_ROOT) and 0 <= new <= MAX_SIZE
    try:
        ranges = consistency_ranges(old, new)
    except ValueError:
        return False
    if len(ranges) != len(proof) or not _hashes(proof):
        return False
    hashes = list(proof)
    # Where the old size is a power of two its root is a node of the new tree, and the proof leaves it out (RFC 6962 §2.1.2).
    begins_whole = not ranges or ranges[0][0] >= old
    seed = old_root if begins_whole else hashes.pop(0)
    if not begins_whole:
        ranges = ranges[1:]
    before, after = seed, seed
    for (start, _), subtree in zip(ranges, hashes, strict=True):
        if start < old:
            before, after = node_hash(subtree, before), node_hash(subtree, after)
        else:
            after = node_hash(after, subtree)
    # Both roots out of the same hashes: a proof that leads to one of them alone shows two histories, not one that grew.
    return same(before, old_root) and same(after, new_root)


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def _hashes(proof: Sequence[bytes]) -> bool:
    return all(len(node) == HASH_SIZE for node in proof)
