"""What an image measures: logs replay to registers, a change moves exactly the registers that it should, values fit policies."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sevsnpmeasure.gctx import GCTX  # type: ignore[import-untyped]
from sevsnpmeasure.sev_hashes import SevHashes  # type: ignore[import-untyped]

from fastness.attestation.evidence.replay import replay
from fastness.attestation.values.from_images import joined, states_of_manifest
from fastness.crypto.silicon.registers import hashed
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.images.measurement import parse_manifest
from fastness.sim.tee import BootImage, changed, default_image, tamper
from fastness.sim.tee.images import TPM_REFERENCES, reference_values
from fastness.sim.tee.writers.launch import HASHES_AT, PAGE, kernel_hashes, mr_td, processor_state
from tests.evidence.vectors import vectors

IMAGE = default_image()


def moved(image: BootImage) -> set[int]:
    """The PCRs in which an image differs from the default one."""
    return {index for index, (old, new) in enumerate(zip(IMAGE.pcrs, image.pcrs, strict=True)) if old != new}


def runtime_moved(image: BootImage) -> set[int]:
    return {index for index, (old, new) in enumerate(zip(IMAGE.rtmrs, image.rtmrs, strict=True)) if old != new}


def test_the_log_replays_to_the_registers_in_every_bank() -> None:
    ends = replay(parse_log(IMAGE.event_log))
    assert set(ends) == {"sha256", "sha384"}
    assert {index: IMAGE.pcrs[index] for index in ends["sha256"]} == ends["sha256"]
    assert set(ends["sha256"]) == {0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 14}


def test_registers_that_no_event_extends_have_their_first_value() -> None:
    assert all(IMAGE.pcrs[index] == bytes(32) for index in (8, 10, 12, 13, 15, 16, 23))
    assert all(IMAGE.pcrs[index] == b"\xff" * 32 for index in range(17, 23))


def test_the_log_of_a_confidential_vm_replays_to_its_runtime_registers() -> None:
    ends = replay(parse_log(IMAGE.cc_event_log))["sha384"]
    assert ends == {index + 1: value for index, value in enumerate(IMAGE.rtmrs[:3])}
    assert IMAGE.rtmrs[3] == bytes(48)


@pytest.mark.parametrize(
    ("image", "pcrs", "rtmrs"),
    [
        (tamper.with_boot_loader(IMAGE), {4}, {1}),
        (tamper.with_word(IMAGE), {4, 9, 11}, {1, 2}),
        (tamper.with_options(IMAGE), {9, 12}, {2}),
        (tamper.without_secure_boot(IMAGE), {4, 7}, {0, 1}),
        (changed(IMAGE, variables={**IMAGE.variables, "MokList": b"owner"}), {14}, {2}),
        (changed(IMAGE, firmware=bytes(PAGE)), {0}, set()),
        (default_image("43.0"), {4, 9, 11}, {1, 2}),
    ],
    ids=["boot loader", "command line", "options", "secure boot", "owner's keys", "firmware", "update"],
)
def test_a_change_moves_exactly_its_registers(image: BootImage, pcrs: set[int], rtmrs: set[int]) -> None:
    assert moved(image) == pcrs
    assert runtime_moved(image) == rtmrs


def test_launch_measurements_follow_firmware_and_what_it_may_boot() -> None:
    assert changed(IMAGE, firmware=bytes(PAGE)).mr_td != IMAGE.mr_td
    assert tamper.with_word(IMAGE).mr_td == IMAGE.mr_td
    launched = {
        image.launch_digest
        for image in (
            IMAGE,
            tamper.with_word(IMAGE),
            tamper.with_options(IMAGE, "x"),
            changed(IMAGE, firmware=bytes(PAGE)),
            changed(IMAGE, processors=3),
        )
    }
    assert len(launched) == 5


REAL = Path(__file__).parents[3] / "evidence" / "data" / "measured-boot" / "good.json"


def shapes(log: bytes, bank: str = "sha256") -> list[tuple[int, str, bool]]:
    """Register, type, and whether the digest covers the data, of each event that does not belong to one machine alone."""
    return [
        (event.register, event.name, hashed(bank, event.data) == event.digests[bank])
        for event in parse_log(log).events
        if event.register > 1 or event.name == "EV_SEPARATOR"
    ]


def test_a_machine_that_really_booted_logs_the_same_events_in_the_same_order() -> None:
    evidence = json.loads(REAL.read_text())
    bare = changed(IMAGE, secure_boot=False, loaders=(), variables={})
    assert shapes(bare.event_log) == shapes(base64.b64decode(evidence["event_log"]))
    # Where no part of the image enters, the values are equal too.
    values = evidence["tpm_quote"]["pcrs"]["values"]
    assert {index: bare.pcrs[index].hex() for index in (2, 3, 5, 6, 7, 12)} == {
        index: values[str(index)] for index in (2, 3, 5, 6, 7, 12)
    }


def test_no_event_of_ours_is_of_a_kind_that_real_machines_do_not_log() -> None:
    directory = vectors() / "eventlog"
    real = shapes(base64.b64decode((directory / "uefi-measured-boot.b64").read_text()))
    real += shapes(base64.b64decode(json.loads(REAL.read_text())["event_log"]))
    # That log is of a shim without MokListTrusted, which it measures as it does the other two.
    assert set(shapes(IMAGE.event_log)) <= set(real)
    for name in ("CCEL_data_ovmf", "CCEL_data_grub"):
        real += shapes((directory / name).read_bytes(), "sha384")
    assert set(shapes(IMAGE.cc_event_log, "sha384")) <= set(real)


def test_a_changed_boot_loader_is_one_event_with_another_digest() -> None:
    before, after = (parse_log(image.event_log).events for image in (IMAGE, tamper.with_boot_loader(IMAGE)))
    differing = [new.name for old, new in zip(before, after, strict=True) if old.digests != new.digests]
    assert differing == ["EV_EFI_BOOT_SERVICES_APPLICATION"]


def test_the_launch_digest_is_that_of_sev_snp_measure() -> None:
    context = GCTX()
    context.update_normal_pages((1 << 32) - len(IMAGE.firmware), IMAGE.firmware)
    hashes = kernel_hashes(IMAGE.section(".linux"), IMAGE.section(".initrd"), IMAGE.command_line)
    context.update_normal_pages(HASHES_AT, hashes)
    for number in range(IMAGE.processors):
        context.update_vmsa_page(processor_state(number))
    assert IMAGE.launch_digest == context.ld()


def test_the_page_of_kernel_hashes_is_that_of_sev_snp_measure(tmp_path: Any) -> None:
    kernel, initrd = tmp_path / "kernel", tmp_path / "initrd"
    kernel.write_bytes(b"kernel")
    initrd.write_bytes(b"initrd")
    theirs = SevHashes(str(kernel), str(initrd), "root=/dev/sda quiet").construct_page(0)
    assert kernel_hashes(b"kernel", b"initrd", "root=/dev/sda quiet") == theirs


def test_the_measurement_of_a_domain_covers_every_byte_and_every_address() -> None:
    page = hashlib.shake_256(b"x").digest(PAGE)
    assert mr_td(page) != mr_td(page[:-1] + b"\0")
    assert mr_td(page + bytes(PAGE)) != mr_td(bytes(PAGE) + page)


def test_values_have_the_names_that_policies_ask_for() -> None:
    named = {
        tee: {entry["name"] for entry in IMAGE.reference_values(tee) if not entry["name"].startswith("event_")}
        for tee in ("tpm", "snp", "tdx")
    }
    assert named["tpm"] == {f"tpm_pcr{index}" for index in TPM_REFERENCES}
    assert {"tpm_pcr4", "tpm_pcr7", "tpm_pcr11", "tpm_pcr12", "tpm_pcr14"} <= named["tpm"]
    assert named["snp"] == {"snp_launch_measurement", "snp_bootloader", "snp_tee_svn", "snp_snp_svn", "snp_microcode"}
    assert named["tdx"] == {"mr_td", "rtmr_0", "rtmr_1", "rtmr_2", "xfam"}
    with pytest.raises(ValueError, match="choose one of tpm, snp, tdx"):
        reference_values("sgx")


def test_a_manifest_adds_up_and_holds_the_values_of_every_kind() -> None:
    assert parse_manifest(IMAGE.manifest()).registers == {index: IMAGE.pcrs[index] for index in TPM_REFERENCES}
    values = joined(states_of_manifest(IMAGE.manifest()))
    assert len({(entry["name"], entry["value"]) for entry in values}) == len(values)
    for tee in ("tpm", "snp", "tdx"):
        expected = {(entry["name"], entry["value"]) for entry in IMAGE.reference_values(tee)}
        assert expected <= {(entry["name"], entry["value"]) for entry in values}


@given(
    st.builds(
        changed,
        st.just(IMAGE),
        command_line=st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=64),
        boot_loader=st.binary(max_size=64),
        load_options=st.text(st.characters(codec="ascii"), max_size=16),
        secure_boot=st.booleans(),
    )
)
def test_the_log_of_any_image_replays_to_its_registers_and_its_manifest_adds_up(image: BootImage) -> None:
    ends = replay(parse_log(image.event_log))["sha256"]
    assert {index: image.pcrs[index] for index in ends} == ends
    runtime = replay(parse_log(image.cc_event_log))["sha384"]
    assert {index: image.rtmrs[index - 1] for index in runtime} == runtime
    assert parse_manifest(image.manifest()).registers[4] == image.pcrs[4]


def test_an_image_is_worked_out_once() -> None:
    assert default_image() is default_image()
    assert IMAGE.event_log is IMAGE.event_log
    assert changed(IMAGE).pcrs == IMAGE.pcrs
