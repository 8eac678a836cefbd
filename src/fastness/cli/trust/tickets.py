"""`fastness ticket create` and `fastness userdata`: how a machine that is made by hand may ask to join.

A ticket is printed once and kept as a hash; the user-data of a pool is the pointer config that the cluster keeps for it. Before
there is a cluster, `offline_user_data` makes both.
"""

from __future__ import annotations

import asyncio
import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.cli.trust.offline_user_data import OfflineRequest, offline_options, write_offline
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.port import Cluster
from fastness.runtime.clock import SystemEntropy

_LIFETIME = re.compile(r"([1-9][0-9]{0,5})(m|h|d)\Z")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
MAX_LIFETIME = timedelta(days=365)


@click.group()
def ticket() -> None:
    """Join tickets: for which pool, for how many machines, and until when."""


@ticket.command("create")
@click.option("--pool", required=True, help="The pool that machines with this ticket join.")
@click.option(
    "--uses",
    type=click.IntRange(0, 4096),
    help="How many machines; 0 means any number. Default 1 where machines enrol, else 0: without a key nobody can count.",
)
@click.option("--lifetime", default="24h", show_default=True, help="How long it is good, as 30m, 24h or 7d.")
@click.option("--name", default="", help="Name of the JoinTicket; default made from its hash.")
@cluster_options
@output_option
def create(
    pool: str, uses: int | None, lifetime: str, name: str, kubeconfig: Path | None, context: str, output: str
) -> None:
    """Make a join ticket and print it once."""
    expires = datetime.now(UTC) + _duration(lifetime)
    with reported_errors():
        text, stored, uses = asyncio.run(_create(pool, uses, expires, name, kubeconfig, context))
    if output == "json":
        show_json(
            {
                "name": stored,
                "ticket": text,
                "pool": pool,
                "uses": uses,
                "expires": expires.isoformat(timespec="seconds"),
            }
        )
        return
    bound = counted(uses, "use") if uses else "any number of uses"
    tell(f"{stored}: for pool {pool}, {bound}, until {expires:%Y-%m-%d %H:%M} UTC; it is shown only now")
    click.echo(text)


def _duration(text: str) -> timedelta:
    match = _LIFETIME.match(text)
    if match is None:
        raise CliError(f"--lifetime: {text!r} is not a time such as 30m, 24h or 7d", code=Exit.USAGE)
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if lifetime > MAX_LIFETIME:
        raise CliError(f"--lifetime: {text} is longer than a year", "Make a new ticket when it is needed.", Exit.USAGE)
    return lifetime


async def _create(
    pool: str, uses: int | None, expires: datetime, name: str, kubeconfig: Path | None, context: str
) -> tuple[str, str, int]:
    made = mint(SystemEntropy())
    stored = name or f"{pool}-{ticket_hash(made)[-10:]}"
    async with connected(kubeconfig, context) as cluster:
        uses = await _countable(cluster, pool, uses)
        await _tell_unknown(cluster, pool)
        await cluster.create(JOIN_TICKET.resource, join_ticket(stored, made, pool, expires, uses))
    return made.reveal(), stored, uses


async def _tell_unknown(cluster: Cluster, pool: str) -> None:
    """Say when there is no such pool: a ticket may come first, and may also be a slip of the pen."""
    try:
        listed = await cluster.list(MACHINE_CONFIG_POOL.resource)
    except (Forbidden, NotFound):
        return  # whoever may make tickets need not be allowed to look at pools, and not every cluster knows the kind
    pools = [str(obj["metadata"]["name"]) for obj in listed.items]
    if pool not in pools:
        tell(
            f"there is no pool {pool} yet, and machines with this ticket get nothing before; there are: {', '.join(pools)}"
        )


async def _countable(cluster: Cluster, pool: str, uses: int | None) -> int:
    """The number of uses, as far as somebody will count them; raises CliError for a limit that nobody would."""
    try:
        confidential = await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        confidential = None
    if trust_model(confidential, pool) is not TrustModel.NONE:
        return 1 if uses is None else uses
    if uses:
        raise CliError(
            f"machines of pool {pool} do not enrol, so nobody can count the uses of a ticket",
            "Give --uses 0 and a short --lifetime, and delete the ticket when the machine is there.",
            Exit.NO,
        )
    return 0


@click.command()
@click.argument("pool", required=False, default="")
@offline_options
@cluster_options
def userdata(
    pool: str, kubeconfig: Path | None, context: str, offline: Path | None, lifetime: str, **given: Any
) -> None:
    """Print the pointer config of POOL, for machines that are made by hand.

    It holds a join ticket: treat it as a secret. With --offline there is no cluster yet: the pointers of the first machines are
    written to a directory, with a bundle that the cluster is given when it comes.
    """
    with reported_errors():
        if offline is not None:
            if pool:
                raise CliError("POOL and --offline do not go together", "Name pools with --pool.", Exit.USAGE)
            write_offline(offline, OfflineRequest(lifetime=_duration(lifetime), **given))
        elif not pool:
            raise CliError("which pool?", "Give POOL, or --offline DIRECTORY before there is a cluster.", Exit.USAGE)
        else:
            click.echo(asyncio.run(_userdata(pool, kubeconfig, context)))


async def _userdata(pool: str, kubeconfig: Path | None, context: str) -> str:
    secrets = SECRET.resource
    async with connected(kubeconfig, context) as cluster:
        try:
            secret = await cluster.get(secrets, f"{pool}{names.USER_DATA_SUFFIX}", names.USER_DATA_NAMESPACE)
        except NotFound as error:
            raise CliError(
                f"pool {pool} has no managed user-data",
                "Look at `kubectl get mcp`; it is made within seconds.",
                Exit.NO,
            ) from error
    return base64.b64decode(secret["data"]["userData"]).decode()
