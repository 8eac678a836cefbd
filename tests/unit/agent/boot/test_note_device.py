"""The device with the note: bounded reads, durable writes, and a TPM's key laid out for its owner alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fastness.agent.boot.note_device import follow, lay_out, read_device, wrapped, write_device
from fastness.agent.boot.volumes import DiskRefused
from fastness.protocol.unlock_note import NOTE_BYTES, TpmIdentity, UnlockNote, written

UID = "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab"
OTHER = "1e7d1f0c-5f2c-4c7b-9a7e-0123456789ab"
IDENTITY = TpmIdentity(b"public", b"private", "ab" * 32)
NOTE = UnlockNote(UID, "https://broker.example:8080", IDENTITY)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "device"
    path.write_bytes(bytes(1 << 20))
    return path


def test_a_note_is_written_over_the_older_one_and_not_at_all_when_nothing_changed(device: Path) -> None:
    write_device(device, NOTE)
    before = device.read_bytes()
    write_device(device, NOTE)
    assert device.read_bytes() == before
    write_device(device, UnlockNote(UID, "https://other.example"))
    assert read_device(device) == UnlockNote(UID, "https://other.example")
    assert device.read_bytes()[: NOTE_BYTES // 2] == before[: NOTE_BYTES // 2]
    assert len(device.read_bytes()) == 1 << 20


def test_the_note_follows_the_broker_and_keeps_everything_else(device: Path) -> None:
    write_device(device, NOTE)
    before = device.read_bytes()
    assert not follow(device, NOTE.machine, NOTE.broker)
    assert device.read_bytes() == before
    assert follow(device, NOTE.machine, "https://moved.example")
    assert read_device(device) == replace(NOTE, broker="https://moved.example")
    # The one before is whole beside it: a power cut in the middle of a later write leaves this machine able to boot.
    assert device.read_bytes()[: NOTE_BYTES // 2] == before[: NOTE_BYTES // 2]


@pytest.mark.parametrize("cut", [0, 1, 8, 20, 52, 200, NOTE_BYTES // 2 - 1])
def test_a_power_cut_while_the_address_is_written_leaves_a_note(device: Path, cut: int) -> None:
    write_device(device, NOTE)
    place, data = written(replace(NOTE, broker="https://moved.example"), device.read_bytes()[:NOTE_BYTES])
    with device.open("r+b") as file:
        file.seek(place)
        file.write(data[:cut])
    assert read_device(device).broker in (NOTE.broker, "https://moved.example")
    assert follow(device, NOTE.machine, "https://again.example")
    assert read_device(device).broker == "https://again.example"


def test_the_note_of_another_machine_and_an_address_with_a_path_are_left_alone(device: Path) -> None:
    write_device(device, NOTE)
    before = device.read_bytes()
    for machine, broker in (
        (OTHER, "https://moved.example"),
        ("", "https://moved.example"),
        (UID, "https://moved.example/x"),
    ):
        with pytest.raises(DiskRefused) as refused:
            follow(device, machine, broker)
        assert refused.value.reason == "bad-note"
    assert device.read_bytes() == before


def test_a_device_without_a_note_or_none_at_all_says_what_to_do(device: Path) -> None:
    for path in (device, device.with_name("gone")):
        with pytest.raises(DiskRefused) as refused:
            read_device(path)
        assert refused.value.reason == "bad-note"
        assert "replace the machine" in refused.value.hint


def test_the_key_of_a_tpm_is_laid_out_for_its_owner_alone_and_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "run" / "unlock"
    lay_out(place, IDENTITY)
    (place / "left").write_text("of an earlier try")
    lay_out(place, IDENTITY)
    assert {path.name: path.stat().st_mode & 0o777 for path in place.iterdir()} == {
        "ak.pub": 0o600, "ak.priv": 0o600, "seal": 0o600,
    }  # fmt: skip
    assert place.stat().st_mode & 0o777 == 0o700
    assert wrapped(place) == IDENTITY
    lay_out(place, None)
    assert list(place.iterdir()) == []
