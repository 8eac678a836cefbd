"""The cache of images is bounded: layers that nobody has built with for a while go, with the roots that they were compiled by.

A commit is a new top layer, and a change of the builder is three: without this a working tree leaves a gigabyte behind in a week.

* What the last build used stays, and so does whatever is younger than a day: another builder may be about to link it.
* Of the rest the newest stay, up to a number of bytes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.realkube import only_builder
from tools.release.layout import Built

KEPT_BYTES: Final = 400 * 1000 * 1000
YOUNG_SECONDS: Final = 24 * 3600.0
_FACTS, _BLOB, _ROOT = "layer-{}.json", "layer-{}.tar.gz", "root-{}"


def prune(cache: Path, used: Iterable[Built], kept_bytes: int = KEPT_BYTES, young: float = YOUNG_SECONDS) -> list[str]:
    """Forget layers that are neither used, nor young, nor among the newest; their keys."""
    with only_builder(cache / "lock"):
        for built in used:
            for layer in built.layers:
                os.utime(cache / _FACTS.format(_key(layer.blob)))
        keys = sorted((_key(path) for path in cache.glob("layer-*.json")), key=lambda key: _used(cache, key))
        since, room, gone = time.time() - young, kept_bytes, []
        for key in reversed(keys):
            room -= _size(cache, key)
            if room < 0 and _used(cache, key) < since:
                _forget(cache, key)
                gone.append(key)
    return gone


def _key(path: Path) -> str:
    return path.name.removeprefix("layer-").partition(".")[0]


def _used(cache: Path, key: str) -> float:
    """When somebody built with it the last time."""
    return (cache / _FACTS.format(key)).stat().st_mtime


def _size(cache: Path, key: str) -> int:
    blob, root = cache / _BLOB.format(key), cache / _ROOT.format(key)
    files = [blob, *(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())]
    return sum(path.stat().st_size for path in files if path.exists())


def _forget(cache: Path, key: str) -> None:
    # The facts first: without them a layer is made anew, whatever else of it is there.
    for name in (_FACTS, _BLOB):
        (cache / name.format(key)).unlink(missing_ok=True)
    shutil.rmtree(cache / _ROOT.format(key), ignore_errors=True)
