"""Real components that a test needs: skipped by name where they are missing, a failure in CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest


def require_program(path: Path, package: str) -> Path:
    """The program at `path`; without it the test is skipped by name, or fails where CI=true."""
    if not path.exists():
        _give_up(f"{path.name} is missing: apt-get install {package}")
    return path


def require_root(program: str) -> None:
    """Root, for a program that does not run without; otherwise the test is skipped, or fails where CI=true."""
    if os.geteuid() != 0:
        _give_up(f"{program} runs as root")


def _give_up(text: str) -> NoReturn:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)
