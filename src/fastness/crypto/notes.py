"""Signed notes (C2SP signed-note): a text and the Ed25519 signatures under it.

    fastness.example/record
    17
    hO3…=

    — fastness.example/record f2c1…

A key has a name; the four bytes in front of a signature are the start of a hash over name and key, so that a verifier finds its
line among those of others. Lines of keys that nobody asked about are ignored, which is how old keys and witnesses stay beside
new ones.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Final

from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer, Ed25519Verifier
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey, CryptoError
from fastness.crypto.secret import SecretBytes

ED25519: Final = 1
ID_BYTES: Final = 4
MAX_LINES: Final = 64
_DASH: Final = "\N{EM DASH} "


class NoteRefused(CryptoError):
    """No good signature of a key that counts."""

    code = "note-refused"


class NoteVerifier:
    """A public key with its name, written `name+id+key`."""

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self.key = key
        self.id = _key_id(name, key)
        self._verifier = Ed25519Verifier(key)

    @classmethod
    def parse(cls, text: str) -> NoteVerifier:
        """Read `name+id+key`; raises BadKey."""
        name, _, rest = text.strip().partition("+")
        shown, _, encoded = rest.partition("+")
        try:
            data = base64.b64decode(encoded, validate=True)
            if not name or len(data) != 1 + SEED_BYTES or data[0] != ED25519:
                raise BadKey(
                    "not an Ed25519 key of a log", "A key reads name+id+key, as `fastness audit key` prints it."
                )
            found = cls(name, data[1:])
        except (binascii.Error, ValueError) as error:
            raise BadKey("not a key of a log", "A key reads name+id+key, as `fastness audit key` prints it.") from error
        if found.id.hex() != shown:
            raise BadKey(
                "the id of the key does not belong to it", "Copy the key again: a part of it is missing or changed."
            )
        return found

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(bytes([ED25519]) + self.key).decode()}"

    def signed(self, text: str, signature: bytes) -> bool:
        """Whether this key signed the text."""
        return self._verifier.signed(signature, text.encode())


class NoteSigner:
    """A private key with its name."""

    def __init__(self, name: str, seed: SecretBytes) -> None:
        self._key = Ed25519Signer(seed)
        self.verifier = NoteVerifier(name, self._key.verifier.raw)

    @classmethod
    def generate(cls, name: str, entropy: RandomBytes) -> tuple[NoteSigner, SecretBytes]:
        """A new key, and its seed to be kept."""
        seed = SecretBytes(entropy.token(SEED_BYTES))
        return cls(name, seed), seed

    def sign(self, text: str) -> str:
        """The whole note."""
        blob = self.verifier.id + self._key.sign(text.encode())
        return f"{text}\n{_DASH}{self.verifier.name} {base64.b64encode(blob).decode()}\n"


def open_note(note: str, verifiers: Iterable[NoteVerifier]) -> str:
    """The text of a note that one of these keys signed; raises NoteRefused."""
    text, separator, rest = note.rpartition("\n\n")
    lines = rest.splitlines()
    if not separator or not lines or len(lines) > MAX_LINES:
        raise NoteRefused("this is not a signed note", "A note ends in an empty line and lines of signatures.")
    text += "\n"
    known = {(one.name, one.id): one for one in verifiers}
    for name, blob in [_signature(line) for line in lines]:
        key = known.get((name, blob[:ID_BYTES]))
        if key is not None and key.signed(text, blob[ID_BYTES:]):
            return text
    raise NoteRefused("no key that counts has signed this note", "Compare the key with the one that the cluster shows.")


def _signature(line: str) -> tuple[str, bytes]:
    if not line.startswith(_DASH):
        raise NoteRefused("a line under the note is not a signature", "The note was changed on its way.")
    name, _, encoded = line[len(_DASH) :].rpartition(" ")
    try:
        return name, base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise NoteRefused("a signature is not base64", "The note was changed on its way.") from error


def _key_id(name: str, key: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + bytes([ED25519]) + key).digest()[:ID_BYTES]
