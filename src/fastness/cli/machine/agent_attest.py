"""`fastness agent attest` and `join`: a machine that goes on proving what it booted.

`attest` runs as long as the machine does: it proves the same again at the interval that the cluster asks for. `join` runs before
the kubelet starts and gets the token that it joins with. `attested_configs` is how `agent run` fetches configs from the doors.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path

import click

from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.configs import AttestedConfigs
from fastness.agent.boot.enrol import Doors, RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.join import prepare_join, write_secret
from fastness.agent.boot.node_certificates import CLIENT_FILE, NodeCertificates, joined_node
from fastness.agent.boot.note_device import follow, read_device
from fastness.agent.boot.reattest import Staying
from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.boot.whereabouts import Whereabouts
from fastness.cli.cluster import connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.machine.agent import reported_agent_errors
from fastness.cli.machine.agent_attester import NOTE_OPTION, attester_of
from fastness.cli.machine.agent_hardware import BROKER, GATE, Hardware, hardware_options
from fastness.cli.output import tell
from fastness.crypto.secret import SecretBytes
from fastness.kube.port import Cluster
from fastness.observe import logs
from fastness.protocol.door import is_origin
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy

MAX_URL = 512


@click.command("attest")
@click.option(
    "--broker", default="", help="URL of the key broker. Default: the one that enrolment told this machine at boot."
)
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@hardware_options
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), default=None,
    help="Kubeconfig of the kubelet. With it the certificates of the node are renewed, with keys that the proofs name.",
)  # fmt: skip
@click.option(
    "--pki", type=click.Path(path_type=Path), default=Path("/var/lib/kubelet/pki"), show_default=True,
    help="With --kubeconfig: where the kubelet has its certificates.",
)  # fmt: skip
@NOTE_OPTION
def attest(
    broker: str, trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, kubeconfig: Path | None, pki: Path,
    note: Path,
) -> None:  # fmt: skip
    """Prove this machine again and again, so that it stays attested and its node keeps its certificates; until stopped."""
    logs.configure(level="info")
    with reported_agent_errors(), suppress(KeyboardInterrupt):
        place = known_broker(broker, state)
        node = (kubeconfig, pki) if kubeconfig is not None else None
        asyncio.run(_attest(place, ImageTrust.load(trusted), Hardware(tee, tcti, state, event_log), node, note))


@click.command("join")
@click.option(
    "--broker", default="", help="URL of the key broker. Default: the one that enrolment told this machine at boot."
)
@click.option(
    "--trust", "trusted", type=click.Path(path_type=Path), default=Path("/usr/lib/fastness/trust.json"), show_default=True,
    help="Whom this image believes: the doors' CA.",
)  # fmt: skip
@hardware_options
@click.option(
    "--unless-joined", is_flag=True,
    help="Do nothing where a certificate of the node lies beside the key and counts for some minutes still.",
)  # fmt: skip
@click.option(
    "--kubelet-env", type=click.Path(path_type=Path), default=None,
    help="Write the node's name there as KUBELET_NODE_NAME, for the unit of the kubelet.",
)  # fmt: skip
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
    broker: str, trusted: Path, tee: str, tcti: str, state: Path, event_log: Path, unless_joined: bool,
    kubelet_env: Path | None, key_file: Path, token_file: Path, wait: float,
) -> None:  # fmt: skip
    """Prove this machine and get the token that its kubelet joins with."""
    joined = joined_node(key_file.with_name(CLIENT_FILE), SystemClock().now()) if unless_joined else ""
    if joined and (kubelet_env is None or kubelet_env.exists()):
        tell(f"node {joined} has a certificate that counts: nothing to ask for")
        return
    with reported_agent_errors():
        place, trust = known_broker(broker, state), ImageTrust.load(trusted)
        try:
            node = asyncio.run(_join(place, trust, Hardware(tee, tcti, state, event_log), (key_file, token_file), wait))
            if kubelet_env is not None:
                write_secret(kubelet_env, SecretBytes(f"KUBELET_NODE_NAME={node}\n".encode()))
        except BootRefused as refused:
            raise CliError(
                f"this machine may not join ({refused.reason}): {refused.message}", refused.hint, Exit.NO
            ) from refused
        except OSError as error:
            raise CliError(f"{token_file}: {error.strerror}", "Run it as root.", Exit.MISSING) from error
    tell(f"{token_file} holds the bootstrap token of node {node}, for the key in {key_file}")


async def _join(broker: str, trust: ImageTrust, hardware: Hardware, files: tuple[Path, Path], wait: float) -> str:
    key_file, token_file = files
    patience = RetryBudget(SystemClock(), SystemEntropy(), wait)
    prepared = await prepare_join(broker, await attester_of(hardware), trust, key_file, patience)
    write_secret(token_file, prepared.token)
    write_secret(token_file.with_name("node-name"), SecretBytes(prepared.node_name.encode()))
    return prepared.node_name


async def _attest(
    broker: str, trust: ImageTrust, hardware: Hardware, node: tuple[Path, Path] | None, note: Path
) -> None:  # fmt: skip
    attester, clock, entropy = await attester_of(hardware), SystemClock(), SystemEntropy()
    certificates = _certificates(*node, clock, entropy) if node else None
    where = Whereabouts(broker, _server(note), trust, tell)
    tell(f"this machine proves itself by its {attester.tee} to {broker}")
    await Staying(
        attester,
        where,
        lambda: trust.tls,
        clock,
        entropy,
        name=socket.gethostname(),
        certificates=certificates,
        proved=partial(_note_broker, note),
        lost=where.look,
    ).run()


def _server(note: Path) -> str:
    """The enrolment door that a note names; empty for none."""
    try:
        return read_device(note).server if note.exists() else ""
    except DiskRefused:
        return ""


def _note_broker(note: Path, machine: str, broker: str) -> None:
    """Keep where the broker is for the next boot, on a machine that has a note; raises DiskRefused."""
    if note.exists() and follow(note, machine, broker):
        tell(f"{note} names {broker} from now on: the next boot asks there for the keys of this machine's volumes")


def _certificates(kubeconfig: Path, pki: Path, clock: Clock, entropy: Entropy) -> NodeCertificates:
    """The certificates of the node; the API is opened anew each time, with the credential that lies there then."""

    def api() -> AbstractAsyncContextManager[Cluster]:
        return connected(kubeconfig)

    return NodeCertificates(pki, api, clock, entropy)


async def attested_configs(
    hardware: Hardware, trusted: Path, named: tuple[str, str], clock: Clock, entropy: Entropy
) -> AttestedConfigs:
    """Rendered configs from broker and gate, by URL or as enrolment told this machine; raises CliError, BadTrust, DriverError."""
    broker, gate = known_broker(named[0], hardware.state), named[1]
    with suppress(OSError):
        gate = gate or (hardware.state / GATE).read_bytes()[:MAX_URL].decode("ascii", "replace").strip()
    if gate and not is_origin(gate):
        raise CliError(f"{gate!r} is not the address of a gate", "It is https://host:port, without a path.", Exit.USAGE)
    doors, trust = Doors(broker, gate, "Gate" if gate else "Broker"), ImageTrust.load(trusted)
    return AttestedConfigs(await attester_of(hardware), lambda: doors, lambda: trust, clock, entropy)


def known_broker(named: str, state: Path) -> str:
    """The broker that was named, or the one that this machine booted with; raises CliError."""
    place = state / BROKER
    try:
        address = named or place.read_bytes()[:MAX_URL].decode("ascii", "replace").strip()
    except OSError as error:
        raise CliError(
            f"{place}: {error.strerror}",
            "Give --broker URL, or --state where the agent kept its key at boot.",
            Exit.MISSING,
        ) from error
    if not is_origin(address):
        raise CliError(
            f"{address!r} is not the address of a broker", "It is https://host:port, without a path.", Exit.USAGE
        )
    return address
