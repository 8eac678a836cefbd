"""The hardware that vouches for a machine: the options that name it, and what speaks for it.

Every verb by which a machine proves itself has the same options. `attester_of` chooses what speaks for the hardware, with an
identity that is the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from fastness.agent.host.errors import IdentityRefused, ReportFailure
from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
from fastness.agent.host.tee.identity import set_aside
from fastness.agent.host.tee.this_boot import RuntimeLog
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.cli.output import tell
from fastness.runtime.clock import SystemEntropy

BROKER, GATE = "broker", "gate"
"""Files beside the key of a machine: where it proves itself, and where it fetches configs."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Hardware:
    """What vouches for this machine, how it is reached, and where the machine's key is kept."""

    tee: str
    tcti: str
    state: Path
    event_log: Path
    measured: Path = Path("/run/fastness/measured")


TEE = click.option(
    "--tee", type=click.Choice(["auto", "tpm", "snp", "tdx"]), default="auto", show_default=True,
    help="What vouches for this machine; auto takes the processor's reports where the kernel offers them, else the TPM.",
)  # fmt: skip
TPM = click.option(
    "--tpm", "tcti", default="device:/dev/tpmrm0", show_default=True,
    help="The TPM, as tpm2-tools name it: device:PATH, or swtpm:path=SOCKET.",
)  # fmt: skip
_STATE = click.option(
    "--state", type=click.Path(path_type=Path), default=Path("/run/fastness/identity"), show_default=True,
    help="Where the key is kept that this machine enrols with.",
)  # fmt: skip
EVENT_LOG = click.option(
    "--event-log", type=click.Path(path_type=Path), default=Path("/sys/kernel/security/tpm0/binary_bios_measurements"),
    show_default=True, help="The TPM's event log of this boot, as the kernel keeps it.",
)  # fmt: skip


def hardware_options(function: F) -> F:
    """The options that name what vouches for this machine."""
    for option in (EVENT_LOG, _STATE, TPM, TEE):
        function = option(function)
    return function


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
