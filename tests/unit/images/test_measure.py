"""What an image will measure: each formula on its own, each refusal, and which change moves which register."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.signature_lists import GLOBAL, IMAGE_SECURITY, SIG_SHA256, SIG_X509, SIG_X509_SHA256
from fastness.formats.evidence.efi.variables import variable_data
from fastness.formats.evidence.pe.authenticode import covered
from fastness.formats.evidence.pe.image import parse_pe
from fastness.images.errors import NotBootable, OsImageError, Unpredictable
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import REGISTERS, measure_uki
from fastness.images.measurement import Measurement
from fastness.images.uki import write_uki
from tests.measuredboot import minted

ROOT = minted.Signer("db root")
LEAF = minted.Signer("image signer", ROOT)
OTHER = minted.Signer("other")


def uki(**changes: bytes) -> bytes:
    return write_uki(minted.stub(), minted.sections(**changes))


def measured(data: bytes | None = None) -> Measurement:
    return measure_uki(uki() if data is None else data, FirmwareVars.blank(), secure_boot=False)


def extended(*digests: bytes) -> bytes:
    value = bytes(32)
    for entry in digests:
        value = hashlib.sha256(value + entry).digest()
    return value


def of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def pe_hash(data: bytes) -> bytes:
    return of(b"".join(covered(parse_pe(data))))


def secured(data: bytes, db: bytes, dbx: bytes = b"") -> Measurement:
    return measure_uki(data, FirmwareVars(minted.keys(db, dbx)), secure_boot=True)


def refusal(act: Callable[[], object], kind: type[OsImageError]) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert caught.value.hint
    return caught.value.code


def test_the_boot_path_is_action_separator_image_and_kernel() -> None:
    assert measured().registers[4] == extended(
        of(b"Calling EFI Application from Boot Option"), of(bytes(4)), pe_hash(uki()), pe_hash(minted.kernel())
    )


def test_the_stub_measures_names_and_contents_in_its_own_order_and_not_every_section() -> None:
    parts = minted.sections(uname=b"6.1", splash=b"picture")
    digests = [
        of(data)
        for name in (".linux", ".osrel", ".cmdline", ".initrd", ".splash")
        for data in (name.encode() + b"\0", parts[name])
    ]
    assert measured(write_uki(minted.stub(), parts)).registers[11] == extended(*digests)


def test_the_kernel_measures_its_command_line_as_utf16_and_the_initial_file_system() -> None:
    line = "quiet x=1".encode("utf-16-le") + b"\0\0"
    assert measured().registers[9] == extended(of(line), of(minted.sections()[".initrd"]))
    assert measured(uki(initrd=b"")).registers[9] == extended(of(line))


@pytest.mark.parametrize("line", [b"quiet x=1\n", b"quiet\tx=1 \n", b"quiet x=1  "])
def test_the_stub_hands_blanks_over_as_blanks_and_drops_those_at_the_end(line: bytes) -> None:
    prediction = measured(uki(cmdline=line))
    assert prediction.registers[9] == measured().registers[9]
    assert prediction.registers[11] != measured().registers[11]


def test_registers_without_events_stay_zero_and_separators_stand_alone() -> None:
    registers = measured().registers
    assert registers[12] == registers[14] == bytes(32)
    assert {registers[pcr] for pcr in (2, 3, 6)} == {extended(of(bytes(4)))}
    actions = (b"Exit Boot Services Invocation", b"Exit Boot Services Returned with Success")
    assert registers[5] == extended(of(bytes(4)), *map(of, actions))
    assert tuple(registers) == REGISTERS


@pytest.mark.parametrize(
    ("changes", "registers"),
    [
        ({"cmdline": b"quiet x=2"}, {4, 9, 11}),
        ({"initrd": b"other"}, {4, 9, 11}),
        ({"osrel": b"ID=other\n"}, {4, 11}),
        ({"linux": minted.kernel(text=b"other")}, {4, 11}),
        ({"uname": b"6.1"}, {4}),
    ],
    ids=str,
)
def test_a_change_moves_exactly_the_registers_that_hold_it(changes: dict[str, bytes], registers: set[int]) -> None:
    before, after = measured().registers, measured(uki(**changes)).registers
    assert {pcr for pcr in before if before[pcr] != after[pcr]} == registers


def test_without_secure_boot_the_keys_are_measured_and_no_authority() -> None:
    variables = minted.keys(minted.siglist(SIG_X509, ROOT.der))
    prediction = measure_uki(uki(), FirmwareVars(variables), secure_boot=False)
    pk, kek, db = (variables[key] for key in ((GLOBAL, "PK"), (GLOBAL, "KEK"), (IMAGE_SECURITY, "db")))
    rows = [
        (GLOBAL, "SecureBoot", b"\0"),
        (GLOBAL, "PK", pk),
        (GLOBAL, "KEK", kek),
        (IMAGE_SECURITY, "db", db),
        (IMAGE_SECURITY, "dbx", b""),
    ]
    assert prediction.registers[7] == extended(*(of(variable_data(*row)) for row in rows), of(bytes(4)))


def test_time_stamp_and_recovery_databases_are_measured_only_where_they_exist() -> None:
    more = {**minted.keys(b""), (IMAGE_SECURITY, "dbt"): b"times", (IMAGE_SECURITY, "dbr"): b""}
    names = [event.id for event in measure_uki(uki(), FirmwareVars(more), secure_boot=False).of_register(7)]
    assert names == ["Pcr7SecureBoot", "Pcr7Pk", "Pcr7Kek", "Pcr7Db", "Pcr7Dbx", "Pcr7Dbt", "Pcr7Separator"]


@pytest.mark.parametrize("anchor", [LEAF, ROOT], ids=["the signer", "its issuer"])
def test_with_secure_boot_the_entry_that_let_the_image_start_is_measured(anchor: minted.Signer) -> None:
    prediction = secured(LEAF.sign(uki()), minted.siglist(SIG_X509, OTHER.der, anchor.der))
    last = prediction.of_register(7)[-1]
    assert last.name == "EV_EFI_VARIABLE_AUTHORITY"
    assert anchor.name in last.description
    assert last.digest == of(variable_data(IMAGE_SECURITY, "db", minted.OWNER + anchor.der))


def test_with_secure_boot_the_kernel_does_not_pass_through_firmware_a_second_time() -> None:
    signed = LEAF.sign(uki())
    prediction = secured(signed, minted.siglist(SIG_X509, ROOT.der))
    assert [event.id for event in prediction.of_register(4)] == ["Pcr4EfiCall", "Pcr4Separator", "Pcr4Uki"]
    assert prediction.of_register(4)[-1].digest == pe_hash(signed)


def test_a_chain_goes_through_certificates_beside_the_signature() -> None:
    top = minted.Signer("top")
    middle = minted.Signer("middle", top)
    low = minted.Signer("low", middle)
    db = minted.siglist(SIG_X509, top.der)
    assert secured(low.sign(uki(), beside=[middle]), db).of_register(7)[-1].id == "Pcr7UkiAuthority"
    assert refusal(lambda: secured(low.sign(uki()), db), NotBootable) == "not-allowed"


def test_the_hash_of_an_image_in_db_lets_it_start_without_a_signature() -> None:
    last = secured(uki(), minted.siglist(SIG_SHA256, bytes(32), pe_hash(uki()))).of_register(7)[-1]
    assert last.digest == of(variable_data(IMAGE_SECURITY, "db", minted.OWNER + pe_hash(uki())))


def test_images_that_firmware_refuses_are_refused() -> None:
    db = minted.siglist(SIG_X509, ROOT.der)
    assert refusal(lambda: secured(uki(), db), NotBootable) == "not-allowed"
    assert refusal(lambda: secured(OTHER.sign(uki()), db), NotBootable) == "not-allowed"
    assert refusal(lambda: secured(LEAF.sign(uki(), digest=bytes(32)), db), NotBootable) == "not-allowed"
    blank = FirmwareVars.blank()
    assert refusal(lambda: measure_uki(LEAF.sign(uki()), blank, secure_boot=True), NotBootable) == "setup-mode"


def test_a_signature_of_another_image_cannot_be_made_to_name_this_one() -> None:
    """What the signer signed is the hash of the content; swapping the content leaves a good signature of something else."""
    swapped = LEAF.signature(pe_hash(uki(osrel=b"ID=other")), claimed=pe_hash(uki()))
    forged = minted.with_certificates(uki(), [swapped])
    assert refusal(lambda: secured(forged, minted.siglist(SIG_X509, ROOT.der)), NotBootable) == "not-allowed"


def test_the_signer_is_found_by_its_serial_number_among_others_of_its_issuer() -> None:
    sister = minted.Signer("sister", ROOT, serial=78)
    signed = minted.with_certificates(uki(), [LEAF.signature(pe_hash(uki()), before=[sister])])
    last = secured(signed, minted.siglist(SIG_X509, ROOT.der)).of_register(7)[-1]
    assert last.id == "Pcr7UkiAuthority"


def test_a_certificate_in_a_list_of_another_kind_allows_nothing() -> None:
    db = minted.siglist(bytes(16), ROOT.der)
    assert refusal(lambda: secured(LEAF.sign(uki()), db), NotBootable) == "not-allowed"


def test_the_first_of_several_signatures_that_db_knows_decides() -> None:
    both = minted.with_certificates(uki(), [signer.signature(pe_hash(uki())) for signer in (OTHER, LEAF)])
    last = secured(both, minted.siglist(SIG_X509, ROOT.der)).of_register(7)[-1]
    assert ROOT.name in last.description
    first = secured(both, minted.siglist(SIG_X509, ROOT.der, OTHER.der)).of_register(7)[-1]
    assert OTHER.name in first.description


def test_a_signature_that_was_changed_does_not_count() -> None:
    signed, db = LEAF.sign(uki()), minted.siglist(SIG_X509, ROOT.der)
    pkcs7 = LEAF.signature(pe_hash(uki()))
    at = signed.index(pkcs7) + len(pkcs7) - 1
    forged = signed[:at] + bytes([signed[at] ^ 1]) + signed[at + 1 :]
    assert refusal(lambda: secured(forged, db), NotBootable) == "not-allowed"


@pytest.mark.parametrize(
    "entry",
    [
        (SIG_SHA256, pe_hash(LEAF.sign(uki()))),
        (SIG_X509, LEAF.der),
        (SIG_X509_SHA256, of(LEAF.certificate.tbs_certificate_bytes) + bytes(16)),
    ],
    ids=["hash of the image", "certificate", "hash of the certificate"],
)
def test_dbx_has_the_last_word(entry: tuple[bytes, bytes]) -> None:
    db = minted.siglist(SIG_X509, ROOT.der)
    assert refusal(lambda: secured(LEAF.sign(uki()), db, minted.siglist(*entry)), NotBootable) == "forbidden"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cmdline": b""}, "no-command-line"),
        ({"cmdline": b" \n"}, "no-command-line"),
        ({"cmdline": b"\tquiet"}, "odd-command-line"),
        ({"cmdline": b"quiet\0"}, "odd-command-line"),
        ({"cmdline": "ü".encode()}, "odd-command-line"),
    ],
    ids=str,
)
def test_command_lines_that_stubs_treat_differently_are_not_guessed(changes: dict[str, bytes], code: str) -> None:
    assert refusal(lambda: measured(uki(**changes)), Unpredictable) == code


@pytest.mark.parametrize("version", ["251.4", "253.1", "255", "2520"])
def test_stubs_that_were_never_compared_with_a_boot_are_not_guessed(version: str) -> None:
    other = write_uki(minted.stub(version), minted.sections())
    assert refusal(lambda: measured(other), Unpredictable) == "unknown-stub"


def test_a_register_that_cannot_be_known_is_left_out_with_a_note() -> None:
    prediction = measured(uki(linux=minted.kernel("5.15.0")))
    assert 9 not in prediction.registers
    assert not prediction.of_register(9)
    assert prediction.notes
    assert prediction.notes[0].startswith("PCR 9")


def test_writing_is_reproducible_and_keeps_the_stub() -> None:
    assert uki() == uki()
    image = parse_pe(uki())
    assert image.section(".text") == b"stub"
    addresses = [row.virtual_address for row in image.sections]
    assert addresses == sorted(addresses)
    assert image.sections[-1].name == ".linux"


@pytest.mark.parametrize("name", [".text", ".unheard", ".sbat"])
def test_sections_that_no_stub_knows_or_the_stub_has_are_refused(name: str) -> None:
    with pytest.raises(ImageError) as caught:
        write_uki(minted.stub(), {**minted.sections(), name: b"x"})
    assert caught.value.code == "bad-section"


def test_a_stub_without_room_is_refused() -> None:
    full = minted.pe({f".s{number}": b"x" for number in range(14)})
    with pytest.raises(ImageError) as caught:
        write_uki(full, minted.sections())
    assert caught.value.code == "no-room"
