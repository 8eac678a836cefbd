"""A second, small verifier of the record: no cluster, no tiles library, no tree of ours.

It reads what `fastness audit export` and `fastness audit prove` wrote and shares only the signature check with the rest, so
that a mistake in the code that makes proofs does not hide in the code that believes them. The algorithms are the iterative
ones of RFC 9162, which look nothing like ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastness.crypto.notes import NoteVerifier, open_note
from fastness.formats import tlog


class RecordProblem(Exception):
    """What is wrong with a record or a proof."""


def included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """RFC 9162, 2.1.3.2."""
    if not 0 <= index < size:
        return False
    node, last, result = index, size - 1, leaf
    for step in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            result = _node(step, result)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            result = _node(result, step)
        node, last = node >> 1, last >> 1
    return last == 0 and result == root


def consistent(old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> bool:
    """RFC 9162, 2.1.4.2."""
    if not 0 < old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    path = [old_root, *proof] if old & (old - 1) == 0 else list(proof)
    if not path:
        return False
    node, last = old - 1, new - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    before = after = path[0]
    for step in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            before, after = _node(step, before), _node(step, after)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            after = _node(after, step)
        node, last = node >> 1, last >> 1
    return last == 0 and before == old_root and after == new_root


@dataclass(slots=True)
class Roots:
    """The root of a log that is read entry by entry, and of the sizes that were asked for."""

    sizes: frozenset[int] = frozenset()
    by_size: dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    _stack: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, leaf: bytes) -> None:
        """One more entry."""
        height = 0
        while self._stack and self._stack[-1][0] == height:
            leaf = _node(self._stack.pop()[1], leaf)
            height += 1
        self._stack.append((height, leaf))
        self.size += 1
        if self.size in self.sizes:
            self.by_size[self.size] = self.root()

    def root(self) -> bytes:
        """The root so far."""
        if not self._stack:
            return hashlib.sha256(b"").digest()
        result = self._stack[-1][1]
        for _, left in reversed(self._stack[:-1]):
            result = _node(left, result)
        return result


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found good."""

    origin: str
    size: int
    entries: int
    pruned: int


def check_export(directory: Path, keys: Iterable[NoteVerifier], older: Sequence[tlog.Checkpoint] = ()) -> Checked:
    """Verify an export as a whole, and that older checkpoints are its beginnings; raises RecordProblem, NoteRefused."""
    signed = tlog.parse_checkpoint(open_note(_read(directory, "checkpoint").decode("utf-8", "replace"), keys))
    for checkpoint in older:
        if checkpoint.origin != signed.origin or checkpoint.size > signed.size:
            raise RecordProblem(f"the checkpoint of size {checkpoint.size} is not an older one of this record")
    roots = Roots(frozenset(checkpoint.size for checkpoint in older))
    pruned = 0
    for leaf, has_entry in _leaves(directory, signed.size):
        roots.add(leaf)
        pruned += not has_entry
    if roots.root() != signed.root:
        raise RecordProblem(
            "the entries do not give the root hash that was signed: an entry was changed, added or removed"
        )
    for checkpoint in older:
        if checkpoint.size and roots.by_size[checkpoint.size] != checkpoint.root:
            raise RecordProblem(
                f"the first {checkpoint.size} entries are not those that the older checkpoint was signed over"
            )
    return Checked(signed.origin, signed.size, signed.size - pruned, pruned)


def _leaves(directory: Path, size: int) -> Iterator[tuple[bytes, bool]]:
    """Every leaf hash, and whether its entry is there as well."""
    for number in range(-(-size // tlog.WIDTH)):
        width = min(tlog.WIDTH, size - number * tlog.WIDTH)
        hashes = tlog.decode_hashes(_read(directory, tlog.tile_path(0, number, width)), width)
        path = tlog.entries_path(number, width)
        if not (directory / path).exists():
            yield from ((leaf_hash, False) for leaf_hash in hashes)
            continue
        for at, entry in enumerate(tlog.decode_bundle(_read(directory, path), width)):
            if hashlib.sha256(b"\0" + entry).digest() != hashes[at]:
                raise RecordProblem(f"entry {number * tlog.WIDTH + at} does not have the hash that its tile says")
            yield hashes[at], True


def _read(directory: Path, path: str) -> bytes:
    try:
        return (directory / path).read_bytes()
    except FileNotFoundError as error:
        raise RecordProblem(f"{path} is missing") from error


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
