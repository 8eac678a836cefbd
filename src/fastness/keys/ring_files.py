"""Where the ring of vault keys lives: in a private file, or in one that the command of a key management service wraps.

    ring_file(path)                                 a private file (0600): whoever reads the disk has the keys
    ring_file(path, ("/usr/bin/wrap", "--key", K))  what `wrap --key K encrypt` made of them: a stolen disk is of no use

The command reads bytes from its standard input and writes bytes to its output, `<command> encrypt` or `<command> decrypt`; any
service has a tool that can be wrapped like that. It is a list of arguments and never a shell line. Its standard error goes to
ours, so that the operator sees what it says; its output is key material and goes nowhere but into the vault.

Which command is run is for the operator to say at every start, and is written nowhere: whoever can edit the state directory would
choose what runs. For the same reason a file that is not wrapped is refused where a command is given: it would be the keys of
whoever put it there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

import orjson

from fastness.crypto.secret import SecretBytes
from fastness.keys.errors import KmsFailed
from fastness.keys.key_files import read_private, write_private

# A service that does not answer must end the start with a reason, not hold it for ever.
PATIENCE_SECONDS: Final = 30.0
_KEYS: Final = "keys"

Run = Callable[[Sequence[str], bytes], tuple[int, bytes]]


class RingFile(Protocol):
    """Where the ring lives."""

    @property
    def path(self) -> Path:
        """The file, for messages."""

    def load(self) -> SecretBytes | None:
        """The ring as it was saved, None when there is none; raises TrustError."""

    def save(self, content: SecretBytes) -> None:
        """Replace the ring; raises TrustError."""


class PlainRingFile:
    """A ring in a private file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> SecretBytes | None:
        """The content; raises UnsafeKeyFile."""
        return read_private(self.path)

    def save(self, content: SecretBytes) -> None:
        """Replace the file in one step."""
        write_private(self.path, content)


def run_kms(command: Sequence[str], data: bytes, patience: float = PATIENCE_SECONDS) -> tuple[int, bytes]:
    """Exit status and output of a command; raises KmsFailed when it cannot start or does not end."""
    try:
        done = subprocess.run(list(command), input=data, stdout=subprocess.PIPE, timeout=patience, check=False)  # noqa: S603
    except OSError as error:
        raise KmsFailed(
            f"the KMS command {command[0]} cannot be started: {error.strerror}",
            "Check its path and that it is executable.",
        ) from error
    except subprocess.TimeoutExpired:
        # Not `from` the original: it carries the output, which may be the key.
        raise KmsFailed(
            f"the KMS command {command[0]} did not end within {patience:g} seconds",
            "Check that the KMS can be reached.",
        ) from None
    return done.returncode, done.stdout


class WrappedRingFile:
    """A ring in a file that a KMS command encrypts: `<command> encrypt|decrypt`, from its standard input to its output."""

    def __init__(self, path: Path, command: Sequence[str], run: Run = run_kms) -> None:
        self.path = path
        self._command = tuple(command)
        self._run = run

    def load(self) -> SecretBytes | None:
        """The unwrapped content; raises UnsafeKeyFile, KmsFailed."""
        wrapped = read_private(self.path)
        if wrapped is None:
            return None
        if _is_plain(wrapped):
            raise KmsFailed(
                f"the vault key {self.path} is not wrapped, and a KMS command was given",
                "If you put it there, run `fastness vault wrap` once; otherwise somebody replaced it.",
            )
        return SecretBytes(self._call("decrypt", wrapped.reveal()))

    def save(self, content: SecretBytes) -> None:
        """Wrap and replace; raises KmsFailed."""
        wrapped = self._call("encrypt", content.reveal())
        # A command that merely copies (a wrong path, `cat` while trying things out) would leave the keys on the disk in clear.
        if content.reveal().strip() in wrapped:
            raise KmsFailed("the KMS command did not encrypt the vault key", f"Check `{self._command[0]} encrypt`.")
        write_private(self.path, SecretBytes(wrapped))

    def _call(self, verb: str, data: bytes) -> bytes:
        status, output = self._run([*self._command, verb], data)
        if status != 0 or not output:
            raise KmsFailed(
                f"the KMS command failed to {verb} the vault key (exit status {status})",
                f"Run `{' '.join(self._command)} {verb} < {self.path}` by hand to see why.",
            )
        return output


def ring_file(path: Path, kms: Sequence[str] = ()) -> RingFile:
    """The file of a ring, as the operator keeps it."""
    return WrappedRingFile(path, kms) if kms else PlainRingFile(path)


def _is_plain(content: SecretBytes) -> bool:
    """Whether keys stand there in clear; services answer in JSON too, but not with a ring of ours in it."""
    try:
        document = orjson.loads(content.reveal())
    except orjson.JSONDecodeError:
        return False
    return isinstance(document, dict) and _KEYS in document
