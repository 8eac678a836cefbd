"""What a witness keeps on its disk: its key, and for each log the last tree that it cosigned.

    DIRECTORY/key.json          name and seed, 0600
    DIRECTORY/logs/<hash>.json  one file for each log, by the hash of its origin

A tree is on the disk before its cosignature leaves: a witness that forgot what it cosigned could be led to cosign a second
history. For the same reason a file that cannot be read is an error and never a log that is new, and one process at a time uses a
directory.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Any, Final

from fastness.crypto.cosignatures import WitnessSigner
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.tlog import HASH_SIZE
from fastness.keys.errors import DamagedKeyFile, WitnessBusy
from fastness.keys.key_files import read_private, write_private
from fastness.record.witnessing import NEVER, Latest

KEY: Final = "key.json"
LOCK: Final = "lock"


class WitnessMemory:
    """The directory of a witness, owned by this process until `close`."""

    def __init__(self, directory: Path) -> None:
        """Make the directory where it is missing, and own it; raises WitnessBusy, OSError."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The kernel lets go of it when the process ends, however it ends; a file with a process id would have to be judged.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise WitnessBusy(
                f"another process witnesses with {directory}", "End it first: two of them could cosign two histories."
            ) from error

    def close(self) -> None:
        """Let another process have the directory."""
        os.close(self._lock)

    def latest(self, origin: str) -> Latest:
        """The last tree of a log that was cosigned; raises DamagedKeyFile, UnsafeKeyFile."""
        path = self._path(origin)
        document = _read(path)
        if document is None:
            return NEVER
        try:
            root = base64.b64decode(document["root"], validate=True)
            size = document["size"]
            # The origin is in the file, too: one that was copied over another must not be taken for it.
            if document["origin"] != origin or not isinstance(size, int) or size < 0 or len(root) != HASH_SIZE:
                raise ValueError("not the memory of this log")
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise _damaged(path) from error
        return Latest(size, root)

    def remember(self, origin: str, latest: Latest) -> None:
        """Keep a tree, durably; raises OSError."""
        document = {"origin": origin, "size": latest.size, "root": base64.b64encode(latest.root).decode()}
        write_private(self._path(origin), SecretBytes(json.encode(document)))

    def _path(self, origin: str) -> Path:
        # A hash: an origin is text of somebody else, and must not choose a path.
        return self._directory / "logs" / f"{hashlib.sha256(origin.encode()).hexdigest()}.json"


def witness_key(directory: Path, name: str, entropy: RandomBytes) -> WitnessSigner:
    """The key of a witness, made under this name at the first use; raises DamagedKeyFile, UnsafeKeyFile.

    A key keeps the name that it was made under, because those who verify know it by both.
    """
    path = directory / KEY
    document = _read(path)
    if document is None:
        signer, seed = WitnessSigner.generate(name, entropy)
        made = {"name": name, "seed": base64.b64encode(seed.reveal()).decode()}
        write_private(path, SecretBytes(json.encode(made)))
        return signer
    try:
        return WitnessSigner(document["name"], SecretBytes(base64.b64decode(document["seed"], validate=True)))
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise _damaged(path) from error


def _read(path: Path) -> dict[str, Any] | None:
    content = read_private(path)
    if content is None:
        return None
    try:
        document = json.decode(content.reveal())
    except JsonError as error:
        raise _damaged(path) from error
    if not isinstance(document, dict):
        raise _damaged(path)
    return document


def _damaged(path: Path) -> DamagedKeyFile:
    return DamagedKeyFile(
        f"{path} cannot be understood", "Restore it from a backup. A new, empty one would cosign a second history."
    )
