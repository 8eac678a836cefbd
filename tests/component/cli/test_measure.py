"""`fastness measure` on files: what it prints, and what it says when it cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.agent.host.errors import FileFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import Large, State
from fastness.cli.main import cli
from fastness.formats.evidence.efi.signature_lists import SIG_X509
from fastness.images.check.ways import WORDS
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import parse_manifest
from fastness.images.uki import write_uki
from fastness.sim.vms.initrd import archive
from tests.measuredboot import minted

SIGNER = minted.Signer("db certificate of the test")
PLAIN = write_uki(minted.stub(), minted.sections())
SIGNED = SIGNER.sign(PLAIN)
INITRD = archive({"etc/initrd-release": b"ID=test\n"}, {})
CLOSED = {**minted.sections(), ".cmdline": " ".join(WORDS).encode(), ".initrd": INITRD}
STORE = minted.store(minted.keys(minted.siglist(SIG_X509, SIGNER.der)))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, data in (("plain.efi", PLAIN), ("signed.efi", SIGNED), ("vars.fd", STORE), ("empty", b"")):
        (tmp_path / name).write_bytes(data)
    return tmp_path


def measure(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["measure", *map(str, words)], prog_name="fastness")


def test_json_is_a_manifest_and_holds_reference_values(files: Path) -> None:
    result = measure(files / "plain.efi", "-o", "json")
    assert result.exit_code == 0
    manifest = json.loads(result.stdout)
    expected = measure_uki(PLAIN, FirmwareVars.blank(), secure_boot=False)
    assert parse_manifest(manifest).registers == expected.registers
    assert manifest["values"] == expected.reference_values()
    assert manifest["secureBoot"] is False
    assert manifest["notes"] == []


def test_text_lists_registers_and_events(files: Path) -> None:
    text = measure(files / "plain.efi").stdout
    expected = measure_uki(PLAIN, FirmwareVars.blank(), secure_boot=False)
    for pcr, value in expected.registers.items():
        assert f"PCR {pcr}".ljust(10) + value.hex() in text
    assert "command line: quiet x=1" in text
    assert "kernel 6.1.0-test in the image" in text


def test_secure_boot_names_the_certificate_that_lets_the_image_start(files: Path) -> None:
    result = measure(files / "signed.efi", "--firmware-vars", files / "vars.fd", "--secure-boot")
    assert result.exit_code == 0
    assert "db certificate of the test" in result.stdout
    assert "Secure Boot is on" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("plain.efi", "--firmware-vars", "vars.fd", "--secure-boot"), 1, "not-allowed"),
        (("signed.efi", "--secure-boot"), 1, "setup-mode"),
        (("empty",), 2, "not-pe"),
        (("vars.fd",), 2, "not-pe"),
        (("plain.efi", "--firmware-vars", "plain.efi"), 2, "not-a-variable-store"),
        (("absent",), 2, "does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_what_cannot_be_measured_is_told_with_a_hint(files: Path, words: tuple[str, ...], code: int, text: str) -> None:
    given = [word if word.startswith("--") else str(files / word) for word in words]
    result = measure(*given)
    assert result.exit_code == code
    assert text in result.stderr
    assert not result.stdout


def test_a_register_that_is_left_out_is_told_beside_the_result(files: Path) -> None:
    (files / "old.efi").write_bytes(write_uki(minted.stub(), minted.sections(linux=minted.kernel("5.10.0"))))
    result = measure(files / "old.efi", "-o", "json")
    assert result.exit_code == 0
    assert "PCR 9 is not predicted" in result.stderr
    manifest = json.loads(result.stdout)
    assert 9 not in [row["id"] for row in manifest["pcrs"]]
    assert manifest["notes"]


@pytest.fixture
def turned(files: Path) -> Path:
    """An image whose line has every word, and a root that listens to its hypervisor."""
    (files / "closed.efi").write_bytes(write_uki(minted.stub(), CLOSED))
    unit = files / "root/usr/lib/systemd/system/qemu-guest-agent.service"
    unit.parent.mkdir(parents=True)
    (files / "root/usr/lib/os-release").write_text("ID=test\n")
    unit.write_text("[Service]\nExecStart=/usr/sbin/qemu-ga\n")
    return files


def test_an_image_that_its_host_can_turn_is_measured_with_a_warning_for_each_way(turned: Path) -> None:
    result = measure(turned / "plain.efi", "-o", "json")
    assert result.exit_code == 0
    assert "fastness: open: credentials: " in result.stderr
    assert "fastness: not checked: the root of the image was not looked at" in result.stderr
    manifest = json.loads(result.stdout)
    assert {"credentials", "console"} <= {way["way"] for way in manifest["open"]}
    rooted = measure(turned / "closed.efi", "--root", turned / "root")
    assert rooted.exit_code == 0
    assert "open: guest-agents: " in rooted.stderr
    assert "/usr/lib/systemd/system/qemu-guest-agent.service" in rooted.stderr
    assert "credentials" not in rooted.stderr


def test_strict_refuses_an_image_that_its_host_can_turn_and_measures_one_that_it_cannot(turned: Path) -> None:
    refused = measure(turned / "closed.efi", "--root", turned / "root", "--strict")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "its host can take this image over: guest-agents" in refused.stderr
    mask = turned / "root/etc/systemd/system/qemu-guest-agent.service"
    mask.parent.mkdir(parents=True)
    mask.symlink_to("/dev/null")
    assert measure(turned / "closed.efi", "--root", turned / "root", "--strict").exit_code == 0


def test_strict_refuses_what_could_not_be_looked_at_and_says_what(
    turned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image is not good because nobody saw its files: no root, an empty one, a packing that is not read."""
    (turned / "empty-root").mkdir()
    shutil.rmtree(turned / "root/usr/lib/systemd")
    (turned / "lz4.efi").write_bytes(write_uki(minted.stub(), {**CLOSED, ".initrd": b"\x02\x21\x4c\x18 lz4"}))
    closed = turned / "closed.efi"
    root: tuple[str | Path, ...] = ("--root", turned / "root")
    cases: tuple[tuple[tuple[str | Path, ...], str], ...] = (
        ((closed,), "give its directory with --root"),
        ((closed, "--root", turned / "empty-root"), "holds no system"),
        ((turned / "lz4.efi", *root), "packed with lz4, which is not read here"),
    )
    for words, sentence in cases:
        assert measure(*words).exit_code == 0
        refused = measure(*words, "--strict")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "nobody can say whether its host can take this image over: " in refused.stderr
        assert sentence in refused.stderr.splitlines()[-2]
    assert measure(closed, *root, "--strict").exit_code == 0

    def dark(self: RootedFiles, path: str, up_to: int) -> State | Large:
        raise FileFailure(f"{path}: Permission denied")

    monkeypatch.setattr(RootedFiles, "inspect", dark)
    refused = measure(closed, *root, "--strict")
    assert (refused.exit_code, "emergency.service: Permission denied: it was not looked at" in refused.stderr) == (
        1,
        True,
    )
