"""The directory of `fastness machine image --with-node`: read with bounds, before anybody looks at what it holds.

Links are followed, because programs of a host often are some; what is neither a file nor a known directory is refused, and so is
a file that would not be taken anyway, without reading it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastness.cli.errors import CliError, Exit
from fastness.images.check.programs import MAX_PROGRAM, NodeRefused
from fastness.images.check.tree import FilePiece

MAX_FILES: Final = 256
DIRECTORIES: Final = ("cni", "net.d", "images")


def node_files(directory: Path) -> Mapping[str, FilePiece]:
    """Every file of the directory by its name there; raises NodeRefused, CliError."""
    try:
        paths = sorted(_paths(directory))
        return {str(path.relative_to(directory)): _file(directory, path) for path in paths}
    except OSError as error:
        raise CliError(f"{error.filename}: {error.strerror}", "Make it readable.", Exit.USAGE) from error


def _paths(directory: Path) -> list[Path]:
    paths = [path for path in directory.iterdir() if path.name not in DIRECTORIES]
    for name in DIRECTORIES:
        if (directory / name).is_dir():
            paths += (directory / name).iterdir()
    if len(paths) > MAX_FILES:
        raise NodeRefused("too-many", f"there are {len(paths)} files, more than {MAX_FILES}", "Take some away.")
    return paths


def _file(directory: Path, path: Path) -> FilePiece:
    name = str(path.relative_to(directory))
    if not path.is_file():
        raise NodeRefused("unknown-name", f"{name} is no file", "Take it away.")
    size = path.stat().st_size
    if size > MAX_PROGRAM:
        raise NodeRefused("too-large", f"{name} has {size} bytes, more than {MAX_PROGRAM}", "Take another build.")
    return FilePiece(name, path.read_bytes(), path.stat().st_mode & 0o777)
