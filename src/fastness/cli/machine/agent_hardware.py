"""The hardware that vouches for a machine, and the options that name it.

Every verb by which a machine proves itself has the same options. What speaks for the hardware is chosen in `agent_attester`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

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
