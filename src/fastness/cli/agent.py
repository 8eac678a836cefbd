"""`fastness agent`: the part of Fastness that runs on a machine.

`agent run` brings this machine where its node's desired config says and keeps it there. With `--root` it works on a directory
that stands for a machine: units become links, the operating system is a record, and a reboot starts the agent anew.

`agent boot` runs before Ignition, in the initial file system: it proves what was booted and hands Ignition the configuration.
`agent attest` runs after it, as long as the machine does: it proves the same again at the interval that the cluster asks for.
`agent join` runs before the kubelet starts: it proves the machine and gets the token that it joins with.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fastness.cli.agentkata import kata
from fastness.cli.errors import CliError
from fastness.cli.exits import Exit
from fastness.cli.output import tell

if TYPE_CHECKING:
    from fastness.agent.attester import Attester
    from fastness.agent.boot import BootedConfig
    from fastness.agent.imagetrust import ImageTrust
    from fastness.agent.ports import OperatingSystem, Watcher
    from fastness.agent.settings import Settings
    from fastness.cluster.port import Cluster
    from fastness.domain.workloads.features.found import Features

REBOOT_SECONDS = 1.0
BROKER = "broker"
MAX_URL = 512
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works: this machine, or a directory and what is kept beside it."""

    root: Path | None
    state: Path
    system: str
    ostree_name: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """What vouches for this machine, how it is reached, and where the machine's key is kept."""

    tee: str
    tcti: str
    state: Path
    event_log: Path


_TEE = click.option(
    "--tee", type=click.Choice(["auto", "tpm", "snp", "tdx"]), default="auto", show_default=True,
    help="What vouches for this machine; auto takes the processor's reports where the kernel offers them, else the TPM.",
)  # fmt: skip
_TPM = click.option(
    "--tpm", "tcti", default="device:/dev/tpmrm0", show_default=True,
    help="The TPM, as tpm2-tools name it: device:PATH, or swtpm:path=SOCKET.",
)  # fmt: skip
_STATE = click.option(
    "--state", type=click.Path(path_type=Path), default=Path("/run/fastness/identity"), show_default=True,
    help="Where the key is kept that this machine enrols with.",
)  # fmt: skip
_EVENT_LOG = click.option(
    "--event-log", type=click.Path(path_type=Path), default=Path("/sys/kernel/security/tpm0/binary_bios_measurements"),
    show_default=True, help="The TPM's event log of this boot, as the kernel keeps it.",
)  # fmt: skip


def _hardware(function: F) -> F:
    """The options that name what vouches for this machine."""
    for option in (_EVENT_LOG, _STATE, _TPM, _TEE):
        function = option(function)
    return function


@click.group()
def agent() -> None:
    """Run on a machine and keep it where its config says."""


agent.add_command(kata)


@agent.command("run")
@click.option("--node", default="", help="Name of this machine's Node; default: the host name.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=None,
    help="A directory that stands for the root of a machine. Default: this machine.",
)  # fmt: skip
@click.option(
    "--state", type=click.Path(path_type=Path), default=None,
    help="With --root: where journal and originals are kept. Default: beside the root, with .state added to its name.",
)  # fmt: skip
@click.option(
    "--os", "system", type=click.Choice(["none", "ostree"]), default="none", show_default=True,
    help="What deploys the operating system of this machine.",
)  # fmt: skip
@click.option("--ostree-name", default="default", show_default=True, help="Name of the ostree deployments.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None, help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context in the kubeconfig.")
@click.option("--fast", is_flag=True, help="Short waiting times, for simulations.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def run(
    node: str, root: Path | None, state: Path | None, system: str, ostree_name: str, kubeconfig: Path | None,
    context: str, fast: bool, log_level: str,
) -> None:  # fmt: skip
    """Follow the desired config of this machine's node until stopped."""
    from fastness.agent.settings import FAST, Settings
    from fastness.observe import logs

    logs.configure(level=log_level)
    if root is None and os.geteuid() != 0:
        raise CliError("the agent of a machine must be root", "Use --root DIR for a directory.", Exit.MISSING)
    name = node or socket.gethostname()
    kept = state or (root.with_name(f"{root.name}.state") if root else Path())
    with _told():
        place = Place(root, kept, system, ostree_name)
        asyncio.run(_run(name, place, kubeconfig, context, FAST if fast else Settings()))


@agent.command("features")
@click.option("--node", default="", help="Name of this machine's Node; default: the host name.")
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="The machine's root."
)
@click.option(
    "--proc-root", type=click.Path(path_type=Path), default=None, help="Where /proc is. Default: below the root."
)
@click.option(
    "--sysfs-root", type=click.Path(path_type=Path), default=None, help="Where /sys is. Default: below the root."
)
@click.option("--print", "only_print", is_flag=True, help="Print the NodeFeature and write nothing.")
@click.option("--once", is_flag=True, help="Report once and end.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None, help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context in the kubeconfig.")
def features(
    node: str, root: Path, proc_root: Path | None, sysfs_root: Path | None, only_print: bool, once: bool,
    kubeconfig: Path | None, context: str,
) -> None:  # fmt: skip
    """Find out what this machine can do and tell the cluster, again every minute."""
    from fastness.agent.features import node_feature
    from fastness.cli.output import show_json
    from fastness.drivers.features import discover
    from fastness.drivers.hosttree import Directory

    tree, name = Directory(root, proc_root, sysfs_root), node or socket.gethostname()
    if only_print:
        show_json(node_feature(name, discover(tree)))
        return
    with _told(), suppress(KeyboardInterrupt):
        asyncio.run(_report(name, lambda: discover(tree), once, kubeconfig, context))


async def _report(node: str, look: Callable[[], Features], once: bool, kubeconfig: Path | None, context: str) -> None:
    from fastness.agent.features import keep_reporting, node_feature, report
    from fastness.cluster.clock import SystemClock
    from fastness.cluster.kube import Surroundings, connect, find

    async with connect(find(Surroundings(os.environ, Path.home()), kubeconfig=kubeconfig, context=context)) as cluster:
        if once:
            written = await report(cluster, node_feature(node, look()))
            tell(f"features of {node}: {'written' if written else 'unchanged'}")
        else:
            await keep_reporting(cluster, node, look, SystemClock())


@agent.command("boot")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA and the keys that sign configurations.",
)  # fmt: skip
@_hardware
@click.option("--port", type=click.IntRange(0, 65535), default=22625, show_default=True, help="Port on 127.0.0.1.")
def boot(trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, port: int) -> None:
    """Prove this machine and give Ignition its configuration, once."""
    from fastness.agent.boot import BootRefused
    from fastness.agent.imagetrust import ImageTrust

    with _told():
        trust = ImageTrust.load(trusted)
        try:
            machine = asyncio.run(_boot(trust, Hardware(tee, tcti, state, event_log), port))
        except BootRefused as refused:
            raise CliError(
                f"this machine gets no configuration ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        except OSError as error:
            raise CliError(
                f"port {port} on 127.0.0.1: {error.strerror}", "Is another agent running?", Exit.MISSING
            ) from error
        _remember_broker(state, machine)
    tell(f"Ignition has the configuration of {machine.node_name} (pool {machine.machine.pool})")


def _remember_broker(state: Path, booted: BootedConfig) -> None:
    """Keep where the machine proves itself from now on beside its key; `agent attest` reads it."""
    from fastness.agent.join import write_secret
    from fastness.crypto.secret import SecretBytes

    if booted.machine.doors is None:
        return
    try:
        write_secret(state / BROKER, SecretBytes(booted.machine.doors.broker.encode()))
    except OSError as error:
        # The machine has its configuration; that it cannot stay attested is told, and seen by the cluster.
        tell(f"{state / BROKER} cannot be written ({error.strerror}): agent attest will need --broker")


def _known_broker(named: str, state: Path) -> str:
    """The broker that was named, or the one that this machine booted with; raises CliError."""
    from fastness.agent.imagetrust import is_origin

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


@agent.command("attest")
@click.option(
    "--broker", default="", help="URL of the key broker. Default: the one that enrolment told this machine at boot."
)
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@_hardware
def attest(broker: str, trusted: Path, tee: str, tcti: str, state: Path, event_log: Path) -> None:
    """Prove this machine again and again, so that it stays attested; until stopped."""
    from fastness.agent.imagetrust import ImageTrust
    from fastness.observe import logs

    logs.configure(level="info")
    with _told(), suppress(KeyboardInterrupt):
        place = _known_broker(broker, state)
        asyncio.run(_attest(place, ImageTrust.load(trusted), Hardware(tee, tcti, state, event_log)))


@agent.command("join")
@click.option("--broker", required=True, help="URL of the key broker, as enrolment told it.")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@_hardware
@click.option(
    "--key", "key_file", type=click.Path(path_type=Path), default=Path("/var/lib/kubelet/pki/kubelet-client.key.tmp"),
    show_default=True, help="Key of the kubelet, made if there is none; the kubelet looks for it there.",
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
    from fastness.agent.boot import BootRefused
    from fastness.agent.imagetrust import ImageTrust

    with _told():
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
    from fastness.agent.enrol import Patience
    from fastness.agent.join import prepare_join, write_secret
    from fastness.cluster.clock import SystemClock, SystemEntropy
    from fastness.crypto.secret import SecretBytes

    key_file, token_file = files
    patience = Patience(SystemClock(), SystemEntropy(), wait)
    prepared = await prepare_join(broker, await _attester(hardware), trust, key_file, patience)
    write_secret(token_file, prepared.token)
    write_secret(token_file.with_name("node-name"), SecretBytes(prepared.node_name.encode()))
    return prepared.node_name


async def _attest(broker: str, trust: ImageTrust, hardware: Hardware) -> None:
    from fastness.agent.reattest import Staying
    from fastness.cluster.clock import SystemClock, SystemEntropy

    attester = await _attester(hardware)
    tell(f"this machine proves itself by its {attester.tee} to {broker}")
    await Staying(
        attester, lambda: broker, lambda: trust.tls, SystemClock(), SystemEntropy(), name=socket.gethostname()
    ).run()


async def _boot(trust: ImageTrust, hardware: Hardware, port: int) -> BootedConfig:
    import math

    from fastness.agent.boot import boot_once
    from fastness.agent.enrol import Patience
    from fastness.agent.forwarder import Forwarder
    from fastness.cluster.clock import SystemClock, SystemEntropy
    from fastness.drivers.notify import tell_ready

    attester = await _attester(hardware)
    patience = Patience(SystemClock(), SystemEntropy(), math.inf)
    async with Forwarder(port) as forwarder:
        tell(f"waiting for Ignition on 127.0.0.1:{forwarder.port}; this machine proves itself by its {attester.tee}")
        tell_ready(os.environ)
        return await forwarder.run(lambda ask: boot_once(attester, ask, trust, patience))


async def _attester(hardware: Hardware) -> Attester:
    """What speaks for the hardware of this machine; raises DriverError."""
    from fastness.cluster.clock import SystemEntropy
    from fastness.drivers.configfs_tsm import TsmAttester, TsmReports
    from fastness.drivers.errors import ReportFailure
    from fastness.drivers.tpm import TpmAttester, TpmTools

    reports = TsmReports()
    if hardware.tee in ("snp", "tdx"):
        return TsmAttester(reports, hardware.state, SystemEntropy(), hardware.tee)
    if hardware.tee == "auto" and reports.offered:
        try:
            return await TsmAttester.found(reports, hardware.state, SystemEntropy())
        except ReportFailure as error:
            tell(f"{error.message}; taking the TPM")
    return TpmAttester(TpmTools(hardware.tcti, event_log=hardware.event_log), hardware.state)


async def _run(node: str, place: Place, kubeconfig: Path | None, context: str, settings: Settings) -> None:
    from fastness.cluster.kube import Surroundings, connect, find

    around = Surroundings(os.environ, Path.home())
    async with connect(find(around, kubeconfig=kubeconfig, context=context)) as cluster:
        tell(f"agent of node {node} on {place.root or 'this machine'}")
        work = asyncio.ensure_future(_live(cluster, node, place, settings))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            await work


async def _live(cluster: Cluster, node: str, place: Place, settings: Settings) -> None:
    """One agent; for a directory, one after the other, boot by boot."""
    from fastness.agent.agent import Agent
    from fastness.agent.hosts import DirectoryMachine, real_host
    from fastness.cluster.clock import SystemClock, SystemEntropy

    clock, entropy = SystemClock(), SystemEntropy()
    if place.root is None:
        host = real_host(_watcher(Path("/")), _system(place))
        await Agent(cluster, host, node, clock, entropy, settings).run()
        await asyncio.Event().wait()  # the machine goes down now; ending earlier would start a new agent
        return
    machine = DirectoryMachine(place.state, _watcher(place.root), entropy.uid, place.root)
    while True:
        await Agent(cluster, machine.host, node, clock, entropy, settings).run()
        await clock.sleep(REBOOT_SECONDS)
        machine.reboot()


def _watcher(root: Path) -> Watcher:
    from fastness.cluster.clock import SystemClock
    from fastness.drivers.inotify import Inotify, InotifyWatcher, NoInotify
    from fastness.drivers.polling import PollingWatcher

    try:
        return InotifyWatcher(Inotify(), root)
    except NoInotify as error:
        tell(f"{error.message}; looking for drift at an interval")
        return PollingWatcher(root, SystemClock())


def _system(place: Place) -> OperatingSystem:
    from fastness.agent.hosts import PlainSystem
    from fastness.drivers.ostree import OstreeOs

    return OstreeOs(Path("/sysroot"), place.ostree_name) if place.system == "ostree" else PlainSystem()


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the agent's layers as sentences; its wheel has none of the server's layers."""
    from fastness.agent.errors import AgentError
    from fastness.cluster.errors import ApiError
    from fastness.cluster.kube.errors import ConfigError
    from fastness.drivers.errors import DriverError

    try:
        yield
    except ApiError as error:
        raise CliError(error.message, error.hint, Exit.CLUSTER) from error
    except (AgentError, DriverError, ConfigError) as error:
        raise CliError(str(error), getattr(error, "hint", ""), Exit.MISSING) from error
