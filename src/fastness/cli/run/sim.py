"""`fastness sim`: what virtual machines there are, and what can be done to them while `fastness up` runs.

    fastness sim list | faults
    fastness sim add [--count N] [--tee tpm|snp|tdx] [--pool NAME]
    fastness sim remove MACHINE…      fastness sim reboot MACHINE…
    fastness sim tamper MACHINE FAULT
    fastness sim cut MACHINE…      fastness sim vendor stop|start      fastness sim clock +15m
    fastness sim images      fastness sim push VERSION      fastness sim withdraw IMAGE
    fastness sim undo FAULT… | MACHINE… | --all
    fastness sim open-volume FILE --key-file KEY --to DIRECTORY       # what cryptsetup does with a real disk

Requests go to STATE/sim.sock; the page of the same control plane does the same. Everything that can be done can be undone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from fastness.agent.boot.volumes import DiskRefused
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.run.state_directory import DEFAULT_STATE
from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes
from fastness.keys.key_files import read_private
from fastness.protocol.disk_keys import DiskKey
from fastness.runtime.clock import SystemEntropy
from fastness.sim.control_client import FILE, ask_control
from fastness.sim.disks.container import SealedVolumes

F = TypeVar("F", bound=Callable[..., Any])
Overview = dict[str, Any]
_WIDTH = 100
_MACHINES = click.argument("machines", nargs=-1, required=True)


def _common(function: F) -> F:
    """The options of every verb: where, and how to print."""
    where = click.option(
        "--state", type=click.Path(path_type=Path, file_okay=False), default=DEFAULT_STATE, show_default=True,
        help="State directory of the running control plane.",
    )  # fmt: skip
    return where(output_option(function))


@click.group()
def sim() -> None:
    """Virtual machines: add, remove, tamper, cut off, undo."""


@sim.command("list")
@_common
def list_machines(state: Path, output: str) -> None:
    """List the virtual machines, what they say, and what was done to them."""
    overview = _ask(state, verb="list")
    if output == "json":
        show_json({key: overview[key] for key in ("simulated", "machines", "faults")})
        return
    if not overview["machines"]:
        tell("no machines: `fastness sim add` starts some")
    rows = [["NAME", "NODE", "TEE", "NETWORK", "FAULTS", "CONSOLE"]]
    rows += [
        [
            row["name"], row["node"] or "-", row["tee"], "up" if row["network"] else "cut",
            ", ".join(fault["kind"] for fault in row["faults"]) or "-", row["console"][:_WIDTH],
        ]
        for row in overview["machines"]
    ]  # fmt: skip
    click.echo(table(rows))
    for fault in overview["faults"]:
        click.echo(f"whole cluster: {fault['id']} since {fault['since']}")
    tell("all of this is simulated")


@sim.command()
@_common
def faults(state: Path, output: str) -> None:
    """List what can be done, and what was done and not undone."""
    overview = _ask(state, verb="list")
    done = _done(overview)
    if output == "json":
        show_json({"kinds": overview["kinds"], "faults": done})
        return
    for kind in overview["kinds"]:
        click.echo(f"{kind['id']:<21}{'' if kind['scope'] == 'machine' else '(whole cluster) '}{kind['explanation']}")
    for fault in done:
        click.echo(f"done: {fault['id']} since {fault['since']}; `fastness sim undo {fault['id']}`")


@sim.command()
@click.option("--count", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many.")
@click.option("--tee", type=click.Choice(["tpm", "snp", "tdx"]), default=None, help="Kind of evidence; default: mixed.")
@click.option("--pool", default="worker", show_default=True, help="Whose user-data they boot with.")
@_common
def add(count: int, tee: str | None, pool: str, state: Path, output: str) -> None:
    """Start further machines; they boot and prove themselves."""
    _say(state, output, [{"verb": "add", "count": count, "tee": tee or "", "pool": pool}])


@sim.command()
@_MACHINES
@_common
def remove(machines: tuple[str, ...], state: Path, output: str) -> None:
    """Stop machines and throw them away, with their nodes."""
    _say(state, output, ({"verb": "remove", "machine": name} for name in machines))


@sim.command()
@_MACHINES
@_common
def reboot(machines: tuple[str, ...], state: Path, output: str) -> None:
    """Boot machines again; they have to prove themselves anew."""
    _say(state, output, ({"verb": "reboot", "machine": name} for name in machines))


@sim.command()
@click.option(
    "--manifest", "image", default="", help="Print what machines measure that boot this image, for its approval."
)
@_common
def images(image: str, state: Path, output: str) -> None:
    """List the operating system images that can be pulled, or print what one measures."""
    if image:
        click.echo(_ask(state, verb="manifest", image=image)["said"])
        return
    listed = _ask(state, verb="list")["images"]
    if output == "json":
        show_json({"images": listed})
        return
    rows = [["IMAGE", "VERSION", "INSTALLED"]]
    rows += [[row["image"], row["version"], "yes" if row["installed"] else "-"] for row in listed]
    click.echo(table(rows))
    tell("all of this is simulated")


@sim.command()
@click.argument("image")
@_common
def push(image: str, state: Path, output: str) -> None:
    """Make an operating system image that machines can boot: IMAGE is a version such as 43.0, or repository:43.0."""
    _say(state, output, [{"verb": "push", "image": image}])


@sim.command()
@click.argument("image")
@_common
def withdraw(image: str, state: Path, output: str) -> None:
    """Take an image out of the registry: nobody can pull it any more."""
    _say(state, output, [{"verb": "withdraw", "image": image}])


@sim.command()
@click.argument("machine")
@click.argument("fault")
@_common
def tamper(machine: str, fault: str, state: Path, output: str) -> None:
    """Do FAULT to MACHINE; `fastness sim faults` lists what there is."""
    _say(state, output, [{"verb": "do", "kind": fault, "machine": machine}])


@sim.command()
@_MACHINES
@_common
def cut(machines: tuple[str, ...], state: Path, output: str) -> None:
    """Cut the network of machines."""
    _say(state, output, ({"verb": "do", "kind": "network-cut", "machine": name} for name in machines))


@sim.command()
@click.argument("what", type=click.Choice(["stop", "start"]))
@_common
def vendor(what: str, state: Path, output: str) -> None:
    """Stop the service of the simulated vendor, or start it again."""
    ask = {"verb": "do", "kind": "vendor-stopped"} if what == "stop" else {"verb": "undo", "fault": "vendor-stopped"}
    _say(state, output, [ask])


@sim.command(context_settings={"ignore_unknown_options": True})  # "-5m" is a wrong leap, not an option
@click.argument("leap", metavar="+15m")
@_common
def clock(leap: str, state: Path, output: str) -> None:
    """Let time pass at once for the whole cluster, for instance +15m, +1h30m or +7d."""
    _say(state, output, [{"verb": "do", "kind": "clock-jump", "argument": leap}])


@sim.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Everything that was done and not undone.")
@_common
def undo(names: tuple[str, ...], everything: bool, state: Path, output: str) -> None:
    """Put right what was done: faults by their id, all those of a machine by its name, or all there are."""
    if bool(names) == everything:
        raise click.UsageError("name faults or machines, or say --all.")
    done = _done(_ask(state, verb="list"))
    chosen = (
        [fault["id"] for fault in done]
        if everything
        else [fault_id for name in names for fault_id in _meant(done, name)]
    )
    if not chosen:
        tell("nothing was done")
    _say(state, output, ({"verb": "undo", "fault": fault} for fault in dict.fromkeys(chosen)))


@sim.command("open-volume")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--key-file", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The key of the volume."
)
@click.option(
    "--to", "directory", type=click.Path(path_type=Path, file_okay=False), required=True, help="A directory to make."
)
def open_volume(file: Path, key_file: Path, directory: Path) -> None:
    """Lay out what is on the volume of a virtual machine, with the key of its disk, as cryptsetup would open a real one."""
    if directory.exists():
        raise CliError(f"{directory} exists", "Choose another name.", Exit.USAGE)
    volumes = SealedVolumes(directory, SystemEntropy())
    with reported_errors():
        key = read_private(key_file) or SecretBytes(b"")
        directory.mkdir(mode=0o700)
        copy = volumes.path(file.stem)
        shutil.copyfile(file, copy)
        try:
            content = volumes.open(file.stem, [DiskKey(slot, key) for slot in volumes.slots(file.stem)], None)
        except (DiskRefused, BadKey) as error:
            shutil.rmtree(directory)
            raise CliError(
                f"{file} does not open: {error}", f"Is {key_file} the key that it has now?", Exit.NO
            ) from error
        copy.unlink()
    files = sum(path.is_file() for path in content.directory.rglob("*"))
    click.echo(f"{content.directory}: {files} files of a simulated volume")


def _meant(done: list[Overview], name: str) -> list[str]:
    """The faults that a name means; a name that means none is ask_control for as it is, and refused with what there is."""
    matching = [fault["id"] for fault in done if name in (fault["id"], fault["machine"])]
    return matching or [name]


def _done(overview: Overview) -> list[Overview]:
    return [*(fault for row in overview["machines"] for fault in row["faults"]), *overview["faults"]]


def _say(state: Path, output: str, requests: Iterable[dict[str, Any]]) -> None:
    """Ask one after the other and print what was answered; the first refusal ends it."""
    answers = []
    for request in requests:
        answers.append(_ask(state, **request)["said"])
        if output != "json":
            click.echo(answers[-1])
    if output == "json":
        show_json({"simulated": True, "said": answers})


def _ask(state: Path, **request: Any) -> Overview:
    """One request to the running simulator; raises CliError."""
    hint = f"Start some with `fastness up --machines 5 --state {state}`; a control plane without machines is not simulated."
    with reported_errors():
        try:
            return dict(ask_control(state, request))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CliError(f"no virtual machines run in {state}", hint, Exit.MISSING) from error
        except ConnectionRefusedError as error:
            raise CliError(f"nobody answers at {state / FILE}: the control plane ended", hint, Exit.MISSING) from error
        except PermissionError as error:
            whose = "Ask as the user who started the control plane."
            raise CliError(f"{state / FILE} belongs to another user", whose, Exit.MISSING) from error
        except TimeoutError as error:
            raise CliError("the simulator did not answer in time", "See `fastness sim list`.", Exit.CLUSTER) from error
