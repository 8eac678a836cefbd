"""`fastness machine disk recover ask|open`: the key of a disk for people, if two approvers of break-glass agree.

    fastness machine disk recover ask NAME var --reason TEXT --key once.key > recovery.json
    fastness break-glass agree recovery.json --by ada --key ada.key           # each on a machine of their own
    fastness break-glass agree recovery.json --by grace --key grace.key
    fastness machine disk recover open recovery.json --key once.key --to var.key
    cryptsetup open --type luks2 --key-file var.key DEVICE NAME               # wherever the disk is now

`ask` makes a key that is used once; the broker seals the answer to it, so neither the file nor the Machine gives anything away.
The key of the disk goes into a file that nobody else reads (0600), and is printed nowhere. While a volume gets a new key it has
two: the second is in a file beside the first, named after its id.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import click

from fastness.attestation.verdict.breakglass import listed_approvers
from fastness.attestation.verdict.recovery import BadRecovery, agreed_recovery, digest_of, statement_of
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.breakglass import read_statement, time_of
from fastness.cli.trust.enrolled_machines import all_machines, machine_named, patch_machine
from fastness.crypto.errors import BrokenSeal
from fastness.crypto.jwe import opened
from fastness.crypto.jwk import public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.disks.volumes import volume_of
from fastness.formats import json
from fastness.keys.key_files import read_private, write_private
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.disks import RECOVER, RecoveryStatus
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.port import Cluster
from fastness.protocol.disk_keys import BadDiskAnswer, DiskAnswer, read_answer
from fastness.runtime.clock import SystemEntropy

PAUSE_SECONDS = 0.5
_HINT = "`fastness machine disk recover ask` begins anew; docs/how-to/recover-a-disk.md has the way."
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def recover() -> None:
    """Have the key of a volume, if its pool allows it and two approvers agree: ask, open."""


@recover.command()
@click.argument("name")
@click.argument("volume")
@click.option("--reason", required=True, help="Why; approvers sign it, and it goes on the record.")
@click.option("--key", "once", type=_FILE, required=True, help="Where to keep the key that the answer is sealed to.")
@click.option("--for", "lasting", default="1h", show_default=True, help="How long approvers have, as 30m; at most 4h.")
@click.option(
    "--although", type=click.Choice(["Quarantined", "Revoked", "Pending"]), default=None,
    help="The machine is not approved: say how it stands, so that approvers sign that, too.",
)  # fmt: skip
@cluster_options
def ask(
    name: str, volume: str, reason: str, once: Path, lasting: str, although: str | None, kubeconfig: Path | None, context: str
) -> None:  # fmt: skip
    """Write the statement that approvers sign to standard output."""
    _unused(once)
    if not reason.strip():
        raise CliError("--reason: approvers sign why", "Write a sentence.", Exit.USAGE)
    time = time_of(lasting)
    with reported_errors():
        cluster, machine = asyncio.run(_asked_about(name, kubeconfig, context))
    typed = view(machine, Machine)
    _check_volume(typed, volume)
    membership = membership_of(typed)
    if membership is not Membership.APPROVED and although != str(membership):
        hint = f"Add `--although {membership}` if its disk is to be opened all the same."
        raise CliError(f"{typed.metadata.name} is not approved: {membership}", hint, Exit.NO)
    key, now = PrivateKey.generate(SystemEntropy()), datetime.now(UTC)
    statement = statement_of(cluster, typed, volume, reason, public_jwk(key), now, now + time)
    with reported_errors():
        write_private(once, key.to_pem())
    click.echo(json.encode({"statement": statement, "agreed": []}).decode())
    tell(
        f"the answer will be for {public_key(statement['key']).thumbprint}: tell the approvers, who see it when they agree"
    )


@recover.command("open")
@click.argument("file", type=_FILE)
@click.option("--key", "once", type=_FILE, required=True, help="The key that `ask` made.")
@click.option("--to", "target", type=_FILE, required=True, help="Where to write the key of the disk (mode 0600).")
@click.option("--timeout", type=click.IntRange(1, 600), default=60, show_default=True, help="Seconds to wait.")
@cluster_options
def open_key(file: Path, once: Path, target: Path, timeout: int, kubeconfig: Path | None, context: str) -> None:
    """Fetch the key of a volume with a statement that two approvers signed, into a file."""
    document = read_statement(file)
    if "volume" not in document["statement"]:
        raise CliError(f"{file} is not about a disk", _HINT, Exit.USAGE)
    _unused(target)
    key = _once(once)
    with reported_errors():
        sealed, has = asyncio.run(_fetched(document, timeout, kubeconfig, context))
    try:
        answer = read_answer(opened(sealed.encode(), key), document["statement"]["volume"])
    except (BrokenSeal, BadDiskAnswer) as error:
        raise CliError(
            f"the answer does not open with {once}", "Use the key that `ask` made for it.", Exit.NO
        ) from error
    with reported_errors():
        _keep(answer, target, has)
    where = document["statement"]["name"], document["statement"]["volume"]
    tell(f"give the volume a new key when this is over: fastness machine disk rekey {' '.join(where)}")


def _keep(answer: DiskAnswer, target: Path, has: str) -> None:
    """Write the key that the disk has to its file, and one that may follow it beside it; raises OSError."""
    # The one that was reported comes first: the newer one is on the disk only if the machine got as far as exchanging it.
    ordered = sorted(answer.keys, key=lambda key: key.id != has)
    for place, key in enumerate(ordered):
        path = target if place == 0 else target.with_name(f"{target.name}.{key.id}")
        write_private(path, key.key)
        click.echo(f"{path}: key {key.id} of {answer.volume}")


def _unused(path: Path) -> None:
    if path.exists():
        raise CliError(f"{path} exists", "A key is never written over: choose another name.", Exit.USAGE)


def _once(path: Path) -> PrivateKey:
    with reported_errors():
        return PrivateKey.from_pem(read_private(path) or SecretBytes(b""))


def _check_volume(machine: Machine, volume: str) -> None:
    if volume_of(machine, volume) is None:
        volumes = ", ".join(entry.volume for entry in machine.status.disks) or "none"
        raise CliError(f"{machine.metadata.name} has no volume {volume}", f"It has {volumes}.", Exit.NO)


async def _asked_about(name: str, kubeconfig: Path | None, context: str) -> tuple[str, JsonObject]:
    async with connected(kubeconfig, context) as cluster:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        return str(confidential["metadata"]["uid"]), await machine_named(cluster, name)


async def _fetched(document: JsonObject, patience: int, kubeconfig: Path | None, context: str) -> tuple[str, str]:
    """The sealed answer to a statement, and which key the disk was last reported with; raises CliError, ApiError."""
    text, statement = json.encode(document).decode(), document["statement"]
    async with connected(kubeconfig, context) as cluster:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        machine = await _by_uid(cluster, str(statement.get("machine")))
        try:
            agreed_recovery(
                text, confidential, view(machine, Machine), listed_approvers(confidential), datetime.now(UTC)
            )
        except BadRecovery as error:
            raise CliError(f"{error} ({error.code})", _HINT, Exit.NO) from error
        await patch_machine(cluster, machine, {"metadata": {"annotations": {RECOVER: text}}})
        try:
            return await _answered(cluster, statement, digest_of(text), patience)
        finally:
            # With it goes the answer: what was fetched, or refused, needs not lie there.
            await patch_machine(cluster, machine, {"metadata": {"annotations": {RECOVER: None}}})


async def _by_uid(cluster: Cluster, uid: str) -> JsonObject:
    for machine in await all_machines(cluster):
        if machine["metadata"]["uid"] == uid:
            return machine
    raise CliError("the machine of this statement is gone", "Its keys went with it.", Exit.NO)


async def _answered(cluster: Cluster, statement: JsonObject, digest: str, patience: int) -> tuple[str, str]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + patience
    while loop.time() < ends:
        machine = view(await _by_uid(cluster, str(statement["machine"])), Machine)
        for entry in machine.status.disks:
            recovery = entry.recovery or RecoveryStatus()
            if recovery.statement == digest and recovery.refused:
                raise CliError(f"{recovery.message} ({recovery.refused})", _HINT, Exit.NO)
            if recovery.statement == digest and recovery.answer:
                return recovery.answer, entry.key_id
        await asyncio.sleep(PAUSE_SECONDS)
    raise CliError(f"no broker answered within {patience} seconds", "See whether one runs: fastness doctor.", Exit.NO)
