"""A backup of a Kubernetes: all objects of ours, the record and the keys of the roles, in one file.

    make_cluster_backup(cluster, target, vault, now)

The file is the one of an embedded control plane (`app.backups`): a store whose rows are authenticated under a vault key that the
operator gives, Secrets and ConfigMaps sealed, the tiles of the record beside them. So `fastness backup verify` checks either, and
no key is ever in it in clear.

What is taken: every object of our own kinds and of those that our controllers write; Secrets and ConfigMaps of our namespace,
sealed resources, keys of disks. What is not: nodes, pods, roles and their bindings, leases, tokens that live for hours, and what
helm remembers.

Each kind is read at one moment and not all at the same one. Batches of the record come before its head: one that was folded in
meanwhile is known by its number, and one that is missing would be a hole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Final

from fastness.apiserver import BackupReport, Key, write_backup
from fastness.app.backup_file import OtherBackup, facts
from fastness.app.backups import checked_tiles, put_tiles
from fastness.keys.authorities import NAMESPACES, SECRETS
from fastness.keys.vault import Vault
from fastness.kinds.crd.sets import OWN, set_of
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import labels_of, metadata
from fastness.kinds.registry import custom_kinds
from fastness.kube.errors import NotFound
from fastness.kube.places import DISKS, HOME, ROOT_CA, SEALED
from fastness.kube.port import Cluster, Scope
from fastness.record.live.guard import PIECE
from fastness.record.live.head import NAME as HEAD
from fastness.record.live.head import RecordHead, parse_head
from fastness.record.live.tiles import LABEL, tile_in, tile_name

KEPT_SETS: Final = (OWN, "machineconfig", "trustee", "kata")
CONFIG_MAPS: Final = CONFIG_MAP.resource
SPACES: Final = (HOME, SEALED, DISKS)
PASSING_TYPES: Final = ("kubernetes.io/service-account-token", "helm.sh/release.v1")
PAGE: Final = 500


async def make_cluster_backup(cluster: Cluster, target: Path, vault: Vault, now: datetime) -> BackupReport:
    """Write a backup of a running cluster; raises ApiError, StoreError, DamagedRecord."""
    tiles: dict[str, JsonObject] = {}
    head = RecordHead()

    async def objects() -> AsyncIterator[tuple[Key, JsonObject]]:
        nonlocal head
        async for key, obj in _kept(cluster):
            if key[:3] == ("", CONFIG_MAPS.plural, HOME):
                if is_tile(obj):
                    tiles[key.name] = obj
                    continue
                if key.name == HEAD:
                    head = parse_head(obj)
            yield key, obj

    def read(path: str) -> bytes | None:
        stored = tiles.get(tile_name(path))
        return None if stored is None else tile_in(stored, path)

    def put_record(connection: sqlite3.Connection) -> None:
        put_tiles(connection, checked_tiles(read, head))

    space = await cluster.get(NAMESPACES, "kube-system")
    stated = facts(str(metadata(space).get("uid") or ""), now)
    return await write_backup(target, objects(), vault, stated, put_record)


def is_tile(config_map: JsonObject) -> bool:
    """Whether a ConfigMap holds a piece of the record that its head leads to; the last checkpoint beside them is an object."""
    name = str(metadata(config_map).get("name"))
    return labels_of(config_map).get(LABEL) == "tile" and name != tile_name(PIECE)


def is_passing(obj: JsonObject) -> bool:
    """Whether somebody else makes an object anew: a token of Kubernetes, the memory of helm, the CA in every namespace."""
    return str(obj.get("type") or "") in PASSING_TYPES or metadata(obj).get("name") == ROOT_CA


async def kept_kinds(cluster: Cluster) -> list[Resource]:
    """The kinds of ours that this cluster serves, batches of the record first; raises ApiError."""
    listed = await cluster.list(CUSTOM_RESOURCE_DEFINITION.resource)
    present = {str(metadata(definition)["name"]) for definition in listed.items}
    kinds = [
        kind.resource
        for kind in custom_kinds()
        if kind.storage_version and kind.crd_name in present and set_of(kind.group) in KEPT_SETS
    ]
    return sorted(kinds, key=lambda resource: resource != AUDIT_BATCH.resource)


async def _kept(cluster: Cluster) -> AsyncIterator[tuple[Key, JsonObject]]:
    kinds = await kept_kinds(cluster)
    for resource in kinds[:1]:
        async for entry in _listed(cluster, resource):
            yield entry
    for name in SPACES:
        try:
            yield Key("", NAMESPACES.plural, "", name), _trimmed(await cluster.get(NAMESPACES, name), NAMESPACES)
        except NotFound:
            continue
    async for entry in _listed(cluster, CONFIG_MAPS, HOME):
        yield entry
    for name in SPACES:
        async for entry in _listed(cluster, SECRETS, name):
            yield entry
    for resource in kinds[1:]:
        async for entry in _listed(cluster, resource):
            yield entry


async def _listed(cluster: Cluster, resource: Resource, namespace: str = "") -> AsyncIterator[tuple[Key, JsonObject]]:
    token = ""
    while True:
        page = await cluster.list(resource, Scope(namespace), limit=PAGE, token=token)
        if page.unreadable:
            named, why = page.unreadable[0]
            name = metadata(named).get("name")
            raise OtherBackup(
                f"{resource.plural} {name} cannot be read: {why}",
                "A backup without it would not be whole: repair or delete the object first.",
            )
        for obj in page.items:
            if not is_passing(obj):
                meta = metadata(obj)
                place = str(meta.get("namespace") or "")
                yield Key(resource.group, resource.plural, place, str(meta["name"])), _trimmed(obj, resource)
        token = page.next
        if not token:
            return


def _trimmed(obj: JsonObject, resource: Resource) -> JsonObject:
    """The object without who wrote which field, and with what lists leave out."""
    meta = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    return {**obj, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
