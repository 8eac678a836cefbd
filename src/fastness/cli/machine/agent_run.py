"""`fastness agent run`: bring this machine where its node's desired config says, and keep it there.

With `--root` it works on a directory that stands for a machine: units become links, the operating system is a record, and a
reboot starts the agent anew.

Where configs come from is imported once it is known: an agent that neither proves itself nor shows a certificate needs no
cryptography of its own, a fifth of its memory.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from fastness.agent.apply.cluster import RenderedConfigs
from fastness.agent.apply.hosts import DirectoryMachine, deployed_by, real_host
from fastness.agent.apply.moved_state import HOME
from fastness.agent.apply.node import FAST, Agent, Settings
from fastness.agent.apply.ports import Watcher
from fastness.agent.apply.ruled_os import RuledOs, ruled_choice
from fastness.agent.host.file_changes import Inotify, InotifyWatcher, NoInotify, PollingWatcher
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.own_process import only_one
from fastness.cli.cluster import connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.machine.agent_hardware import EVENT_LOG, TEE, TPM, Hardware
from fastness.cli.output import tell
from fastness.kube.port import Cluster
from fastness.observe import logs
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy

REBOOT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AgentTarget:
    """Where an agent works: this machine, or a directory and what is kept beside it."""

    root: Path | None
    state: Path
    system: str
    ostree_name: str


class Source(NamedTuple):
    """How a machine comes by its configs; `prove` shows anew what it booted, where it can."""

    configs: RenderedConfigs | None = None
    prove: Callable[[], Awaitable[None]] | None = None


Sources = Callable[[Clock, Entropy], Awaitable[Source]]


@click.command("run")
@click.option(
    "--node",
    default="",
    help="Name of this machine's Node; default: as the kubeconfig's certificate says, else the host name.",
)
@click.option(
    "--root", type=click.Path(path_type=Path), default=None,
    help="A directory that stands for the root of a machine. Default: this machine.",
)  # fmt: skip
@click.option(
    "--state", type=click.Path(path_type=Path), default=None,
    help="With --root: where journal and originals are kept. Default: beside the root, with .state added to its name.",
)  # fmt: skip
@click.option(
    "--os", "system", default="auto", show_default=True,
    type=click.Choice(["auto", "prefer-bootc", "bootc", "rpm-ostree", "composefs", "ostree", "none"]),
    help="What deploys the operating system of this machine; auto asks bootc, rpm-ostree and cfsctl, prefer-bootc takes bootc "
    "where it and rpm-ostree could, none is a package host.",
)  # fmt: skip
@click.option("--ostree-name", default="default", show_default=True, help="Name of the ostree deployments.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), default=None, help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context in the kubeconfig.")
@click.option(
    "--identity", type=click.Path(path_type=Path), default=None,
    help="Where this machine kept its key and its doors at boot. With it, configs come from the doors, attested and signed; "
    "without it from --config-server, or from the API, which gives none in a pool that enforces attestation.",
)  # fmt: skip
@click.option(
    "--config-server", "config_server", default="",
    help="URL of the config server, for nodes that never attest: configs come from there, for the certificate in the kubeconfig. "
    "With --identity it is not asked.",
)  # fmt: skip
@click.option("--broker", default="", help="With --identity: URL of the key broker. Default: as enrolment told it.")
@click.option("--gate", default="", help="With --identity: URL of the gate. Default: as enrolment told it.")
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="With --identity or --config-server: whom this machine believes, doors and signatures of configs.",
)  # fmt: skip
@TEE
@TPM
@EVENT_LOG
@click.option("--fast", is_flag=True, help="Short waiting times, for simulations.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def run(
    node: str, root: Path | None, state: Path | None, system: str, ostree_name: str, kubeconfig: Path | None,
    context: str, identity: Path | None, config_server: str, broker: str, gate: str, trusted: Path,
    tee: str, tcti: str, event_log: Path, fast: bool, log_level: str,
) -> None:  # fmt: skip
    """Follow the desired config of this machine's node until stopped."""
    logs.configure(level=log_level)
    if root is None and os.geteuid() != 0:
        raise CliError(
            "the agent must run as root to change this machine", "Use --root DIR for a directory.", Exit.MISSING
        )
    target_state = state or (root.with_name(f"{root.name}.state") if root else Path())
    # Before anything else: a second agent that proved itself first would share the TPM with the one at work, and one that is slow
    # at it would find the lock free and take the machine over.
    with reported_agent_errors(), only_one(HOME if root is None else target_state / "agent"):
        # Enrolment names the nodes of attested machines: their host names are the host's word.
        name = node or _node_of(kubeconfig, context) or socket.gethostname()
        place = AgentTarget(root, target_state, system, ostree_name)
        source: Sources = _api
        if identity:
            source = partial(_doors, Hardware(tee, tcti, identity, event_log), trusted, (broker, gate))
        elif config_server:
            source = partial(_config_server, config_server, trusted, kubeconfig, context)
        asyncio.run(_run(name, place, kubeconfig, context, FAST if fast else Settings(), source))


def _node_of(kubeconfig: Path | None, context: str) -> str:
    from fastness.cli.machine.agent_node import node_of

    return node_of(kubeconfig, context)


async def _api(_clock: Clock, _entropy: Entropy) -> Source:
    """Configs as the API has them."""
    return Source()


async def _doors(hardware: Hardware, trusted: Path, doors: tuple[str, str], clock: Clock, entropy: Entropy) -> Source:
    """Configs for a proof, from broker and gate if they are named; raises CliError, BadTrust, DriverError."""
    from fastness.cli.machine.agent_attest import attested_configs

    configs = await attested_configs(hardware, trusted, doors, clock, entropy)
    return Source(configs, configs.prove)


async def _config_server(
    url: str, trusted: Path, kubeconfig: Path | None, context: str, clock: Clock, entropy: Entropy
) -> Source:
    """Configs for the certificate of a node; raises CliError, BadConfig, BadTrust."""
    from fastness.cli.machine.agent_node import Shown

    return Source(Shown(url, trusted, kubeconfig, context).configs(clock, entropy))


async def _run(
    node: str,
    place: AgentTarget,
    kubeconfig: Path | None,
    context: str,
    settings: Settings,
    source: Sources,
) -> None:
    async with connected(kubeconfig, context) as cluster:
        tell(f"agent of node {node} on {place.root or 'this machine'}")
        work = asyncio.ensure_future(_live(cluster, node, place, settings, source))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            await work


async def _live(cluster: Cluster, node: str, place: AgentTarget, settings: Settings, source: Sources) -> None:
    """One agent; for a directory, one after the other, boot by boot."""
    clock, entropy = SystemClock(), SystemEntropy()
    configs, prove = await source(clock, entropy)
    if place.root is None:
        system = RuledOs(
            partial(ruled_choice, place.system),
            lambda driver: deployed_by(driver, RootedFiles(Path("/")), place.ostree_name),
        )
        tell(f"operating system by {system.choice}")
        host = real_host(_watcher(Path("/")), system)
        agent = Agent(cluster, host, node, clock, entropy, settings, configs=configs, prove=prove, driver=system.follow)
        await agent.run()
        await asyncio.Event().wait()  # the machine goes down now; ending earlier would start a new agent
        return
    machine = DirectoryMachine(place.state, _watcher(place.root), entropy.uid, place.root)
    while True:
        await Agent(cluster, machine.host, node, clock, entropy, settings, configs=configs, prove=prove).run()
        await clock.sleep(REBOOT_SECONDS)
        machine.reboot()


def _watcher(root: Path) -> Watcher:
    try:
        return InotifyWatcher(Inotify(), root)
    except NoInotify as error:
        tell(f"{error.message}; looking for drift at an interval")
        return PollingWatcher(root, SystemClock())
