"""The device with the note beside a machine's volumes, and what of a TPM's identity goes along.

    note = read_device(path)                          # the host's bytes, bounded; raises DiskRefused
    write_device(path, note)
    follow(path, machine, broker)                     # after a session: the address at which the broker was, for the next boot
    lay_out(directory, note.tpm); wrapped(directory)  # the attestation key, for an unlock session

`protocol.unlock_note` has the form and says what it is worth.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.host.tee.identity import PRIVATE, PUBLIC, SEAL
from fastness.protocol.unlock_note import NOTE_BYTES, BadNote, TpmIdentity, UnlockNote, read_note, written

PLACE: Final = Path("/dev/disk/by-partlabel/fastness-note")
_HINT: Final = "The machine does not know who it is any more. Attach its own disk, or replace the machine."


def read_device(path: Path = PLACE) -> UnlockNote:
    """The note on a device; raises DiskRefused."""
    try:
        return read_note(_content(path))
    except OSError as error:
        raise DiskRefused("bad-note", f"{path} cannot be read: {error.strerror}", _HINT) from error
    except BadNote as error:
        raise DiskRefused("bad-note", f"{path}: {error}", _HINT) from error


def write_device(path: Path, note: UnlockNote) -> None:
    """Keep a note, durably, beside the one before; raises DiskRefused."""
    try:
        content = _content(path)
        # A device that does not say so already: each write is a chance to be cut off, and most boots change nothing.
        if _same(content, note):
            return
        place, data = written(note, content)
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            os.pwrite(descriptor, data, place)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DiskRefused("bad-note", f"{path} cannot be written: {error.strerror}") from error
    except BadNote as error:
        raise DiskRefused("bad-note", f"{path}: {error}") from error


def follow(path: Path, machine: str, broker: str) -> bool:
    """Keep where the broker answered, for the next boot; whether that is news; raises DiskRefused.

    Only in the note of this machine, and only the address: it says where to knock, and the image whom to believe there.
    """
    note = read_device(path)
    if note.machine != machine:
        raise DiskRefused("bad-note", f"{path} is the note of machine {note.machine}, and this one is {machine}", _HINT)
    if note.broker == broker:
        return False
    write_device(path, replace(note, broker=broker))
    return True


def lay_out(directory: Path, identity: TpmIdentity | None) -> None:
    """A directory with a TPM's key and nothing else, for its owner alone; raises OSError."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)
    if identity is not None:
        files = {PUBLIC: identity.public, PRIVATE: identity.private, SEAL: identity.seal.encode()}
        for name, content in files.items():
            if content:
                _write(directory / name, content)


def wrapped(directory: Path) -> TpmIdentity:
    """The TPM's key in a directory, as a note carries it; raises OSError."""
    public, private = ((directory / name).read_bytes() for name in (PUBLIC, PRIVATE))
    return TpmIdentity(public, private, (directory / SEAL).read_text("ascii") if (directory / SEAL).exists() else "")


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(NOTE_BYTES)


def _same(content: bytes, note: UnlockNote) -> bool:
    try:
        return read_note(content) == note
    except BadNote:
        return False
