"""`fastness dcap manifests`: Intel's caching and quoting services as manifests, ready for `kubectl apply -f -`.

    export PCCS_API_KEY=...                                     from Intel's portal; never on the command line
    fastness dcap manifests --node master-0 | kubectl apply -f -

Tokens that are not given are made, and the admin token is told once, on standard error: nothing stores it. With --kubeconfig or
--context the node and the proxy are asked of the cluster.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import click
import yaml

from fastness.cli.cluster import connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.crypto.secret import SecretText
from fastness.crypto.x509 import CertificateAuthority
from fastness.formats import json
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.openshift.config import PROXY
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, Scope
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.intel.dcap import SERVICE_NAMES, DcapInputs, Images, Serving, dcap_objects, weaknesses
from fastness.workloads.intel.tokens import RANDOM_BYTES, WeakToken, random_token, require_key, require_strong

LIFETIME: Final = timedelta(days=365)
MAX_FILE: Final = 64 * 1024
KEY, USER, ADMIN = "PCCS_API_KEY", "PCCS_USER_TOKEN", "PCCS_ADMIN_TOKEN"
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master"


@dataclass(frozen=True, slots=True)
class PccsPlacement:
    """What a cluster says about where PCCS can run and how it reaches Intel."""

    node: str = ""
    https_proxy: str = ""
    no_proxy: str = ""


@click.group()
def dcap() -> None:
    """Intel's remote attestation for TDX guests."""


@dcap.command("manifests")
@click.option("--node", default="", help="The node that PCCS runs on; default the first of the control plane.")
@click.option("--https-proxy", default="", help="How PCCS reaches Intel; default the proxy of the cluster.")
@click.option("--api-key-file", type=_FILE, help=f"File with Intel's API key; default the environment's {KEY}.")
@click.option("--user-token-file", type=_FILE, help=f"File with the user token; default {USER}, else a random one.")
@click.option("--admin-token-file", type=_FILE, help=f"File with the admin token; default {ADMIN}, else a random one.")
@click.option("--pccs-image", default="", help="Image of PCCS, by digest.")
@click.option("--qgs-image", default="", help="Image of QGS, by digest.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Whether QGS checks the certificate of PCCS."
)
@click.option("--kubeconfig", type=_FILE, help="Ask this cluster for node and proxy.")
@click.option("--context", default="", help="A context of the kubeconfig; asks the cluster too.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="How to print."
)
def manifests(
    node: str, https_proxy: str, api_key_file: Path | None, user_token_file: Path | None, admin_token_file: Path | None,
    pccs_image: str, qgs_image: str, verify: bool, kubeconfig: Path | None, context: str, output: str,
) -> None:  # fmt: skip
    """Print PCCS and QGS with accounts, rights, secrets, TLS, backup and network policy."""
    place = PccsPlacement()
    if kubeconfig is not None or context:
        with reported_errors():
            place = asyncio.run(_ask(kubeconfig, context))
    if not (node or place.node):
        raise CliError(
            "no node is named for PCCS to run on", "Give --node NAME, or --kubeconfig to ask the cluster.", Exit.USAGE
        )
    key, user, admin = credentials(api_key_file, user_token_file, admin_token_file)
    if admin_token_file is None and not os.environ.get(ADMIN):
        tell_admin(admin)
    given = DcapInputs(
        key, user, admin, node or place.node, new_serving(), https_proxy or place.https_proxy, place.no_proxy, verify,
        _images(pccs_image, qgs_image),
    )  # fmt: skip
    for weakness in weaknesses(given):
        tell(f"warning: {weakness}")
    # Through JSON: parts that objects share would come out as YAML anchors.
    objects = json.decode(json.encode(dcap_objects(given)))
    if output == "json":
        show_json({"apiVersion": "v1", "kind": "List", "items": objects})
    else:
        click.echo(yaml.safe_dump_all(objects, sort_keys=False, width=120), nl=False)


def credentials(
    key_file: Path | None = None, user_file: Path | None = None, admin_file: Path | None = None
) -> tuple[SecretText, SecretText, SecretText]:
    """API key, user token and admin token; raises CliError for a missing key and for weak ones."""
    key = _secret(key_file, KEY)
    if key is None:
        hint = f"Export {KEY} or give --api-key-file; Intel's portal shows it under Manage Subscriptions."
        raise CliError("Intel's API key is missing", hint, Exit.USAGE)
    entropy = SystemEntropy()
    user = _secret(user_file, USER) or random_token(entropy.token(RANDOM_BYTES))
    admin = _secret(admin_file, ADMIN) or random_token(entropy.token(RANDOM_BYTES))
    try:
        require_key(key)
        require_strong(user, "user")
        require_strong(admin, "admin", user)
    except WeakToken as error:
        raise CliError(str(error), error.hint, Exit.USAGE) from error
    return key, user, admin


def tell_admin(token: SecretText) -> None:
    """Say the admin token to whoever runs the command: nothing stores it."""
    tell(f"the admin token of PCCS, shown only now: {token.reveal()}")


def _secret(file: Path | None, variable: str) -> SecretText | None:
    """A secret out of a file or the environment; a line end after it is not part of it. None when there is none."""
    if file is None:
        text = os.environ.get(variable, "")
        return SecretText(text) if text else None
    try:
        if file.stat().st_size > MAX_FILE:
            raise CliError(f"{file}: too large for a token", code=Exit.USAGE)
        return SecretText(file.read_bytes().decode().rstrip("\r\n"))
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}", code=Exit.USAGE) from error
    except UnicodeDecodeError as error:
        raise CliError(f"{file}: not text", code=Exit.USAGE) from error


def new_serving() -> Serving:
    """A certificate for PCCS from an authority that exists for this one certificate and forgets its key."""
    now, entropy = SystemClock().now(), SystemEntropy()
    authority = CertificateAuthority.create("fastness pccs", now, entropy, LIFETIME)
    issued = authority.issue_server(SERVICE_NAMES, LIFETIME, now)
    return Serving(issued.certificate.pem, issued.key_pem, authority.certificate.pem)


def _images(pccs: str, qgs: str) -> Images:
    usual = Images()
    return Images(pccs or usual.pccs, qgs or usual.qgs, usual.tools)


async def _ask(kubeconfig: Path | None, context: str) -> PccsPlacement:
    async with connected(kubeconfig, context) as cluster:
        return await place_in(cluster)


async def place_in(cluster: Cluster) -> PccsPlacement:
    """The first node of the control plane by name, and the proxy; raises ApiError."""
    nodes = (await cluster.list(NODE.resource, Scope(labels=CONTROL_PLANE))).items
    try:
        proxy = await cluster.get(PROXY.resource, "cluster")
    except NotFound:
        proxy = {}
    spec = proxy.get("spec") or {}
    name = str(nodes[0]["metadata"]["name"]) if nodes else ""
    return PccsPlacement(name, str(spec.get("httpsProxy") or ""), str(spec.get("noProxy") or ""))


def inputs_for(place: PccsPlacement) -> DcapInputs:
    """Everything for a cluster, with credentials from the environment; raises CliError."""
    return DcapInputs(*credentials(), place.node, new_serving(), place.https_proxy, place.no_proxy)


def inputs_in_use(place: PccsPlacement) -> DcapInputs:
    """Everything but the credentials, which the cluster has already and nobody reads back: those here go nowhere."""
    unused = random_token(SystemEntropy().token(RANDOM_BYTES))
    return DcapInputs(unused, unused, unused, place.node, new_serving(), place.https_proxy, place.no_proxy)
