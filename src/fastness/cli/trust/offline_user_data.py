"""`fastness userdata --offline`: pointers for the first machines of a cluster that does not exist yet.

    DIRECTORY/master.ign, worker.ign   what machines of the pools are created with
    DIRECTORY/bundle.yaml              what the cluster is given before its doors open: kubectl apply --server-side -f bundle.yaml

The bundle has the authority of the doors with its key, the JoinTickets (a hash each, never the ticket), and each pool's Secret as
an installer makes it, which the controllers adopt. Whoever has these files can pretend to be the config server and can ask for
configs: they are written for their owner alone, nothing is overwritten, and the bundle is to be deleted once it is applied.

The authority of an earlier bundle is used again with `--bundle`: machines that have a pointer already must meet a server that
they trust.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from fastness.cli import manifests
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json, yaml_text
from fastness.formats.names import dns1123_subdomain
from fastness.keys.doors import DOORS
from fastness.keys.errors import DamagedAuthority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import MOST_USES
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.boot_images.pointer_version import DEFAULT_VERSION, usable_version
from fastness.machineconfig.pointer import pointer, unowned_secret
from fastness.machineconfig.render.errors import BadPointer
from fastness.runtime.clock import SystemEntropy

F = TypeVar("F", bound=Callable[..., Any])
BUNDLE: Final = "bundle.yaml"
LABEL: Final = "fastness.dev/offline"
_OPTIONS: Final = (
    click.option(
        "--offline", type=click.Path(path_type=Path, file_okay=False),
        help="Write pointers and a bundle for a cluster that does not exist yet into this directory.",
    ),
    click.option("--pool", "pools", multiple=True, help="With --offline: a pool; default master and worker."),
    click.option("--config-url", default="", help="With --offline: where machines will reach the config server (https)."),
    click.option(
        "--enrol-url", default="", help="With --offline: where machines of confidential pools will enrol (https)."
    ),
    click.option("--confidential", multiple=True, help="With --offline: a pool whose machines will attest."),
    click.option(
        "--machines", type=click.IntRange(1, MOST_USES), default=10, show_default=True,
        help="With --offline: how many machines may enrol with the ticket of a confidential pool.",
    ),
    click.option(
        "--lifetime", default="48h", show_default=True, help="With --offline: how long tickets are good, as 24h or 7d."
    ),
    click.option(
        "--pointer-version", default=DEFAULT_VERSION, show_default=True,
        help="With --offline: the Ignition version that the boot image of the first machines reads.",
    ),
    click.option(
        "--bundle", type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="With --offline: use the authority in this bundle instead of making one.",
    ),
)  # fmt: skip


def offline_options(function: F) -> F:
    """The options of `fastness userdata --offline`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class OfflineRequest:
    """What was asked for."""

    pools: tuple[str, ...]
    config_url: str
    enrol_url: str
    confidential: tuple[str, ...]
    machines: int
    lifetime: timedelta
    pointer_version: str
    bundle: Path | None

    @property
    def all_pools(self) -> tuple[str, ...]:
        """The pools, each once, those that were named as confidential too."""
        return tuple(dict.fromkeys((*(self.pools or (names.MASTER, names.WORKER)), *self.confidential)))


def write_offline(directory: Path, request: OfflineRequest) -> None:
    """Write pointers and bundle; raises CliError."""
    _check(request)
    now = datetime.now(UTC)
    authority = _authority(request.bundle, now)
    doors = Doors(request.enrol_url, request.config_url, _text(authority, "ca.crt"))
    objects = [_namespace(NAMESPACE), _namespace(names.USER_DATA_NAMESPACE), authority]
    files: dict[str, bytes] = {}
    for pool in request.all_pools:
        document, made = _of_pool(pool, request, doors, now + request.lifetime)
        files[f"{pool}.ign"] = json.encode(document) + b"\n"
        objects += made
    files[BUNDLE] = "---\n".join(yaml_text.encode(obj) for obj in objects).encode()
    _write(directory, files)
    until = f"{now + request.lifetime:%Y-%m-%d %H:%M} UTC"
    for pool in request.all_pools:
        tell(f"{directory / f'{pool}.ign'}: user-data of machines of pool {pool}, good until {until}; it is a secret")
    tell(
        f"{directory / BUNDLE}: kubectl apply --server-side -f it before the doors open, then delete it: it has the key of "
        "their authority"
    )


def _of_pool(
    pool: str, request: OfflineRequest, doors: Doors, expires: datetime
) -> tuple[JsonObject, list[JsonObject]]:
    """The pointer of a pool, and what the cluster needs to know of it."""
    attests = pool in request.confidential
    ticket = mint(SystemEntropy())
    # Machines that do not attest show no key that could be counted (decision 11): there only time ends a ticket.
    uses = request.machines if attests else 0
    trust = TrustModel.CONFIDENTIAL_CLUSTER if attests else TrustModel.NONE
    document = pointer(pool, trust, doors, ticket.reveal(), usable_version(request.pointer_version))
    known = join_ticket(f"offline-{pool}-{ticket_hash(ticket)[-12:]}", ticket, pool, expires, uses)
    known["metadata"]["labels"][LABEL] = pool
    return document, [known, unowned_secret(pool, document)]


def _check(request: OfflineRequest) -> None:
    """Everything that can be wrong before a key is made; raises CliError."""
    attested = set(request.confidential)
    lacking = [
        option
        for option, url, needed in (
            ("--config-url", request.config_url, attested < set(request.all_pools)),
            ("--enrol-url", request.enrol_url, bool(attested)),
        )
        if (needed or url) and not url.startswith("https://")
    ]
    if lacking:
        raise CliError(
            f"{lacking[0]} is not an https URL",
            "Say where machines will find the door, as https://host:port.",
            Exit.USAGE,
        )
    for pool in request.all_pools:
        if problems := dns1123_subdomain(pool):
            raise CliError(f"{pool!r} is no name of a pool: {problems[0]}", code=Exit.USAGE)
    try:
        usable_version(request.pointer_version)
    except BadPointer as error:
        raise CliError(f"--pointer-version: {error.message}", error.hint, Exit.USAGE) from error


def _authority(bundle: Path | None, now: datetime) -> JsonObject:
    """The authority of the doors: out of a bundle, else a new one; raises CliError."""
    if bundle is None:
        return DOORS.manifest(SystemEntropy(), now)
    secrets = [
        obj for obj in manifests.read([bundle]).of("Secret") if (obj.get("metadata") or {}).get("name") == DOORS.name
    ]
    if not secrets:
        hint = f"It is the {BUNDLE} of an earlier `fastness userdata --offline`."
        raise CliError(f"{bundle} has no Secret {DOORS.name}", hint, Exit.USAGE)
    try:
        DOORS.read(secrets[0], SystemEntropy())
    except DamagedAuthority as error:
        raise CliError(f"{bundle}: {error.message}", "Give the bundle as it was written.", Exit.USAGE) from error
    return secrets[0]


def _text(secret: JsonObject, key: str) -> str:
    try:
        return base64.b64decode(secret["data"][key], validate=True).decode()
    except (KeyError, ValueError, binascii.Error) as error:
        raise CliError(
            f"the Secret {DOORS.name} has no {key}", "Give the bundle as it was written.", Exit.USAGE
        ) from error


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _write(directory: Path, files: dict[str, bytes]) -> None:
    """Write files that are not there yet, for their owner alone; raises CliError."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = [name for name in files if (directory / name).exists()]
    if there:
        raise CliError(
            f"{directory / there[0]} exists",
            "Machines may have it already: choose another directory, or delete it.",
            Exit.NO,
        )
    for name, data in files.items():
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
