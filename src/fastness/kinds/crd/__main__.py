"""`python -m fastness.kinds.crd`: write the manifests, or say which of them are stale.

Exit codes: 0 in step (or written), 1 stale (`--check`), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fastness.kinds.crd import files


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fastness.kinds.crd", description="Keep CustomResourceDefinition files in step with the kinds."
    )
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--check", metavar="DIR", type=Path, help="exit 1 and name the files that are stale")
    task.add_argument(
        "--write", metavar="DIR", type=Path, help="write what is missing or stale, remove what is left over"
    )
    chosen = parser.parse_args(arguments)
    if chosen.write is not None:
        for name in files.write(chosen.write):
            print(f"wrote {chosen.write / name}")
        return 0
    outdated = files.stale(chosen.check)
    for name in outdated:
        print(f"{chosen.check / name} is stale", file=sys.stderr)
    if outdated:
        print(f"run: python -m fastness.kinds.crd --write {chosen.check}", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
