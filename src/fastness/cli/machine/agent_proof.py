"""`fastness agent boot|attest|join`: a machine that proves what it booted, with the hardware that vouches for it.

`boot` runs before Ignition, in the initial file system, and hands Ignition the configuration. `keep-identity` puts the key that
it made onto the disk (`agent.host.tee.identity`). `attest` runs after it, as long as
the machine does: it proves the same again at the interval that the cluster asks for. `join` runs before the kubelet starts and
gets the token that it joins with. All three name their hardware by the same options; `_attester` chooses what speaks for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastness.cli.errors import CliError
from fastness.cli.exits import Exit
from fastness.cli.machine.agent_errors import agent_told
from fastness.cli.output import tell

if TYPE_CHECKING:
    from fastness.agent.boot.boot import BootedConfig, BootRequest
    from fastness.agent.boot.configs import AttestedConfigs
    from fastness.agent.boot.image_trust import ImageTrust
    from fastness.agent.boot.node_certificates import NodeCertificates
    from fastness.agent.host.tee.configfs_tsm import TsmAttester
    from fastness.agent.host.tee.tpm import TpmAttester
    from fastness.agent.host.user_data import UserDataSource
    from fastness.kube.port import Cluster
    from fastness.runtime.clock import Clock, Entropy

BROKER, GATE = "broker", "gate"
# In the order in which Ignition looks; the pointer of an image is the last one (`protocol.pointer`).
POINTERS = (Path("/run/ignition/user.ign"), Path("/etc/ignition/user.ign"), Path("/usr/lib/ignition/user.ign"))
MAX_URL = 512
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


def _hardware(function: F) -> F:
    """The options that name what vouches for this machine."""
    for option in (EVENT_LOG, _STATE, TPM, TEE):
        function = option(function)
    return function


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
    from fastness.agent.host.tee.identity import keep

    with agent_told():
        changed = keep(source, target)
    tell(f"{target} {'holds' if changed else 'held already'} the identity that this machine enrolled with")


@click.command("boot")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA and the keys that sign configurations.",
)  # fmt: skip
@_hardware
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
@click.option("--port", type=click.IntRange(0, 65535), default=22625, show_default=True, help="Port on 127.0.0.1.")
def boot(
    trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, pointers: tuple[Path, ...], user_data: str,
    measured: Path, port: int,
) -> None:  # fmt: skip
    """Prove this machine and give Ignition its configuration, once."""
    from fastness.agent.boot.boot import BootRefused
    from fastness.agent.boot.image_trust import ImageTrust

    with agent_told():
        trust, places = ImageTrust.load(trusted), _places(pointers, user_data)
        try:
            machine = asyncio.run(_boot(trust, Hardware(tee, tcti, state, event_log, measured), places, port))
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
    from fastness.agent.host.user_data import places_of, platform_of
    from fastness.agent.host.user_data.files import FilePlace

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
    from fastness.protocol.pointer import MAX_BYTES, is_image_pointer

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
    from fastness.agent.boot.join import write_secret
    from fastness.crypto.secret import SecretBytes

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


async def attested_configs(
    hardware: Hardware, trusted: Path, named: tuple[str, str], clock: Clock, entropy: Entropy
) -> AttestedConfigs:
    """Rendered configs from broker and gate, by URL or as enrolment told this machine; raises CliError, BadTrust, DriverError."""
    from fastness.agent.boot.configs import AttestedConfigs
    from fastness.agent.boot.enrol import Doors
    from fastness.agent.boot.image_trust import ImageTrust
    from fastness.protocol.origin import is_origin

    broker, gate = _known_broker(named[0], hardware.state), named[1]
    with suppress(OSError):
        gate = gate or (hardware.state / GATE).read_bytes()[:MAX_URL].decode("ascii", "replace").strip()
    if gate and not is_origin(gate):
        raise CliError(f"{gate!r} is no address of a gate", "It is https://host:port, without a path.", Exit.USAGE)
    doors, trust = Doors(broker, gate, "Gate" if gate else "Broker"), ImageTrust.load(trusted)
    return AttestedConfigs(await _attester(hardware), lambda: doors, lambda: trust, clock, entropy)


def _known_broker(named: str, state: Path) -> str:
    """The broker that was named, or the one that this machine booted with; raises CliError."""
    from fastness.protocol.origin import is_origin

    place = state / BROKER
    try:
        found = named or place.read_bytes()[:MAX_URL].decode("ascii", "replace").strip()
    except OSError as error:
        raise CliError(
            f"{place}: {error.strerror}",
            "Give --broker URL, or --state where the agent kept its key at boot.",
            Exit.MISSING,
        ) from error
    if not is_origin(found):
        raise CliError(f"{found!r} is no address of a broker", "It is https://host:port, without a path.", Exit.USAGE)
    return found


@click.command("attest")
@click.option(
    "--broker", default="", help="URL of the key broker. Default: the one that enrolment told this machine at boot."
)
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@_hardware
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), default=None,
    help="Kubeconfig of the kubelet. With it the certificates of the node are renewed, with keys that the proofs name.",
)  # fmt: skip
@click.option(
    "--pki", type=click.Path(path_type=Path), default=Path("/var/lib/kubelet/pki"), show_default=True,
    help="With --kubeconfig: where the kubelet has its certificates.",
)  # fmt: skip
def attest(
    broker: str, trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, kubeconfig: Path | None, pki: Path
) -> None:
    """Prove this machine again and again, so that it stays attested and its node keeps its certificates; until stopped."""
    from fastness.agent.boot.image_trust import ImageTrust
    from fastness.observe import logs

    logs.configure(level="info")
    with agent_told(), suppress(KeyboardInterrupt):
        place = _known_broker(broker, state)
        node = (kubeconfig, pki) if kubeconfig is not None else None
        asyncio.run(_attest(place, ImageTrust.load(trusted), Hardware(tee, tcti, state, event_log), node))


@click.command("join")
@click.option("--broker", required=True, help="URL of the key broker, as enrolment told it.")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@_hardware
@click.option(
    "--key", "key_file", type=click.Path(path_type=Path), default=Path("/var/lib/kubelet/pki/kubelet-client.key.tmp"),
    show_default=True, help="Key of the kubelet, made anew; the kubelet looks for it there.",
)  # fmt: skip
@click.option(
    "--token", "token_file", type=click.Path(path_type=Path), default=Path("/run/fastness/bootstrap-token"),
    show_default=True, help="Where to put the bootstrap token; the node name comes beside it, as node-name.",
)  # fmt: skip
@click.option(
    "--wait", type=click.FloatRange(min=0), default=600.0, show_default=True, help="Seconds to wait for the doors."
)
def join(
    broker: str, trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, key_file: Path, token_file: Path,
    wait: float,
) -> None:  # fmt: skip
    """Prove this machine and get the token that its kubelet joins with."""
    from fastness.agent.boot.boot import BootRefused
    from fastness.agent.boot.image_trust import ImageTrust

    with agent_told():
        trust = ImageTrust.load(trusted)
        try:
            node = asyncio.run(
                _join(broker, trust, Hardware(tee, tcti, state, event_log), (key_file, token_file), wait)
            )
        except BootRefused as refused:
            raise CliError(
                f"this machine may not join ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        except OSError as error:
            raise CliError(f"{token_file}: {error.strerror}", "Run it as root.", Exit.MISSING) from error
    tell(f"{token_file} holds the bootstrap token of node {node}, for the key in {key_file}")


async def _join(broker: str, trust: ImageTrust, hardware: Hardware, files: tuple[Path, Path], wait: float) -> str:
    from fastness.agent.boot.enrol import RetryBudget
    from fastness.agent.boot.join import prepare_join, write_secret
    from fastness.crypto.secret import SecretBytes
    from fastness.runtime.clock import SystemClock, SystemEntropy

    key_file, token_file = files
    patience = RetryBudget(SystemClock(), SystemEntropy(), wait)
    prepared = await prepare_join(broker, await _attester(hardware), trust, key_file, patience)
    write_secret(token_file, prepared.token)
    write_secret(token_file.with_name("node-name"), SecretBytes(prepared.node_name.encode()))
    return prepared.node_name


async def _attest(broker: str, trust: ImageTrust, hardware: Hardware, node: tuple[Path, Path] | None) -> None:
    from fastness.agent.boot.reattest import Staying
    from fastness.runtime.clock import SystemClock, SystemEntropy

    attester, clock, entropy = await _attester(hardware), SystemClock(), SystemEntropy()
    certificates = _certificates(*node, clock, entropy) if node else None
    tell(f"this machine proves itself by its {attester.tee} to {broker}")
    await Staying(
        attester,
        lambda: broker,
        lambda: trust.tls,
        clock,
        entropy,
        name=socket.gethostname(),
        certificates=certificates,
    ).run()


def _certificates(kubeconfig: Path, pki: Path, clock: Clock, entropy: Entropy) -> NodeCertificates:
    """The certificates of the node; the API is opened anew each time, with the credential that lies there then."""
    from fastness.agent.boot.node_certificates import NodeCertificates
    from fastness.kube.client import Surroundings, connect, find

    def api() -> AbstractAsyncContextManager[Cluster]:
        return connect(find(Surroundings(os.environ, Path.home()), kubeconfig=kubeconfig))

    return NodeCertificates(pki, api, clock, entropy)


async def _boot(
    trust: ImageTrust, hardware: Hardware, places: Sequence[UserDataSource] | None, port: int
) -> BootedConfig:
    import math

    from fastness.agent.boot.boot import boot_once
    from fastness.agent.boot.enrol import RetryBudget
    from fastness.agent.boot.forwarder import Forwarder
    from fastness.agent.boot.user_data import ask_of_host
    from fastness.agent.host.errors import DriverError
    from fastness.agent.host.own_process import tell_ready
    from fastness.runtime.clock import SystemClock, SystemEntropy

    attester = await _attester(hardware, first_boot=True)
    patience = RetryBudget(SystemClock(), SystemEntropy(), math.inf)

    async def read(accept: str) -> BootRequest:
        return await ask_of_host(places or (), attester, accept, patience, tell)

    async with Forwarder(port, read=None if places is None else read) as forwarder:
        tell(f"waiting for Ignition on 127.0.0.1:{forwarder.port}; this machine proves itself by its {attester.tee}")
        tell_ready(os.environ)
        booted = await forwarder.run(lambda ask: boot_once(attester, ask, trust, patience))
    _remember_doors(hardware.state, booted)
    try:
        await attester.seal()
    except DriverError as error:
        tell(f"{hardware.state} is not authenticated ({error.message}): agent attest will refuse it")
    return booted


async def _own_identity(attester: TpmAttester | TsmAttester, state: Path, *, first_boot: bool) -> None:
    """Refuse files that the agent did not write; on a first boot set them aside for a new key. Raises DriverError."""
    from fastness.agent.host.errors import IdentityRefused
    from fastness.agent.host.tee.identity import set_aside

    try:
        await attester.trusted()
    except IdentityRefused as error:
        if not first_boot:
            raise
        tell(f"{error.message}: it is set aside, and this machine enrols with a new key")
        set_aside(state)


async def _attester(hardware: Hardware, *, first_boot: bool = False) -> TpmAttester | TsmAttester:
    """What speaks for the hardware of this machine, with an identity that is its own; raises DriverError."""
    attester = await _speaker(hardware)
    await _own_identity(attester, hardware.state, first_boot=first_boot)
    return attester


async def _speaker(hardware: Hardware) -> TpmAttester | TsmAttester:
    from fastness.agent.host.errors import ReportFailure
    from fastness.agent.host.tee.configfs_tsm import TsmAttester, TsmReports
    from fastness.agent.host.tee.this_boot import RuntimeLog
    from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
    from fastness.runtime.clock import SystemEntropy

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
