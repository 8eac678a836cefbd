"""The chart as plain manifests, for people without helm: `deploy/manifests/fastness.yaml`.

    python tools/manifests.py --write      needs the helm of `tools/realkube.py`
    python tools/manifests.py --check      says whether the file is stale; exit code 1 if it is

Made by `helm template` with the chart's defaults, without its test. What the chart would leave alone, because it belongs to
somebody else, cannot be known here: whoever applies the file looks first (`fastness doctor --preflight`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, its neighbours are not on the path

from tools.realkube import CHARTS, ensure  # noqa: E402

CHART, FILE = ROOT / "deploy" / "chart", ROOT / "deploy" / "manifests" / "fastness.yaml"
HEADER = "# Generated from deploy/chart by `python tools/manifests.py --write`; do not edit. Put your image in: fastness:TAG.\n"


def rendered(helm: Path) -> str:
    """The text of the file; raises CalledProcessError."""
    words = [str(helm), "template", "fastness", str(CHART), "--namespace", "fastness-system", "--no-hooks"]
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.defpath, "HOME": home}
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=env, timeout=120)
    return HEADER + done.stdout


def main(arguments: Sequence[str]) -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", action="store_true")
    task.add_argument("--check", action="store_true")
    chosen = parser.parse_args(arguments)
    text = rendered(ensure(os.environ, CHARTS) / "helm")
    if chosen.write:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(text)
        return 0
    if FILE.exists() and FILE.read_text() == text:
        return 0
    print(f"{FILE} is stale: run python tools/manifests.py --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
