"""What speaks for the hardware of a machine, with an identity that is the machine's own, and the note that names it."""

from __future__ import annotations

from pathlib import Path

import click

from fastness.agent.boot.note_device import PLACE as NOTE
from fastness.agent.host.errors import IdentityRefused, ReportFailure
from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
from fastness.agent.host.tee.identity import set_aside
from fastness.agent.host.tee.this_boot import RuntimeLog
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.cli.machine.agent_hardware import Hardware
from fastness.cli.output import tell
from fastness.runtime.clock import SystemEntropy

NOTE_OPTION = click.option(
    "--note", type=click.Path(path_type=Path), default=NOTE, show_default=True,
    help="The device beside the volumes that says, in clear, which machine this is and where its broker is.",
)  # fmt: skip


async def attester_of(hardware: Hardware, *, first_boot: bool = False) -> TpmAttester | TsmAttester:
    """What speaks for the hardware of this machine, with an identity that is its own; raises DriverError."""
    attester = await _speaker(hardware)
    await _own_identity(attester, hardware.state, first_boot=first_boot)
    return attester


async def _speaker(hardware: Hardware) -> TpmAttester | TsmAttester:
    reports, log = TsmReports(), RuntimeLog(hardware.measured)
    if hardware.tee in ("snp", "tdx"):
        return TsmAttester(reports, hardware.state, SystemEntropy(), hardware.tee, runtime_log=log)
    if hardware.tee == "auto" and reports.offered:
        try:
            return await TsmAttester.detected(reports, hardware.state, SystemEntropy(), log)
        except ReportFailure as error:
            tell(f"{error.message}; taking the TPM")
    tools = TpmTools(hardware.tcti, event_log=hardware.event_log, runtime_log=log)
    return TpmAttester(tools, hardware.state)


async def _own_identity(attester: TpmAttester | TsmAttester, state: Path, *, first_boot: bool) -> None:
    """Refuse files that the agent did not write; on a first boot set them aside for a new key. Raises DriverError."""
    try:
        await attester.trusted()
    except IdentityRefused as error:
        if not first_boot:
            raise
        tell(f"{error.message}: it is set aside, and this machine enrols with a new key")
        set_aside(state)
