"""`fastness initdata`: build, show, check, measure, compare and apply what the guest of a pod is started with.

    fastness initdata build --aa aa.toml --cdh cdh.toml --policy policy.rego     base64 on standard output
    fastness initdata lint initdata.toml                                         exit code 1 when something is wrong
    fastness initdata digest initdata.txt --publish my-pods                      and as reference values in the cluster
    fastness initdata apply initdata.txt deployment.yaml                         annotation and runtime class

FILE is the TOML document, its encoded form, a manifest that carries it, or `-`. The digest is over the bytes of the document, so
a file that is given as TOML is packed byte by byte as it is.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from fastness.cli.errors import CliError, reported_errors
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json, table, tell
from fastness.cli.trust.tickets import cluster_options
from fastness.cli.workloads.initdata_file import Loaded, load, read_bytes
from fastness.kinds.kind import JsonObject

if TYPE_CHECKING:
    from fastness.formats.initdata import InitData
    from fastness.workloads.initdata.finding import Finding
    from fastness.workloads.initdata.registers import Registers

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
REGISTERS: Final = ("digest", "hostdata", "mrconfigid", "pcr8")


@click.group()
def initdata() -> None:
    """What the guest of a confidential pod is started with."""


@initdata.command("build")
@click.argument("file", required=False)
@click.option("--aa", type=_FILE, help="Settings of the attestation agent, as aa.toml.")
@click.option("--cdh", type=_FILE, help="Settings of the data hub, as cdh.toml.")
@click.option("--policy", type=_FILE, help="Policy of the agent, as policy.rego.")
@click.option("--algorithm", type=click.Choice(["sha256", "sha384", "sha512"]), default="sha256", show_default=True)
@click.option("--toml", is_flag=True, help="Print the document instead of its encoded form.")
def build(file: str | None, aa: Path | None, cdh: Path | None, policy: Path | None, algorithm: str, toml: bool) -> None:
    """Make init data from entries, or encode the document in FILE; the same input always gives the same bytes."""
    from fastness.formats.initdata import InitDataError, encode_init_data, write_init_data

    given = {"aa.toml": aa, "cdh.toml": cdh, "policy.rego": policy}
    entries = {name: _text(path) for name, path in given.items() if path is not None}
    if bool(file) == bool(entries):
        raise CliError("give a document, or its entries", "Use FILE, or --aa, --cdh and --policy.", Exit.USAGE)
    try:
        text = load(file).text if file else write_init_data(algorithm, entries).encode()
    except InitDataError as error:
        raise CliError(str(error), error.hint, Exit.USAGE) from error
    document = parsed(Loaded(text), file or "the document")
    _stop_at_errors(_static(document))
    sys.stdout.write(document.text.decode() if toml else encode_init_data(document.text) + "\n")


@initdata.command("show")
@click.argument("file")
@output_option
def show(file: str, output: str) -> None:
    """Print every entry of init data."""
    document = parsed(load(file), file)
    if output == "json":
        show_json({"algorithm": document.algorithm, "data": dict(document.data)})
        return
    click.echo(f"algorithm: {document.algorithm}")
    for name, text in document.data.items():
        click.echo(f"\n--- {name}\n{text.strip(chr(10))}")


@initdata.command("lint")
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Warnings count as well.")
@click.option("--engine/--no-engine", default=True, show_default=True, help="Also ask the policy engine.")
@output_option
def lint(files: tuple[str, ...], strict: bool, engine: bool, output: str) -> None:
    """Say everything that is wrong with init data, each with a code, a severity and a reason.

    Exit code 1 for errors, critical and high findings; with --strict for all but information.
    """
    from fastness.workloads.initdata.finding import fatal

    found = {file: asyncio.run(_linted(load(file, lenient=True), engine)) for file in files}
    if output == "json":
        show_json({file: [one.as_json() for one in findings] for file, findings in found.items()})
    else:
        for file, findings in found.items():
            click.echo(f"{file}: {len(findings)} findings" if findings else f"{file}: nothing is wrong")
            click.echo(_shown(findings), nl=bool(findings))
    if any(fatal(findings, strict=strict) for findings in found.values()):
        sys.exit(Exit.NO)


@initdata.command("digest")
@click.argument("file")
@click.option("--register", type=click.Choice(REGISTERS), help="Print this one alone.")
@click.option("--publish", metavar="NAME", help="Write the values to the cluster, as a ReferenceValueSet of this name.")
@cluster_options
@output_option
def digest(
    file: str, register: str | None, publish: str | None, kubeconfig: Path | None, context: str, output: str
) -> None:
    """Print what evidence shows for init data: HOSTDATA, MRCONFIGID and PCR 8."""
    from fastness.workloads.initdata.registers import registers

    found = registers(parsed(load(file), file))
    if register is not None:
        value = getattr(found, register)
        if value is None:
            raise CliError(f"there is no PCR 8: {found.pcr8_refusal}", "Use sha256 for guests with a vTPM.")
        click.echo(value)
    elif output == "json":
        values = {name: getattr(found, name) for name in REGISTERS}
        show_json({**values, "algorithm": found.algorithm, "pcr8Refused": found.pcr8_refusal})
    else:
        click.echo(table(_rows(found)))
    if publish:
        with reported_errors():
            asyncio.run(_publish(found, publish, kubeconfig, context))
        tell(f"{publish}: published")


@initdata.command("diff")
@click.argument("before")
@click.argument("after")
def diff(before: str, after: str) -> None:
    """Compare two documents entry by entry; exit code 1 when their digests differ."""
    import difflib

    from fastness.workloads.initdata.registers import registers

    old, new = parsed(load(before), before), parsed(load(after), after)
    if old.algorithm != new.algorithm:
        click.echo(f"algorithm: {old.algorithm} -> {new.algorithm}")
    for name in dict.fromkeys((*old.data, *new.data)):
        lines = difflib.unified_diff(
            old.data.get(name, "").splitlines(), new.data.get(name, "").splitlines(),
            f"{before}: {name}" if name in old.data else "/dev/null", f"{after}: {name}" if name in new.data else "/dev/null",
            lineterm="",
        )  # fmt: skip
        for line in lines:
            click.echo(line)
    first, second = registers(old).digest, registers(new).digest
    if first != second:
        click.echo(f"digest: {first} -> {second}")
        sys.exit(Exit.NO)


@initdata.command("apply")
@click.argument("file")
@click.argument("workloads", nargs=-1, required=True)
@click.option("--runtime-class", default="kata-cc", show_default=True, help="The runtime class of the pods.")
@output_option
def apply(file: str, workloads: tuple[str, ...], runtime_class: str, output: str) -> None:
    """Put init data and a runtime class into workloads, and print them.

    Objects in WORKLOADS that have no pods are printed as they are.
    """
    from fastness.cli import manifests
    from fastness.formats.initdata import encode_init_data
    from fastness.workloads.initdata.workload import IGNORING, TEMPLATES, NotAWorkload, applied

    document = parsed(load(file), file)
    _stop_at_errors(_static(document))
    if runtime_class in IGNORING:
        tell(f"warning: the runtime class {runtime_class} ignores init data")
    read = manifests.read(workloads)
    for place, reason in read.unreadable.items():
        raise CliError(f"{place}: {reason}", code=Exit.USAGE)
    if not read.of(*TEMPLATES):
        raise CliError("no workload in these files", NotAWorkload.hint, Exit.USAGE)
    encoded, printed = encode_init_data(document.text), list[JsonObject]()
    for one in read.found:
        try:
            printed.append(applied(one.object, encoded, runtime_class) if one.kind in TEMPLATES else one.object)
        except NotAWorkload as error:
            raise CliError(f"{one.place}: {error}", error.hint, Exit.USAGE) from error
    _print_objects(printed, output)


def _print_objects(objects: list[JsonObject], output: str) -> None:
    if output == "json":
        show_json(objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects})
        return
    import yaml

    click.echo(yaml.safe_dump_all(objects, sort_keys=False, width=2**20, allow_unicode=True), nl=False)


def parsed(loaded: Loaded, place: str) -> InitData:
    """The document, which must be right in itself; raises CliError."""
    from fastness.formats.initdata import InitDataError, parse_init_data

    try:
        return parse_init_data(loaded.text.decode())
    except UnicodeDecodeError as error:
        raise CliError(f"{place}: not UTF-8", code=Exit.NO) from error
    except InitDataError as error:
        raise CliError(f"{place}: {error}", f"{error.hint} `fastness initdata lint` tells more.", Exit.NO) from error


def _static(document: InitData) -> list[Finding]:
    from fastness.workloads.agent_policy.lint import lint_policy
    from fastness.workloads.initdata.lint import lint_text

    findings, entries = lint_text(document.text)
    return findings + (lint_policy(entries["policy.rego"]) if "policy.rego" in entries else [])


async def _linted(loaded: Loaded, engine: bool) -> list[Finding]:
    from fastness.workloads.agent_policy.lint import lint_policy
    from fastness.workloads.initdata.lint import lint_text

    if not loaded.text:
        return loaded.findings
    findings, entries = lint_text(loaded.text)
    if "policy.rego" in entries:
        opened, error = await _asked(entries["policy.rego"]) if engine else ((), "")
        findings += lint_policy(entries["policy.rego"], opened, error)
    return [*loaded.findings, *findings]


async def _asked(policy: str) -> tuple[tuple[str, ...], str]:
    from fastness.workloads.live.agent_policies import ask_policy

    found = await ask_policy(policy)
    return found.opened, found.error


def _stop_at_errors(findings: list[Finding]) -> None:
    """Tell what was found; what cannot work at all ends here."""
    from fastness.workloads.initdata.finding import Severity

    if findings:
        tell(_shown(findings))
    wrong = sum(one.severity is Severity.ERROR for one in findings)
    if wrong:
        raise CliError(f"{wrong} errors: nothing was made", "Correct them first.")


def _shown(findings: list[Finding]) -> str:
    lines = []
    for one in findings:
        place = f"{one.where}: " if one.where else ""
        lines.append(f"  {one.code:4} {one.severity:9} {place}{one.message}. {one.hint}")
    return "\n".join(lines)


def _rows(found: Registers) -> list[tuple[str, str]]:
    return [
        ("digest", f"{found.algorithm}:{found.digest}"),
        ("HOSTDATA", found.hostdata),
        ("MRCONFIGID", found.mrconfigid),
        ("PCR 8", found.pcr8 or f"refused: {found.pcr8_refusal}"),
    ]


async def _publish(found: Registers, name: str, kubeconfig: Path | None, context: str) -> None:
    from fastness.kinds.registry import find as find_kind
    from fastness.kube.client import Surroundings, connect, find
    from fastness.kube.errors import AlreadyExists
    from fastness.kube.port import PatchType
    from fastness.workloads.initdata.registers import reference_value_set

    kind = find_kind("fastness.dev", "v1alpha1", "referencevaluesets").resource
    wanted: Any = reference_value_set(found, name)
    async with connect(find(Surroundings(os.environ, Path.home()), kubeconfig=kubeconfig, context=context)) as cluster:
        try:
            await cluster.create(kind, wanted)
        except AlreadyExists:
            known = await cluster.get(kind, name)
            if "fastness.dev/init-data" not in (known["metadata"].get("labels") or {}):
                raise CliError(f"{name} holds other values", "Choose another name.") from None
            patch = {"metadata": {"labels": wanted["metadata"]["labels"]}, "spec": {"values": wanted["spec"]["values"]}}
            await cluster.patch(kind, name, patch, PatchType.MERGE)


def _text(path: Path) -> str:
    try:
        return read_bytes(str(path)).decode()
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8", code=Exit.USAGE) from error
