"""Boot twice and keep the evidence, for tests that cannot boot:

python -m tests.measuredboot.keep tests/evidence/data/measured-boot
python -m tests.measuredboot.keep tests/evidence/data/systemd-boot loader
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from fastness.images.firmware import FirmwareVars
from fastness.images.measure import BootChain, predict
from tests.measuredboot import loader, machine
from tests.measuredboot.run import CHANGED_LINE, COMMAND_LINE, image, run

NONCE = b"a challenge of the tests".ljust(32, b".")


def main(folder: Path) -> None:
    """Write the manifest of the image and the evidence of two machines, one with another command line."""
    folder.mkdir(parents=True, exist_ok=True)
    good, changed = run(image(), NONCE), run(image(CHANGED_LINE), NONCE)
    (folder / "manifest.json").write_text(json.dumps(good.predicted.to_manifest(), indent=1) + "\n")
    (folder / "good.json").write_bytes(good.booted.evidence + b"\n")
    (folder / "changed.json").write_bytes(changed.booted.evidence + b"\n")


def main_loader(folder: Path) -> None:
    """Write manifests and evidence of one disk that boots image A through systemd-boot, then image B."""
    folder.mkdir(parents=True, exist_ok=True)
    images = {f"{slot}.efi": image(COMMAND_LINE + b" slot=" + slot.encode()) for slot in "ab"}
    firmware = FirmwareVars.of_store((machine.FIRMWARE / machine.PLAIN[1]).read_bytes())
    with tempfile.TemporaryDirectory(prefix="fastness-keep-") as scratch:
        disk = Path(scratch) / "disk"
        for slot, uki in images.items():
            loader.write_disk(disk, images, slot, loader=loader.systemd_boot())
            predicted = predict(
                BootChain(uki, loader.systemd_boot(), loader.table_of(disk)), firmware, secure_boot=False
            )
            name = slot.removesuffix(".efi")
            (folder / f"manifest-{name}.json").write_text(json.dumps(predicted.to_manifest(), indent=1) + "\n")
            (folder / f"{name}.json").write_bytes(loader.boot(disk, NONCE).evidence + b"\n")


if __name__ == "__main__":
    (main_loader if "loader" in sys.argv[2:] else main)(Path(sys.argv[1]))
