"""Leaving the initial file system, said in a register: after that no proof of this boot opens a disk.

    leave_by_tpm(commands, scratch)         PCR 11, in every bank that the TPM has
    leave_by_register(path)                 RTMR 3 of a trust domain

Both read the register before and after and compare with what it must be then. A register that did not move would go on saying
"initrd" for as long as the machine runs, and whoever becomes root on it would fetch the keys of its disks again. systemd's own
program ends with 0 and measures nothing when a variable of the firmware is missing; so the agent does it itself.

* No log has the word: a verifier appends it behind what the log tells (`attestation.evidence.phases`).
* PCR_Event and not PCR_Extend: the TPM hashes the word for every bank that it has, also for those that we cannot compute. A bank
  that was left out would say "initrd" for ever.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed, ReportFailure, TpmFailure
from fastness.agent.host.tee.tpm_commands import TpmCommands
from fastness.crypto.silicon.registers import extend, hashed, replayable
from fastness.protocol.user_data_event import LEAVE_INITRD, PHASE_PCR

RTMR_BYTES: Final = 48
_STOP: Final = "The boot stops here: a machine that cannot say that it left its initial file system must not go on."
_BANK: Final = re.compile(r"^\s*([a-z0-9_]+)\s*:\s*$")
_VALUE: Final = re.compile(rf"^\s*{PHASE_PCR}\s*:\s*0x([0-9A-Fa-f]+)\s*$")


def leave_by_tpm(commands: TpmCommands, scratch: Path) -> None:
    """Extend PCR 11 in all banks with the word of the phase; raises TpmFailure unless each of them moved as it must."""
    word = scratch / "phase"
    word.write_bytes(LEAVE_INITRD)
    before = read_banks(commands.printed("pcrread"))
    try:
        commands.tool("pcrevent", str(PHASE_PCR), str(word))
    except CommandFailed as error:
        raise TpmFailure(f"PCR {PHASE_PCR} cannot be extended: {error.message}", _STOP) from error
    after = read_banks(commands.printed("pcrread"))
    for bank, value in before.items():
        if not moved(bank, value, after.get(bank, b"")):
            raise TpmFailure(f"PCR {PHASE_PCR} of bank {bank} did not move as it must", _STOP)


def read_banks(printed: str) -> dict[str, bytes]:
    """PCR 11 of every bank, as tpm2_pcrread prints them; raises TpmFailure where there is none."""
    banks: dict[str, bytes] = {}
    bank = ""
    for line in printed.splitlines():
        heading, value = _BANK.match(line), _VALUE.match(line)
        if heading is not None:
            bank = heading[1]
        elif value is not None and bank:
            banks[bank] = bytes.fromhex(value[1])
    if "sha256" not in banks:
        raise TpmFailure(f"the TPM shows no PCR {PHASE_PCR} in a bank of SHA-256", _STOP)
    return banks


def moved(bank: str, before: bytes, after: bytes) -> bool:
    """Whether a register holds what the word of the phase makes of its value; of a hash that we lack, whether it is another."""
    if not replayable(bank):
        return len(after) == len(before) and after != before
    return after == extend(bank, before, hashed(bank, LEAVE_INITRD))


def leave_by_register(path: Path) -> None:
    """Extend RTMR 3 with the word of the phase; raises ReportFailure unless it moved as it must."""
    try:
        before = path.read_bytes()[:RTMR_BYTES]
        with path.open("r+b", buffering=0) as file:
            file.write(hashed("sha384", LEAVE_INITRD))
        after = path.read_bytes()[:RTMR_BYTES]
    except OSError as error:
        raise ReportFailure(f"RTMR 3 cannot be extended: {error.strerror}", _STOP) from error
    if len(before) != RTMR_BYTES or not moved("sha384", before, after):
        raise ReportFailure("RTMR 3 did not move as it must", _STOP)
