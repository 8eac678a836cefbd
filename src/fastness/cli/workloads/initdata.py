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
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import yaml

from fastness.cli import manifests
from fastness.cli.errors import CliError, Exit
from fastness.cli.lazy import LazyGroup, Verb
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.workloads.initdata_file import Loaded, load, parsed, read_bytes
from fastness.formats.initdata import InitData, InitDataError, encode_init_data, write_init_data
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.workloads.agent_policy.lint import lint_policy
from fastness.workloads.initdata.finding import Finding, Severity, fatal
from fastness.workloads.initdata.lint import lint_text
from fastness.workloads.initdata.registers import registers
from fastness.workloads.initdata.workload import IGNORING, TEMPLATES, NotAWorkload, applied
from fastness.workloads.live.agent_policies import ask_policy

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


VERBS: Mapping[str, Verb] = {
    "digest": Verb("fastness.cli.workloads.initdata_digest:digest", "Print what evidence shows for init data."),
}


@click.group(cls=LazyGroup, verbs=VERBS)
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
    by_file = {file: asyncio.run(_linted(load(file, lenient=True), engine)) for file in files}
    if output == "json":
        show_json({file: [finding.as_json() for finding in findings] for file, findings in by_file.items()})
    else:
        for file, findings in by_file.items():
            click.echo(f"{file}: {counted(len(findings), 'finding')}" if findings else f"{file}: nothing is wrong")
            click.echo(_findings_text(findings), nl=bool(findings))
    if any(fatal(findings, strict=strict) for findings in by_file.values()):
        sys.exit(Exit.NO)


@initdata.command("diff")
@click.argument("before")
@click.argument("after")
def diff(before: str, after: str) -> None:
    """Compare two documents entry by entry; exit code 1 when their digests differ."""
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
    document = parsed(load(file), file)
    _stop_at_errors(_static(document))
    if runtime_class in IGNORING:
        tell(f"warning: the runtime class {runtime_class} ignores init data")
    read = manifests.read_all(workloads)
    if not read.of(*TEMPLATES):
        raise CliError("no workload in these files", NotAWorkload.hint, Exit.USAGE)
    encoded, printed = encode_init_data(document.text), list[JsonObject]()
    for manifest in read.manifests:
        try:
            printed.append(
                applied(manifest.object, encoded, runtime_class) if manifest.kind in TEMPLATES else manifest.object
            )
        except NotAWorkload as error:
            raise CliError(f"{manifest.place}: {error}", error.hint, Exit.USAGE) from error
    _print_objects(printed, output)


def _print_objects(objects: list[JsonObject], output: str) -> None:
    if output == "json":
        show_json(objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects})
        return

    click.echo(yaml.safe_dump_all(objects, sort_keys=False, width=2**20, allow_unicode=True), nl=False)


def _static(document: InitData) -> list[Finding]:
    findings, entries = lint_text(document.text)
    return findings + (lint_policy(entries["policy.rego"]) if "policy.rego" in entries else [])


async def _linted(loaded: Loaded, engine: bool) -> list[Finding]:
    if not loaded.text:
        return loaded.findings
    findings, entries = lint_text(loaded.text)
    if "policy.rego" in entries:
        opened, error = await _opened_requests(entries["policy.rego"]) if engine else ((), None)
        findings += lint_policy(entries["policy.rego"], opened, error)
    return [*loaded.findings, *findings]


async def _opened_requests(policy: str) -> tuple[tuple[str, ...], str | None]:
    answer = await ask_policy(policy)
    return answer.opened, answer.error


def _stop_at_errors(findings: list[Finding]) -> None:
    """Tell what was found; what cannot work at all ends here."""
    if findings:
        tell(_findings_text(findings))
    wrong = sum(finding.severity is Severity.ERROR for finding in findings)
    if wrong:
        raise CliError(f"{counted(wrong, 'error')}: nothing was made", "Correct them first.")


def _findings_text(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        place = f"{finding.where}: " if finding.where else ""
        lines.append(f"  {finding.code:4} {finding.severity:9} {place}{finding.message}. {finding.hint}")
    return "\n".join(lines)


def _text(path: Path) -> str:
    try:
        return read_bytes(str(path)).decode()
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8", code=Exit.USAGE) from error
