"""Virtual machines with a real TPM in software: one `swtpm` process each, asked through the same driver as a chip.

    STATE/swtpm/ca/…             the authority of the maker: made once, announced as a root of the simulated vendor
    STATE/machines/<name>/tpm    the state of one TPM, and the blobs of its attestation key

A boot is what firmware would do: the TPM is reset and the registers are extended, event by event, with what the image of the
machine measures. Quotes, keys and credentials are then the TPM's own.

* Whoever made these TPMs counts only because this cluster is simulated; verdicts say so.
* A TPM ends with the machine, and also when this process is killed: the kernel tells it (`setpriv --pdeathsig`).
* Sockets lie in a short directory of their own, because their path has at most 108 bytes; it is removed at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.host.errors import TpmFailure
from fastness.agent.host.process import ENVIRONMENT
from fastness.agent.host.tee.this_boot import DisksFile, RuntimeLog
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.registers import hashed
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.eventlog.log import EV_NO_ACTION
from fastness.kinds.kind import JsonObject
from fastness.sim.hardware import REPLAYED, Conditions, Tee
from fastness.sim.tee.images import BootImage

PACKAGES: Final = {
    "swtpm": "swtpm", "swtpm_setup": "swtpm-tools", "swtpm_localca": "swtpm-tools", "tpm2_quote": "tpm2-tools",
}  # fmt: skip
SECONDS: Final = 60.0
STOP_SECONDS: Final = 5.0
TOGETHER: Final = 2
_POLL: Final = 0.02
_BANKS: Final = ("sha256", "sha384")
_OPTIONS: Final = (
    "--tpm-manufacturer id:00001014\n--tpm-model swtpm\n--tpm-version id:00020001\n--tpm-spec-family 2.0\n"
    "--tpm-spec-level 0\n--tpm-spec-revision 164\n"
)


def missing(find: Callable[..., str | None] = shutil.which) -> list[str]:
    """The packages that are not installed and are needed for TPMs in software."""
    path = ENVIRONMENT["PATH"]
    return sorted({package for program, package in PACKAGES.items() if find(program, path=path) is None})


class TpmMaker:
    """Someone who makes TPMs: a certificate authority below the state directory, and the places of sockets."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sockets = Path(tempfile.mkdtemp(prefix="fastness-tpm-"))
        self._turn = asyncio.Semaphore(TOGETHER)

    async def open(self) -> None:
        """Make the authority if there is none; raises TpmFailure."""
        if not (self._directory / "ca" / "issuercert.pem").exists():
            with tempfile.TemporaryDirectory(dir=self._sockets) as scratch:
                # The first TPM of a maker makes its authority; this one is thrown away.
                await self.provision(Path(scratch), "first")

    def close(self) -> None:
        """Remove the places of sockets; the TPMs are off by then."""
        shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def certificates(self) -> list[Certificate]:
        """The issuing authority and the root; raises TpmFailure."""
        names = ("issuercert.pem", "swtpm-localca-rootca-cert.pem")
        try:
            return [load_certificates((self._directory / "ca" / name).read_bytes())[0] for name in names]
        except (OSError, CryptoError) as error:
            raise TpmFailure(f"the authority of the software TPMs cannot be read: {error}") from error

    def board(self, name: str, directory: Path) -> SwtpmBoard:
        """The board of a machine; its TPM is made when it is first switched on."""
        return SwtpmBoard(self, directory, self._sockets / name)

    async def provision(self, state: Path, name: str) -> None:
        """A TPM with endorsement keys and their certificates; raises TpmFailure."""
        async with self._turn:
            config = await asyncio.to_thread(self._prepared, state)
            await command(
                "swtpm_setup", "--tpm2", "--tpmstate", str(state), "--config", str(config), "--create-ek-cert",
                "--pcr-banks", ",".join(_BANKS), "--vmid", name, "--overwrite",
            )  # fmt: skip

    def _prepared(self, state: Path) -> Path:
        """The directory of a TPM, and the configuration of the works."""
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        ca, setup = self._directory / "ca", self._directory / "setup.conf"
        ca.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = {
            "options": _OPTIONS,
            "localca.conf": f"statedir = {ca.absolute()}\nsigningkey = {ca.absolute()}/signkey.pem\n"
            f"issuercert = {ca.absolute()}/issuercert.pem\ncertserial = {ca.absolute()}/certserial\n",
            "setup.conf": f"create_certs_tool = {shutil.which('swtpm_localca', path=ENVIRONMENT['PATH'])}\n"
            f"create_certs_tool_config = {self._directory.absolute()}/localca.conf\n"
            f"create_certs_tool_options = {self._directory.absolute()}/options\n",
        }
        for name, content in files.items():
            (self._directory / name).write_text(content)
        return setup


class SwtpmBoard:
    """A board whose TPM is a process."""

    tee: Tee = "tpm"

    def __init__(self, maker: TpmMaker, directory: Path, sockets: Path) -> None:
        self._maker = maker
        self._directory = directory
        self._sockets = sockets
        self._process: Process | None = None

    @property
    def running(self) -> int | None:
        """The process of the TPM, while it is on."""
        return self._process.pid if self._process is not None else None

    async def power_on(self, conditions: Conditions) -> Attester:
        """Reset the TPM and measure the boot; raises TpmFailure."""
        await self.power_off()
        await self._provisioned()
        await self._start()
        image, log = conditions.image(self.tee), self._directory / "eventlog"
        await asyncio.to_thread(log.write_bytes, image.event_log)
        # Pulling the plug counts as an attack on passwords, and after a few a TPM locks itself; there are no passwords here.
        await command("tpm2_dictionarylockout", "-T", self._tcti, "-Q", "--clear-lockout")
        await command("tpm2_pcrextend", "-T", self._tcti, "-Q", *extensions(image))
        later = self._directory / "measured"
        # Registers are reset by the boot; events of the one before would not replay, and the evidence would be refused.
        later.unlink(missing_ok=True)
        tools = TpmTools(self._tcti, event_log=log, runtime_log=RuntimeLog(later))
        disks = DisksFile(self._directory / "disks.json")
        disks.keep(())  # of the boot before
        attester = TpmAttester(tools, self._directory / "identity", disks=disks)
        return await RecordingTpm.of(attester) if conditions.replay else attester

    async def power_off(self) -> None:
        """End the process and wait for it; it is killed when it does not end in time."""
        process, self._process = self._process, None
        if process is not None:
            await asyncio.shield(_ended(process))
        shutil.rmtree(self._sockets, ignore_errors=True)

    @property
    def _tcti(self) -> str:
        return f"swtpm:path={self._sockets / 'sock'}"

    async def _provisioned(self) -> None:
        """The factory's work; a TPM that was interrupted in the works is made again."""
        done = self._directory / "state" / ".provisioned"
        if not done.exists():
            # Half a TPM would answer with keys that no certificate speaks for.
            shutil.rmtree(self._directory, ignore_errors=True)
            await self._maker.provision(done.parent, self._sockets.name)
            done.touch()

    async def _start(self) -> None:
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        words = [
            "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self._directory / 'state'}",
            "--server", f"type=unixio,path={self._sockets / 'sock'}",
            "--ctrl", f"type=unixio,path={self._sockets / 'sock.ctrl'}", "--flags", "not-need-init,startup-clear",
        ]  # fmt: skip
        dying = shutil.which("setpriv", path=ENVIRONMENT["PATH"])
        if dying is not None:
            words = [dying, "--pdeathsig", "TERM", *words]
        # A session of its own: Ctrl-C at the terminal is for us, and the TPM ends when its machine does.
        starting = asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=ENVIRONMENT, start_new_session=True
        )
        try:
            self._process = await starting
        except OSError as error:
            raise TpmFailure(f"swtpm cannot be started: {error.strerror}", "Install the package swtpm.") from error
        for _ in range(int(SECONDS / _POLL)):
            if (self._sockets / "sock.ctrl").exists() and (self._sockets / "sock").exists():
                return
            if self._process.returncode is not None:
                break
            await asyncio.sleep(_POLL)
        raise TpmFailure(f"swtpm did not come up (it ended with {self._process.returncode})")


class RecordingTpm:
    """A TPM's machine that answers every challenge with evidence that was recorded before."""

    tee: Final = "tpm"

    def __init__(self, real: TpmAttester, recorded: JsonObject) -> None:
        self._kept = recorded
        self.identity_public = real.identity_public
        self.ek_certificates = real.ek_certificates
        self.ek_public = real.ek_public
        self.activate = real.activate
        self.sign = real.sign
        self.sign_as_boot = real.sign_as_boot
        self.measure = real.measure
        self.leave_initrd = real.leave_initrd
        self.opened = real.opened
        self.disks = real.disks
        self.started_with = real.started_with
        self.init_data = real.init_data

    @classmethod
    async def of(cls, real: TpmAttester) -> RecordingTpm:
        """Record now, replay from now on; raises TpmFailure."""
        return cls(real, await real.evidence(REPLAYED))

    async def evidence(self, report_data: bytes) -> JsonObject:
        """The recorded evidence, whatever is asked."""
        return self._kept


def extensions(image: BootImage) -> list[str]:
    """What firmware extends on the way to the kernel, in order, as tpm2_pcrextend takes it."""
    return [
        f"{event.register}:{','.join(f'{bank}={hashed(bank, event.subject).hex()}' for bank in _BANKS)}"
        for event in image.events
        if event.kind != EV_NO_ACTION
    ]


async def command(*words: str) -> None:
    """Run a program to its end; raises TpmFailure. When cancelled, it is ended first."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=ENVIRONMENT, start_new_session=True
        )
    except OSError as error:
        raise TpmFailure(f"{words[0]} cannot be started: {error.strerror}", _hint(words)) from error
    try:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    except TimeoutError as error:
        raise TpmFailure(f"{words[0]} did not end within {SECONDS:.0f} seconds") from error
    finally:
        if process.returncode is None:
            await asyncio.shield(_ended(process))
    if process.returncode:
        output = (err or out).decode(errors="replace").strip()[-400:]
        raise TpmFailure(f"{words[0]} ended with {process.returncode}: {output}")


def _hint(words: Sequence[str]) -> str:
    return f"Install the package {PACKAGES.get(words[0], words[0])}."


async def _ended(process: Process) -> None:
    """End a process with everything that it started: each leads a group of its own."""
    _signal(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
