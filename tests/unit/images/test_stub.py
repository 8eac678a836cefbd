"""What versions of the boot stub do with sections: measured order, command line, archives for the kernel."""

from __future__ import annotations

import hashlib

import pytest

from fastness.formats.evidence.pe.uki import Uki, parse_uki
from fastness.images.errors import Unpredictable
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.stub import STUBS, command_line, handed_initrd, rules_for
from fastness.images.uki import write_uki
from tests.measuredboot import minted

ALL = {"uname": b"6.1", "splash": b"picture", "dtb": b"tree", "pcrpkey": b"key", "pcrsig": b"{}", "ucode": b"micro"}
BASE = minted.sections()[".initrd"]


def uki(version: int, **changes: bytes) -> Uki:
    return parse_uki(write_uki(minted.stub(f"{version}.1"), minted.sections(**changes)))


def handed(version: int, **changes: bytes) -> bytes:
    image = uki(version, **changes)
    return handed_initrd(image, rules_for(image))


def files(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """A reader of newc archives: mode and content by name."""
    contents, at = dict[str, tuple[int, bytes]](), 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * number : at + 14 + 8 * number], 16) for number in range(13)]
        name = archive[at + 110 : at + 109 + fields[11]].decode()
        start = at + 110 + fields[11] + -(110 + fields[11]) % 4
        contents[name] = (fields[1], archive[start : start + fields[6]])
        at = start + fields[6] + -fields[6] % 4
    return contents


@pytest.mark.parametrize(
    ("version", "order"),
    [
        (252, "linux osrel cmdline initrd splash dtb pcrpkey"),
        (254, "linux osrel cmdline initrd splash dtb uname sbat pcrpkey"),
        (257, "linux osrel cmdline initrd ucode splash dtb uname sbat pcrpkey"),
    ],
)
def test_each_version_measures_its_own_sections_in_its_own_order(version: int, order: str) -> None:
    data = write_uki(minted.stub(f"{version}.1"), minted.sections(**ALL))
    prediction = measure_uki(data, FirmwareVars.blank(), secure_boot=False)
    names = [event.id.removeprefix("Pcr11").removesuffix("Name").lower() for event in prediction.of_register(11)[::2]]
    assert names == order.split()


@pytest.mark.parametrize("version", [252, 254])
def test_a_single_part_is_handed_over_as_it_is(version: int) -> None:
    assert handed(version) == BASE
    assert len(BASE) % 4, "or this says nothing about filling"
    assert handed(version, initrd=b"") == b""
    assert handed(version, ucode=b"micro") == BASE, "versions before 256 know no microcode"


@pytest.mark.parametrize("version", [252, 254])
def test_keys_are_appended_as_files(version: int) -> None:
    whole = handed(version, **ALL)
    padded = BASE + bytes(-len(BASE) % 4)
    assert whole.startswith(padded)
    assert files(whole[len(padded) :]) == {
        ".extra": (0o040555, b""),
        ".extra/tpm2-pcr-signature.json": (0o100444, b"{}"),
        ".extra/tpm2-pcr-public-key.pem": (0o100444, b"key"),
        "TRAILER!!!": (0, b""),
    }


def test_newer_stubs_begin_with_microcode_and_append_the_release_as_well() -> None:
    whole = handed(257, **ALL)
    assert whole.startswith(b"micro\0\0\0" + BASE)
    names = files(whole[8 + len(BASE) + -len(BASE) % 4 :])
    assert names[".extra/os-release"] == (0o100444, b"ID=test\n")
    assert list(names)[1] == ".extra/tpm2-pcr-signature.json"


def test_the_archive_of_the_release_is_the_one_of_a_real_boot() -> None:
    """A machine with systemd-stub 257.13 measured its initial file system with exactly these bytes at the end."""
    archive = handed(257)[len(BASE) + -len(BASE) % 4 :]
    assert hashlib.sha256(archive).hexdigest() == "ceb09e6a0f1a5594352ff386916ef2d572ddcf5dc4ad7824c7f1dac50334c216"


@pytest.mark.parametrize(("version", "line"), [(252, " quiet x=1"), (254, " quiet x=1"), (257, "quiet x=1")])
def test_blanks_at_the_beginning_are_kept_by_older_stubs_and_dropped_by_newer_ones(version: int, line: str) -> None:
    image = uki(version, cmdline=b" quiet\tx=1 \n")
    assert command_line(image, rules_for(image)) == line


def test_control_characters_at_the_beginning_are_predicted_only_where_they_are_dropped() -> None:
    newer, older = uki(257, cmdline=b"\tquiet"), uki(254, cmdline=b"\tquiet")
    assert command_line(newer, rules_for(newer)) == "quiet"
    with pytest.raises(Unpredictable):
        command_line(older, rules_for(older))


@pytest.mark.parametrize("name", STUBS[257].depends_on_machine)
def test_sections_that_the_stub_chooses_by_machine_are_not_guessed(name: str) -> None:
    with pytest.raises(Unpredictable) as caught:
        rules_for(uki(257, **{name[1:]: b"x"}))
    assert caught.value.code == "depends-on-machine"
    rules_for(uki(252, **{name[1:]: b"x"}))
