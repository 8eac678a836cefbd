"""The evidence of real boots through systemd-boot, kept: one disk that booted image A, and then image B beside it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from fastness.attestation.evidence.replay import replay
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.attestation.values.prediction import first_differences
from fastness.crypto.silicon.registers import hashed
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.eventlog.log import Event, parse_log
from fastness.formats.evidence.tpm.envelope import TpmEvidence, parse_envelope
from fastness.images.measurement import Measurement, parse_manifest
from tests.measuredboot.keep import NONCE
from tests.measuredboot.run import COMMAND_LINE

FOLDER = Path(__file__).resolve().parents[2] / "evidence" / "data" / "systemd-boot"
SLOTS = ("a", "b")


def evidence(slot: str) -> TpmEvidence:
    return parse_envelope((FOLDER / f"{slot}.json").read_bytes())


def predicted(slot: str) -> Measurement:
    return parse_manifest(json.loads((FOLDER / f"manifest-{slot}.json").read_bytes()))


def events(slot: str, pcr: int) -> list[Event]:
    return [event for event in parse_log(evidence(slot).event_log).events if event.register == pcr]


@pytest.mark.parametrize("slot", SLOTS)
def test_each_boot_measured_what_was_predicted_before_it(slot: str) -> None:
    given, log = evidence(slot), parse_log(evidence(slot).event_log)
    assert first_differences(predicted(slot), log.events) == []
    assert {pcr: given.pcrs[pcr] for pcr in predicted(slot).registers} == dict(predicted(slot).registers)
    ends = replay(log)["sha256"]
    assert {pcr: ends.get(pcr, bytes(32)) for pcr in given.pcrs} == dict(given.pcrs)


@pytest.mark.parametrize("slot", SLOTS)
def test_the_quote_answers_the_challenge(slot: str) -> None:
    given = evidence(slot)
    expected = TpmExpectations(nonce=NONCE, known_key=AttestationKey(given.ak_public), event_log=given.event_log)
    assert appraise_tpm(given, expected).acceptable


def test_another_image_on_the_same_disk_changes_what_holds_the_image_and_nothing_else() -> None:
    first, second = evidence("a").pcrs, evidence("b").pcrs
    assert {pcr for pcr in first if first[pcr] != second[pcr]} == {4, 9, 11, 12}
    assert events("a", 4)[2].digests == events("b", 4)[2].digests, "the boot loader, before the image"


def test_the_event_of_the_partition_table_is_header_count_and_entries() -> None:
    (table,) = [event for event in events("a", 5) if event.name == "EV_EFI_GPT_EVENT"]
    count = struct.unpack_from("<Q", table.data, 92)[0]
    assert (table.data[:8], count, len(table.data)) == (b"EFI PART", 2, 92 + 8 + 2 * 128)
    assert hashed("sha256", table.data) == table.digests["sha256"]


def test_loader_and_stub_each_measured_the_line_that_was_passed() -> None:
    options = (COMMAND_LINE.decode() + " slot=b").encode("utf-16-le") + b"\0\0"
    assert [event.digests["sha256"] for event in events("b", 12)] == [hashed("sha256", options)] * 2
