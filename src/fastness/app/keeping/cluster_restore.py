"""Brings the backup of a Kubernetes back, in a cluster that has nothing of ours but its definitions.

    1  file       whole, of this key, of a Kubernetes, of a format that we know
    2  cluster    has our definitions, and none of our objects, keys, policies or webhooks
    3  objects    namespaces, keys and maps, the tiles, then the others, owners before what they own
    4  statuses   beside their objects, as the API keeps them apart; those of Machines signed for their new uids
    5  disks      keys sealed for the new uids of their Machines
    6  guard      what the controllers saw last of the ConfidentialCluster, under its new uid

An attempt that was cut short left the ConfigMap `restoring` with the digest of the file: the same file goes on where it was, and
every other one is refused. Accounts, policies and roles are installed afterwards: while they run, or hold, a restore cannot.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from fastness.apiserver import Key, checked_copy, objects_of
from fastness.app.backup_file import OtherBackup, require_of_kubernetes
from fastness.app.backups import checked_tiles, head_of, tiles_in
from fastness.app.keeping.cluster_backup import CONFIG_MAPS, SPACES, is_passing, kept_kinds
from fastness.app.keeping.moved_objects import (
    disk_keys_of,
    fresh,
    is_disk_keys,
    owners_known,
    renamed,
    resigned_status,
    settled_status,
    signers_in,
)
from fastness.attestation.live.guard_state import read_guard, write_guard
from fastness.crypto.digests import sha256
from fastness.keys.authorities import NAMESPACES, SECRETS
from fastness.keys.home import RESTORING
from fastness.keys.vault import Vault
from fastness.kinds.crd.sets import OWN, own_names, set_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.native import VALIDATING_WEBHOOK_CONFIGURATION
from fastness.kinds.objects import is_being_deleted, metadata
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.places import HOME
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.record.live.head import parse_head
from fastness.record.live.tiles import ConfigMapTiles
from fastness.release.live.vault_secret import NAME as VAULT_SECRET
from fastness.release.live.vault_secret import vault_in
from fastness.runtime.clock import Entropy

MARK: Final = "restoring"
WEBHOOK: Final = "fastness"
POLICY: Final = "fastness-record-doors"
POLICIES: Final = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
_AS: Final = WriteOptions(manager="restore")
_STATUS: Final = WriteOptions(manager="restore", subresource="status")
_EMPTY_FIRST: Final = "Restore into a cluster without Fastness: install the definitions alone, restore, then the chart."


@dataclass(slots=True)
class Kept:
    """What a checked backup holds."""

    digest: str
    objects: dict[Key, JsonObject]
    tiles: dict[str, bytes]
    facts: dict[str, str]

    def named(self, plural: str, namespace: str) -> dict[str, JsonObject]:
        """Objects of a kind of the core in a namespace, by name."""
        return {key.name: obj for key, obj in self.objects.items() if key[:3] == ("", plural, namespace)}


@dataclass(slots=True)
class RestoredCluster:
    """What was made, what others had made already, and what was left out because its kind or its owner is not there."""

    objects: int = 0
    entries: int = 0
    machines: int = 0
    present: int = 0
    left_out: list[str] = field(default_factory=list)


def read_backup(file: Path, vault: Vault) -> Kept:
    """All of a backup, if it is good; raises StoreError, DamagedRecord, OtherBackup."""
    with checked_copy(file, vault) as (checked, connection):
        require_of_kubernetes(checked.facts.identity)
        head = head_of(connection, vault)
        tiles = checked_tiles(tiles_in(connection), head)
        objects = dict(objects_of(checked, connection, vault))
        return Kept(str(sha256(checked.facts.digest + checked.facts.head)), objects, tiles, checked.facts.identity)


async def restore_cluster(
    backup: Kept, cluster: Cluster, now: datetime, entropy: Entropy, broker_vault: Vault | None = None
) -> RestoredCluster:
    """Make a cluster the one of a backup; raises OtherBackup when it cannot be, ApiError, MissingVaultKey."""
    served = {resource.group + "/" + resource.plural: resource for resource in await kept_kinds(cluster)}
    await _require_definitions(cluster)
    await _require_empty(cluster, backup, served.values())
    vault = broker_vault or vault_in(backup.named(SECRETS.plural, HOME).get(VAULT_SECRET) or {}, now, entropy)
    if vault is None and any(is_disk_keys(obj) for obj in backup.objects.values()):
        raise OtherBackup(
            "the backup holds keys of disks, and not the vault key that seals them",
            "Give --broker-vault FILE, the one that `fastness serve --vault` uses.",
        )
    work = _Restoring(cluster, backup, served, vault)
    await work.begin()
    await work.core()
    await work.custom()
    await work.disks()
    await work.guard()
    await work.end()
    return work.report


class _Restoring:
    """One restore: what was made so far, and which uid became which."""

    def __init__(self, cluster: Cluster, backup: Kept, served: dict[str, Resource], vault: Vault | None) -> None:
        self._cluster = cluster
        self._kept = backup
        self._served = served
        self._vault = vault
        self._uids: dict[str, str] = {}
        self._signers = signers_in(backup.named(SECRETS.plural, HOME))
        self.report = RestoredCluster()

    async def begin(self) -> None:
        """The namespaces, and the mark of a restore that has not ended."""
        for name in SPACES:
            space = self._kept.objects.get(Key("", NAMESPACES.plural, "", name))
            meta: JsonObject = {
                "name": name,
                **{part: metadata(space or {}).get(part) or {} for part in ("labels", "annotations")},
            }
            if name == HOME:  # from its first moment: doors that run must not take what is missing for unknown
                meta["annotations"] = {**meta["annotations"], RESTORING: self._kept.digest}
            try:
                await self._cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, _AS)
            except AlreadyExists:
                if name == HOME:
                    await self._mark_home(self._kept.digest)
        meta = {"name": MARK, "namespace": HOME}
        mark = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"backup": self._kept.digest}}
        with suppress(AlreadyExists):
            await self._cluster.create(CONFIG_MAPS, mark, _AS)

    async def core(self) -> None:
        """Keys and maps, then the tiles: a record without its keys could not go on."""
        for plural, resource in ((SECRETS.plural, SECRETS), (CONFIG_MAPS.plural, CONFIG_MAPS)):
            for key, obj in self._kept.objects.items():
                if key[:2] == ("", plural) and not is_disk_keys(obj):
                    await self._fill(resource, fresh(obj, self._uids))
        tiles = ConfigMapTiles(self._cluster)
        for path, piece in self._kept.tiles.items():
            await tiles.write(path, piece)

    async def custom(self) -> None:
        """Objects of our kinds: the cluster, its Machines, then all others, owners before what they own."""
        waiting = [(key, obj) for key, obj in self._kept.objects.items() if key.group]
        waiting.sort(key=lambda entry: entry[1]["kind"] != CONFIDENTIAL_CLUSTER.kind)
        waiting.sort(key=lambda entry: entry[1]["kind"] not in (CONFIDENTIAL_CLUSTER.kind, MACHINE.kind))
        while waiting:
            ready = [entry for entry in waiting if owners_known(entry[1], self._uids)]
            if not ready:
                break
            for key, obj in ready:
                resource = self._served.get(f"{key.group}/{key.plural}")
                if resource is None:
                    self._leave_out(key)
                else:
                    await self._put(resource, obj)
            done = {key for key, _ in ready}
            waiting = [entry for entry in waiting if entry[0] not in done]
        for key, _ in waiting:  # whoever makes the owner anew makes them, too
            self._leave_out(key)

    async def disks(self) -> None:
        """Keys of disks, sealed for their Machines of now; raises BrokenSeal, UnknownSealKey."""
        for key, obj in self._kept.objects.items():
            if not is_disk_keys(obj) or self._vault is None:
                continue
            moved = disk_keys_of(obj, self._uids, self._vault)
            if moved is None:
                self._leave_out(key)
            else:
                await self._fill(SECRETS, moved)

    async def guard(self) -> None:
        """What the controllers saw last of the ConfidentialCluster is this one; a change that they had not seen stays unseen."""
        memory = await read_guard(self._cluster)
        if memory is None or memory.uid not in self._uids:
            return
        before = next(obj for obj in self._kept.objects.values() if metadata(obj).get("uid") == memory.uid)
        was_present = metadata(before).get("generation") == memory.generation
        await write_guard(
            self._cluster, replace(memory, uid=self._uids[memory.uid], generation=1 if was_present else 0)
        )

    async def end(self) -> None:
        """It is done: the marks go."""
        self.report.entries = head_size(self._kept)
        with suppress(NotFound):
            await self._cluster.delete(CONFIG_MAPS, MARK, HOME)
        await self._mark_home(None)

    async def _mark_home(self, digest: str | None) -> None:
        patch = {"metadata": {"annotations": {RESTORING: digest}}}
        await self._cluster.patch(NAMESPACES, HOME, patch, PatchType.MERGE, "", _AS)

    async def _fill(self, resource: Resource, body: JsonObject) -> None:
        """Make a Secret or a map, or give one that is there its content: those of accounts may be there, empty."""
        meta = metadata(body)
        try:
            await self._cluster.create(resource, body, _AS)
        except AlreadyExists:
            content = {part: body[part] for part in ("data", "binaryData") if body.get(part)}
            if content:
                await self._cluster.patch(
                    resource, str(meta["name"]), content, PatchType.MERGE, str(meta["namespace"]), _AS
                )
        self.report.objects += 1

    async def _put(self, resource: Resource, obj: JsonObject) -> None:
        meta = metadata(obj)
        name, namespace = str(meta["name"]), str(meta.get("namespace") or "")
        try:
            made = await self._cluster.create(resource, fresh(obj, self._uids), _AS)
        except NotFound:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await self._cluster.create(NAMESPACES, space, _AS)
            made = await self._cluster.create(resource, fresh(obj, self._uids), _AS)
        except AlreadyExists:
            made = await self._cluster.get(resource, name, namespace)
            self._uids[str(meta["uid"])] = str(metadata(made)["uid"])
            if set_of(resource.group) != OWN:
                self.report.present += 1
                return
        self._uids[str(meta["uid"])] = uid = str(metadata(made)["uid"])
        status = obj.get("status")
        if status and "status" not in made:
            generations = int(meta.get("generation") or 0), int(metadata(made).get("generation") or 0)
            status = settled_status(renamed(status, self._uids), *generations)
            if obj["kind"] == MACHINE.kind:
                status = resigned_status(obj, status, uid, self._signers)
                self.report.machines += 1
            await self._cluster.patch(resource, name, {"status": status}, PatchType.MERGE, namespace, _STATUS)
        if is_being_deleted(obj):
            await self._cluster.delete(resource, name, namespace)
        self.report.objects += 1

    def _leave_out(self, key: Key) -> None:
        self.report.left_out.append(f"{key.plural}{'.' if key.group else ''}{key.group} {key.name}")


def head_size(backup: Kept) -> int:
    """How many entries the record of a backup has."""
    from_head = backup.named(CONFIG_MAPS.plural, HOME).get("record-head")
    return 0 if from_head is None else parse_head(from_head).size


async def _require_definitions(cluster: Cluster) -> None:
    listed = await cluster.list(CUSTOM_RESOURCE_DEFINITION.resource)
    missing = sorted(own_names() - {str(metadata(definition)["name"]) for definition in listed.items})
    if missing:
        raise OtherBackup(
            f"the cluster lacks the definition {missing[0]}",
            "Install them: fastness crds | kubectl apply --server-side -f -",
        )


async def _require_empty(cluster: Cluster, backup: Kept, served: Iterable[Resource]) -> None:
    """Nothing of ours is there, or only what an attempt with the same file left; raises OtherBackup, ApiError."""
    for resource, name, what in (
        (VALIDATING_WEBHOOK_CONFIGURATION.resource, WEBHOOK, "webhook of Fastness"),
        (POLICIES, POLICY, "accounts of Fastness"),
    ):
        with suppress(NotFound):
            await cluster.get(resource, name)
            raise OtherBackup(f"the cluster has the {what} already", _EMPTY_FIRST)
    with suppress(NotFound):
        mark = await cluster.get(CONFIG_MAPS, MARK, HOME)
        if (mark.get("data") or {}).get("backup") == backup.digest:
            return
        raise OtherBackup(
            "another backup was being restored into this cluster",
            "Go on with that file, or begin with an empty cluster.",
        )
    for resource in served:
        if set_of(resource.group) != OWN:
            continue
        page = await cluster.list(resource, limit=1)
        if page.items:
            holder = metadata(page.items[0])["name"]
            raise OtherBackup(f"the cluster is not empty: it has {resource.kind} {holder}", _EMPTY_FIRST)
    for name in SPACES:
        for obj in (await cluster.list(SECRETS, Scope(name))).items:
            if obj.get("data") and not is_passing(obj):
                holder = f"{name}/{metadata(obj)['name']}"
                raise OtherBackup(f"the cluster is not empty: the Secret {holder} holds something", _EMPTY_FIRST)
