"""`fastness agent boot`: whose word it takes for where user-data is, before it opens its port."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner

from fastness.cli.machine.agent_boot import POINTERS, boot
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.protocol.pointer import OTHER_SYSTEM_CONFIGS, SYSTEM_CONFIG, image_pointer


@pytest.fixture
def trust(tmp_path: Path) -> Path:
    key = Ed25519Signer(SecretBytes(b"k" * 32)).verifier
    value = {"ca": trustme.CA().cert_pem.bytes().decode(), "configKeys": [key.jwk()]}
    (tmp_path / "trust.json").write_bytes(json.encode(value))
    return tmp_path / "trust.json"


def boot_output(trust: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(boot, ["--trust", str(trust), *words])
    error = getattr(done.exception, "message", "")
    return done.exit_code, f"{done.output}{error}"


def test_the_places_where_ignition_looks_first_are_looked_at() -> None:
    assert [str(path) for path in POINTERS] == [f"/{path}" for path in (*OTHER_SYSTEM_CONFIGS, SYSTEM_CONFIG)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_config_of_the_boot_partition_in_place_of_the_pointer_ends_the_boot(
    trust: Path, tmp_path: Path, which: int
) -> None:
    """Fedora CoreOS copies it to where Ignition looks first; the pointer of the image lies beside it, unread."""
    pointers = [tmp_path / "etc.ign", tmp_path / "usr.ign"]
    for path in pointers:
        path.write_bytes(image_pointer())
    pointers[which].write_bytes(b'{"ignition":{"version":"3.0.0"},"systemd":{"units":[]}}')
    status, text = boot_output(trust, *(word for path in pointers for word in ("--pointer", str(path))))
    assert status != 0
    assert "pointer-changed" in text
    assert str(pointers[which]) in text


def test_a_directory_of_ignition_that_is_a_file_holds_no_pointer(trust: Path, tmp_path: Path) -> None:
    (tmp_path / "user.ign").write_bytes(image_pointer())
    (tmp_path / "ignition").write_text("a log")
    places = ("--pointer", str(tmp_path / "ignition/user.ign"), "--pointer", str(tmp_path / "user.ign"))
    status, text = boot_output(trust, *places, "--user-data", "digitalocean")
    assert status != 0
    assert "digitalocean" in text  # it came past the pointers


def test_a_platform_that_nobody_knows_is_named(trust: Path, tmp_path: Path) -> None:
    (tmp_path / "user.ign").write_bytes(image_pointer())
    status, text = boot_output(trust, "--pointer", str(tmp_path / "user.ign"), "--user-data", "digitalocean")
    assert status != 0
    assert "digitalocean" in text
