"""Real components that a test needs: skipped by name where they are missing, a failure in CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def require_program(path: Path, package: str) -> Path:
    """The program at `path`; without it the test is skipped by name, or fails where CI=true."""
    if path.exists():
        return path
    text = f"{path.name} is missing: apt-get install {package}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
