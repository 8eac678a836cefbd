"""`fastness resource` and `fastness broker`: administration of the key broker.

The right to administer is the right to read one Secret in Kubernetes. Each verb reads it with the caller's kubeconfig, mints a
credential for exactly its own call that lives a minute, and uses the broker's admin API: the broker alone can seal what it keeps.
`fastness broker admin-token` mints one for somebody else, or for a client of Trustee.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import ssl
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx

from fastness.cli.cluster import cluster_options, connected
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.room_errors import reported_errors
from fastness.formats.words import counted
from fastness.keys.doors import NAME, NAMESPACE, SECRETS
from fastness.kube.client.pool import ConnectionPool
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole
from fastness.protocol.kbs_path import parse_path
from fastness.release.live.admins import ROLES, mint
from fastness.release.live.resources import MAX_RESOURCE
from fastness.runtime.clock import SystemClock, SystemEntropy

F = TypeVar("F", bound=Callable[..., Any])
OWN_LIFETIME = timedelta(minutes=1)
_LIFETIME = re.compile(r"([1-9][0-9]{0,3})(s|m|h)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours"}
_SECONDS = 30.0


def broker_options(function: F) -> F:
    """Where the broker is, and the cluster that it belongs to."""
    url = click.option(
        "--broker", "url", envvar="FASTNESS_BROKER", required=True, help="URL of the key broker, or FASTNESS_BROKER."
    )
    return url(cluster_options(function))


@click.group()
def resource() -> None:
    """Resources of the key broker: secrets that attested machines read."""


@resource.command("set")
@click.argument("path")
@click.argument("file", type=click.File("rb"), default="-")
@broker_options
def set_resource(path: str, file: Any, url: str, kubeconfig: Path | None, context: str) -> None:
    """Write the resource PATH (repository/type/tag) from FILE or standard input, replacing what was there."""
    _parsed(path)
    value = file.read(MAX_RESOURCE + 1)
    if len(value) > MAX_RESOURCE:
        raise CliError(f"a resource has at most {MAX_RESOURCE} bytes", code=Exit.USAGE)
    _call("POST", f"resource/{path}", url, kubeconfig, context, value)
    tell(f"{path}: {counted(len(value), 'byte')} written")


@resource.command("delete")
@click.argument("path")
@broker_options
def delete_resource(path: str, url: str, kubeconfig: Path | None, context: str) -> None:
    """Delete the resource PATH."""
    _parsed(path)
    _call("DELETE", f"resource/{path}", url, kubeconfig, context)
    tell(f"{path}: deleted")


@resource.command("list")
@broker_options
@output_option
def list_resources(url: str, kubeconfig: Path | None, context: str, output: str) -> None:
    """Print the paths of all resources that were set; never what they hold."""
    paths = _call("GET", "resource", url, kubeconfig, context).json()
    if output == "json":
        show_json(paths)
    else:
        click.echo("\n".join(paths)) if paths else tell("there are no resources")


@click.group()
def broker() -> None:
    """The key broker's administrators."""


@broker.command("admin-token")
@click.option("--role", "roles", multiple=True, help="admin, resources, policies or values.")
@click.option("--scope", "scopes", multiple=True, help="A call, such as `POST resource/default/*/*`.")
@click.option("--lifetime", default="15m", show_default=True, help="How long it is good: at most 1h.")
@click.option("--name", default="", help="Who uses it; goes on the record. Default: the name of this user.")
@cluster_options
def admin_token(
    roles: tuple[str, ...], scopes: tuple[str, ...], lifetime: str, name: str, kubeconfig: Path | None, context: str
) -> None:
    """Mint a credential for the broker's admin API and print it: send it as `Authorization: Bearer …`."""
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not (roles or scopes):
        raise CliError(f"--role is one of {', '.join(ROLES)}; or name calls with --scope", code=Exit.USAGE)
    calls = [scope for role in roles for scope in ROLES[role]] + list(scopes)
    span = _span(lifetime)

    async def minted() -> str:
        async with connected(kubeconfig, context) as cluster:
            return await _minted(cluster, calls, span, name)

    with reported_errors():
        click.echo(asyncio.run(minted()))


def _parsed(path: str) -> None:
    if parse_path(path) is None:
        raise CliError(f"{path!r} is not a resource", "Write repository/type/tag, of [a-z0-9._-].", Exit.USAGE)


def _span(text: str) -> timedelta:
    parts = _LIFETIME.match(text)
    if parts is None:
        raise CliError(f"--lifetime: {text!r} is not a time such as 90s, 15m or 1h", code=Exit.USAGE)
    return timedelta(**{_UNITS[parts[2]]: int(parts[1])})


def _call(method: str, path: str, url: str, kubeconfig: Path | None, context: str, body: bytes = b"") -> httpx.Response:
    with reported_errors():
        answer = asyncio.run(_sent(method, path, url.rstrip("/"), kubeconfig, context, body))
    if answer.status_code == 200:
        return answer
    try:
        told_by = answer.json()
        detail, code = str(told_by["detail"]), str(told_by["code"])
    except (ValueError, KeyError, TypeError):
        detail, code = f"the broker answered {answer.status_code}", ""
    raise CliError(
        f"{path}: {detail}", f"code {code}" if code else "", Exit.NO if answer.status_code < 500 else Exit.CLUSTER
    )


async def _sent(method: str, path: str, url: str, kubeconfig: Path | None, context: str, body: bytes) -> httpx.Response:
    async with connected(kubeconfig, context) as cluster:
        token = await _minted(cluster, [f"{method} {path}"], OWN_LIFETIME, "")
        authority = await cluster.get(SECRETS, NAME, NAMESPACE)
    trusted = base64.b64decode(authority["data"].get("ca.crt") or authority["data"]["tls.crt"]).decode()
    headers = {"authorization": f"Bearer {token}"}
    try:
        # The token of an administrator opens the broker: another door must not get it.
        lines = ConnectionPool(ssl.create_default_context(cadata=trusted), role=DoorRole.BROKER)
        async with httpx.AsyncClient(transport=lines, timeout=_SECONDS, trust_env=False) as http:
            return await http.request(method, f"{url}/kbs/v0/{path}", content=body, headers=headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise CliError(f"the broker at {url} cannot be reached: {error}", "Check --broker.", Exit.CLUSTER) from error


async def _minted(cluster: Cluster, scopes: list[str], lifetime: timedelta, name: str) -> str:
    who = name or os.environ.get("USER", "") or "somebody"
    return (await mint(cluster, SystemEntropy(), SystemClock().now(), who, scopes, lifetime)).reveal()
