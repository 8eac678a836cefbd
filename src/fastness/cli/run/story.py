"""What `fastness demo` does once its options are read: a plane that runs while its story is told, and after it.

Each chapter says what happens, runs the command that does it, and shows what that printed.

    machines boot and prove themselves → one is tampered with and refused → why → fixed → a config is planned and rolled out
    → a ticket thief gets nothing → the record of all of it is verified

The commands are run as a user runs them, as processes of their own, against the cluster that runs in this one. What does not come
within `PATIENCE` ends the story with a sentence that says what was missing.

Apart from the command, because it stands on every room: help, completion and a wrong option answer without loading them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
import uvloop

from fastness.app.embedded import ControlPlane, PlaneOptions, running
from fastness.app.machines import Simulated
from fastness.attestation.verdict.machine_standing import State
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.formats import json
from fastness.formats.words import counted
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, Scope, WriteOptions
from fastness.page.simulator import VirtualRow

PATIENCE: Final = 90.0
COMMAND_SECONDS: Final = 60.0
SHOWN_LINES: Final = 18
CONFIG: Final = "50-demo-motd"
MOTD: Final = "/etc/motd"
_POLL: Final = 0.2


def run_demo(options: PlaneOptions, pause: float, *, end: bool) -> None:
    """Run a control plane and tell its story, with a pause before each chapter; raises CliError."""
    with reported_errors():
        uvloop.run(_run(options, pause, end))


async def _run(options: PlaneOptions, pause: float, end: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(options) as plane:
        teller = Teller(options.state, pause)
        telling = asyncio.ensure_future(story(plane, teller))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((telling, stopping), return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                telling.result()
                if not end:
                    left_running(plane, teller)
                    await stopping
            if stop.is_set():
                tell("stopping")
        finally:
            for task in (telling, stopping):
                task.cancel()
            await asyncio.wait((telling, stopping))


class Teller:
    """Says things, runs commands, and gives a reader the time to read."""

    def __init__(self, state: Path, pause: float) -> None:
        self.state = state
        self._pause = pause

    async def chapter(self, text: str) -> None:
        """A heading, after the reader has read what came before."""
        await asyncio.sleep(self._pause)
        click.echo()
        click.secho(text, bold=True)

    def say(self, text: str) -> None:
        """A sentence."""
        click.echo(text)

    async def fastness(self, *words: str, lines: int = SHOWN_LINES) -> str:
        """Run a verb as a user would; what it printed."""
        self._show("fastness", words)
        printed = await self._run([sys.executable, "-m", "fastness.cli.main", *words], lines)
        await asyncio.sleep(self._pause / 2)
        return printed

    async def kubectl(self, program: str, *words: str) -> None:
        """Run kubectl on the cluster."""
        self._show("kubectl", words)
        await self._run([program, *words], SHOWN_LINES)

    def _show(self, program: str, words: tuple[str, ...]) -> None:
        click.secho(f"  $ {program} {' '.join(words)}", fg="cyan")

    async def _run(self, command: list[str], lines: int) -> str:
        around = {**os.environ, "KUBECONFIG": str((self.state / "kubeconfig").absolute()), "NO_COLOR": "1"}
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=around)
        try:
            out, err = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        # 1 is the answer no, and `plan` says with 2 that something reboots; anything else is a failure of the story itself.
        if process.returncode not in (0, 1, 2):
            raise CliError(
                f"`{' '.join(command[-3:])}` ended with {process.returncode}: {err.decode(errors='replace')}"
            )
        text = (out or err).decode(errors="replace")
        printed = text.splitlines()
        for line in printed[:lines]:
            click.echo(f"  {line}")
        if len(printed) > lines:
            click.echo(f"  … {counted(len(printed) - lines, 'more line')}")
        return text


async def story(plane: ControlPlane, teller: Teller) -> None:
    """The whole story; raises CliError when something that should happen does not."""
    click.secho("A confidential cluster, told in two minutes. Everything in it is simulated.", bold=True)
    await _boots(plane, teller)
    await _tampered(plane, teller)
    await _configured(plane, teller)
    await _robbed(plane, teller)
    await _recorded(teller)


async def _boots(plane: ControlPlane, teller: Teller) -> None:
    await teller.chapter(
        f"{plane.machines} machines boot. All that they were given is a ticket that lets them ask to join."
    )
    teller.say(
        "  Each enrols, proves by its TPM, SNP or TDX what it booted, and only then gets its configuration and a node."
    )
    await _until(lambda: _attested(plane, plane.machines), plane, f"{plane.machines} attested machines")
    await teller.fastness("machine", "list")


async def _tampered(plane: ControlPlane, teller: Teller) -> None:
    name, node, state = *_victim(plane), ("--state", str(teller.state))
    await teller.chapter(f"Somebody replaces the boot loader of {name} and reboots it.")
    await teller.fastness("sim", "tamper", name, "changed-boot-loader", *state)
    await _until(lambda: _standing(plane, node, State.REFUSED), plane, f"the refusal of {name}")
    teller.say(
        "  It boots, measures what it booted, and is refused: no configuration, no keys, no place in the cluster. Why?"
    )
    await teller.fastness("attest", "explain", node)
    await teller.chapter("The boot loader is put back. Nobody has to touch the machine.")
    await teller.fastness("sim", "undo", name, *state)
    await _until(lambda: _standing(plane, node, State.PROVED), plane, f"the proof of {name}")
    await teller.fastness("attest", "explain", node)


async def _configured(plane: ControlPlane, teller: Teller) -> None:
    file, text = teller.state / "demo.json", f"told at {_simulated(plane).clock.now():%H:%M:%S}"
    config = _config(text)
    await asyncio.to_thread(file.write_bytes, json.encode(config))
    await teller.chapter("A configuration for all workers. What would it do?")
    await teller.fastness("plan", "-f", str(file))
    await teller.chapter("Let it happen: node by node, only to machines that have proved themselves.")
    kubectl = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    if kubectl is not None:
        await teller.kubectl(kubectl, "apply", "-f", str(file))
    else:
        teller.say("  (kubectl is not installed: the API is asked directly)")
        await plane.server.cluster.patch(
            MACHINE_CONFIG.resource, CONFIG, config, PatchType.APPLY, "", WriteOptions("demo", force=True)
        )
    roots = [teller.state / "machines" / row.name / "root" for row in _rows(plane)]
    await _until(lambda: _written(roots, text), plane, "the configuration on every machine")
    for root in roots[:1]:
        teller.say(f"  {root}{MOTD}: {(root / MOTD.lstrip('/')).read_text().strip()}")
    teller.say(f"  … and the same on the other {len(roots) - 1}.")


async def _robbed(plane: ControlPlane, teller: Teller) -> None:
    name, state = _rows(plane)[1].name, ("--state", str(teller.state))
    await teller.chapter(f"A thief copies the ticket of {name} and tries to join from a machine of its own.")
    await teller.fastness("sim", "tamper", name, "stolen-ticket", *state)
    teller.say("  A ticket only lets a machine ask. The maker of the thief's chip is none that this cluster trusts.")
    await teller.fastness("sim", "undo", name, *state)


async def _recorded(teller: Teller) -> None:
    copy = teller.state / "demo-record"
    await teller.chapter(
        "All of it is on a record that nobody can change unseen, us included. It is copied and checked offline."
    )
    await teller.fastness("audit", "show", "--last", "6")
    await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
    await teller.fastness("audit", "export", str(copy))
    keys = (await teller.fastness("audit", "key")).split()
    await teller.fastness("audit", "verify", str(copy), *(word for key in keys for word in ("--key", key)))


def left_running(plane: ControlPlane, teller: Teller) -> None:
    """Where to go on from here."""
    click.echo()
    click.secho("That was the story. Everything is still running:", bold=True)
    click.echo(f"  page        {plane.link()}")
    click.echo(f"  kubectl     export KUBECONFIG={teller.state / 'kubeconfig'}")
    click.echo(f"  break more  fastness sim faults --state {teller.state}")
    click.echo("\nCtrl-C ends it.")


# ------------------------------------------------------------ what is waited for


async def _until(holds: Callable[[], object], plane: ControlPlane, what: str) -> None:
    for _ in range(int(PATIENCE / _POLL)):
        answer = holds()
        if await answer if asyncio.iscoroutine(answer) else answer:
            return
        await asyncio.sleep(_POLL)
    consoles = _simulated(plane).simulation.consoles().items()
    waiting = "; ".join(f"{name}: {text}" for name, text in consoles if text != "running")
    raise CliError(
        f"the story ends here: {what} did not come within {PATIENCE:.0f} seconds ({waiting or 'all machines run'})",
        "Try again on a machine with less to do, or with --log-level on `fastness up`.", Exit.NO,
    )  # fmt: skip


async def _machines(plane: ControlPlane) -> list[JsonObject]:
    return (await plane.server.cluster.list(MACHINE.resource, Scope(NAMESPACE))).items


async def _attested(plane: ControlPlane, count: int) -> bool:
    machines = await _machines(plane)
    good = [
        machine
        for machine in machines
        if str((machine.get("status") or {}).get("standing", "")).startswith(State.PROVED)
    ]
    return len(good) >= count and all(row.running for row in _rows(plane))


async def _standing(plane: ControlPlane, node: str, state: State) -> bool:
    for machine in await _machines(plane):
        if (machine.get("status") or {}).get("nodeName") == node:
            return str((machine.get("status") or {}).get("standing", "")).startswith(state)
    return False


def _simulated(plane: ControlPlane) -> Simulated:
    assert plane.simulated is not None  # noqa: S101  # the demo always has machines
    return plane.simulated


def _rows(plane: ControlPlane) -> Sequence[VirtualRow]:
    return _simulated(plane).simulation.machines()


def _victim(plane: ControlPlane) -> tuple[str, str]:
    """The machine that is tampered with: one with a TPM, whose log names what differs."""
    rows = _rows(plane)
    row = next((candidate for candidate in rows if candidate.tee == "tpm"), rows[0])
    return row.name, row.node


async def _written(roots: list[Path], text: str) -> bool:
    def look() -> bool:
        files = [root / MOTD.lstrip("/") for root in roots]
        return all(file.exists() and text in file.read_text() for file in files)

    return await asyncio.to_thread(look)


def _config(text: str) -> JsonObject:
    """A MachineConfig with one file."""
    contents = {"source": f"data:,{text.replace(' ', '%20').replace(':', '%3A')}%0A"}
    file = {"path": MOTD, "mode": 0o644, "overwrite": True, "contents": contents}
    return {
        "apiVersion": MACHINE_CONFIG.api_version, "kind": MACHINE_CONFIG.kind,
        "metadata": {"name": CONFIG, "labels": {names.ROLE_LABEL: names.WORKER}},
        "spec": {"config": {"ignition": {"version": "3.5.0"}, "storage": {"files": [file]}}},
    }  # fmt: skip
