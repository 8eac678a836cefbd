"""The second verifier of the record agrees with the first on every small log, and on every damaged proof."""

from __future__ import annotations

from fastness.cli.trust import record_check as recordcheck
from fastness.crypto import merkle


def rows(count: int) -> list[bytes]:
    return [merkle.leaf_hash(b"%d" % number) for number in range(count)]


def test_both_verifiers_agree_on_inclusion() -> None:
    for size in range(1, 34):
        leaves = rows(size)
        root = merkle.tree_root(leaves)
        for index in range(size):
            proof = [merkle.tree_root(leaves[start:end]) for start, end in merkle.inclusion_ranges(index, size)]
            assert recordcheck.included(leaves[index], index, size, proof, root)
            for wrong in (proof[1:], [*proof, root], [bytes(32), *proof[1:]] if proof else [root]):
                ours = merkle.verify_inclusion(leaves[index], index, size, wrong, root)
                assert recordcheck.included(leaves[index], index, size, wrong, root) == ours
                assert ours == (wrong == proof)


def test_both_verifiers_agree_on_consistency() -> None:
    for new in range(1, 34):
        leaves = rows(new)
        root = merkle.tree_root(leaves)
        for old in range(1, new + 1):
            old_root = merkle.tree_root(leaves[:old])
            proof = [merkle.tree_root(leaves[start:end]) for start, end in merkle.consistency_ranges(old, new)]
            assert recordcheck.consistent(old, new, proof, old_root, root)
            assert not recordcheck.consistent(old, new, proof, bytes(32), root)
            if old < new:
                assert not recordcheck.consistent(old, new, proof[:-1], old_root, root)


def test_the_root_of_a_log_that_is_read_entry_by_entry_is_the_root_of_the_tree() -> None:
    for size in range(40):
        roots = recordcheck.Roots(frozenset({1, 3, 7, size}))
        leaves = rows(size)
        for leaf in leaves:
            roots.add(leaf)
        assert roots.root() == merkle.tree_root(leaves)
        assert all(root == merkle.tree_root(leaves[:at]) for at, root in roots.by_size.items())
