"""Cosignatures of witnesses."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fastness.crypto.cosignatures import WitnessSigner, WitnessVerifier, cosigned, own_line
from fastness.crypto.errors import BadKey
from fastness.crypto.notes import NoteSigner, NoteVerifier, open_note
from fastness.crypto.secret import SecretBytes
from fastness.formats.tlog import Checkpoint

SEED = SecretBytes(bytes(range(32)))
TEXT = Checkpoint("example.com/record", 17, bytes(32)).text()
NOTE = NoteSigner("example.com/record", SecretBytes(bytes(32))).sign(TEXT)
WITNESS = WitnessSigner("witness.example/w1", SEED)


def test_a_cosignature_is_what_the_specification_says_byte_by_byte() -> None:
    """Computed here from C2SP tlog-cosignature, with the library of primitives and nothing of ours."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(b"witness.example/w1\n\x04" + public).digest()[:4]
    message = b"cosignature/v1\ntime 1679315147\n" + TEXT.encode()
    blob = key_id + (1679315147).to_bytes(8, "big") + private.sign(message)
    assert WITNESS.cosign(TEXT, 1679315147) == f"— witness.example/w1 {base64.b64encode(blob).decode()}\n"
    assert (
        str(WITNESS.verifier) == f"witness.example/w1+{key_id.hex()}+{base64.b64encode(bytes([4]) + public).decode()}"
    )


def test_a_note_says_which_witnesses_cosigned_it_and_when() -> None:
    other = WitnessSigner("witness.example/w2", SecretBytes(bytes(31) + b"\1"))
    note = NOTE + WITNESS.cosign(TEXT, 100) + WITNESS.cosign(TEXT, 200)
    assert cosigned(note, [WITNESS.verifier, other.verifier]) == {"witness.example/w1": 200}


def test_a_key_that_is_written_down_is_read_back() -> None:
    assert str(WitnessVerifier.parse(f" {WITNESS.verifier}\n")) == str(WITNESS.verifier)


@pytest.mark.parametrize(
    "line",
    [
        WITNESS.cosign(TEXT.replace("17", "18"), 100),
        WITNESS.cosign(TEXT, 100).replace("/w1 ", "/w2 "),
        WitnessSigner("witness.example/w2", SEED).cosign(TEXT, 100),
        WitnessSigner("witness.example/w1", SecretBytes(bytes(32))).cosign(TEXT, 100),
        NoteSigner("witness.example/w1", SEED).sign(TEXT).rpartition("\n\n")[2],
        "— witness.example/w1 AAAA\n",
    ],
    ids=[
        "another tree",
        "another name",
        "the same key under another name",
        "another key",
        "a plain signature of the same key",
        "too short",
    ],
)
def test_nothing_else_counts_as_a_cosignature(line: str) -> None:
    assert cosigned(NOTE + line, [WITNESS.verifier]) == {}


def test_the_time_is_signed() -> None:
    name, _, encoded = WITNESS.cosign(TEXT, 100).strip().rpartition(" ")
    blob = bytearray(base64.b64decode(encoded))
    blob[11] ^= 1
    assert cosigned(f"{NOTE}{name} {base64.b64encode(bytes(blob)).decode()}\n", [WITNESS.verifier]) == {}


def test_a_cosignature_does_not_pass_for_the_signature_of_a_log() -> None:
    """The same key bytes under both roles: neither line opens the other's door."""
    log = NoteSigner("witness.example/w1", SEED).verifier
    with pytest.raises(Exception, match="no key that counts"):
        open_note(f"{TEXT}\n{WITNESS.cosign(TEXT, 1)}", [log])
    with pytest.raises(BadKey):
        NoteVerifier.parse(str(WITNESS.verifier))
    with pytest.raises(BadKey):
        WitnessVerifier.parse(str(log))


def test_of_an_answer_only_the_line_of_the_witness_is_taken() -> None:
    stranger = WitnessSigner("witness.example/w9", SecretBytes(bytes(32)))
    answer = stranger.cosign(TEXT, 5) + WITNESS.cosign(TEXT, 6)
    assert own_line(answer, TEXT, WITNESS.verifier) == WITNESS.cosign(TEXT, 6)
    assert own_line(stranger.cosign(TEXT, 5), TEXT, WITNESS.verifier) is None
