"""Booting through systemd-boot: what it adds to a measurement, what is refused, and every state between two images."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from fastness.attestation.values.from_images import states_of_manifest
from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.gpt import BEGINNING, parse_gpt
from fastness.formats.evidence.efi.signature_lists import SIG_X509
from fastness.images.errors import NotBootable, Unpredictable
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import REGISTERS, BootChain, Disk, measure_uki, predict
from fastness.images.measurement import Measurement
from fastness.images.transition import BOOTED, NEW_LOADER, OLD_LOADER, manifest, transition
from fastness.images.uki import write_uki
from tests.measuredboot import minted
from tests.measuredboot.loader import write_table

ROOT = minted.Signer("db root")
OTHER = minted.Signer("db of somebody else")
LINE = "quiet composefs.digest=v1-sha512-12:aa"


def uki(line: str = LINE, stub: str = "252.1-1") -> bytes:
    return write_uki(minted.stub(stub), minted.sections(cmdline=line.encode()))


def measured(chain: BootChain) -> Measurement:
    return predict(chain, FirmwareVars.blank(), secure_boot=False)


def differing(first: Measurement, second: Measurement) -> set[int]:
    return {pcr for pcr in REGISTERS if first.registers.get(pcr) != second.registers.get(pcr)}


def disk(tmp_path: Path, size: int = 8192) -> bytes:
    path = tmp_path / "disk"
    path.write_bytes(bytes(size * 512))
    write_table(path, size // 2)
    return path.read_bytes()[:BEGINNING]


def test_the_boot_loader_is_measured_before_the_image_and_its_options_twice() -> None:
    alone, through = (
        measure_uki(uki(), FirmwareVars.blank(), secure_boot=False),
        measured(BootChain(uki(), minted.loader())),
    )
    assert differing(alone, through) == {4, 12}
    assert [event.id for event in through.of_register(4)] == [
        "Pcr4EfiCall", "Pcr4Separator", "Pcr4Loader", "Pcr4Uki", "Pcr4UkiKernel",
    ]  # fmt: skip
    options = hashlib.sha256(LINE.encode("utf-16-le") + b"\0\0").digest()
    assert [event.digest for event in through.of_register(12)] == [options, options]


def test_a_line_break_at_the_end_of_the_line_changes_only_what_holds_the_section() -> None:
    plain, broken = measured(BootChain(uki(), minted.loader())), measured(BootChain(uki(LINE + "\n"), minted.loader()))
    assert differing(plain, broken) == {4, 11}


@pytest.mark.parametrize("line", [" quiet", "quiet ", "quiet\tx", "quiet\n\n", "quiet\0"])
def test_a_line_that_loader_and_stub_read_differently_is_refused(line: str) -> None:
    with pytest.raises(Unpredictable) as caught:
        measured(BootChain(uki(line), minted.loader()))
    assert caught.value.code == "odd-command-line"


@pytest.mark.parametrize(("loader", "stub"), [("257.9", "252.1"), ("252.1", "257.1"), ("255.4", "255.4")])
def test_versions_that_nobody_booted_together_are_not_guessed(loader: str, stub: str) -> None:
    with pytest.raises(Unpredictable) as caught:
        measured(BootChain(uki(stub=stub), minted.loader(loader)))
    assert caught.value.code in ("unknown-loader", "unknown-stub")
    assert "trusted machine" in caught.value.hint


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (b"", "not-pe"),
        (minted.stub(), "no-loader"),
        (minted.pe({".sdmagic": b"#### LoaderInfo: grub ####"}), "no-loader"),
    ],
    ids=["nothing", "a stub", "another loader"],
)
def test_what_is_not_systemd_boot_is_refused(program: bytes, code: str) -> None:
    with pytest.raises(ImageError) as caught:
        measured(BootChain(uki(), program or b"no program"))
    assert caught.value.code == code


def test_with_secure_boot_the_key_of_loader_and_image_is_measured_once_and_options_once() -> None:
    firmware = FirmwareVars(minted.keys(minted.siglist(SIG_X509, ROOT.der)))
    chain = BootChain(ROOT.sign(uki()), ROOT.sign(minted.loader()))
    prediction = predict(chain, firmware, secure_boot=True)
    names = [event.name for event in prediction.of_register(7)]
    assert names.count("EV_EFI_VARIABLE_AUTHORITY") == 1
    assert len(prediction.of_register(12)) == 1
    assert [event.id for event in prediction.of_register(4)][2:] == ["Pcr4Loader", "Pcr4Uki"]


def test_two_keys_are_measured_in_the_order_in_which_they_are_used() -> None:
    firmware = FirmwareVars(minted.keys(minted.siglist(SIG_X509, ROOT.der, OTHER.der)))
    turned = [
        predict(BootChain(image.sign(uki()), loader.sign(minted.loader())), firmware, secure_boot=True).of_register(7)
        for image, loader in ((ROOT, OTHER), (OTHER, ROOT))
    ]
    used = [[event.description for event in events if event.name == "EV_EFI_VARIABLE_AUTHORITY"] for events in turned]
    assert [OTHER.name in text for text in used[0]] == [True, False]
    assert used[1] == used[0][::-1]


def test_an_unsigned_boot_loader_does_not_start() -> None:
    firmware = FirmwareVars(minted.keys(minted.siglist(SIG_X509, ROOT.der)))
    with pytest.raises(NotBootable):
        predict(BootChain(ROOT.sign(uki()), minted.loader()), firmware, secure_boot=True)


def test_the_partition_table_is_one_event_of_header_count_and_used_entries(tmp_path: Path) -> None:
    start = disk(tmp_path)
    table = parse_gpt(start)
    assert table.measured == start[512:604] + struct.pack("<Q", 2) + start[1024 : 1024 + 256]
    prediction = measured(BootChain(uki(), minted.loader(), table))
    assert [event.name for event in prediction.of_register(5)][:2] == ["EV_SEPARATOR", "EV_EFI_GPT_EVENT"]
    assert differing(prediction, measured(BootChain(uki(), minted.loader()))) == {5}


def test_a_disk_that_nobody_knows_leaves_its_register_out_and_says_so() -> None:
    prediction = measured(BootChain(uki(), minted.loader(), Disk.UNKNOWN))
    assert 5 not in prediction.registers
    assert "PCR 5" in prediction.notes[0]


@pytest.mark.parametrize("at", [512, 512 + 40, 1024, 512 + 16])
def test_a_damaged_table_is_refused(tmp_path: Path, at: int) -> None:
    start = bytearray(disk(tmp_path))
    start[at] ^= 1
    with pytest.raises(ImageError):
        parse_gpt(bytes(start))


def test_a_table_that_was_not_read_whole_is_refused(tmp_path: Path) -> None:
    for size in (0, 511, 600, 1024, 4096):
        with pytest.raises(ImageError):
            parse_gpt(disk(tmp_path)[:size])


def test_a_new_boot_loader_comes_last_so_either_image_may_run_under_either() -> None:
    before = BootChain(uki("quiet slot=a"), minted.loader())
    after = BootChain(uki("quiet slot=b"), minted.loader("252.40-1", text=b"newer"))
    turn = transition(before, after, FirmwareVars.blank(), secure_boot=False)
    assert list(turn.after) == [BOOTED, OLD_LOADER]
    assert list(turn.before) == [BOOTED, NEW_LOADER]
    assert differing(turn.after[BOOTED], turn.after[OLD_LOADER]) == {4}
    assert turn.after[OLD_LOADER] == measured(BootChain(after.uki, before.loader))
    assert turn.before[NEW_LOADER] == measured(BootChain(before.uki, after.loader))


def test_without_another_boot_loader_nothing_is_between_two_images() -> None:
    before, after = (BootChain(uki(f"quiet slot={slot}"), minted.loader()) for slot in "ab")
    turn = transition(before, after, FirmwareVars.blank(), secure_boot=False)
    assert (list(turn.before), list(turn.after)) == ([BOOTED], [BOOTED])
    assert differing(turn.before[BOOTED], turn.after[BOOTED]) == {4, 9, 11, 12}


def test_the_states_are_what_an_approval_carries_and_none_mixes_two() -> None:
    before = BootChain(uki("quiet slot=a"), minted.loader())
    after = BootChain(uki("quiet slot=b"), minted.loader("252.40-1", text=b"newer"))
    turn = transition(before, after, FirmwareVars.blank(), secure_boot=False)
    read = dict(states_of_manifest(manifest(turn.after)))
    assert list(read) == [BOOTED, OLD_LOADER]
    for name, state in turn.after.items():
        values = {value["name"]: value["value"] for value in read[name] if not value["name"].startswith("event_")}
        assert values == {f"tpm_pcr{pcr}": register.hex() for pcr, register in state.registers.items()}
