"""`fastness agent boot` and `keep-identity`: the first boot of a machine.

`boot` runs before Ignition, in the initial file system, and hands Ignition the configuration. `keep-identity` puts the key that
it made onto the disk (`agent.host.tee.identity`).
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from fastness.agent.boot.boot import BootedConfig, BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import RetryBudget, once_each
from fastness.agent.boot.forwarder import Forwarder
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.join import write_secret
from fastness.agent.boot.user_data import ask_of_host
from fastness.agent.boot.volumes import DiskRefused, load_volumes
from fastness.agent.host.errors import DriverError
from fastness.agent.host.own_process import tell_ready
from fastness.agent.host.tee.identity import keep
from fastness.agent.host.user_data import UserDataSource, places_of, platform_of
from fastness.agent.host.user_data.files import FilePlace
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.machine.agent_attester import NOTE_OPTION, attester_of
from fastness.cli.machine.agent_hardware import BROKER, GATE, Hardware, hardware_options
from fastness.cli.machine.agent_unlock import VOLUMES_OPTION, volumes_maker
from fastness.cli.output import tell
from fastness.crypto.secret import SecretBytes
from fastness.protocol.pointer import MAX_BYTES, is_image_pointer
from fastness.runtime.clock import SystemClock, SystemEntropy

# In the order in which Ignition looks; the pointer of an image is the last one (`protocol.pointer`).
POINTERS = (Path("/run/ignition/user.ign"), Path("/etc/ignition/user.ign"), Path("/usr/lib/ignition/user.ign"))


@click.command("keep-identity")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), default=Path("/run/fastness/identity"), show_default=True,
    help="Where `agent boot` made the key that this machine enrolled with.",
)  # fmt: skip
@click.option(
    "--to", "target", type=click.Path(path_type=Path), default=Path("/var/lib/fastness/identity"), show_default=True,
    help="Where it stays.",
)  # fmt: skip
def keep_identity(source: Path, target: Path) -> None:
    """Put the key of a first boot on the disk; whatever lies there is set aside."""
    with reported_agent_errors():
        changed = keep(source, target)
    tell(f"{target} {'holds' if changed else 'held already'} the identity that this machine enrolled with")


@click.command("boot")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA and the keys that sign configurations.",
)  # fmt: skip
@hardware_options
@click.option(
    "--pointer", "pointers", type=click.Path(path_type=Path), multiple=True, default=POINTERS, show_default=True,
    help="Where Ignition looks first. With the image's pointer there the agent reads user-data; else Ignition brings the ticket.",
)  # fmt: skip
@click.option(
    "--user-data", "user_data", default="auto", show_default=True, metavar="auto|PLATFORM|PATH",
    help="Where user-data is: at the platform that the kernel command line names, at another one, or in a file.",
)  # fmt: skip
@click.option(
    "--measured", type=click.Path(path_type=Path), default=Path("/run/fastness/measured"), show_default=True,
    help="Where the log of what this boot measured after its kernel started is kept.",
)  # fmt: skip
@VOLUMES_OPTION
@NOTE_OPTION
@click.option("--port", type=click.IntRange(0, 65535), default=22625, show_default=True, help="Port on 127.0.0.1.")
def boot(
    trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, pointers: tuple[Path, ...], user_data: str,
    measured: Path, volumes_file: Path, note: Path, port: int,
) -> None:  # fmt: skip
    """Prove this machine and give Ignition its configuration, once; its encrypted volumes are made before."""
    with reported_agent_errors():
        trust, places = ImageTrust.load(trusted), _places(pointers, user_data)
        try:
            hardware = Hardware(tee, tcti, state, event_log, measured)
            machine = asyncio.run(_boot(trust, hardware, places, port, (load_volumes(volumes_file), note)))
        except DiskRefused as refused:
            raise CliError(
                f"this machine gets no volumes and does not boot ({refused.reason}): {refused.message}",
                refused.hint,
                Exit.NO,
            ) from refused
        except BootRefused as refused:
            raise CliError(
                f"this machine gets no configuration ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        except OSError as error:
            raise CliError(
                f"port {port} on 127.0.0.1: {error.strerror}", "Is another agent running?", Exit.MISSING
            ) from error
    tell(f"Ignition has the configuration of {machine.node_name} (pool {machine.machine.pool})")


def _places(pointers: Sequence[Path], user_data: str) -> Sequence[UserDataSource] | None:
    """Where the agent reads user-data; None where stock Ignition does; raises CliError, UnknownPlatform."""
    held = [
        _is_pointer(path) for path in pointers
    ]  # every one: a file of somebody else's beside the pointer refuses the boot
    if not any(held):
        return None
    if user_data.startswith("/"):
        return (FilePlace(Path(user_data)),)
    return places_of(platform_of(_command_line()) if user_data == "auto" else user_data)


def _is_pointer(path: Path) -> bool:
    """Whether the pointer is there; raises CliError for anything else in its place.

    Fedora CoreOS and its kin copy a file of the boot partition, which is the host's, to a place where Ignition looks first.
    """
    try:
        with path.open("rb") as file:
            held = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):  # Ignition finds nothing there either
        return False
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", "Build the image again.", Exit.MISSING) from error
    if not is_image_pointer(held):
        raise CliError(
            f"this machine gets no configuration (pointer-changed): {path} is not the pointer to the agent",
            "Let nothing write to Ignition's system config directories: fastness machine image DIR --check-only.", Exit.NO,
        )  # fmt: skip
    return True


def _command_line() -> str:
    return Path("/proc/cmdline").read_text(encoding="ascii", errors="replace")


def _remember_doors(state: Path, booted: BootedConfig) -> None:
    """Keep where the machine proves itself and fetches from now on beside its key; `agent attest` and `agent run` read it."""
    doors = booted.machine.doors
    if doors is None:
        return
    try:
        write_secret(state / BROKER, SecretBytes(doors.broker.encode()))
        if doors.gate:
            write_secret(state / GATE, SecretBytes(doors.gate.encode()))
    except OSError as error:
        # The machine has its configuration; that it cannot stay attested is told, and seen by the cluster.
        tell(f"{state / BROKER} cannot be written ({error.strerror}): agent attest will need --broker")


async def _boot(
    trust: ImageTrust, hardware: Hardware, places: Sequence[UserDataSource] | None, port: int,
    volumes: tuple[Mapping[str, Path], Path],
) -> BootedConfig:  # fmt: skip
    attester = await attester_of(hardware, first_boot=True)
    make = volumes_maker(attester, trust, hardware, *volumes)
    patience = RetryBudget(SystemClock(), SystemEntropy(), math.inf, tell=once_each(tell))

    async def read(accept: str) -> BootRequest:
        return await ask_of_host(places or (), attester, accept, patience, tell)

    async with Forwarder(port, read=None if places is None else read) as forwarder:
        tell(f"waiting for Ignition on 127.0.0.1:{forwarder.port}; this machine proves itself by its {attester.tee}")
        tell_ready(os.environ)
        booted = await forwarder.run(lambda ask: boot_once(attester, ask, trust, patience, make))
    _remember_doors(hardware.state, booted)
    try:
        await attester.seal()
    except DriverError as error:
        tell(f"{hardware.state} is not authenticated ({error.message}): agent attest will refuse it")
    return booted
