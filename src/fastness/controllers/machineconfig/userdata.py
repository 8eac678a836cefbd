"""Managed user-data: what a new machine of a pool is created with.

For every pool there is a Secret `<pool>-user-data-managed` with a pointer config, and a join ticket inside it. Both are ours:

* The ticket is minted here, good for a month, and replaced while the old one is still good, so that machines which were
  created with the old Secret can still join.
* A hand edit is put back, and an event says so; a Secret that somebody made before us is adopted, and an event says that.
* Pointers that an installer made are left alone, but for the CA in them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, NotFound
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, Scope, WriteOptions
from fastness.controllers.engine.controller import GONE, Done, Object, Source
from fastness.controllers.engine.events import EVENTS, Recorder
from fastness.controllers.machineconfig.render import CONFIDENTIAL
from fastness.controllers.machineconfig.rollout import EVERY, POOLS
from fastness.crypto.secret import SecretText
from fastness.domain.machineconfig import pointer
from fastness.domain.machineconfig.errors import BadPointer
from fastness.domain.trustmodel import trust_model
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.model.fastness_dev.join_ticket import JOIN_TICKET
from fastness.model.kind import JsonObject, Resource
from fastness.model.machineconfiguration import names
from fastness.model.objects import ObjectName, is_being_deleted, labels_of, object_name
from fastness.trust.tickets import check, join_ticket, mint, ticket_hash

SECRETS = Resource("", "v1", "secrets", "Secret", True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
TICKETS = JOIN_TICKET.resource
POOL_LABEL = "fastness.dev/user-data"
LIFETIME = timedelta(days=30)
OVERLAP = timedelta(days=10)
_AS = WriteOptions(manager="user-data")


def _every_pool(_obj: Object) -> Iterable[ObjectName]:
    return (EVERY,)


def _pool_of_secret(secret: Object) -> Iterable[ObjectName]:
    name = object_name(secret).name
    managed = name.endswith(names.USER_DATA_SUFFIX)
    return (ObjectName("", name.removesuffix(names.USER_DATA_SUFFIX)),) if managed else ()


class UserData:
    """Keeps the user-data of every pool."""

    name = "user-data"
    writes: Sequence[Resource] = (SECRETS, TICKETS, NAMESPACES, EVENTS)

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        clock: Clock,
        entropy: Entropy,
        doors: Callable[[], pointer.Doors | None],
    ) -> None:
        here = Scope(names.USER_DATA_NAMESPACE)
        self.sources: Sequence[Source] = (
            Source(POOLS), Source(CONFIDENTIAL, keys=_every_pool), Source(SECRETS, keys=_pool_of_secret, scope=here),
            Source(TICKETS, keys=_every_pool),
        )  # fmt: skip
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._doors = doors
        self._recorder = Recorder(cluster, self.name, clock)
        self._pools = informers.of(POOLS)
        self._confidential = informers.of(CONFIDENTIAL)
        self._tickets = informers.of(TICKETS)
        self._secrets = informers.of(SECRETS, here)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the user-data of one pool, or of all, in step."""
        if key == EVERY:
            for each in self._pools.list():
                await self._sync(each)
            return Done()
        pool = self._pools.get("", key.name)
        if pool is None:
            return GONE
        await self._sync(pool)
        return Done(again_after=OVERLAP.total_seconds() / 2)

    async def _sync(self, pool: JsonObject) -> None:
        doors = self._doors()
        if doors is None or is_being_deleted(pool):
            return
        name = object_name(pool).name
        trust = trust_model(self._confidential.get("", "cluster"), name)
        known = await self._known(name)
        ticket, fresh = await self._ticket(name, known)
        try:
            wanted = pointer.user_data_secret(pool, pointer.pointer(pool, trust, doors, ticket.reveal()))
        except BadPointer as error:
            await self._recorder.warning(pool, "BadPointer", f"{error.message}: {error.hint}")
            return
        await self._write(pool, known, wanted, fresh=fresh)
        await self._refresh_unmanaged(doors)

    async def _known(self, pool: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SECRETS, f"{pool}{names.USER_DATA_SUFFIX}", names.USER_DATA_NAMESPACE)
        except NotFound:
            return None

    async def _ticket(self, pool: str, secret: JsonObject | None) -> tuple[SecretText, bool]:
        """The ticket in the Secret if it will be good for a while, else a new one; whether it is new."""
        now = self._clock.now()
        shown = _ticket_in(secret)
        if shown and check(shown, pool, self._tickets.list(), now + OVERLAP).good:
            return SecretText(shown), False
        ticket = mint(self._entropy)
        made = join_ticket(f"user-data-{pool}-{ticket_hash(ticket)[-12:]}", ticket, pool, now + LIFETIME)
        made["metadata"]["labels"] = {POOL_LABEL: pool}
        await self._cluster.create(TICKETS, made, _AS)
        await self._drop_expired(now)
        return ticket, True

    async def _drop_expired(self, now: datetime) -> None:
        for ticket in self._tickets.list():
            ours = POOL_LABEL in labels_of(ticket)
            if ours and datetime.fromisoformat(ticket["spec"]["expires"]) <= now:
                try:
                    await self._cluster.delete(TICKETS, object_name(ticket).name)
                except NotFound:
                    continue

    async def _write(self, pool: JsonObject, known: JsonObject | None, wanted: JsonObject, *, fresh: bool) -> None:
        place = object_name(wanted)
        if known is None:
            await self._create(wanted)
            return
        same = all(known.get(part) == wanted[part] for part in ("data", "type"))
        ours = names.MANAGED_CA_LABEL in labels_of(known)
        if same and ours:
            return
        meta = {"labels": wanted["metadata"]["labels"], "ownerReferences": wanted["metadata"]["ownerReferences"]}
        patch = {"metadata": meta, "data": {**dict.fromkeys(known.get("data") or {}), **wanted["data"]}}
        await self._cluster.patch(SECRETS, place.name, patch, PatchType.MERGE, place.namespace, _AS)
        if not ours:
            await self._recorder.normal(pool, names.Event.USER_DATA_ADOPTED, f"{place} is kept by Fastness from now on")
        elif not fresh:
            await self._recorder.warning(
                pool, names.Event.USER_DATA_RESTORED, f"{place} was changed by hand and is put back"
            )

    async def _create(self, wanted: JsonObject) -> None:
        try:
            await self._cluster.create(SECRETS, wanted, _AS)
        except AlreadyExists:
            return
        except NotFound:
            meta = {"name": names.USER_DATA_NAMESPACE}
            await self._cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, _AS)
            await self._cluster.create(SECRETS, wanted, _AS)

    async def _refresh_unmanaged(self, doors: pointer.Doors) -> None:
        """Put a new CA into pointers that an installer made."""
        for secret in self._secrets.list():
            if not doors.ca or not pointer.is_unmanaged_pointer(secret):
                continue
            try:
                data = pointer.with_ca(secret, doors.ca)
            except BadPointer as error:
                await self._recorder.warning(secret, "BadPointer", f"{error.message}: {error.hint}")
                continue
            if data is not None:
                place = object_name(secret)
                await self._cluster.patch(SECRETS, place.name, {"data": data}, PatchType.MERGE, place.namespace, _AS)


def _ticket_in(secret: Mapping[str, Any] | None) -> str:
    """The ticket that a pointer carries; empty when there is none or it cannot be read."""
    try:
        data = base64.b64decode(((secret or {}).get("data") or {}).get("userData") or "")
        merge = json.decode(data)["ignition"]["config"]["merge"][0]
        values = [entry.get("value", "") for entry in merge["httpHeaders"] if entry.get("name") == "Authorization"]
    except (ValueError, FormatError, KeyError, IndexError, TypeError, AttributeError):
        return ""
    return values[0].removeprefix("Bearer ") if values else ""
