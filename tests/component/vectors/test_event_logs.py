"""Real event logs parse as others parse them, and replay to values that others computed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fastness.attestation.evidence.replay import replay
from fastness.crypto.silicon.registers import extend, hashed
from fastness.formats.evidence.envelope import undressed
from fastness.formats.evidence.eventlog.log import Event, EventLog, parse_log
from fastness.formats.evidence.tpm.algorithms import HASHES
from tests.evidence.vectors import vectors

SHA256 = HASHES[0x000B]


@pytest.mark.parametrize("name", ["CCEL_data_grub", "CCEL_data_ovmf"])
def test_a_cc_log_parses_as_another_parser_does(name: str) -> None:
    folder = vectors() / "eventlog"
    log = parse_log((folder / name).read_bytes())
    theirs = json.loads((folder / f"{name}_out.json").read_text())["uefi_event_logs"]
    assert len(log.events) == len(theirs)
    for ours, other in zip(log.events, theirs, strict=True):
        assert ours.register == other["index"]
        assert ours.name == other["type_name"]
        assert ours.data == base64.b64decode(other["event"])
        assert ours.digests == {"sha384": bytes.fromhex(other["digests"][0]["digest"])}
        covered = hashed("sha384", ours.data) == ours.digests["sha384"]
        assert other["digest_matches_event"] or not covered


@pytest.mark.parametrize("name", ["CCEL_data_grub", "CCEL_data_ovmf", "uefi-measured-boot.b64"])
def test_a_log_replays_in_every_bank(name: str) -> None:
    log = parse_log(undressed((vectors() / "eventlog" / name).read_bytes()))
    values = replay(log)
    assert set(values) == {bank.name for bank in log.banks}
    for bank, registers in values.items():
        for index, value in registers.items():
            expected = bytes(len(value))
            for event in log.events:
                if event.register == index and event.kind != 3:
                    expected = extend(bank, expected, event.digests[bank])
            assert value == expected


def test_measured_images_replay_to_the_published_registers() -> None:
    files = sorted((vectors() / "pcrs").glob("*/*.json"))
    assert files
    for path in files:
        for register in _registers(path):
            events = [
                Event(entry["pcr"], 0xD, ("sha256",), (bytes.fromhex(entry["hash"]),), b"")
                for entry in register["events"]
            ]
            values = replay(EventLog((SHA256,), tuple(events)))
            assert values["sha256"][register["id"]].hex() == register["value"], path


def _registers(path: Path) -> list[dict[str, Any]]:
    value = json.loads(path.read_text())
    registers: list[dict[str, Any]] = value.get("pcrs", [value])
    return registers
