"""Resolve the dependencies anew: writes requirements/run.lock and requirements/dev.lock with hashes, for all platforms.

uv resolves once for every supported Python and platform; the files name packages, versions and hashes, never a place to get them
from. `make` installs from dev.lock; run.lock is for an installation without tools.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = "hatchling>=1.27\neditables>=0.5\n"  # what `pip install --no-build-isolation -e .` needs


def compile_lock(source: str, target: Path) -> None:
    """Resolve requirements given as text into a lock file."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--upgrade", "-", "-o", str(target),
    ]  # fmt: skip
    subprocess.run(command, input=source, text=True, check=True, cwd=ROOT)
    note = "# Resolved by `make lock`; do not edit.\n"
    target.write_text(note + target.read_text())


def main() -> int:
    """Write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = "\n".join(project["project"]["dependencies"]) + "\n"
    tools = "\n".join(project["dependency-groups"]["dev"]) + "\n"
    (ROOT / "requirements").mkdir(exist_ok=True)
    compile_lock(runtime, ROOT / "requirements" / "run.lock")
    compile_lock(runtime + tools + BUILD, ROOT / "requirements" / "dev.lock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
