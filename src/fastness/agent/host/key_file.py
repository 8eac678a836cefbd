"""A key of this machine in a file: made by whoever needs it first, whole or not at all, and never replaced.

    key = kept_key(directory / "guest.key", entropy)

PEM of a P-256 key, for its owner alone. Several programs may ask at once; all of them get the same key.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fastness.agent.host.errors import ReportFailure
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import CryptoError
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes


def kept_key(path: Path, entropy: RandomBytes) -> PrivateKey:
    """The key in a file, made if there is none; raises ReportFailure."""
    try:
        if not path.exists():
            _make(path, PrivateKey.generate(entropy))
        # A key that others could read counts as known to them, as ssh has it.
        if path.stat().st_mode & 0o077:
            raise ReportFailure(f"{path} can be read by others", "Set its mode to 0600, or remove it to enrol anew.")
        return PrivateKey.from_pem(SecretBytes(path.read_bytes()))
    except OSError as error:
        raise ReportFailure(f"the key of this machine, {path}: {error.strerror}") from error
    except CryptoError as error:
        raise ReportFailure(
            f"the key of this machine, {path}, is damaged", "Remove it; the machine enrols anew."
        ) from error


def _make(path: Path, key: PrivateKey) -> None:
    """Write a new key so that there is a whole one or none, and never another one in place of one that is there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key.to_pem().reveal())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            # link(2) fails where the name exists, rename(2) would replace it: of two programs that make a key at once, the first
            # one's stays.
            os.link(draft, path)
    finally:
        draft.unlink()
