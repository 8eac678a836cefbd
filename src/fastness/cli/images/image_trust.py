"""`fastness image trust`: the file that an image carries so that its machines know this cluster.

It holds public things only: the authority of the doors and the keys that sign configurations. Whoever builds the image decides
with it whom its machines believe, so it belongs under /usr/lib/fastness/trust.json, where it is measured.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import Path

import click

from fastness.agent.boot.image_trust import BadTrust, ImageTrust
from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors
from fastness.formats import json
from fastness.keys.authorities import found_secret
from fastness.keys.doors import DOORS
from fastness.keys.keyrings import JWKS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.release.live.signed_configs import CONFIG_JWKS


@click.command("trust")
@click.option(
    "--origin", default="", help="Tie the image to one address of the cluster, such as https://cluster.example:8000."
)
@click.option(
    "--file", "-f", "target", type=click.Path(path_type=Path), default=None, help="Where to write; default: print."
)
@cluster_options
def trust(origin: str, target: Path | None, kubeconfig: Path | None, context: str) -> None:
    """Print whom machines of this cluster believe, for /usr/lib/fastness/trust.json of an image."""
    document = trust_of_cluster(origin, kubeconfig, context)
    if target is None:
        click.echo(document.decode().rstrip("\n"))
        return
    target.write_bytes(document)
    tell(f"wrote {target}: put it into the image as /usr/lib/fastness/trust.json")


def trust_of_cluster(origin: str, kubeconfig: Path | None, context: str) -> bytes:
    """The trust.json of a cluster; raises CliError."""
    with reported_errors():
        authorities, keys = asyncio.run(_known(kubeconfig, context))
    believed = {"ca": authorities.decode(), "configKeys": keys, **({"origin": origin.rstrip("/")} if origin else {})}
    return readable_trust(json.encode(believed) + b"\n")


def readable_trust(document: bytes) -> bytes:
    """The document, if machines can read it: what they cannot read must not reach an image; raises CliError."""
    try:
        ImageTrust.parse(document)
    except BadTrust as error:
        raise CliError(error.message, error.hint, Exit.USAGE) from error
    return document


async def _known(kubeconfig: Path | None, context: str) -> tuple[bytes, list[object]]:
    """The doors' authorities (PEM) and the public config-signing keys; raises CliError, ApiError."""
    async with connected(kubeconfig, context) as cluster:
        authorities = await _authorities(cluster, DOORS.name)
        keys = json.decode(await _published(cluster, CONFIG_JWKS.name))
    return authorities, list(keys["keys"])


async def _authorities(cluster: Cluster, secret: str) -> bytes:
    """The certificates of the doors' authorities."""
    content = ((await found_secret(cluster, secret)) or {}).get("data") or {}
    if not content:
        raise CliError(f"the cluster has no Secret {secret} yet", "Start the doors once: they make it.", Exit.MISSING)
    try:
        return base64.b64decode(content["ca.crt"], validate=True)
    except (KeyError, binascii.Error) as error:
        raise CliError(f"the Secret {secret} has no ca.crt that can be read", "Restore it.", Exit.MISSING) from error


async def _published(cluster: Cluster, name: str) -> bytes:
    """Public keys that the config server published."""
    try:
        published = await cluster.get(CONFIG_MAP.resource, name, NAMESPACE)
        return str((published.get("data") or {})[JWKS]).encode()
    except (NotFound, KeyError) as error:
        raise CliError(
            f"the cluster has no keys in ConfigMap {name} yet",
            "Start the config server once: it makes and publishes them.",
            Exit.MISSING,
        ) from error
