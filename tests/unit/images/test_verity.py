"""The tree of hashes over a disk: the numbers of the format, and that a block cannot change unseen."""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from fastness.images.verity import BLOCK, hash_tree


def block(number: int) -> bytes:
    return number.to_bytes(4, "little") * (BLOCK // 4)


def test_one_block_is_its_own_root() -> None:
    tree = hash_tree([block(1)])
    assert (tree.root, tree.blocks, tree.content) == (sha256(block(1)).digest(), 1, b"")


def test_two_blocks_have_one_block_of_hashes_above_them() -> None:
    tree = hash_tree([block(1), block(2)])
    level = b"".join(sha256(block(number)).digest() for number in (1, 2)).ljust(BLOCK, b"\0")
    assert tree.content == level
    assert tree.root == sha256(level).digest()


def test_the_highest_level_comes_first() -> None:
    tree = hash_tree([block(number) for number in range(129)])
    assert len(tree.content) == 3 * BLOCK
    top, low = tree.content[:BLOCK], tree.content[BLOCK:]
    assert tree.root == sha256(top).digest()
    assert top[:64] == sha256(low[:BLOCK]).digest() + sha256(low[BLOCK:]).digest()
    assert low[BLOCK : BLOCK + 32] == sha256(block(128)).digest()


def test_a_changed_block_changes_the_root() -> None:
    blocks = [block(number) for number in range(200)]
    changed = [*blocks[:150], block(7), *blocks[151:]]
    assert hash_tree(blocks).root != hash_tree(changed).root
    assert hash_tree(blocks).root != hash_tree(blocks[:-1]).root


@pytest.mark.parametrize("blocks", [[], [b"short"], [block(1), bytes(BLOCK + 1)]])
def test_nothing_and_half_a_block_are_refused(blocks: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"nothing to seal|a block has"):
        hash_tree(blocks)


@pytest.mark.skipif(
    shutil.which("veritysetup") is None, reason="veritysetup is missing: apt-get install cryptsetup-bin"
)
def test_the_tool_of_the_kernels_authors_agrees(tmp_path: Path) -> None:
    blocks = [block(number) for number in range(1000)]
    data, hashes = tmp_path / "data", tmp_path / "hashes"
    data.write_bytes(b"".join(blocks))
    words = ["veritysetup", "format", "--no-superblock", "--salt=-", str(data), str(hashes)]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    tree = hash_tree(blocks)
    assert f"{tree.root.hex()}" in printed
    assert hashes.read_bytes() == tree.content
