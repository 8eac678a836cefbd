"""`fastness witness`: watch over the record of a cluster that somebody else runs.

    fastness witness key --state DIR --name witness.example/w1        the key, for those who verify and for the cluster
    fastness witness run --state DIR --log KEY [--listen HOST:PORT]   KEY is what `fastness audit key` printed there

A witness belongs on another machine, with another owner, than the cluster: it is asked about each checkpoint of the record and
cosigns those that continue what it saw before. Any witness of C2SP tlog-witness will do in its place.
"""

from __future__ import annotations

import asyncio
import re
import signal
import ssl
from pathlib import Path

import click

from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.crypto.notes import NoteVerifier
from fastness.formats.words import counted
from fastness.http.opening import Listening
from fastness.observe import logs
from fastness.record.door.witness_server import witness_server
from fastness.record.live.witness_memory import KEY, witness_key
from fastness.runtime.clock import SystemClock, SystemEntropy

PORT = 22627
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9./:_-]{0,127}")
_STATE = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("witness"),
    show_default=True,
    help="Directory of the witness: its key, and what it saw.",
)
_NAMED = click.option(
    "--name", default="", help="Name of the witness, such as witness.example/w1; needed once, when its key is made."
)


@click.group()
def witness() -> None:
    """Cosign the records of other clusters, so that none can be rewritten."""


@witness.command()
@_STATE
@_NAMED
def key(state: Path, name: str) -> None:
    """Print the public key of this witness; it is made at the first use."""
    with reported_errors():
        click.echo(str(witness_key(state, _named(state, name), SystemEntropy()).verifier))


@witness.command()
@_STATE
@_NAMED
@click.option(
    "--log", "keys", multiple=True, required=True, help="Key of a log, out of `fastness audit key`; repeatable."
)
@click.option("--listen", default=f"127.0.0.1:{PORT}", show_default=True, help="Address to listen on, HOST:PORT.")
@click.option(
    "--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Certificate chain, for HTTPS."
)
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Private key, for HTTPS.")
def run(
    state: Path, name: str, keys: tuple[str, ...], listen: str, tls_cert: Path | None, tls_key: Path | None
) -> None:
    """Answer `POST /add-checkpoint` until Ctrl-C."""
    if (tls_cert is None) != (tls_key is None):
        raise CliError("--tls-cert and --tls-key belong together", "Give both for HTTPS, or neither.", Exit.USAGE)
    logs.configure(level="info")
    with reported_errors():
        verifiers = [NoteVerifier.parse(line) for text in keys for line in text.split() or [text]]
        tls = _tls(tls_cert, tls_key) if tls_cert and tls_key else None
        asyncio.run(_run(state, _named(state, name), verifiers, _address(listen), tls))


async def _run(
    state: Path, name: str, verifiers: list[NoteVerifier], listening: Listening, tls: ssl.SSLContext | None
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with witness_server(state, name, verifiers, SystemClock(), SystemEntropy(), listening, tls=tls) as server:
        scheme = "https" if tls else "http"
        tell(
            f"{server.key.name} witnesses {counted(len(verifiers), 'log')} on {scheme}://{listening.host}:{server.port}"
        )
        await stop.wait()


def _named(state: Path, name: str) -> str:
    """The name to make a key under; one that exists has its own."""
    if name and not _NAME.fullmatch(name):
        raise CliError(
            f"{name!r} cannot name a witness", "Use letters, digits and ./:_-, such as witness.example/w1.", Exit.USAGE
        )
    if not name and not (state / KEY).exists():
        raise CliError(
            "the witness has no key yet, and a key needs a name", "Give --name, such as witness.example/w1.", Exit.USAGE
        )
    return name


def _address(text: str) -> Listening:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise CliError(f"--listen {text!r} is not an address", "Give HOST:PORT, such as 127.0.0.1:22627.", Exit.USAGE)
    return Listening(host.strip("[]"), int(port))


def _tls(certificate: Path, key_file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # a log of somebody else's may ask
    try:
        context.load_cert_chain(certificate, key_file)
    except ssl.SSLError as error:
        raise CliError(
            f"{certificate} and {key_file} are not a certificate and its key: {error.reason or error}",
            "Give PEM files: the chain, the server's own certificate first, and its key.",
            Exit.USAGE,
        ) from error
    return context
