"""The note beside a volume: a host writes what it likes there, and costs a boot at most."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.protocol.unlock_note import (
    MAGIC,
    NOTE_BYTES,
    SLOT_BYTES,
    BadNote,
    TpmIdentity,
    UnlockNote,
    read_note,
    written,
)

UID = "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab"
NOTE = UnlockNote(UID, "https://broker.example:8080")
WITH_TPM = UnlockNote(UID, "https://broker.example:8080", TpmIdentity(b"public", b"private", "ab" * 32))


def on_device(*notes: UnlockNote, content: bytes = bytes(NOTE_BYTES)) -> bytes:
    for note in notes:
        place, data = written(note, content)
        content = content[:place] + data + content[place + len(data) :]
    return content


def slot(text: bytes, sequence: int = 1) -> bytes:
    """A slot with any text, whole by its digest, as a host can make it."""
    head = MAGIC + sequence.to_bytes(8, "big") + len(text).to_bytes(4, "big") + sha256(text).value
    return (head + text).ljust(SLOT_BYTES, b"\0")


@pytest.mark.parametrize("note", [NOTE, WITH_TPM, replace(WITH_TPM, server="https://enrolment.example:8000")])
def test_a_note_comes_back_as_it_was_written(note: UnlockNote) -> None:
    assert read_note(on_device(note)) == note


def test_of_several_notes_the_newest_counts() -> None:
    notes = [UnlockNote(UID, f"https://broker-{number}.example") for number in range(5)]
    for count in range(1, 6):
        assert read_note(on_device(*notes[:count])) == notes[count - 1]


@pytest.mark.parametrize("cut", [0, 1, 8, 40, 52, 100, SLOT_BYTES - 1])
def test_a_power_cut_while_a_note_is_written_leaves_the_one_before(cut: int) -> None:
    before = on_device(NOTE, WITH_TPM)
    place, data = written(UnlockNote(UID, "https://other.example"), before)
    torn = before[:place] + data[:cut] + before[place + cut :]
    assert read_note(torn) in (WITH_TPM, UnlockNote(UID, "https://other.example"))


@pytest.mark.parametrize(
    "value",
    [
        [], {}, {"machine": UID}, {"broker": "https://b"}, {"machine": UID, "broker": "https://b", "more": 1},
        {"machine": "x", "broker": "https://b"}, {"machine": UID.upper(), "broker": "https://b"},
        {"machine": UID + "\n", "broker": "https://b"}, {"machine": "../" + UID, "broker": "https://b"},
        {"machine": UID, "broker": "http://b"}, {"machine": UID, "broker": "https://b/path"},
        {"machine": UID, "broker": "https://good@evil"}, {"machine": UID, "broker": 1},
        *({"machine": UID, "broker": "https://b", "server": server} for server in ("", "http://s", "https://s/path", 1, None)),
        {"machine": UID, "broker": "https://" + "b" * 600}, {"machine": UID, "broker": "https://b", "tpm": {}},
        {"machine": UID, "broker": "https://b", "tpm": {"public": "YQ", "private": "YQ", "seal": "zz"}},
        {"machine": UID, "broker": "https://b", "tpm": {"public": "", "private": "YQ", "seal": "ab" * 32}},
        {"machine": UID, "broker": "https://b", "tpm": {"public": "!", "private": "YQ", "seal": "ab" * 32}},
        {"machine": UID, "broker": "https://b", "tpm": {"public": "YQ" * 2000, "private": "YQ", "seal": "ab" * 32}},
    ],
)  # fmt: skip
def test_a_note_that_says_anything_else_is_none(value: object) -> None:
    with pytest.raises(BadNote):
        read_note(slot(json.encode(value)))


def test_a_repeated_member_is_no_note() -> None:
    text = b'{"broker":"https://a","machine":"%s","broker":"https://b"}' % UID.encode()
    with pytest.raises(BadNote, match="each once"):
        read_note(slot(text))


def test_a_host_cannot_make_every_later_note_count_less() -> None:
    content = on_device(NOTE)[:SLOT_BYTES] + slot(json.encode(NOTE.to_json()), (1 << 64) - 1)
    assert read_note(on_device(WITH_TPM, content=content)) == WITH_TPM


def test_what_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(BadNote):
        written(UnlockNote("somebody", "https://b"), b"")


@given(st.binary(max_size=NOTE_BYTES + 10))
def test_any_bytes_are_a_note_or_none(content: bytes) -> None:
    with pytest.raises(BadNote):
        read_note(content)


@given(st.binary(max_size=200))
def test_any_text_in_a_whole_slot_is_a_note_or_none(text: bytes) -> None:
    with pytest.raises(BadNote):
        read_note(slot(text))
