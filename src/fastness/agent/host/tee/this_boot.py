"""What evidence needs of this boot later, in files of /run: gone with the next boot, as the registers are.

**What the agent measured** (`RuntimeLog`) after the kernel started: the kernel's own log of the boot ends before that. One event
a line. `agent boot` writes it; whoever proves the machine later appends it to the log that the firmware left.

**The volumes that it opened** (`DisksFile`): what the initial file system read from each, for the sessions of the system.

**The init-data document** (`InitDataFile`) that this boot took its user-data from, for its owner alone. The disk that it came
from is not read again, because its host could have shown one document to the agent and show another one to the verifier.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import ReportFailure
from fastness.formats import json
from fastness.protocol.disk_report import BadReport, DiskReport, disks_member, reported_disks
from fastness.protocol.user_data_event import MAX_EVENT, logged

MEASURED: Final = Path("/run/fastness/measured")
MAX_EVENTS: Final = 16

DISKS: Final = Path("/run/fastness/disks.json")
INIT_DATA: Final = Path("/run/fastness/init-data")
MAX_BYTES: Final = 64 * 1024


class RuntimeLog:
    """The events of this boot, in order."""

    def __init__(self, place: Path = MEASURED) -> None:
        self._place = place

    def append(self, event: bytes) -> None:
        """Keep one more; raises OSError."""
        self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._place, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(event + b"\n")

    def events(self) -> list[bytes]:
        """Those that were kept; none where there is no file."""
        try:
            descriptor = os.open(self._place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_EVENTS * MAX_EVENT).splitlines()[:MAX_EVENTS]

    def behind(self, log: bytes, register: int) -> bytes:
        """The log of the firmware with these events behind its own; an empty one stays empty, nobody could read it."""
        return logged(log, register, self.events()) if log else log


class DisksFile:
    """What this boot reports of its volumes; none where it opened none."""

    def __init__(self, place: Path = DISKS) -> None:
        self._text = InitDataFile(place)
        self._place = place

    def keep(self, disks: Sequence[DiskReport]) -> None:
        """Keep these reports in place of those before; raises ReportFailure."""
        self._text.keep(json.canonical(disks_member(disks)).decode() if disks else "")

    def disks(self) -> Sequence[DiskReport]:
        """Those that were kept; raises ReportFailure."""
        try:
            return reported_disks(self._text.text())
        except BadReport as error:
            # Not an empty answer: the cluster would believe that this machine has no volumes.
            raise ReportFailure(f"what this boot says of its volumes, {self._place}, cannot be read") from error


class InitDataFile:
    """One document, or none."""

    def __init__(self, place: Path = INIT_DATA) -> None:
        self._place = place

    def keep(self, text: str) -> None:
        """Keep a document in place of the one before, or none where it is empty; raises ReportFailure."""
        draft = self._place.with_name(f".{self._place.name}-{os.getpid()}")
        try:
            with suppress(FileNotFoundError):
                (draft if text else self._place).unlink()
            if text:
                self._write(draft, text.encode())
        except OSError as error:
            raise ReportFailure(f"a file of this boot, {self._place}: {error.strerror}") from error

    def text(self) -> str:
        """The document; empty where there is none; raises ReportFailure."""
        try:
            descriptor = os.open(self._place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(MAX_BYTES).decode()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise ReportFailure(f"a file of this boot, {self._place}, cannot be read") from error

    def _write(self, draft: Path, data: bytes) -> None:
        draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(data)
        draft.replace(self._place)
