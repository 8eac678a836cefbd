"""Byte code of an image, compiled by the image's own interpreter.

The interpreter comes out of the root that was just unpacked and runs with that root's libraries, so what it writes follows from
pins alone and no Python of the builder leaves a trace. Files carry a hash of their source and no time, and nothing compares
the two at run time: an image does not change.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.release.errors import ReleaseError

COMPILE_SECONDS = 600.0


def interpreter(root: Path) -> list[str]:
    """How to run the Python of a root from outside, without changing into it."""
    (libraries,) = (root / "usr/lib").glob("*-linux-gnu")
    (loader,) = libraries.glob("ld-linux-*.so.*")
    return [str(loader), "--library-path", str(libraries), str(root / "usr/bin/python3.11")]


def compile_tree(root: Path, tree: Path, place: str) -> None:
    """Compile every module below `tree`/`place` with the Python of `root`; raises ReleaseError."""
    words = [
        "-s",
        "-S",
        "-B",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(tree),
        "-p",
        "/",
    ]
    # Names of a set are written in the order of their hashes.
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [*interpreter(root), *words, str(tree / place)],
        env=environment, capture_output=True, text=True, check=False, timeout=COMPILE_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise ReleaseError("compile", f"{place} does not compile: {done.stdout}{done.stderr}", "Correct the module.")
