"""What a build left is taken away, however deep it lies and whatever it points to."""

from __future__ import annotations

import os
from pathlib import Path

from fastness.builds.live.removal import remove_tree

DEEP = 3000


def nest(root: Path, depth: int) -> None:
    """Directories in each other, deeper than a path can be long."""
    here = os.open(root, os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("1", dir_fd=here)
        inner = os.open("1", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_a_tree_that_is_deeper_than_python_recurses_goes(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    nest(root, DEEP)
    (root / "2").write_text("a name that is taken")
    remove_tree(root)
    assert list(tmp_path.iterdir()) == []


def test_links_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (root / "link").symlink_to(outside)
    (root / "a" / "link").symlink_to(outside)
    (root / "a" / "dangling").symlink_to("nowhere")
    remove_tree(root)
    assert (outside / "kept").read_text() == "kept"
    assert not root.exists()


def test_nothing_is_removed_where_there_is_nothing(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
