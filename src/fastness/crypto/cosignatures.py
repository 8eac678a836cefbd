"""Cosignatures of witnesses on checkpoints (C2SP tlog-cosignature, the Ed25519 form).

    — witness.example/w1 base64(id of the key ‖ time ‖ signature over "cosignature/v1", the time and the whole checkpoint)

A witness says: at this time, the largest tree that I have seen of this log has this root, and everything that I saw before is its
beginning. So a log that is rolled back, or that shows two histories, has to go without it.

* The id of a witness's key is computed with another algorithm byte than that of a log's key: the two never pass for each other.
* The signed message begins with a line of its own, so that a cosignature is never a signature of a note, nor the reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer, Ed25519Verifier
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.notes import ID_BYTES, key_id, parse_key, parse_line, signature_line, split_note, written_key
from fastness.crypto.secret import SecretBytes

COSIGNATURE: Final = 4
TIME_BYTES: Final = 8
MAX_TIME: Final = (1 << 63) - 1


class WitnessVerifier:
    """The public key of a witness with its name, written `name+id+key`."""

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self.id = key_id(name, COSIGNATURE, key)
        self._key = key
        self._verifier = Ed25519Verifier(key)

    @classmethod
    def parse(cls, text: str) -> WitnessVerifier:
        """Read `name+id+key`; raises BadKey."""
        return cls(*parse_key(text, COSIGNATURE, "a witness", "fastness witness key"))

    def __str__(self) -> str:
        return written_key(self.name, COSIGNATURE, self._key)

    def cosigned_at(self, text: str, name: str, blob: bytes) -> int | None:
        """When this witness cosigned the text, in seconds since 1970; None when the line is not its cosignature."""
        # Lines of other keys are no error: a note carries those of all witnesses, also of ones that this reader does not know.
        if name != self.name or blob[:ID_BYTES] != self.id or len(blob) < ID_BYTES + TIME_BYTES:
            return None
        moment = int.from_bytes(blob[ID_BYTES : ID_BYTES + TIME_BYTES], "big")
        # The time is inside of what is signed: whoever replays an old cosignature cannot make it look like one of today.
        good = moment <= MAX_TIME and self._verifier.signed(blob[ID_BYTES + TIME_BYTES :], _message(text, moment))
        return moment if good else None


class WitnessSigner:
    """The private key of a witness."""

    def __init__(self, name: str, seed: SecretBytes) -> None:
        self._key = Ed25519Signer(seed)
        self.verifier = WitnessVerifier(name, self._key.verifier.raw)

    @classmethod
    def generate(cls, name: str, entropy: RandomBytes) -> tuple[WitnessSigner, SecretBytes]:
        """A new key, and its seed to be kept."""
        seed = SecretBytes(entropy.token(SEED_BYTES))
        return cls(name, seed), seed

    def cosign(self, text: str, moment: int) -> str:
        """The line to put under a checkpoint with this text."""
        blob = self.verifier.id + moment.to_bytes(TIME_BYTES, "big") + self._key.sign(_message(text, moment))
        return signature_line(self.verifier.name, blob)


def cosigned(note: str, witnesses: Iterable[WitnessVerifier]) -> Mapping[str, int]:
    """Which of these witnesses cosigned a note, by name, and when; raises NoteRefused for what is no note."""
    text, lines = split_note(note)
    times: dict[str, int] = {}
    for witness in witnesses:
        moments = (witness.cosigned_at(text, name, blob) for name, blob in lines)
        newest = max((moment for moment in moments if moment is not None), default=None)
        if newest is not None:
            times[witness.name] = newest
    return times


def own_line(answer: str, text: str, witness: WitnessVerifier) -> str | None:
    """The one line of a witness's answer that is its cosignature of the text; None without one; raises NoteRefused."""
    for line in answer.split("\n")[:-1]:
        name, blob = parse_line(line)
        if witness.cosigned_at(text, name, blob) is not None:
            # Written anew from what was verified: nothing else that the witness's answer holds gets into our notes.
            return signature_line(name, blob)
    return None


def _message(text: str, moment: int) -> bytes:
    return f"cosignature/v1\ntime {moment}\n{text}".encode()
