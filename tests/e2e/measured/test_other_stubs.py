"""Boot stubs of other versions, from a directory in FASTNESS_STUBS: files `linuxx64.efi.stub`, at any depth.

    FASTNESS_SOAK=1 FASTNESS_STUBS=stubs pytest tests/e2e/measured/test_other_stubs.py

Debian has them in the package systemd-boot-efi of other releases. They are no component of ours; without them nothing runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fastness.formats.evidence.pe.uki import parse_uki
from fastness.images.stub import STUBS
from fastness.sim.vms.initrd import archive
from tests.e2e.measured.test_secure_boot import signed
from tests.measuredboot.run import image, run

GIVEN = os.environ.get("FASTNESS_STUBS", "")
FOUND = sorted(Path(GIVEN).glob("**/linuxx64.efi.stub")) if GIVEN else []
LINE = b" console=ttyS0 quiet\tpanic=1 x=1 \n"


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("FASTNESS_SOAK"), reason="boots take long: they run in `make soak`")
@pytest.mark.skipif(not FOUND, reason="no boot stubs: set FASTNESS_STUBS to a directory that holds some")
@pytest.mark.parametrize("secure_boot", [False, True], ids=["plain", "secure boot"])
@pytest.mark.parametrize("stub", FOUND, ids=str)
def test_the_machine_measures_what_was_predicted(stub: Path, secure_boot: bool, tmp_path: Path) -> None:
    more = {"uname": b"6.1", "pcrsig": b"{}", "pcrpkey": b"no key", "splash": b"no picture"}
    more["ucode"] = archive({"kernel/x86/microcode/none": b"none"}, {})
    uki = image(LINE, stub=stub, **more)
    assert parse_uki(uki).stub in STUBS
    comparison = run(signed(uki, tmp_path) if secure_boot else uki, bytes(32), secure_boot=secure_boot)
    measured = {pcr: comparison.booted.registers[pcr].hex() for pcr in comparison.predicted.registers}
    assert measured == {pcr: value.hex() for pcr, value in comparison.predicted.registers.items()}
