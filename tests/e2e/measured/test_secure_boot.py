"""With Secure Boot on, a machine measures its keys and the one that let the image start; an unsigned image does not start."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fastness.formats.evidence.eventlog.log import parse_log
from fastness.images.boot_files import UKI, BootFiles
from fastness.images.errors import NotBootable
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import REGISTERS, measure_uki
from fastness.images.platforms import platforms_for, variables_of
from fastness.images.whole_image import expect
from fastness.kinds.fastness_dev.image_approval import ImagePlatform
from tests.components import require_program
from tests.measuredboot import machine
from tests.measuredboot.run import Run, image, run

SNAKEOIL = Path("/usr/share/ovmf")


def signed(uki: bytes, place: Path) -> bytes:
    """The image signed with the key of Debian's test firmware, by sbsign."""
    require_program(Path("/usr/bin/sbsign"), "sbsigntool")
    plain, key, out = (place / name for name in ("plain.efi", "key.pem", "signed.efi"))
    plain.write_bytes(uki)
    unlock = ["openssl", "rsa", "-in", str(SNAKEOIL / "PkKek-1-snakeoil.key"), "-passin", "pass:snakeoil"]
    subprocess.run([*unlock, "-out", str(key)], check=True, capture_output=True)
    certificate = str(SNAKEOIL / "PkKek-1-snakeoil.pem")
    command = ["sbsign", "--key", str(key), "--cert", certificate, "--output", str(out), str(plain)]
    subprocess.run(command, check=True, capture_output=True)
    return out.read_bytes()


def firmware() -> FirmwareVars:
    return FirmwareVars.of_store((machine.FIRMWARE / machine.SECURE[1]).read_bytes())


def test_what_sbsign_signed_is_predicted_and_an_unsigned_image_is_not(tmp_path: Path) -> None:
    uki = image()
    measurement = measure_uki(signed(uki, tmp_path), firmware(), secure_boot=True)
    assert measurement.of_register(7)[-1].name == "EV_EFI_VARIABLE_AUTHORITY"
    with pytest.raises(NotBootable):
        measure_uki(uki, firmware(), secure_boot=True)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if not os.environ.get("FASTNESS_SOAK"):
        pytest.skip("a boot with Secure Boot takes long: it runs in `make soak`")
    # The boot stub adds both keys to the initial file system, so the kernel measures more than the section.
    uki = image(pcrsig=b"{}", pcrpkey=b"not a key")
    return run(signed(uki, tmp_path_factory.mktemp("signed")), bytes(32), secure_boot=True)


@pytest.mark.soak
@pytest.mark.parametrize("pcr", REGISTERS)
def test_the_machine_measures_what_was_predicted(secure: Run, pcr: int) -> None:
    assert secure.booted.registers[pcr].hex() == secure.predicted.registers[pcr].hex()


@pytest.mark.soak
def test_the_log_is_the_predicted_events_in_their_order(secure: Run) -> None:
    log = parse_log(secure.booted.event_log)
    for pcr in REGISTERS:
        logged = [event.digests["sha256"] for event in log.events if event.register == pcr]
        assert logged == [event.digest for event in secure.predicted.of_register(pcr)], f"PCR {pcr}"


@pytest.mark.soak
def test_what_is_computed_of_an_image_for_a_platform_that_the_cluster_was_told_of_is_what_the_machine_measures(
    secure: Run,
) -> None:
    rack = ImagePlatform(name="rack", secure_boot=True, variables=variables_of(firmware()))
    platforms, problems = platforms_for((rack,), frozenset({"worker"}))
    manifest = expect(BootFiles({UKI: {"boot/EFI/Linux/os.efi": secure.uki}}), platforms).manifest
    assert problems == ()
    assert manifest is not None
    computed = {row["id"]: row["value"] for row in manifest["pcrs"]}
    assert {4, 7, 9, 11, 12, 14} <= set(computed)
    assert computed == {pcr: secure.booted.registers[pcr].hex() for pcr in computed}


@pytest.mark.soak
def test_an_unsigned_image_does_not_start(secure: Run) -> None:
    assert secure.predicted.notes == ()
    with pytest.raises(AssertionError, match="does not boot"):
        machine.boot(image(), bytes(32), secure_boot=True)
