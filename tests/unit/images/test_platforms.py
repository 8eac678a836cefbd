"""The firmware of machines as a cluster is told of it: which pools have it, what is wrong with it, what images measure there."""

from __future__ import annotations

import base64

from fastness.formats.evidence.efi.signature_lists import SIG_SHA256, SIG_X509
from fastness.images.boot_files import GRUB, KERNEL, SHIM, UKI, BootFiles
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.platforms import digest_of, firmware_of, platforms_for, variables_of
from fastness.images.uki import write_uki
from fastness.images.whole_image import expect
from fastness.kinds.fastness_dev.image_approval import ImagePlatform
from tests.measuredboot import minted

SIGNER = minted.Signer("db")
FIRMWARE = FirmwareVars(minted.keys(minted.siglist(SIG_X509, SIGNER.der)))
IMAGE = SIGNER.sign(write_uki(minted.stub(), minted.sections()))
RACK = ImagePlatform(name="rack", secure_boot=True, variables=variables_of(FIRMWARE))
BOOT = BootFiles({UKI: {"boot/EFI/Linux/os.efi": IMAGE}})


def test_variables_survive_the_way_through_a_cluster() -> None:
    assert firmware_of(variables_of(FIRMWARE)).measured_keys() == FIRMWARE.measured_keys()


def test_an_image_is_measured_with_the_keys_of_its_platform() -> None:
    platforms, problems = platforms_for((RACK,), frozenset({"worker"}))
    manifest = expect(BOOT, platforms).manifest
    assert problems == ()
    assert manifest is not None
    registers = measure_uki(IMAGE, FIRMWARE, secure_boot=True).registers
    # PCR 5 holds the partition table of a disk, which no image knows (docs/adr/0108).
    assert {row["id"]: row["value"] for row in manifest["pcrs"]} == {
        pcr: value.hex() for pcr, value in registers.items() if pcr != 5
    }
    assert {7, 14} <= registers.keys()


def test_every_platform_of_a_pool_is_a_whole_of_its_own() -> None:
    plain = ImagePlatform(name="plain", secure_boot=False)
    platforms, _ = platforms_for((RACK, plain), frozenset({"worker"}))
    manifest = expect(BOOT, platforms).manifest
    assert manifest is not None
    assert list(manifest["variants"]) == ["plain"]


def test_a_platform_of_other_pools_is_not_measured_and_one_without_pools_is_for_all() -> None:
    other = ImagePlatform(name="gpu", secure_boot=True, pools=("gpu",), variables=RACK.variables)
    assert [each.name for each in platforms_for((RACK, other), frozenset({"worker"}))[0]] == ["rack"]
    assert [each.name for each in platforms_for((RACK, other), frozenset({"gpu"}))[0]] == ["rack", "gpu"]
    assert [each.name for each in platforms_for((RACK, other), frozenset())[0]] == ["rack", "gpu"]


def test_an_image_that_the_firmware_would_not_start_gets_no_values_and_the_reason_names_the_platform() -> None:
    strict = FirmwareVars(minted.keys(minted.siglist(SIG_SHA256, bytes(32))))
    platforms, _ = platforms_for(
        (ImagePlatform(name="strict", secure_boot=True, variables=variables_of(strict)),), frozenset()
    )
    expected = expect(BOOT, platforms)
    assert expected.manifest is None
    assert "no entry of the firmware's db allows the image" in expected.missing["tpm"]
    assert "(strict)" in expected.missing["tpm"]


def test_damaged_variables_are_a_problem_and_no_platform() -> None:
    for content in ("no base64", base64.b64encode(b"x" * 40).decode()):
        platforms, problems = platforms_for((ImagePlatform(name="bad", variables={"db": content}),), frozenset())
        assert platforms == ()
        assert "the variables of platform bad cannot be read" in problems[0]


def test_other_keys_mean_that_images_are_read_again() -> None:
    other = ImagePlatform(name="rack", secure_boot=True, variables={**RACK.variables, "dbx": ""})
    assert digest_of(()) == ""
    assert len({digest_of((RACK,)), digest_of((other,)), digest_of((RACK, other))}) == 3
    assert digest_of((RACK, other)) == digest_of((other, RACK))


def test_behind_shim_the_reason_says_which_variables_are_missing() -> None:
    chain = BootFiles({kind: {f"{kind}.efi": minted.pe({".text": kind.encode()})} for kind in (SHIM, GRUB, KERNEL)})
    expected = expect(chain, platforms_for((RACK,), frozenset())[0])
    assert expected.manifest is not None
    assert [row["id"] for row in expected.manifest["pcrs"]] == [4, 11, 12]
    assert "SbatLevel, MokList" in expected.missing["tpm"]
