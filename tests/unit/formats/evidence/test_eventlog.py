"""Event logs: banks are announced, sizes are claims, filling ends the log."""

from __future__ import annotations

import struct

import pytest

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.eventlog import log as module
from fastness.formats.evidence.eventlog.log import parse_log
from tests.evidence.tpm import event_log

EVENTS = [(0, 8, b"firmware"), (4, 0x80000003, b"loader")]


def refusal(data: bytes) -> str:
    with pytest.raises(EvidenceError) as caught:
        parse_log(data)
    return caught.value.code


@pytest.mark.parametrize("filling", [b"", bytes(3), bytes(8), bytes(500), b"\xff" * 3, b"\xff" * 500])
def test_a_log_ends_with_its_bytes_or_with_filling(filling: bytes) -> None:
    log = parse_log(event_log(EVENTS, ("sha1", "sha256"), filling))
    assert [bank.name for bank in log.banks] == ["sha1", "sha256"]
    assert [(event.register, event.name, event.data) for event in log.events] == [
        (0, "EV_S_CRTM_VERSION", b"firmware"),
        (4, "EV_EFI_BOOT_SERVICES_APPLICATION", b"loader"),
    ]


def test_events_hidden_behind_the_filling_are_refused() -> None:
    assert refusal(event_log(EVENTS, filling=bytes(16) + b"hidden")) == "trailing-bytes"
    assert refusal(event_log(EVENTS, filling=b"\xff" * 16 + bytes(8))) == "trailing-bytes"


def test_cut_logs_are_refused_unless_the_cut_is_between_events() -> None:
    data = event_log(EVENTS)
    whole = [len(event_log(EVENTS[:count])) for count in range(3)]
    for end in range(len(data)):
        begun = max((data[start:end] for start in whole if start <= end), key=lambda part: -len(part), default=b"x")
        if not any(begun):  # nothing of the next event but zeros, which look like filling
            parse_log(data[:end])
        else:
            assert refusal(data[:end]) in {"cut-off", "not-crypto-agile"}


def test_every_event_has_exactly_the_announced_banks() -> None:
    data = event_log([], ("sha256",))
    head = struct.pack("<II", 0, 8)
    assert refusal(data + head + struct.pack("<I", 0) + struct.pack("<I", 0)) == "missing-digest"
    assert refusal(data + head + struct.pack("<IH", 1, 0x0C) + bytes(48) + struct.pack("<I", 0)) == "missing-digest"
    both = event_log([], ("sha1", "sha256"))
    twice = struct.pack("<I", 2) + (struct.pack("<H", 4) + bytes(20)) * 2 + struct.pack("<I", 0)
    assert refusal(both + head + twice) == "missing-digest"


def test_headers_of_other_formats_are_refused() -> None:
    good = event_log([])
    assert refusal(good.replace(b"Event03", b"Event00")) == "not-crypto-agile"
    assert refusal(event_log([], ("sha256", "sha256"))) == "repeated-bank"
    assert refusal(good.replace(struct.pack("<HH", 0x0B, 32), struct.pack("<HH", 0x0B, 20))) == "bad-size"
    assert refusal(good.replace(struct.pack("<HH", 0x0B, 32), struct.pack("<HH", 0x99, 32))) == "unknown-hash"


def test_the_size_of_a_log_and_the_number_of_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(bytes(module.MAX_LOG + 1)) == "too-long"
    monkeypatch.setattr(module, "MAX_EVENTS", 1)
    assert refusal(event_log(EVENTS)) == "too-many-events"
