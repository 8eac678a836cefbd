"""The note beside a locked volume: who this machine is and where its broker is, in clear, for the initial file system.

    two slots of 8 KiB: magic "FNOTE1\\0\\0" | sequence (8 bytes) | length (4 bytes) | SHA-256 of the text | text | NULs
    text = {"machine": <uid>, "broker": "https://host:port", "server"?: "https://host:port",
            "tpm"?: {"public", "private", "seal"}}

The host writes this device as it likes, and what it says is worth nothing by itself: the broker must show a certificate of the
image's own authority, and releases keys for hardware, phase and image. A note that somebody changed costs a boot and no secret.
`server` is the enrolment door, which says where the broker is when it moved.
With a TPM the machine's attestation key is there too, wrapped by that TPM: the quote of an unlock session needs it.

* No file system: what the kernel would have to parse of a host's bytes is left out.
* Two slots and a digest: a note that is replaced while the power goes leaves the one before. The digest is against torn writes,
  and is no protection against anybody.
* Strict and bounded: a member more, a longer text, an address with a path are no note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.crypto.errors import CryptoError
from fastness.crypto.jwk import decoded, encoded
from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError
from fastness.kinds.kind import JsonObject
from fastness.protocol.door import is_origin

SLOT_BYTES: Final = 8192
NOTE_BYTES: Final = 2 * SLOT_BYTES
MAGIC: Final = b"FNOTE1\0\0"
MAX_SEQUENCE: Final = 1 << 63
MAX_ADDRESS: Final = 512
MAX_BLOB: Final = 2048
_HEAD: Final = len(MAGIC) + 8 + 4 + 32
_LIMITS: Final = json.JsonLimits(max_bytes=SLOT_BYTES, max_depth=3)
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.ASCII)
_SEAL: Final = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


class BadNote(FormatError):
    """The device holds no note that can be read."""

    def __init__(self, message: str) -> None:
        super().__init__("bad-note", message, hint="Attach the machine's own disk, or replace the machine.")


@dataclass(frozen=True, slots=True)
class TpmIdentity:
    """An attestation key as its TPM wrapped it, and the code by which that TPM knows it again."""

    public: bytes
    private: bytes
    seal: str


@dataclass(frozen=True, slots=True)
class UnlockNote:
    """What the initial file system needs to ask for the keys of this machine's disks."""

    machine: str
    broker: str
    tpm: TpmIdentity | None = None
    server: str = ""

    def to_json(self) -> JsonObject:
        """As the device has it."""
        own: JsonObject = {"machine": self.machine, "broker": self.broker}
        if self.server:
            own["server"] = self.server
        if self.tpm is not None:
            own["tpm"] = {
                "public": encoded(self.tpm.public), "private": encoded(self.tpm.private), "seal": self.tpm.seal,
            }  # fmt: skip
        return own


def read_note(content: bytes) -> UnlockNote:
    """The newest whole note of a device's first bytes; raises BadNote."""
    slots = [slot for slot in map(_slot, _slots(content)) if slot is not None]
    if not slots:
        raise BadNote("there is no note on the device: nobody wrote one, or somebody destroyed it")
    return _note(max(slots, key=lambda slot: slot[0])[1])


def written(note: UnlockNote, content: bytes) -> tuple[int, bytes]:
    """Where a note goes on a device with this content, and its bytes: over the older slot, so that one is always whole."""
    text = json.canonical(note.to_json())
    if len(text) > SLOT_BYTES - _HEAD:
        raise BadNote(f"the note has more than {SLOT_BYTES - _HEAD} bytes")
    _note(text)  # what could not be read again is not written
    slots = [_slot(slot) for slot in _slots(content)]
    sequences = [slot[0] if slot is not None else 0 for slot in slots]
    place, sequence = sequences.index(min(sequences)), max(sequences) + 1
    # A host that wrote the highest number there is would keep every later note from counting: both slots begin anew.
    if sequence >= MAX_SEQUENCE:
        raise BadNote("the device counts further than any machine booted: wipe its first 16 KiB")
    head = MAGIC + sequence.to_bytes(8, "big") + len(text).to_bytes(4, "big") + sha256(text).value
    return place * SLOT_BYTES, (head + text).ljust(SLOT_BYTES, b"\0")


def _slots(content: bytes) -> tuple[bytes, bytes]:
    padded = content[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")
    return padded[:SLOT_BYTES], padded[SLOT_BYTES:]


def _slot(slot: bytes) -> tuple[int, bytes] | None:
    """Sequence and text of a whole slot; None for any other bytes."""
    if not slot.startswith(MAGIC):
        return None
    sequence, length = int.from_bytes(slot[8:16], "big"), int.from_bytes(slot[16:20], "big")
    text, rest = slot[_HEAD : _HEAD + length], slot[_HEAD + length :]
    whole = length <= SLOT_BYTES - _HEAD and not any(rest) and 0 < sequence < MAX_SEQUENCE
    return (sequence, text) if whole and slot[20:_HEAD] == sha256(text).value else None


def _note(text: bytes) -> UnlockNote:
    try:
        value, repeated = json.decode_reporting_duplicates(text, _LIMITS)
    except JsonError as error:
        raise BadNote(f"the note is not JSON: {error.message}") from error
    if (
        not isinstance(value, dict)
        or repeated
        or not {"machine", "broker"} <= value.keys() <= {"machine", "broker", "server", "tpm"}
    ):
        raise BadNote("the note is an object of machine, broker, server and tpm, each once")
    machine, broker, server = value["machine"], value["broker"], value.get("server", "")
    if not isinstance(machine, str) or _UID.match(machine) is None:
        raise BadNote("machine is the uid of a Machine")
    if not _is_address(broker):
        raise BadNote("broker is https://host:port, without a path")
    if "server" in value and not _is_address(server):
        raise BadNote("server is https://host:port, without a path")
    return UnlockNote(machine, broker, _tpm(value["tpm"]) if "tpm" in value else None, server)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ADDRESS and is_origin(value)


def _tpm(value: Any) -> TpmIdentity:
    if not isinstance(value, dict) or value.keys() != {"public", "private", "seal"}:
        raise BadNote("tpm is an object of public, private and seal")
    if not all(isinstance(part, str) for part in value.values()) or _SEAL.match(value["seal"]) is None:
        raise BadNote("tpm has texts, and seal is 64 hexadecimal digits")
    try:
        public, private = decoded(value["public"]), decoded(value["private"])
    except CryptoError as error:
        raise BadNote("the key of the TPM is not base64url") from error
    if not 0 < len(public) <= MAX_BLOB or not 0 < len(private) <= MAX_BLOB:
        raise BadNote(f"the key of the TPM has between 1 and {MAX_BLOB} bytes each half")
    return TpmIdentity(public, private, value["seal"])
