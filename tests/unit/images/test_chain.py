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
from fastness.images import boot_files as kinds
from fastness.images.boot_files import BootFiles
from fastness.images.errors import NotBootable, Unpredictable
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import REGISTERS, BootChain, Disk, measure_uki, predict
from fastness.images.measurement import Measurement
from fastness.images.transition import mark_of, read_mark, under
from fastness.images.uki import write_uki
from fastness.images.whole_image import ALONE, Expected, Platform, expect
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


NEWER = minted.loader("252.40-1", text=b"newer")


def test_an_image_under_another_boot_loader_measures_what_a_whole_prediction_says() -> None:
    own = measured(BootChain(uki(), minted.loader()))
    turned = under(own, 252, mark_of(NEWER))
    assert turned == measured(BootChain(uki(), NEWER))
    assert turned is not None
    assert differing(own, turned) == {4}


def test_nothing_is_said_of_a_boot_loader_that_nobody_booted_with_the_stub() -> None:
    own = measured(BootChain(uki(), minted.loader()))
    assert under(own, 252, mark_of(minted.loader("257.9"))) is None
    assert under(own, 257, mark_of(NEWER)) is None


def test_a_mark_is_read_as_it_was_noted_and_nothing_else_is_one() -> None:
    mark = mark_of(NEWER)
    assert read_mark(mark.to_json()) == mark
    spoilt: list[object] = [
        None,
        [],
        {},
        {**mark.to_json(), "authenticode": "00"},
        {**mark.to_json(), "version": "252"},
    ]
    for each in spoilt:
        assert read_mark(each) is None


def boots(**content: bytes) -> BootFiles:
    """The boot files of an image: `a` is a unified kernel image, `usr` and `esp` are boot loaders."""
    places = {"usr": "usr/lib/systemd/boot/efi/systemd-bootx64.efi", "esp": "boot/EFI/BOOT/BOOTX64.EFI"}
    loaders = {places[name]: each for name, each in content.items() if name in places}
    kernels = {f"boot/EFI/Linux/{name}.efi": each for name, each in content.items() if name not in places}
    return BootFiles({kinds.UKI: kernels, kinds.LOADER: dict(sorted(loaders.items()))})


def states(expected: Expected) -> dict[str, dict[int, str]]:
    assert expected.manifest is not None
    manifests = {"": expected.manifest, **expected.manifest.get("variants", {})}
    return {name: {row["id"]: row["value"] for row in each["pcrs"]} for name, each in manifests.items()}


def in_hex(chain: BootChain) -> dict[int, str]:
    return {pcr: value.hex() for pcr, value in measured(chain).registers.items()}


def test_an_image_with_systemd_boot_is_expected_through_it_and_by_itself() -> None:
    expected = expect(boots(a=uki(), usr=minted.loader()), ())
    through, alone = (in_hex(BootChain(uki(), loader, Disk.UNKNOWN)) for loader in (minted.loader(), b""))
    assert states(expected) == {"": through, ALONE: alone}
    assert 5 not in through, "the disk is not the image's"
    assert {origin.path for origin in expected.sources} == {
        "boot/EFI/Linux/a.efi", "usr/lib/systemd/boot/efi/systemd-bootx64.efi",
    }  # fmt: skip


def test_every_boot_loader_that_machines_may_have_is_a_state_and_none_mixes_two() -> None:
    expected = expect(boots(a=uki(), usr=minted.loader()), (), loaders=(mark_of(NEWER), mark_of(minted.loader())))
    whole = in_hex(BootChain(uki(), NEWER, Disk.UNKNOWN))
    assert states(expected)[mark_of(NEWER).label] == whole
    assert len(states(expected)) == 3, "that of the image itself is not counted twice"
    read = dict(states_of_manifest(expected.manifest))
    values = {value["name"]: value["value"] for value in read[mark_of(NEWER).label]}
    assert {f"tpm_pcr{pcr}": value for pcr, value in whole.items()}.items() <= values.items()


def test_the_boot_loader_on_the_system_partition_goes_before_that_of_a_package() -> None:
    expected = expect(boots(a=uki(), usr=minted.loader(), esp=NEWER), ())
    assert states(expected)[""] == in_hex(BootChain(uki(), NEWER, Disk.UNKNOWN))
    assert len(states(expected)) == 3


@pytest.mark.parametrize("program", [minted.loader("257.9"), minted.stub(), b"MZ"], ids=["unknown", "other", "damaged"])
def test_a_boot_loader_that_cannot_be_predicted_is_named_and_the_rest_is_said(program: bytes) -> None:
    expected = expect(boots(a=uki(), usr=program), ())
    assert states(expected) == {"": in_hex(BootChain(uki(), b"", Disk.UNKNOWN))}
    assert expected.missing["tpm"].startswith("of a part: ")


def test_with_secure_boot_nothing_is_said_of_boot_loaders_whose_key_is_not_known() -> None:
    firmware = FirmwareVars(minted.keys(minted.siglist(SIG_X509, ROOT.der)))
    image = boots(a=ROOT.sign(uki()), usr=ROOT.sign(minted.loader()))
    expected = expect(image, (Platform("secure", firmware, secure_boot=True),), loaders=(mark_of(NEWER),))
    assert list(states(expected)) == ["", f"secure {ALONE}"]


def test_more_states_than_anybody_reads_are_refused() -> None:
    marks = [mark_of(minted.loader("252.40-1", text=bytes([number]))) for number in range(20)]
    expected = expect(boots(a=uki(), usr=minted.loader()), (), loaders=marks)
    assert expected.manifest is None
    assert "more than 12 states" in expected.missing["tpm"]
