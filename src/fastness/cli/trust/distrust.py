"""`fastness distrust`: stop trusting a machine, an image, a key, a chip or a generation of them, or a TCB level.

    fastness distrust machine NAME --reason TEXT [--expires 7d] [--plan]
    fastness distrust image REFERENCE@sha256:… --reason TEXT
    fastness distrust key sha256:… --reason TEXT
    fastness distrust chip MACHINE --reason TEXT                 # or snp:…, tdx:…
    fastness distrust endorsement-key MACHINE --reason TEXT      # or sha256:…
    fastness distrust generation Milan --reason TEXT
    fastness distrust tcb snp.microcode=93 snp.bootloader=4 --reason TEXT
    fastness distrust list
    fastness distrust end NAME

What it will hit is shown first. `--plan` shows that and changes nothing; otherwise the Distrust is written, and every door
refuses from then on. A Distrust that would leave a pool without an attested machine needs `--yes`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from fastness.attestation.verdict.blast_radius import Radius, blast_radius
from fastness.attestation.verdict.distrust import read_distrust
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.enrolled_machines import machine_named, standings
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.words import counted
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, Scope, WriteOptions

F = TypeVar("F", bound=Callable[..., Any])
_LIFETIME = re.compile(r"([1-9][0-9]{0,5})(m|h|d)\Z")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_LEVEL = re.compile(r"(snp|tdx)\.([A-Za-z]+)=([0-9TZ:.+-]{1,40})\Z", re.ASCII)
_NUMBERS = {"snp": ("bootloader", "tee", "snp", "microcode", "fmc"), "tdx": ("evaluationDataNumber",)}


def _options(function: F) -> F:
    function = cluster_options(output_option(function))
    function = click.option("--yes", is_flag=True, help="Also when a pool is left without an attested machine.")(
        function
    )
    function = click.option("--plan", is_flag=True, help="Show what it would hit, and change nothing.")(function)
    function = click.option("--expires", default="", help="When it ends by itself, as 12h or 7d; never if not given.")(
        function
    )
    function = click.option("--name", default="", help="Name of the Distrust; default made from the target.")(function)
    return click.option("--reason", required=True, help="Why; goes on the record.")(function)


@click.group()
def distrust() -> None:
    """Stop trusting machines, images, keys, chips or TCB levels; shows what that hits first."""


@distrust.command("machine")
@click.argument("which")
@_options
def of_machine(which: str, **options: Any) -> None:
    """A machine, by the name of its Machine or node; it is revoked."""

    async def target(cluster: Cluster) -> dict[str, Any]:
        return {"machine": (await machine_named(cluster, which))["metadata"]["uid"]}

    _distrust(target, **options)


@distrust.command("image")
@click.argument("reference")
@_options
def of_image(reference: str, **options: Any) -> None:
    """An operating system image, by digest: whoever booted it is refused."""
    if not re.search(r"@sha256:[0-9a-f]{64}\Z", reference):
        raise CliError(
            f"{reference} names no digest", "Write it as name@sha256:…; see `fastness image list`.", Exit.USAGE
        )
    _distrust(_given({"image": reference}), **options)


@distrust.command("key")
@click.argument("thumbprint")
@_options
def of_key(thumbprint: str, **options: Any) -> None:
    """A key, by thumbprint: the machine that enrolled with it, or whose TPM it endorses, is revoked."""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", thumbprint):
        raise CliError(
            f"{thumbprint} is not a thumbprint", "Write it as sha256:…; see `fastness machine show`.", Exit.USAGE
        )
    _distrust(_given({"key": thumbprint}), **options)


@distrust.command("chip")
@click.argument("which")
@_options
def of_chip(which: str, **options: Any) -> None:
    """A chip, as snp:… or tdx:…, or the one that a machine runs on: whoever attests from it is refused."""

    async def target(cluster: Cluster) -> dict[str, Any]:
        if re.fullmatch(r"(snp|tdx):[0-9a-f]{16,128}", which):
            return {"chip": which}
        chip = str(((await machine_named(cluster, which)).get("status") or {}).get("chip", ""))
        if ":" not in chip:
            raise CliError(f"the chip of {which} is not known", _no_chip(chip), Exit.NO)
        return {"chip": chip}

    _distrust(target, **options)


@distrust.command("endorsement-key")
@click.argument("which")
@_options
def of_endorsement_key(which: str, **options: Any) -> None:
    """The endorsement key of a TPM, as sha256:…, or that of a machine: all Machines of this TPM are revoked."""

    async def target(cluster: Cluster) -> dict[str, Any]:
        if re.fullmatch(r"sha256:[0-9a-f]{64}", which):
            return {"endorsementKey": which}
        status = (await machine_named(cluster, which)).get("status") or {}
        key = (status.get("endorsement") or {}).get("key", "")
        if not key:
            raise CliError(f"{which} has no TPM", "Distrust its chip: `fastness distrust chip`.", Exit.NO)
        return {"endorsementKey": key}

    _distrust(target, **options)


def _no_chip(chip: str) -> str:
    if chip:
        return "Its provider hides it. Distrust the machine instead."
    return "It is known after the first attestation, and only of SNP and TDX; a TPM has an endorsement key."


@distrust.command("generation")
@click.argument("generation")
@_options
def of_generation(generation: str, **options: Any) -> None:
    """A generation of chips, such as Milan, or the FMSPC of a TDX platform."""
    _distrust(_given({"chipGeneration": generation}), **options)


@distrust.command("tcb")
@click.argument("levels", nargs=-1, required=True)
@_options
def of_tcb(levels: tuple[str, ...], **options: Any) -> None:
    """Platforms below a security version: snp.microcode=93, tdx.evaluationDataNumber=17, tdx.tcbDate=2026-01-01T00:00:00Z."""
    _distrust(_given({"tcbBelow": tcb_levels(levels)}), **options)


@distrust.command("tenant")
@click.argument("tenant_name")
@_options
def of_tenant(tenant_name: str, **options: Any) -> None:
    """A tenant: its machines are revoked."""
    _distrust(_given({"tenant": tenant_name}), **options)


@distrust.command("list")
@cluster_options
@output_option
def list_distrusts(kubeconfig: Path | None, context: str, output: str) -> None:
    """List what is distrusted."""
    with reported_errors():
        distrusts = asyncio.run(_list(kubeconfig, context))
    if output == "json":
        show_json(distrusts)
    elif not distrusts:
        tell("nothing is distrusted")
    else:
        rows = [
            [row["name"], row["target"], str(row["machines"]), row["expires"] or "never", row["reason"]]
            for row in distrusts
        ]
        click.echo(table([["NAME", "TARGET", "MACHINES", "EXPIRES", "REASON"], *rows]))


@distrust.command("end")
@click.argument("name")
@cluster_options
def end(name: str, kubeconfig: Path | None, context: str) -> None:
    """Trust again: machines may attest anew; their tokens from before stay invalid."""
    with reported_errors():
        gone = asyncio.run(_end(name, kubeconfig, context))
    if not gone:
        raise CliError(f"there is no Distrust {name}", "See `fastness distrust list`.", Exit.NO)
    click.echo(f"{name}: ended")


def tcb_levels(levels: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The levels that words like snp.microcode=93 name; raises CliError."""
    by_tee: dict[str, dict[str, Any]] = {}
    for word in levels:
        match = _LEVEL.match(word)
        tee, name, value = match.groups() if match else ("", "", "")
        number = name in _NUMBERS.get(tee, ()) and value.isdecimal()
        if not number and not (tee == "tdx" and name == "tcbDate" and "T" in value):
            numbered = ", ".join(f"{tee}.{name}" for tee, names in _NUMBERS.items() for name in names)
            raise CliError(f"{word} is not a TCB level", f"There are {numbered} and tdx.tcbDate=TIME.", Exit.USAGE)
        by_tee.setdefault(tee, {})[name] = int(value) if number else value
    return by_tee


def _given(target: dict[str, Any]) -> Callable[[Cluster], Any]:
    async def given(_: Cluster) -> dict[str, Any]:
        return target

    return given


def _distrust(
    target: Callable[[Cluster], Any], *, reason: str, name: str, expires: str, plan: bool, yes: bool,
    kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    until = _until(expires)
    with reported_errors():
        radius, written = asyncio.run(_carry_out(target, reason, name, until, plan, yes, kubeconfig, context))
    if output == "json":
        show_json({**radius.to_json(), "plan": plan, "name": written})
        return
    _show(radius)
    click.echo(f"{written}: distrusted" if written else "plan only: nothing was changed")


async def _carry_out(
    target: Callable[[Cluster], Any], reason: str, name: str, until: str, plan: bool, yes: bool,
    kubeconfig: Path | None, context: str,
) -> tuple[Radius, str]:  # fmt: skip
    async with connected(kubeconfig, context) as cluster:
        named = await target(cluster)
        (kind,) = named
        called = name or f"{kind.lower()}-{sha256(json.canonical(named)).hex[:12]}"
        body = {
            "apiVersion": DISTRUST.api_version, "kind": DISTRUST.kind, "metadata": {"name": called},
            "spec": {**named, "reason": reason, **({"expires": until} if until else {})},
        }  # fmt: skip
        read = read_distrust(body)
        if read is None:
            raise CliError("this names nothing that can be distrusted", code=Exit.USAGE)
        machines = (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items
        radius = blast_radius(read, machines, await standings(cluster))
        if plan:
            return radius, ""
        if radius.emptied and not yes:
            raise CliError(
                f"pools without an attested machine afterwards: {', '.join(radius.emptied)}",
                "Look at it with --plan; go on with --yes.", Exit.NO,
            )  # fmt: skip
        await cluster.create(DISTRUST.resource, body, WriteOptions(manager="fastness-cli"))
    return radius, called


def _show(radius: Radius) -> None:
    effect = "revoked" if radius.revokes else "refused until a better proof"
    tell(f"{radius.target}: {counted(len(radius.hits), 'machine is', 'machines are')} {effect}")
    if radius.hits:
        rows = [[hit.machine, hit.pool, hit.node, "yes" if hit.attested else "no"] for hit in radius.hits]
        click.echo(table([["MACHINE", "POOL", "NODE", "ATTESTED"], *rows]))
    for pool, (before, after) in sorted(radius.pools.items()):
        tell(f"pool {pool}: {after} of {counted(before, 'attested machine is', 'attested machines are')} left")


async def _list(kubeconfig: Path | None, context: str) -> list[dict[str, Any]]:
    async with connected(kubeconfig, context) as cluster:
        objects = (await cluster.list(DISTRUST.resource)).items
    rows = []
    for obj in objects:
        read = read_distrust(obj)
        affected = ((obj.get("status") or {}).get("affected") or {}).get("machines", 0)
        if read is not None:
            rows.append(
                {
                    "name": read.name, "target": read.line, "machines": affected, "reason": read.reason,
                    "expires": obj["spec"].get("expires", ""),
                }
            )  # fmt: skip
    return rows


async def _end(name: str, kubeconfig: Path | None, context: str) -> bool:
    async with connected(kubeconfig, context) as cluster:
        try:
            await cluster.delete(DISTRUST.resource, name)
        except NotFound:
            return False
    return True


def _until(text: str) -> str:
    if not text:
        return ""
    match = _LIFETIME.match(text)
    if match is None:
        raise CliError(f"--expires: {text} is not a time", "Write it as 30m, 12h or 7d.", Exit.USAGE)

    return rfc3339(datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])}))
