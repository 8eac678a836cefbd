"""Signed notes (C2SP signed-note): a text and the Ed25519 signatures under it.

    fastness.example/record
    17
    hO3…=

    — fastness.example/record f2c1…
    — witness.example/w1 jWbP…

A key has a name; the four bytes in front of a signature are the start of a hash over name and key, so that a verifier finds its
line among those of others. Lines of keys that nobody asked about are ignored, which is how old keys and witnesses stay beside
new ones. What a witness adds is not a signature of the note but a cosignature (`crypto.cosignatures`).
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

# Algorithm bytes of C2SP signed-note; they go into the id of a key, so keys of two kinds never share one.
ED25519: Final = 1
ID_BYTES: Final = 4
# Witnesses add lines, and each costs a look: a bound on what whoever carries a note can make us verify.
MAX_LINES: Final = 64
DASH: Final = "\N{EM DASH} "


class NoteRefused(CryptoError):
    """No good signature of a key that counts."""

    code = "note-refused"


class NoteVerifier:
    """A public key with its name, written `name+id+key`."""

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self.key = key
        self.id = key_id(name, ED25519, key)
        self._verifier = Ed25519Verifier(key)

    @classmethod
    def parse(cls, text: str) -> NoteVerifier:
        """Read `name+id+key`; raises BadKey."""
        return cls(*parse_key(text, ED25519, "a log", "fastness audit key"))

    def __str__(self) -> str:
        return written_key(self.name, ED25519, self.key)

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
        return f"{text}\n{signature_line(self.verifier.name, blob)}"


def open_note(note: str, verifiers: Iterable[NoteVerifier]) -> str:
    """The text of a note that one of these keys signed; raises NoteRefused."""
    text, signatures = split_note(note)
    by_id = {(verifier.name, verifier.id): verifier for verifier in verifiers}
    # One good signature is enough, bad ones beside it are passed over: a note keeps those of keys that were replaced since.
    for name, blob in signatures:
        # By name and id together: four bytes of a hash are soon made to meet, so an id alone names nobody.
        key = by_id.get((name, blob[:ID_BYTES]))
        if key is not None and key.signed(text, blob[ID_BYTES:]):
            return text
    raise NoteRefused("no key that counts has signed this note", "Compare the key with the one that the cluster shows.")


def split_note(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    """The text of a note, believed by nobody yet, and its signatures as (name, id and signature); raises NoteRefused."""
    # At the last empty line: the text may contain some, and must not get to say where the signatures begin.
    text, separator, rest = note.rpartition("\n\n")
    lines = rest.split("\n")
    if not separator or len(lines) < 2 or lines[-1] or len(lines) > MAX_LINES + 1:
        raise NoteRefused("this is not a signed note", "A note ends in an empty line and lines of signatures.")
    return f"{text}\n", [parse_line(line) for line in lines[:-1]]


def parse_line(line: str) -> tuple[str, bytes]:
    """The name in a line of a signature, and what follows it as bytes; raises NoteRefused."""
    if not line.startswith(DASH):
        raise NoteRefused("a line under the note is not a signature", "The note was changed on its way.")
    name, _, encoded = line[len(DASH) :].rpartition(" ")
    try:
        return name, base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteRefused("a signature is not base64", "The note was changed on its way.") from error


def signature_line(name: str, blob: bytes) -> str:
    """A line under a note: the name of a key, then its id and signature."""
    return f"{DASH}{name} {base64.b64encode(blob).decode()}\n"


def key_id(name: str, algorithm: int, key: bytes) -> bytes:
    """The bytes by which a signature names its key."""
    return hashlib.sha256(name.encode() + b"\n" + bytes([algorithm]) + key).digest()[:ID_BYTES]


def written_key(name: str, algorithm: int, key: bytes) -> str:
    """A public key as people pass it on (C2SP: vkey)."""
    return f"{name}+{key_id(name, algorithm, key).hex()}+{base64.b64encode(bytes([algorithm]) + key).decode()}"


def parse_key(text: str, algorithm: int, owner: str, verb: str) -> tuple[str, bytes]:
    """Name and bytes of an Ed25519 key in the form `name+id+key`; raises BadKey.

    A name has neither spaces nor `+`: with either, a line of a signature could be read in two ways.
    """
    hint = f"A key reads name+id+key, as `{verb}` prints it."
    name, _, rest = text.strip().partition("+")
    fingerprint, _, encoded = rest.partition("+")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadKey(f"not a key of {owner}", hint) from error
    if not name or any(character.isspace() for character in name):
        raise BadKey(f"not a key of {owner}: its name is missing or has a space in it", hint)
    if len(data) != 1 + SEED_BYTES or data[0] != algorithm:
        raise BadKey(f"not an Ed25519 key of {owner}", hint)
    # The id covers name and key, so a slip of whoever copies them by hand shows here and not as a signature that never verifies.
    if key_id(name, algorithm, data[1:]).hex() != fingerprint:
        raise BadKey(
            "the id of the key does not belong to it", "Copy the key again: a part of it is missing or changed."
        )
    return name, data[1:]
