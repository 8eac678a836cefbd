"""Boot twice and keep the evidence, for tests that cannot boot:

python -m tests.measuredboot.keep tests/evidence/data/measured-boot
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.measuredboot.run import CHANGED_LINE, image, run

NONCE = b"a challenge of the tests".ljust(32, b".")


def main(folder: Path) -> None:
    """Write the manifest of the image and the evidence of two machines, one with another command line."""
    folder.mkdir(parents=True, exist_ok=True)
    good, changed = run(image(), NONCE), run(image(CHANGED_LINE), NONCE)
    (folder / "manifest.json").write_text(json.dumps(good.predicted.to_manifest(), indent=1) + "\n")
    (folder / "good.json").write_bytes(good.booted.evidence + b"\n")
    (folder / "changed.json").write_bytes(changed.booted.evidence + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
