"""A machine that boots through systemd-boot measures what was predicted, on disks with and without a partition table.

Recorded boots are judged in `make test` (tests/unit/images/test_real_loader_boot.py); these here boot.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.formats.evidence.eventlog.log import parse_log
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import REGISTERS, BootChain, Disk, predict
from tests.e2e.measured.test_secure_boot import signed
from tests.measuredboot import loader, machine
from tests.measuredboot.run import COMMAND_LINE, image
from tests.soaking import SOAK

pytestmark = [
    pytest.mark.soak,
    pytest.mark.long("boots a machine under emulation"),
    pytest.mark.skipif(
        not SOAK, reason="in `make soak`: tests/unit/images/test_real_loader_boot.py has two such boots"
    ),
]


@pytest.mark.parametrize(
    ("table", "secure_boot", "line"),
    [
        (True, False, COMMAND_LINE + b" slot=b\n"),
        (False, False, COMMAND_LINE + b" slot=b"),
        (True, True, COMMAND_LINE + b" slot=b"),
    ],
    ids=["partitions", "bare disk", "secure boot"],
)
def test_the_machine_measures_what_was_predicted(table: bool, secure_boot: bool, line: bytes, tmp_path: Path) -> None:
    other, chosen, boots = image(), image(line), loader.systemd_boot()
    if secure_boot:
        chosen, boots = signed(chosen, tmp_path), signed(boots, tmp_path)
    disk = tmp_path / "disk"
    loader.write_disk(disk, {"a.efi": other, "b.efi": chosen}, "b.efi", loader=boots, table=table)
    variables = (machine.FIRMWARE / (machine.SECURE if secure_boot else machine.PLAIN)[1]).read_bytes()
    chain = BootChain(chosen, boots, loader.table_of(disk) if table else Disk.BARE)
    predicted = predict(chain, FirmwareVars.of_store(variables), secure_boot=secure_boot)
    booted = loader.boot(disk, bytes(32), secure_boot=secure_boot)
    log = parse_log(booted.event_log)
    for pcr in REGISTERS:
        logged = [event.digests["sha256"] for event in log.events if event.register == pcr]
        assert logged == [event.digest for event in predicted.of_register(pcr)], f"PCR {pcr}"
        assert booted.registers[pcr] == predicted.registers[pcr], f"PCR {pcr}"
