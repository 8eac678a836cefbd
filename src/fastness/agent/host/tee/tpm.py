"""A TPM by way of tpm2-tools: the machine's own (`device:/dev/tpmrm0`) or a software one (`swtpm:path=…`).

`TpmTools` asks the TPM one thing at a time; `TpmAttester` is the same TPM as enrolment and the handshake see it. Rules:

- The attestation key is kept as two blobs in a directory: wrapped by the TPM, useless elsewhere. Both gone is a new identity, one
  gone is a failure, because a machine must not lose its identity by accident.
- The files of the identity carry an authentication code under a key of this TPM (`seal`): what somebody else put onto the disk is
  not taken, even if its owner and mode are right.
- A loaded key is remembered as a saved context beside the blobs; the TPM forgets it at reset, and then it is loaded again.

`tpm_commands.py` runs the tools, `endorsement_key.py` is the key that the maker vouches for.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed, IdentityRefused, TpmFailure
from fastness.agent.host.process import Run
from fastness.agent.host.tee import identity
from fastness.agent.host.tee.boot_phase import leave_by_tpm
from fastness.agent.host.tee.endorsement_key import TpmEndorsement
from fastness.agent.host.tee.this_boot import DisksFile, RuntimeLog
from fastness.agent.host.tee.tpm_commands import TpmCommands
from fastness.crypto.digests import same
from fastness.crypto.secret import SecretBytes
from fastness.formats.evidence.tpm.public import TpmPublic, parse_public
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_report import DiskReport
from fastness.protocol.user_data_event import PCR, USER_DATA_PCR, digests_of

REGISTERS: Final = range(24)
EVENT_LOG: Final = Path("/sys/kernel/security/tpm0/binary_bios_measurements")
PUBLIC, PRIVATE, CONTEXT = identity.PUBLIC, identity.PRIVATE, identity.CONTEXT
# A key of the endorsement hierarchy that follows from the TPM's seed: nothing of it is stored, and no other TPM has it.
_MAC_KEY: Final = ("-C", "e", "-g", "sha256", "-G", "hmac")
_AK_ATTRIBUTES: Final = "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|restricted|sign|noda"
_MAC_ATTRIBUTES: Final = "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign|noda"
# The form in which tpm2-tools keep a credential in a file: their own magic and version, then what the wire has.
_BLOB_HEADER: Final = bytes.fromhex("badcc0de00000001")
_SCHEMES: Final = {"ecc": "ecc256:ecdsa-sha256:null", "rsa": "rsa2048:rsassa-sha256:null"}
_BANKS: Final = {20: "sha1", 32: "sha256", 48: "sha384", 64: "sha512"}


@dataclass(frozen=True, slots=True)
class AkHandle:
    """An attestation key: its public area (TPM2B_PUBLIC) and where its blobs are."""

    public: bytes
    directory: Path

    @property
    def area(self) -> TpmPublic:
        """The public area, read."""
        return parse_public(self.public)


class TpmTools:
    """What a TPM can be asked for: certificates, keys, credentials, quotes, measurements."""

    def __init__(
        self, tcti: str, *, event_log: Path = EVENT_LOG, runtime_log: RuntimeLog | None = None, run: Run | None = None
    ) -> None:
        self._commands = TpmCommands(tcti, run)
        self._endorsement = TpmEndorsement(self._commands)
        self._event_log = event_log
        self._runtime_log = runtime_log or RuntimeLog()

    async def ek_certificate(self) -> bytes:
        """The certificate of the endorsement key, DER; raises TpmFailure when the TPM has none."""
        certificates = await self.ek_certificates()
        if not certificates:
            raise TpmFailure("the TPM holds no certificate of its endorsement key", "Its maker did not provision one.")
        return certificates[0]

    async def ek_certificates(self) -> list[bytes]:
        """The same with the certificates above it that the maker stored, leaf first; empty when there is none."""
        return await self._commands.perform(self._endorsement.certificates)

    async def ek_public(self) -> bytes:
        """TPM2B_PUBLIC of the endorsement key."""
        return await self._commands.perform(self._endorsement.public)

    async def create_ak(self, directory: Path, algorithm: str = "ecc") -> AkHandle:
        """The attestation key of a directory, made when the directory has none: restricted, and bound to this TPM."""
        return await self._commands.perform(partial(self._create_ak, directory=directory, algorithm=algorithm))

    async def activate(self, ak: AkHandle, credential: bytes, secret: bytes) -> SecretBytes:
        """Open a credential that was made for this TPM and this key; raises TpmFailure when it was not."""
        return await self._commands.perform(partial(self._activate, ak=ak, blob=_BLOB_HEADER + credential + secret))

    async def quote(
        self, ak: AkHandle, nonce: bytes, registers: Collection[int] = REGISTERS, bank: str = "sha256"
    ) -> JsonObject:
        """A quote over registers, as evidence carries it."""
        chosen = sorted(set(registers))
        return await self._commands.perform(partial(self._quote, ak=ak, nonce=nonce, registers=chosen, bank=bank))

    async def extend(self, index: int, digest: bytes) -> None:
        """Extend a register of the bank that has digests of this length."""
        if len(digest) not in _BANKS or index not in REGISTERS:
            raise TpmFailure(
                f"register {index} cannot be extended with {len(digest)} bytes", "Give a digest of a bank."
            )
        word = f"{index}:{_BANKS[len(digest)]}={digest.hex()}"
        await self._commands.perform(lambda _: self._commands.tool("pcrextend", word))

    async def measure(self, event: bytes) -> None:
        """Extend PCR 15 with an event of the agent, in every bank that the boot's log has; raises TpmFailure."""
        await self._commands.perform(lambda _: self._measure(event))

    async def leave_initrd(self) -> None:
        """Say in PCR 11, in every bank, that the initial file system is over; raises TpmFailure unless it moved."""
        await self._commands.perform(lambda scratch: leave_by_tpm(self._commands, scratch))

    async def seal(self, directory: Path) -> None:
        """Authenticate the files of an identity as they are now."""
        await self._commands.perform(partial(self._seal, directory=directory))

    async def sealed(self, directory: Path) -> bool:
        """Whether this TPM authenticated the files of an identity as they are."""
        return await self._commands.perform(partial(self._sealed, directory=directory))

    async def event_log(self) -> bytes:
        """The boot's event log as the kernel keeps it, with what `measure` added; empty where there is none."""
        return await asyncio.to_thread(self._read_log)

    def _create_ak(self, scratch: Path, directory: Path, algorithm: str) -> AkHandle:
        public, private = directory / PUBLIC, directory / PRIVATE
        # Made anew silently it would be another identity: whoever can delete one file would have the machine enrol again.
        if public.exists() != private.exists():
            raise TpmFailure(
                f"half of the attestation key in {directory} is missing",
                "Restore it from a backup; to give the machine a new identity, remove the other half too.",
            )
        if not public.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make(scratch, algorithm)
            # The private half first: a machine that stops in between has neither or a half, and a half is refused instead of
            # replaced.
            _keep(scratch / PRIVATE, private)
            _keep(scratch / PUBLIC, public)
            self._seal(scratch, directory)
        handle = AkHandle(public.read_bytes(), directory)
        if not handle.area.is_attestation_key:
            raise TpmFailure(f"the key in {directory} is no attestation key", "Remove it; a new one is made then.")
        return handle

    def _make(self, scratch: Path, algorithm: str) -> None:
        parent = self._endorsement.handle(scratch)
        # Not `tpm2_createak`: its keys are under the TPM's protection against guessing. Every power cut without a shutdown counts
        # as a guess there, and after some of them the machine could prove nothing any more. The key has no password to guess.
        with self._endorsement.session(scratch) as session:
            self._commands.tool(
                "create", "-C", parent, "-P", session, "-G", _SCHEMES[algorithm], "-g", "sha256", "-a", _AK_ATTRIBUTES,
                "-u", str(scratch / PUBLIC), "-r", str(scratch / PRIVATE),
            )  # fmt: skip
        self._commands.clean()

    def _mac(self, scratch: Path, data: bytes) -> bytes:
        context, message, code = scratch / "mac.ctx", scratch / "mac.message", scratch / "mac.code"
        message.write_bytes(data)
        # `noda`: an attacker who tries wrong authorisations must not lock the TPM and with it the identity of the machine.
        self._commands.tool("createprimary", *_MAC_KEY, "-a", _MAC_ATTRIBUTES, "-c", str(context))
        self._commands.tool("hmac", "-c", str(context), "-g", "sha256", "-o", str(code), str(message))
        self._commands.clean()
        return code.read_bytes()

    def _seal(self, scratch: Path, directory: Path) -> None:
        code = scratch / identity.SEAL
        code.write_text(self._mac(scratch, identity.seal_text(directory)).hex(), "ascii")
        _keep(code, directory / identity.SEAL)

    def _sealed(self, scratch: Path, directory: Path) -> bool:
        # A code and no digest: whoever can write the files could write a digest beside them, and cannot make this TPM compute a
        # code.
        return same(self._mac(scratch, identity.seal_text(directory)), identity.read_seal(directory))

    def _load(self, scratch: Path, ak: AkHandle) -> str:
        """Load the key and remember it; raises TpmFailure when this TPM did not make it."""
        parent, context = self._endorsement.handle(scratch), ak.directory / CONTEXT
        try:
            with self._endorsement.session(scratch) as session:
                self._commands.tool(
                    "load", "-C", parent, "-P", session, "-u", str(ak.directory / PUBLIC),
                    "-r", str(ak.directory / PRIVATE), "-c", str(context),
                )  # fmt: skip
        except CommandFailed as error:
            raise TpmFailure(
                f"the TPM does not take the attestation key in {ak.directory}: {error.message}",
                "The TPM was cleared or replaced: remove the key and enrol the machine again.",
            ) from error
        return str(context)

    def _with_key(self, scratch: Path, ak: AkHandle, use: Callable[[str], None]) -> None:
        """Use the key as it was saved; if that fails, as it is loaded anew, because a reset forgets saved contexts."""
        context = ak.directory / CONTEXT
        if context.exists():
            try:
                use(str(context))
                return
            except CommandFailed:
                self._commands.clean()
        use(self._load(scratch, ak))

    def _activate(self, scratch: Path, ak: AkHandle, blob: bytes) -> SecretBytes:
        sealed, opened = scratch / "credential", scratch / "opened"
        sealed.write_bytes(blob)
        parent = self._endorsement.handle(scratch)

        def use(context: str) -> None:
            with self._endorsement.session(scratch) as session:
                self._commands.tool(
                    "activatecredential",
                    "-c",
                    context,
                    "-C",
                    parent,
                    "-i",
                    str(sealed),
                    "-o",
                    str(opened),
                    "-P",
                    session,
                )

        self._with_key(scratch, ak, use)
        return SecretBytes(opened.read_bytes())

    def _quote(self, scratch: Path, ak: AkHandle, nonce: bytes, registers: Sequence[int], bank: str) -> JsonObject:
        message, signature, values = scratch / "message", scratch / "signature", scratch / "values"
        chosen = f"{bank}:{','.join(map(str, registers))}"

        def use(context: str) -> None:
            self._commands.tool(
                "quote", "-c", context, "-l", chosen, *(["-q", nonce.hex()] if nonce else []), "-g", "sha256",
                "-m", str(message), "-s", str(signature), "-o", str(values), "-F", "values",
            )  # fmt: skip

        self._with_key(scratch, ak, use)
        raw = values.read_bytes()
        size = len(raw) // len(registers)
        pcrs = {index: raw[place * size : (place + 1) * size].hex() for place, index in enumerate(registers)}
        quote = {"message": _text(message.read_bytes()), "signature": _text(signature.read_bytes())}
        # The short form can only say "all registers of SHA-256"; anything else names what it has.
        whole = bank == "sha256" and registers == list(REGISTERS)
        listed = list(pcrs.values()) if whole else {"bank": bank, "values": {str(i): pcrs[i] for i in registers}}
        log = self._read_log()
        return {
            "ak_public": _text(ak.area.spki),
            "tpm_quote": {**quote, "pcrs": listed},
            **({"event_log": _text(log)} if log else {}),
        }

    def _measure(self, event: bytes) -> None:
        banks = ",".join(f"{bank}={value.hex()}" for bank, value in digests_of(self._read_log(), event).items())
        # The log first: an event that is in the log alone is a finding, one in the register alone could not be explained.
        self._runtime_log.append(event)
        self._commands.tool("pcrextend", f"{USER_DATA_PCR}:{banks}")

    def _read_log(self) -> bytes:
        try:
            return self._runtime_log.behind(self._event_log.read_bytes(), PCR.runtime)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise TpmFailure(f"the event log cannot be read: {error.strerror}", f"Check {self._event_log}.") from error


class TpmAttester:
    """A TPM as the agent's port sees it (`fastness.agent.boot.attester`): one identity, kept in a directory."""

    tee: Final = "tpm"

    def __init__(
        self, tools: TpmTools, directory: Path, registers: Collection[int] = REGISTERS, disks: DisksFile | None = None
    ) -> None:
        self._tools = tools
        self._directory = directory
        self._registers = registers
        self._disks = disks or DisksFile()

    async def trusted(self) -> None:
        """Refuse an identity that is not the agent's own, or not of this TPM; raises IdentityRefused, TpmFailure."""
        if not identity.holds_identity(self._directory):
            return
        await asyncio.to_thread(identity.check, self._directory)
        if not await self._tools.sealed(self._directory):
            raise IdentityRefused(f"the files in {self._directory} were not written by the agent of this machine")

    async def seal(self) -> None:
        """Authenticate the files beside the key as they are now; raises TpmFailure."""
        await self._tools.seal(self._directory)

    async def identity_public(self) -> bytes:
        """TPM2B_PUBLIC of the attestation key; makes the key at first."""
        return (await self._tools.create_ak(self._directory)).public

    async def ek_certificates(self) -> list[bytes]:
        """The endorsement certificate and those above it."""
        return await self._tools.ek_certificates()

    async def ek_public(self) -> bytes:
        """TPM2B_PUBLIC of the endorsement key."""
        return await self._tools.ek_public()

    async def activate(self, credential: bytes, secret: bytes) -> SecretBytes:
        """Open a credential; raises TpmFailure."""
        return await self._tools.activate(await self._tools.create_ak(self._directory), credential, secret)

    async def sign(self, message: bytes) -> bytes:
        """Always raises: a restricted key signs only what the TPM wrote."""
        raise TpmFailure("an attestation key signs no foreign messages", "Activate a credential instead.")

    async def sign_as_boot(self, message: bytes) -> None:
        """None: a quote itself carries the count of resets, which tells boots apart."""

    async def measure(self, event: bytes) -> None:
        """Extend PCR 15; raises TpmFailure."""
        await self._tools.measure(event)

    async def leave_initrd(self) -> bool:
        """Extend PCR 11; raises TpmFailure."""
        await self._tools.leave_initrd()
        return True

    async def opened(self, disks: Sequence[DiskReport]) -> None:
        """Keep the reports for this boot; raises ReportFailure."""
        await asyncio.to_thread(self._disks.keep, disks)

    async def disks(self) -> Sequence[DiskReport]:
        """The reports of this boot; raises ReportFailure."""
        return await asyncio.to_thread(self._disks.disks)

    async def started_with(self, init_data: str) -> None:
        """Does nothing: no register of a TPM has the digest of the document. PCR 15 has what was taken from it."""

    async def init_data(self) -> str:
        """Empty: a TPM has no measured document."""
        return ""

    async def evidence(self, report_data: bytes) -> JsonObject:
        """A quote that is bound to these bytes, with the event log."""
        return await self._tools.quote(await self._tools.create_ak(self._directory), report_data, self._registers)


def _keep(source: Path, target: Path) -> None:
    """Put a file where it stays, whole or not at all; the two places may be on different file systems, as in an initramfs."""
    draft = target.with_name(f".{target.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(source.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    draft.replace(target)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
