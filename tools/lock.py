"""Resolve the dependencies anew: writes requirements/run.lock and requirements/dev.lock with hashes, for all platforms.

    python tools/lock.py                versions that still fit stay as they are
    python tools/lock.py --upgrade      the newest that fit

uv resolves once for every supported Python and platform; the files name packages, versions and hashes, never a place to get them
from. `make` installs from dev.lock; run.lock is for an installation without tools.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = "hatchling>=1.27\neditables>=0.5\n"  # what `pip install --no-build-isolation -e .` needs


def compile_lock(source: str, target: Path, *, upgrade: bool) -> None:
    """Resolve requirements given as text into a lock file; what it has already is preferred, unless it is upgraded."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "-", "-o", str(target),
        *(["--upgrade"] if upgrade else []),
    ]  # fmt: skip
    subprocess.run(command, input=source, text=True, check=True, cwd=ROOT)
    note = "# Resolved by `make lock`; do not edit.\n"
    target.write_text(note + target.read_text())


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    upgrade = parser.parse_args().upgrade
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = "\n".join(project["project"]["dependencies"]) + "\n"
    tools = "\n".join(project["dependency-groups"]["dev"]) + "\n"
    (ROOT / "requirements").mkdir(exist_ok=True)
    compile_lock(runtime, ROOT / "requirements" / "run.lock", upgrade=upgrade)
    compile_lock(runtime + tools + BUILD, ROOT / "requirements" / "dev.lock", upgrade=upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
