"""`fastness serve`: roles of the control plane against a Kubernetes API server.

    controllers   of several replicas one leads and writes, the others wait; losing the lease ends the work and begins the
                  wait anew
    webhook       every replica judges what would lower protection, and confidential workloads, before they are stored; by
                  default it runs beside the controllers, if the API server can reach it (in the cluster by its Service)
    page          every replica shows the cluster to people who log in with a token of the API
    configserver  every replica serves configs to machines; certificates are renewed while it runs

The definitions must be installed first (`fastness crds | kubectl apply --server-side -f -`): without them it says which are
missing. The namespace of the lease is made when it is not there. `replica_process` does the work.

    --adopt kata                                do this work although another operator is active
    --adopt namespace/trustee-operator-system   believe what is written there as what is written in fastness-system
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fastness.app.other_operators import FAMILIES
from fastness.app.parts import INTERNAL_PORT, PORTS, Part
from fastness.cli.errors import CliError, Exit
from fastness.cli.run.people_options import people_of, people_options
from fastness.cli.run.state_directory import kms_option
from fastness.formats.names import dns1123_label
from fastness.kube.places import Places
from fastness.observe import logs

if TYPE_CHECKING:
    from fastness.builds.job import JobSettings

ROLES = tuple(Part)
METRICS_PORT = 9090
_PORT = click.IntRange(0, 65535)
_NAMESPACE = "namespace/"


class Adoptable(click.ParamType[str]):
    """A family, or `namespace/NAME`."""

    name = "what"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """How help shows it."""
        return f"[{'|'.join(FAMILIES)}|{_NAMESPACE}NAME]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, if it is one."""
        named = value.startswith(_NAMESPACE) and not dns1123_label(value.removeprefix(_NAMESPACE))
        if value not in FAMILIES and not named:
            self.fail(f"{value!r} is neither one of {', '.join(FAMILIES)} nor {_NAMESPACE}NAME", param, ctx)
        return value


@click.command()
@click.option(
    "--roles", default=f"{Part.CONTROLLERS},{Part.WEBHOOK}", show_default=True,
    help=f"What to run, separated by commas: {', '.join(ROLES)}.",
)  # fmt: skip
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the API; default as kubectl."
)
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--identity", default="", help="Name of this replica in the lease; default host and process.")
@click.option("--metrics-port", type=_PORT, default=METRICS_PORT, show_default=True, help="Health and metrics.")
@click.option(
    "--metrics-host", default="127.0.0.1", show_default=True,
    help="Address of health and metrics; in a pod 0.0.0.0, so that kubelet and Prometheus reach it. They hold no secrets.",
)  # fmt: skip
@click.option(
    "--health-port", type=_PORT, default=None,
    help="A port of its own for health, without metrics; default with the metrics.",
)  # fmt: skip
@click.option("--health-host", default="", help="With --health-port: its address; default that of the metrics.")
@click.option(
    "--lease-seconds", type=click.FloatRange(1), default=15, show_default=True,
    help="How long a replica that stops answering keeps the lead.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address on which doors listen.")
@click.option(
    "--name",
    "names",
    multiple=True,
    help="A name or address that machines dial; may be repeated. It is in the certificates.",
)
@click.option(
    "--config-port", type=_PORT, default=PORTS[Part.CONFIG_SERVER], show_default=True,
    help="Configs for machines with a join ticket.",
)  # fmt: skip
@click.option(
    "--node-certificates/--no-node-certificates", default=True, show_default=True,
    help="Whether the config server gives nodes that never attested their configs for the certificate of the node; without it "
    "machines that boot are served with half the CPU.",
)  # fmt: skip
@click.option(
    "--join-tokens/--no-join-tokens", default=True, show_default=True,
    help="Whether the config server gives machines of pools without attestation a token to join by; without it they join by what "
    "their image brings.",
)  # fmt: skip
@click.option(
    "--internal-port", type=_PORT, default=INTERNAL_PORT, show_default=True, help="Configs for the gate and the broker."
)
@click.option("--enrol-port", type=_PORT, default=PORTS[Part.ENROLMENT], show_default=True, help="Enrolment.")
@click.option(
    "--enrol-rate", type=click.FloatRange(1, 10_000), default=10.0, show_default=True,
    help="Requests a second that enrolment takes from one address for long, with one ticket twice as many; a machine needs two.",
)  # fmt: skip
@click.option("--broker-port", type=_PORT, default=PORTS[Part.BROKER], show_default=True, help="The key broker.")
@click.option("--gate-port", type=_PORT, default=PORTS[Part.GATE], show_default=True, help="The gate.")
@click.option("--webhook-port", type=_PORT, default=PORTS[Part.WEBHOOK], show_default=True, help="The webhook.")
@click.option("--page-port", type=_PORT, default=PORTS[Part.PAGE], show_default=True, help="The page.")
@click.option(
    "--page-certificate",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with tls.crt and tls.key that the page shows instead of its own; looked at twice a minute.",
)
@click.option("--internal-url", default="", help="Where gate and broker reach the config server (https, port 22626).")
@click.option("--broker-url", default="", help="Where machines reach the broker (https); enrolment tells them.")
@click.option("--gate-url", default="", help="Where machines reach the gate (https); enrolment tells them.")
@click.option(
    "--webhook-url",
    default="",
    help="Where the API server reaches the webhook (https); default the Service fastness-webhook.",
)
@click.option("--enrol-url", default="", help="Where machines reach enrolment (https); goes into user-data.")
@click.option(
    "--config-url",
    default="",
    help="Where machines reach the config server (https); the controllers put it into user-data.",
)
@click.option(
    "--vault",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Key that seals what the broker keeps; made if it is not there. All replicas need the same one.",
)
@click.option(
    "--vault-secret", is_flag=True,
    help="Keep that key in the Secret broker-vault of the cluster instead, which replicas share; made when nothing is sealed.",
)  # fmt: skip
@kms_option
@click.option(
    "--collateral",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory with imported documents of Intel, AMD and makers of TPMs, for the broker.",
)
@click.option(
    "--collateral-cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory where the broker keeps documents that it fetched, and the highest numbers seen.",
)
@click.option(
    "--vendor-services",
    is_flag=True,
    help="Let the broker ask Intel and AMD for documents that it lacks; they learn which chips you have.",
)
@click.option(
    "--adopt",
    multiple=True,
    type=Adoptable(),
    help="Do this work although another operator is active in the cluster, or let objects in this namespace speak for the "
    "cluster (every role must be given the same); may be repeated.",
)
@click.option(
    "--builder-image", default="",
    help="Build images of pools in Jobs that run this image; without it the controllers build none.",
)  # fmt: skip
@click.option(
    "--builder-privileged", is_flag=True,
    help="With --builder-image: privileged containers in the place of user namespaces, for nodes that cannot give pods those.",
)  # fmt: skip
@click.option(
    "--builder-seconds", type=click.IntRange(60, 86400), default=3600, show_default=True,
    help="With --builder-image: how long a build may take.",
)  # fmt: skip
@people_options
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def serve(roles: str, identity: str, log_level: str, **given: Any) -> None:
    """Run roles of the control plane against a Kubernetes API server."""
    unknown = sorted(set(roles.split(",")) - set(ROLES))
    if unknown:
        raise CliError(f"unknown role {unknown[0]!r}", f"There are: {', '.join(ROLES)}.", Exit.USAGE)
    for url in ("config_url", "enrol_url", "internal_url", "broker_url", "gate_url", "webhook_url"):
        if given[url] and not given[url].startswith("https://"):
            option = f"--{url.replace('_', '-')}"
            raise CliError(f"{option} is not an https URL", "All doors are served over TLS only.", Exit.USAGE)
    parts = frozenset(Part(role) for role in roles.split(","))
    _require_options(parts, given)
    provider = people_of(given)
    logs.configure(level=log_level)
    name = identity or f"{socket.gethostname()}_{os.getpid()}"
    # Imported here: it loads every room, and --help, completion and a wrong option must not wait for that.
    from fastness.app.replica import ReplicaOptions
    from fastness.cli.run.replica_process import run_replica, with_reachable_webhook

    builds = _builds_of(given.pop("builder_image"), given.pop("builder_privileged"), given.pop("builder_seconds"))
    options = ReplicaOptions(parts, name, places=_places_of(given["adopt"]), provider=provider, builds=builds, **given)
    run_replica(with_reachable_webhook(options) if _by_default("roles") else options)


def _require_options(parts: frozenset[Part], given: Mapping[str, Any]) -> None:
    """What a role cannot do without; said before anything starts."""
    if given["health_host"] and given["health_port"] is None:
        hint = "Give --health-port too; without it health is where the metrics are."
        raise CliError("--health-host is for a port of its own", hint, Exit.USAGE)
    if given["vault"] is not None and given["vault_secret"]:
        raise CliError("--vault and --vault-secret are two places for one key", "Give one of them.", Exit.USAGE)
    if Part.BROKER in parts and given["vault"] is None and not given["vault_secret"]:
        hint = "Give --vault FILE, the same for all replicas, or --vault-secret."
        raise CliError("the broker has no key for what it keeps", hint, Exit.USAGE)
    if Part.GATE in parts and not given["internal_url"]:
        hint = "Give --internal-url https://HOST:22626."
        raise CliError("the gate does not know where the config server is", hint, Exit.USAGE)


def _by_default(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is ParameterSource.DEFAULT


def _builds_of(image: str, privileged: bool, seconds: int) -> JobSettings | None:
    """Where images are built, if they are."""
    from fastness.builds.job import JobSettings

    return JobSettings(image, user_namespaces=not privileged, seconds=seconds) if image else None


def _places_of(adopted: Iterable[str]) -> Places:
    """Where objects count in a cluster that is not ours alone: at home, and in the namespaces that were named."""
    return Places(adopted=frozenset(name.removeprefix(_NAMESPACE) for name in adopted if name.startswith(_NAMESPACE)))
