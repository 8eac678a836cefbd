"""`fastness agent unlock` and `leave-initrd`: a machine's encrypted volumes, in its initial file system.

`unlock` opens the volumes of a machine that booted before; a first boot makes them in `agent boot`. `leave-initrd` comes last: it
forgets the unlock key and says in a register that the phase is over. A machine whose image has volumes does not get past either.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from fastness.agent.boot.boot import BootRefused, MakeVolumes, doors_of
from fastness.agent.boot.enrol import Enrolled, RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.luks_volumes import LuksVolumes
from fastness.agent.boot.mounted import check_mounted
from fastness.agent.boot.note_device import lay_out, read_device, wrapped, write_device
from fastness.agent.boot.unlock import Unlock, UnlockTarget, described
from fastness.agent.boot.volumes import PLACE as VOLUMES
from fastness.agent.boot.volumes import DiskRefused, load_volumes
from fastness.agent.boot.whereabouts import Whereabouts
from fastness.agent.disks.device_mapper import KernelMapper
from fastness.agent.host.errors import DriverError
from fastness.agent.host.key_file import kept_key
from fastness.agent.host.tee.configfs_tsm import TsmAttester
from fastness.agent.host.tee.identity import PUBLIC
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.machine.agent_attester import NOTE_OPTION, attester_of
from fastness.cli.machine.agent_hardware import EVENT_LOG, TEE, TPM, Hardware
from fastness.cli.output import tell
from fastness.protocol.unlock_note import UnlockNote
from fastness.runtime.clock import SystemClock, SystemEntropy

# In memory: gone with the boot, and removed before the initial file system is left.
UNLOCK_KEY: Final = Path("/run/fastness/unlock.key")
UNLOCK_IDENTITY: Final = Path("/run/fastness/unlock")
AGAIN_SECONDS: Final = 60.0

VOLUMES_OPTION = click.option(
    "--volumes", "volumes_file", type=click.Path(path_type=Path), default=VOLUMES, show_default=True,
    help="Which encrypted volumes this image gives its machines, and on which devices; without the file there are none.",
)  # fmt: skip
_TRUST = click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip


@click.command("unlock")
@VOLUMES_OPTION
@NOTE_OPTION
@_TRUST
@TEE
@TPM
@EVENT_LOG
def unlock(volumes_file: Path, note: Path, trusted: Path, tee: str, tcti: str, event_log: Path) -> None:
    """Prove this machine and open its encrypted volumes; waits for as long as the broker needs."""
    with reported_agent_errors():
        devices = load_volumes(volumes_file)
        if not devices:
            tell(f"{volumes_file} is not there: this image has no encrypted volumes")
            return
        hardware = Hardware(tee, tcti, UNLOCK_IDENTITY, event_log)
        try:
            asyncio.run(_unlock(devices, read_device(note), ImageTrust.load(trusted), hardware))
        except DiskRefused as refused:
            raise CliError(
                f"this machine's volumes stay closed ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        except OSError as error:
            raise CliError(f"{UNLOCK_IDENTITY}: {error.strerror}", "Run it as root.", Exit.MISSING) from error


async def _unlock(devices: Mapping[str, Path], note: UnlockNote, trust: ImageTrust, hardware: Hardware) -> None:
    lay_out(hardware.state, note.tpm)
    attester = await attester_of(hardware)
    unlocking = unlocking_of(attester, trust.tls, devices)
    where = Whereabouts(note.broker, note.server, trust, tell)
    target = UnlockTarget(note.machine, tuple(devices), where, first_boot=False, lost=where.look)
    tell(f"asking {note.broker} for the keys of this machine's volumes ({', '.join(devices)})")
    while True:
        try:
            tell(f"open: {described(await unlocking.run(target))}")
            return
        except BootRefused as refused:
            # Not the end: whoever put it right need not touch the machine. There is no other way on meanwhile.
            tell(f"refused ({refused.reason}): {refused.message}")
            tell(f"{refused.hint}; asking again in {AGAIN_SECONDS:.0f} seconds")
            await SystemClock().sleep(AGAIN_SECONDS)


def unlocking_of(attester: TpmAttester | TsmAttester, tls: ssl.SSLContext, devices: Mapping[str, Path]) -> Unlock:
    """What opens the volumes of this boot, with the one unlock key of it; raises ReportFailure."""
    entropy = SystemEntropy()
    key = kept_key(UNLOCK_KEY, entropy)
    patience = RetryBudget(SystemClock(), entropy, math.inf)
    return Unlock(attester, tls, LuksVolumes(devices, entropy), key, patience, tell)


def volumes_maker(
    attester: TpmAttester | TsmAttester, trust: ImageTrust, hardware: Hardware, devices: Mapping[str, Path], note: Path
) -> MakeVolumes | None:
    """What a first boot does about the volumes of its image, between enrolment and its first session; None without any."""
    if not devices:
        return None
    unlocking = unlocking_of(attester, trust.tls, devices)

    async def made(enrolled: Enrolled) -> None:
        broker = doors_of(enrolled, enrolled.pool).broker
        reports = await unlocking.run(UnlockTarget(enrolled.machine, tuple(devices), lambda: broker, first_boot=True))
        tell(f"open: {described(reports)}")
        write_device(note, replace(await _note(enrolled.machine, broker, hardware), server=enrolled.server))

    return made


async def _note(machine: str, broker: str, hardware: Hardware) -> UnlockNote:
    """The note for later boots; a TPM's key goes along, authenticated by itself: the addresses beside it may change."""
    if not (hardware.state / PUBLIC).exists():
        return UnlockNote(machine, broker)
    lay_out(UNLOCK_IDENTITY, wrapped(hardware.state))
    await TpmAttester(TpmTools(hardware.tcti), UNLOCK_IDENTITY).seal()
    return UnlockNote(machine, broker, wrapped(UNLOCK_IDENTITY))


@click.command("leave-initrd")
@VOLUMES_OPTION
@TEE
@TPM
def leave_initrd(volumes_file: Path, tee: str, tcti: str) -> None:
    """Forget the unlock key and say in a register that the initial file system is over.

    Fails unless the register moved, and where a volume of the image is not open and mounted.
    """
    with reported_agent_errors():
        UNLOCK_KEY.unlink(missing_ok=True)
        shutil.rmtree(UNLOCK_IDENTITY, ignore_errors=True)
        devices = load_volumes(volumes_file)
        try:
            check_mounted(devices, KernelMapper())
        except DiskRefused as refused:
            raise CliError(
                f"this boot does not go on ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        try:
            extended = asyncio.run(_leave(Hardware(tee, tcti, UNLOCK_IDENTITY, Path("/nonexistent"))))
        except DriverError as error:
            if devices:
                raise
            # Nothing is opened by phase on this machine: a kernel that cannot extend the register is no reason to stop it.
            tell(f"{error.message}: this image has no volumes, the boot goes on")
            return
    tell("the phase is over" if extended else "this machine has no register for phases; its unlock key is forgotten")


async def _leave(hardware: Hardware) -> bool:
    attester = await attester_of(hardware)
    return await attester.leave_initrd()
