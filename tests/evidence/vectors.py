"""Where real evidence lies: beside the tree, or where FASTNESS_VECTORS says.

The files are data of other projects and no component of this one; without them the tests that need them are skipped by
name, in CI too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DEFAULT = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def vectors() -> Path:
    """The directory of real evidence; skips the test where there is none."""
    path = Path(os.environ.get("FASTNESS_VECTORS") or DEFAULT)
    if not (path / "INDEX.md").is_file():
        pytest.skip("no real evidence: set FASTNESS_VECTORS to a directory that holds it")
    return path
