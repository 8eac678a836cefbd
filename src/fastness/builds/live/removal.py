"""Taking away what a stranger left: a tree of any depth, without following a link out of it.

`shutil.rmtree` goes down by calling itself, with a descriptor for every level: a build that nests directories some thousand deep
ends it, and the tree stays for ever. Here every directory is brought up to the top first, so two levels are all there ever are.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> None:
    """Remove a directory with all that is in it, if it is there; raises OSError."""
    with suppress(FileNotFoundError):
        top = os.open(root, _DIRECTORY)
        try:
            _empty(top)
        finally:
            os.close(top)
        root.rmdir()


def _empty(top: int) -> None:
    brought_up = 0
    while names := os.listdir(top):
        for name in names:
            if not _is_directory(name, top):
                os.unlink(name, dir_fd=top)
                continue
            inner = os.open(name, _DIRECTORY, dir_fd=top)
            try:
                for entry in os.listdir(inner):
                    if _is_directory(entry, inner):
                        brought_up = _free_name(top, brought_up)
                        os.rename(entry, str(brought_up), src_dir_fd=inner, dst_dir_fd=top)
                    else:
                        os.unlink(entry, dir_fd=inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _free_name(top: int, last: int) -> int:
    """A number after the last one that is no name in the top: a stranger may have taken some."""
    while True:
        last += 1
        try:
            os.stat(str(last), dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return last


def _is_directory(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
