"""`fastness selftest`: do the doors of a running cluster do what they are there for?

In a cluster that says `simulated`, a machine of a simulated vendor goes the whole way: it enrols with a ticket, attests, reads
what attested machines may read, gets the configuration of its pool from the gate, boots something else, and is refused. In any
other cluster nobody can be made up, so a stranger knocks at enrolment and at the broker: the certificates must be the doors' own,
and the answer must be no. Both end with exit code 0 only when everything came out as it should. `helm test` runs it.

The authority of the doors and the keys of configurations are files, as in the image of a machine: whoever asks needs no Secret of
the cluster.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors

_SERVICE = "https://fastness-{role}.fastness-system.svc:{port}"


@click.command()
@click.option(
    "--ca", required=True, type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The authority of the doors, as PEM: ca.crt of a role's Secret with certificates.",
)  # fmt: skip
@click.option("--enrol-url", default=_SERVICE.format(role="enrol", port=8000), show_default=True, help="Enrolment.")
@click.option("--broker-url", default=_SERVICE.format(role="broker", port=8080), show_default=True, help="The broker.")
@click.option("--gate-url", default=_SERVICE.format(role="gate", port=22623), show_default=True, help="The gate.")
@click.option(
    "--config-keys", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The keys of configurations: jwks.json of the ConfigMap config-public-keys. Without them the gate is not asked.",
)  # fmt: skip
@click.option(
    "--configured/--not-configured", default=True, show_default=True,
    help="Whether the pool has a configuration; without one the gate must say so to a machine that it knows.",
)  # fmt: skip
@click.option("--pool", default="selftest", show_default=True, help="The pool that the machine asks to join.")
@click.option("--simulated/--stranger", default=True, show_default=True, help="A machine that is made up, or nobody.")
@click.option("--seconds", type=click.FloatRange(1), default=30.0, show_default=True, help="How long it may take.")
@click.option(
    "--patience", type=click.FloatRange(0), default=0.0, show_default=True,
    help="How many seconds to wait first, until the doors answer and the ConfidentialCluster is there.",
)  # fmt: skip
@cluster_options
def selftest(
    ca: Path, config_keys: Path | None, simulated: bool, configured: bool, pool: str, seconds: float, patience: float,
    kubeconfig: Path | None, context: str, **urls: str,
) -> None:  # fmt: skip
    """Prove that the doors of a cluster let in whom they should, and nobody else."""
    # Imported here: it loads the simulator and the agent, which help and a wrong option need not wait for.
    from fastness.cli.support.selftest_walk import (
        DoorsAt,
        SelftestFailed,
        knock,
        trust_of,
        until_answered,
        until_made,
        walk,
    )

    with reported_errors():
        trust = trust_of(ca.read_text(), config_keys.read_bytes() if config_keys else b"")
    doors = DoorsAt(urls["enrol_url"], urls["broker_url"], trust, urls["gate_url"] if config_keys else "")

    async def run() -> None:
        if not simulated:
            await until_answered(doors, patience)
            async with asyncio.timeout(seconds):
                await knock(doors, tell)
            return
        async with connected(kubeconfig, context) as cluster:
            await until_made(cluster, patience)
            await until_answered(doors, patience)
            async with asyncio.timeout(seconds):
                await walk(cluster, doors, pool, tell, configured=configured)

    with reported_errors():
        try:
            asyncio.run(run())
        except SelftestFailed as error:
            raise CliError(error.message, error.hint, Exit.NO) from error
        except TimeoutError as error:
            hint = "See `kubectl get pods -n fastness-system` and the last step above."
            raise CliError(f"not done within {seconds:g} seconds", hint, Exit.NO) from error
    tell("everything came out as it should")
