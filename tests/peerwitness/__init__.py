"""A witness and a log of somebody else, for the tests of ours: `main.go` says what it is, go.mod and go.sum pin it.

It takes half a minute of CPU to build, once: the program is kept in the user's cache under a hash of its source and its pins.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tools.realkube import RealKubeError, cache_root, go_environment, only_builder, provide_go, required_go

SOURCE = Path(__file__).resolve().parent
MISSING = "the witness of transparency-dev cannot be built: it needs Go and the module registry"


def peer_program() -> Path:
    """The program; skips the test where it cannot be built, and fails it under CI=true, where a skip would hide that."""
    sources = [SOURCE / name for name in ("main.go", "go.mod", "go.sum")]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    program = cache_root(os.environ).parent / "peerwitness" / digest
    program.parent.mkdir(parents=True, exist_ok=True)
    with only_builder(program.parent / "lock"):
        if not program.exists() and (problem := _build(program)):
            if os.environ.get("CI", "").lower() == "true":
                pytest.fail(f"{MISSING}: {problem}", pytrace=False)
            pytest.skip(f"{MISSING}: {problem}")
    return program


def _build(program: Path) -> str:
    """Build it; what went wrong, or nothing."""
    try:
        go = provide_go(os.environ, required_go((SOURCE / "go.mod").read_text()))
    except RealKubeError as error:
        return str(error)
    fresh = program.with_suffix(".partial")
    command = [go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(fresh), "."]
    built = subprocess.run(
        command, cwd=SOURCE, env=go_environment(os.environ), capture_output=True, text=True, check=False
    )
    if built.returncode:
        return built.stderr.strip()
    fresh.replace(program)
    return ""
