"""A note counts only when a key that was named has signed exactly this text."""

from __future__ import annotations

import base64

import pytest

from fastness.crypto.errors import BadKey
from fastness.crypto.notes import MAX_LINES, NoteRefused, NoteSigner, NoteVerifier, open_note
from tests.virtual import SeededEntropy

TEXT = "fastness.dev/record\n3\nAAAA\n"
SIGNER, _ = NoteSigner.generate("fastness.dev/record", SeededEntropy(1))
OTHER, _ = NoteSigner.generate("fastness.dev/record", SeededEntropy(2))


def test_a_note_opens_with_its_key_and_with_no_other() -> None:
    assert open_note(SIGNER.sign(TEXT), [OTHER.verifier, SIGNER.verifier]) == TEXT
    with pytest.raises(NoteRefused):
        open_note(SIGNER.sign(TEXT), [OTHER.verifier])
    with pytest.raises(NoteRefused):
        open_note(SIGNER.sign(TEXT), [])


def test_lines_of_other_keys_stand_beside_ours() -> None:
    line = OTHER.sign(TEXT).splitlines()[-1]
    assert open_note(f"{SIGNER.sign(TEXT)}{line}\n", [SIGNER.verifier]) == TEXT


@pytest.mark.parametrize(
    "changed",
    [
        lambda note: note.replace("\n3\n", "\n4\n"),
        lambda note: note.replace("\n\n", "\n"),
        lambda note: note[:-8] + "AAAAAAA\n",
        lambda note: note.replace("\N{EM DASH}", "-"),
        lambda note: note + "no signature\n",
        lambda _: "",
    ],
)
def test_whatever_is_changed_is_refused(changed: object) -> None:
    with pytest.raises(NoteRefused):
        open_note(changed(SIGNER.sign(TEXT)), [SIGNER.verifier])  # type: ignore[operator]


def test_a_key_is_read_as_it_is_written_and_a_changed_one_is_refused() -> None:
    written = str(SIGNER.verifier)
    assert str(NoteVerifier.parse(written)) == written
    name, number, key = written.split("+", 2)
    for bad in (f"{name}+00000000+{key}", f"other+{number}+{key}", f"{name}+{number}", f"{name}+{number}+!!", ""):
        with pytest.raises(BadKey):
            NoteVerifier.parse(bad)


def test_a_key_of_another_algorithm_or_of_nobody_is_refused() -> None:
    name, number, key = str(SIGNER.verifier).split("+", 2)
    other = base64.b64encode(b"\x04" + base64.b64decode(key)[1:]).decode()
    nameless = str(NoteVerifier("", SIGNER.verifier.key))
    for bad in (f"{name}+{number}+{other}", nameless):
        with pytest.raises(BadKey, match=r"not an Ed25519 key|not a key of a log"):
            NoteVerifier.parse(bad)


def test_a_note_has_a_text_and_not_more_signatures_than_anybody_would_check() -> None:
    note = SIGNER.sign(TEXT)
    line = OTHER.sign(TEXT).splitlines()[-1] + "\n"
    assert open_note(note + line * (MAX_LINES - 1), [SIGNER.verifier]) == TEXT
    empty = SIGNER.sign("\n").rpartition("\n\n")[2]  # signs an empty line: without a text there is nothing to open
    for bad in (note + line * MAX_LINES, empty, TEXT + "\n"):
        with pytest.raises(NoteRefused, match="not a signed note"):
            open_note(bad, [SIGNER.verifier])
