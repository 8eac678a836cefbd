"""The engine of bootc and rpm-ostree, `ostree-ext`, found or built once.

Neither program can be had where this project is built, but what deploys images beneath both of them can: a Rust library on
libostree. `tools/ostree` makes a program of it. Looked for in this order:

- the directory in ``FASTNESS_OSTREE_ENGINE``;
- the user's cache, where ``ensure`` puts what cargo builds from the pins in ``tools/ostree/Cargo.lock``.

The cache key covers the pins and our own lines; one builder at a time; a build appears by rename. Only `make soak` builds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.realkube import only_builder

PINS: Final = Path(__file__).resolve().parent / "ostree"
PROGRAM: Final = "ostree-ext-cli"
PACKAGES: Final = "libostree-dev libzstd-dev pkg-config"


class NoEngine(Exception):
    """The engine cannot be provided; the message says what to do."""


def key() -> str:
    """What the engine is built from, as the name of a directory."""
    content = b"".join((PINS / name).read_bytes() for name in ("Cargo.toml", "Cargo.lock", "src/main.rs"))
    return hashlib.sha256(content).hexdigest()[:16]


def cache_root(env: Mapping[str, str]) -> Path:
    """The directory under which builds are kept."""
    base = env.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(env.get("HOME") or Path.home()) / ".cache"
    return root / "fastness" / "ostree-ext"


def locate(env: Mapping[str, str]) -> Path | None:
    """The engine, or None. Never builds."""
    places = [Path(env["FASTNESS_OSTREE_ENGINE"])] if env.get("FASTNESS_OSTREE_ENGINE") else []
    programs = (place / PROGRAM for place in (*places, cache_root(env) / key()))
    return next((program.resolve() for program in programs if os.access(program, os.X_OK)), None)


def ensure(env: Mapping[str, str]) -> Path:
    """The engine, built if nobody has it yet; raises NoEngine."""
    program = locate(env)
    if program is not None:
        return program
    root = cache_root(env)
    root.mkdir(parents=True, exist_ok=True)
    with only_builder(root / "lock"):
        return locate(env) or build(env, root / key())


def build(env: Mapping[str, str], target: Path) -> Path:
    """Build into a directory beside the target and rename it into place. The caller holds the lock."""
    cargo = shutil.which("cargo", path=env.get("PATH"))
    if cargo is None:
        raise NoEngine("there is no cargo on PATH: install Rust, or set FASTNESS_OSTREE_ENGINE")
    print(f"building {PROGRAM} (about six CPU minutes, once)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".target-") as scratch:
        place = env.get("CARGO_TARGET_DIR") or scratch
        command = [cargo, "build", "--release", "--locked", "--manifest-path", str(PINS / "Cargo.toml")]
        built = subprocess.run(command, env={**env, "CARGO_TARGET_DIR": place}, stdout=sys.stderr, check=False)
        if built.returncode != 0:
            raise NoEngine(f"{PROGRAM} was not built (messages of cargo stand above): apt-get install {PACKAGES}")
        partial = Path(scratch) / "partial"
        partial.mkdir()
        shutil.copy2(Path(place) / "release" / PROGRAM, partial / PROGRAM)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    return target / PROGRAM


def main() -> int:
    """Print where the engine is, and build it first where it is nowhere."""
    try:
        print(ensure(os.environ))
    except NoEngine as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
