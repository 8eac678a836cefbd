"""Reports of the processor by way of the kernel's configfs: SEV-SNP and TDX guests (Linux 6.7 and later).

    mkdir report/<name>;  write 64 bytes to inblob;  read outblob (the report or quote), auxblob (certificates), provider

`TsmReports` asks for one report; `TsmAttester` is the same as enrolment and the handshake see it. Rules:

- Whoever else writes into the same entry changes what is reported: every writer counts `generation` up, so it is read before and
  after, and a report that was made in between is thrown away. Entries have names of their own and are removed.
- The identity is a P-256 key in a directory (`agent.host.key_file`), made at first. It leaves this module only as signatures.
  Whoever can read the disk of the machine can read it; what a machine booted is proved by the report and not by this key, and a
  report of another chip counts for nothing. Files that somebody else could have written are not taken (`identity.py`).
- A trust domain signs with a second key, made once a boot and kept in memory: its quotes tell nothing of boots.
- Missing certificates are no failure: the verifier has other ways to them.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from fastness.agent.host.errors import ReportFailure
from fastness.agent.host.key_file import kept_key
from fastness.agent.host.tee import identity
from fastness.agent.host.tee.boot_phase import leave_by_register
from fastness.agent.host.tee.this_boot import DisksFile, InitDataFile, RuntimeLog
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.registers import hashed
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.certificate_table import parse_table
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.guest_key import SignedByBoot
from fastness.protocol.user_data_event import RTMR, USER_DATA_RTMR

REPORTS: Final = Path("/sys/kernel/config/tsm/report")
EVENT_LOG: Final = Path("/sys/firmware/acpi/tables/data/CCEL")
# Linux 6.16 and later; whoever writes a SHA-384 digest to it extends the register.
RUNTIME_REGISTER: Final = Path("/sys/devices/virtual/misc/tdx_guest/measurements/rtmr3:sha384")
# In memory: gone with the boot, kept when the initial file system is left.
BOOT_KEY: Final = Path("/run/fastness/boot.key")
PROVIDERS: Final = {"sev_guest": "snp", "tdx_guest": "tdx"}
KEY: Final = identity.GUEST_KEY
INPUT_BYTES: Final = 64
# The host gives the certificates of an SNP report (auxblob), so their size is the host's word too.
MAX_BLOB: Final = 256 * 1024
MAX_LOG: Final = 1024 * 1024
ATTEMPTS: Final = 5
# A host limits how often guests may ask for reports; these pass, everything else is a failure that nobody should repeat.
_AGAIN: Final = frozenset({errno.EWOULDBLOCK, errno.EBUSY, errno.EINTR, errno.ETIMEDOUT})


class TsmReport(NamedTuple):
    """What the processor said: its kind, the report, and what came along."""

    tee: str
    report: bytes
    auxiliary: bytes


class TsmReports:
    """The kernel's directory of reports."""

    def __init__(self, directory: Path = REPORTS) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._made = 0

    @property
    def offered(self) -> bool:
        """Whether this kernel makes reports."""
        return self._directory.is_dir()

    async def report(self, data: bytes) -> TsmReport:
        """A fresh report over 64 bytes; raises ReportFailure."""
        # The kernel would answer EINVAL and no more; here it can be said what is wrong.
        if len(data) != INPUT_BYTES:
            raise ReportFailure(f"a report covers {INPUT_BYTES} bytes, not {len(data)}")
        return await asyncio.to_thread(self._report, data)

    async def tee(self) -> str:
        """What makes the reports here: snp or tdx; raises ReportFailure."""
        return await asyncio.to_thread(self._tee)

    # Making and removing an entry and touching its files are all that the kernel is asked for; tests stand in for it here.

    def _make(self, entry: Path) -> None:
        entry.mkdir()

    def _write(self, path: Path, data: bytes) -> None:
        # One write: the kernel takes the blob as it comes.
        with path.open("wb", buffering=0) as file:
            file.write(data)

    def _read(self, path: Path, most: int = MAX_BLOB) -> bytes:
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ReportFailure(f"{path.name} has more than {most} bytes")
        return content

    def _remove(self, entry: Path) -> None:
        entry.rmdir()

    # ------------------------------------------------------------

    def _tee(self) -> str:
        with self._lock:
            entry = self._entered()
            try:
                return self._provider(entry)
            finally:
                self._left(entry)

    def _report(self, data: bytes) -> TsmReport:
        with self._lock:
            for _ in range(ATTEMPTS):
                entry = self._entered()
                try:
                    report = self._once(entry, data)
                except OSError as error:
                    if error.errno not in _AGAIN:
                        raise _failure(entry, error) from error
                    report = None
                finally:
                    self._left(entry)
                if report is not None:
                    return report
        raise ReportFailure("the kernel made no report: it is busy, or somebody else writes into the same entry")

    def _once(self, entry: Path, data: bytes) -> TsmReport | None:
        """One report; None when somebody else wrote in between."""
        tee = self._provider(entry)
        before = self._generation(entry)
        self._write(entry / "inblob", data)
        report = self._read(entry / "outblob")
        try:
            auxiliary = self._read(entry / "auxblob")
        except OSError:
            auxiliary = b""  # older kernels and hosts without certificates have none
        # Documentation/ABI/testing/configfs-tsm-report: `generation` counts writes, so one more than ours means a foreign
        # inblob.
        if self._generation(entry) != before + 1 or not report:
            return None
        return TsmReport(tee, report, auxiliary)

    def _entered(self) -> Path:
        self._made += 1
        # The number of the process too: two programs of one boot may prove the machine at once, and an entry is anybody's who
        # writes to it.
        entry = self._directory / f"fastness-{os.getpid()}-{self._made}"
        try:
            self._make(entry)
        except OSError as error:
            raise _failure(entry, error) from error
        return entry

    def _left(self, entry: Path) -> None:
        with suppress(OSError):
            self._remove(entry)

    def _provider(self, entry: Path) -> str:
        try:
            name = self._read(entry / "provider").decode("ascii", "replace").strip()
        except OSError as error:
            raise _failure(entry, error) from error
        if name not in PROVIDERS:
            raise ReportFailure(f"reports of {name[:64]!r} are not known", f"Known are {', '.join(PROVIDERS)}.")
        return PROVIDERS[name]

    def _generation(self, entry: Path) -> int:
        text = self._read(entry / "generation").strip()
        if not text.isdigit() or len(text) > 20:
            raise ReportFailure("the kernel does not say how often the entry was written")
        return int(text)


class TsmAttester:
    """A confidential guest as the agent's port sees it (`fastness.agent.boot.attester`): reports, and a key in a directory."""

    def __init__(
        self, reports: TsmReports, directory: Path, entropy: RandomBytes, tee: str, *, event_log: Path = EVENT_LOG,
        runtime_register: Path = RUNTIME_REGISTER, runtime_log: RuntimeLog | None = None, boot_key: Path = BOOT_KEY,
        init_data: InitDataFile | None = None, disks: DisksFile | None = None,
    ) -> None:  # fmt: skip
        self.tee = tee
        self._reports = reports
        self._directory = directory
        self._entropy = entropy
        self._event_log = event_log
        self._runtime_register = runtime_register
        self._runtime_log = runtime_log or RuntimeLog()
        self._boot_key = boot_key
        self._init_data = init_data or InitDataFile()
        self._disks = disks or DisksFile()
        self._key: PrivateKey | None = None

    @classmethod
    async def detected(
        cls, reports: TsmReports, directory: Path, entropy: RandomBytes, runtime_log: RuntimeLog | None = None
    ) -> TsmAttester:
        """The attester of whatever makes reports here; raises ReportFailure."""
        return cls(reports, directory, entropy, await reports.tee(), runtime_log=runtime_log)

    async def trusted(self) -> None:
        """Refuse an identity that is not the agent's own; raises IdentityRefused."""
        if identity.holds_identity(self._directory):
            await asyncio.to_thread(identity.check, self._directory)

    async def seal(self) -> None:
        """Nothing: there is no TPM that could authenticate files. The Machine says that its identity is on an open disk."""

    async def identity_public(self) -> bytes:
        """SubjectPublicKeyInfo of the guest key; makes the key at first."""
        return (await self._identity()).public_der()

    async def ek_certificates(self) -> list[bytes]:
        """No certificates: there is no TPM."""
        return []

    async def ek_public(self) -> bytes:
        """No key: there is no TPM."""
        return b""

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """Always raises: credentials are made for TPMs."""
        raise ReportFailure("a guest key opens no credentials", "Sign the challenge instead.")

    async def sign(self, message: bytes) -> bytes:
        """The signature of a message by the guest key, as r‖s."""
        return (await self._identity()).sign(message)

    async def sign_as_boot(self, message: bytes) -> SignedByBoot | None:
        """r‖s by the key of this boot of a trust domain; a report of SNP has an id of its launch. Raises ReportFailure.

        The file is read each time: several programs of one boot prove it, and two keys would look like two machines.
        """
        if self.tee != "tdx":
            return None
        key = await asyncio.to_thread(kept_key, self._boot_key, self._entropy)
        return SignedByBoot(key.public_der(), key.sign(message))

    async def measure(self, event: bytes) -> None:
        """Extend RTMR 3 of a trust domain where the kernel offers that; an SNP guest has none; raises ReportFailure."""
        if self.tee == "tdx":
            await asyncio.to_thread(self._measure, event)

    async def leave_initrd(self) -> bool:
        """Extend RTMR 3 of a trust domain; an SNP guest has no such register; raises ReportFailure."""
        if self.tee == "tdx":
            await asyncio.to_thread(leave_by_register, self._runtime_register)
        return self.tee == "tdx"

    async def opened(self, disks: Sequence[DiskReport]) -> None:
        """Keep the reports for this boot; raises ReportFailure."""
        await asyncio.to_thread(self._disks.keep, disks)

    async def disks(self) -> Sequence[DiskReport]:
        """The reports of this boot; raises ReportFailure."""
        return await asyncio.to_thread(self._disks.disks)

    async def started_with(self, init_data: str) -> None:
        """Keep the document: several programs of this boot prove the machine with it; raises ReportFailure."""
        await asyncio.to_thread(self._init_data.keep, init_data)

    async def init_data(self) -> str:
        """The document that this boot took user-data from; raises ReportFailure."""
        return await asyncio.to_thread(self._init_data.text)

    async def evidence(self, report_data: bytes) -> JsonObject:
        """A report that is bound to these bytes, with what belongs to it."""
        reported = await self._reports.report(report_data)
        # The kernel says what made the report: a guest that was moved to another kind of host must not send it under its old
        # name.
        if reported.tee != self.tee:
            raise ReportFailure(
                f"this machine makes reports of {reported.tee}, not {self.tee}", "Start the agent with --tee auto."
            )
        if self.tee == "tdx":
            log = await asyncio.to_thread(self._log)
            return {"quote": _text(reported.report), **({"cc_eventlog": _text(log)} if log else {})}
        try:
            chain = [{"cert_type": entry.kind, "data": _text(entry.data)} for entry in parse_table(reported.auxiliary)]
        except EvidenceError:
            chain = []  # the host wrote nonsense; the verifier finds the certificates elsewhere, or says that they lack
        return {"attestation_report": _text(reported.report), "cert_chain": chain}

    def _measure(self, event: bytes) -> None:
        if not self._runtime_register.exists():
            return
        try:
            # The log first, as with a TPM: an event that is in the register alone could not be explained.
            self._runtime_log.append(event)
            # One write is one extension, of exactly one digest.
            with self._runtime_register.open("r+b", buffering=0) as file:
                file.write(hashed("sha384", event))
        except OSError as error:
            raise ReportFailure(f"RTMR {USER_DATA_RTMR} cannot be extended: {error.strerror}") from error

    def _log(self) -> bytes:
        try:
            with self._event_log.open("rb") as file:
                return self._runtime_log.behind(file.read(MAX_LOG), RTMR.runtime)
        except OSError:
            return b""

    async def _identity(self) -> PrivateKey:
        if self._key is None:
            self._key = await asyncio.to_thread(kept_key, self._directory / KEY, self._entropy)
        return self._key


def _failure(entry: Path, error: OSError) -> ReportFailure:
    return ReportFailure(f"{entry.parent.name}/{entry.name}: {error.strerror or error}")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
