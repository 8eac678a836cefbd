"""The statuses of Machines, signed as they are written and checked as they are read.

    statuses = Statuses("broker", cluster, clock, entropy)
    cluster = SignedStatuses(cluster, statuses)          # what doors, controllers and their informers get as their cluster

Everything that decides by a Machine reads it through the port, so the port is the one place: nobody behind it sees a status that
is not believed (`attestation.machine.signed_status`), and nobody behind it has to think of signing. A part signs with the key of
its role, which signs its entries of the record, too (`doorkeys`); roles that write no statuses (gate, config server, page,
webhook) only read. The public halves are published before a key signs, and read again when a signature names a key that is not
among them: one that was made a moment ago is never taken for a stranger's.

* A patch of a status is signed over what the status becomes, so it is tied to the version that it was worked out from: where
  somebody wrote in between it is a Conflict, as for any reader who writes.
* A status that is not believed is not written on: whatever is added would be signed together with what a stranger wrote.
* What was seen last of each Machine is remembered: a status of before that comes back under a later version was put there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.machine.signed_status import (
    FIELD,
    Doubt,
    Signature,
    disbelieved,
    doubt_about,
    message,
    sign,
    signature_of,
    uid_of,
)
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.formats.patch import apply_merge_patch
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import metadata, object_name
from fastness.kinds.trusted_execution.machine import MACHINE, SIGNERS
from fastness.kube.errors import Conflict, Forbidden
from fastness.kube.port import (
    DELETE,
    EVERYWHERE,
    WRITE,
    Cluster,
    DeleteOptions,
    Event,
    EventType,
    Page,
    PatchType,
    Scope,
    WriteOptions,
)
from fastness.record.live.door_keys import DoorSigner, RecordRole, published_keys
from fastness.runtime.clock import Clock, Entropy

LOOK: Final = timedelta(hours=1)
TRIES: Final = 5
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doubted:
    """A Machine whose status is not believed: as it is, why, and as it was when it last was."""

    machine: JsonObject
    doubt: Doubt
    before: JsonObject | None


@dataclass(slots=True)
class _Memory:
    """What this process knows of one Machine: as it was last read, when it was last believed, and why it is not."""

    latest: JsonObject
    believed: JsonObject | None = None
    doubt: Doubt | None = None


class StatusKeys:
    """The public keys of the parts that sign statuses, read from what they publish."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._read: dict[str, tuple[datetime, Mapping[str, Ed25519Verifier]]] = {}

    async def find(self, role: str, key: str) -> Ed25519Verifier | None:
        """A key of a role, if that role has published it; raises ApiError."""
        now = self._clock.now()
        read = self._read.get(role)
        # A key that is not known is looked for at once: one that was published a moment ago is no stranger's.
        if read is None or key not in read[1] or not timedelta() <= now - read[0] < LOOK:
            read = self._read[role] = now, await published_keys(self._cluster, role)
        return read[1].get(key)

    async def is_newest(self, signature: Signature) -> bool:
        """Whether a signature is by the newest key of its part; raises ApiError."""
        await self.find(signature.by, signature.key)
        return next(iter(self._read[signature.by][1]), None) == signature.key


class Statuses:
    """Judges statuses with the keys of the cluster, and signs as one role if that role may."""

    def __init__(self, role: RecordRole | None, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self.keys = StatusKeys(cluster, clock)
        # Parts that only read get no key at all: what is not there cannot be stolen from them.
        self._role = role if role in SIGNERS else None
        self._signer = DoorSigner(role, cluster, clock, entropy) if role is not None and self._role else None
        self._memories: dict[str, _Memory] = {}

    async def judged(self, machine: JsonObject) -> JsonObject:
        """The Machine as it may be believed; raises ApiError."""
        memory = await self._looked(machine)
        return machine if memory.doubt is None else disbelieved(machine, memory.doubt)

    async def base(self, machine: JsonObject) -> JsonObject:
        """The Machine, to be written on; raises Forbidden for one whose status is not believed, ApiError."""
        memory = await self._looked(machine)
        if memory.doubt is not None:
            name = object_name(machine).name
            raise Forbidden(message(memory.doubt), group=MACHINE.group, kind=MACHINE.plural, name=name)
        return machine

    def doubted(self, name: str) -> Doubted | None:
        """What is wrong with the status of a Machine, as it was last read."""
        memory = self._memories.get(name)
        if memory is None or memory.doubt is None:
            return None
        return Doubted(memory.latest, memory.doubt, memory.believed)

    def latest(self, name: str) -> JsonObject | None:
        """A Machine as it was last read, believed or not."""
        memory = self._memories.get(name)
        return memory.latest if memory is not None else None

    def wrote(self, machine: JsonObject, status: JsonObject) -> None:
        """We signed this status, and the API took it as it is: looking at the signature would cost more than making it."""
        memory = self._memories.get(object_name(machine).name)
        # Compared with what came back: an admission webhook may have changed the status on its way, and then it is judged as any
        # other.
        newest = memory is None or _version(memory.latest) <= _version(machine)
        if newest and machine.get("status") == status:
            self._memories[object_name(machine).name] = _Memory(machine, machine)

    def forget(self, name: str) -> None:
        """Forget a Machine that was deleted."""
        self._memories.pop(name, None)

    async def signed(self, machine: Object, status: JsonObject) -> JsonObject:
        """A status for a Machine with our signature, later than any that we have seen; raises DamagedKeys, ApiError."""
        if self._signer is None or self._role is None:
            raise Forbidden("this part of the control plane does not write statuses of Machines")
        memory = self._memories.get(object_name(machine).name)
        versions = (machine, *((memory.latest, memory.believed or {}) if memory is not None else ()))
        # Above all that was seen of this very Machine: an equal serial would pass for a status of before that came back.
        serial = 1 + max(_serial(version) for version in versions if not version or uid_of(version) == uid_of(machine))
        made = sign(uid_of(machine), status, self._role, serial, await self._signer.current())
        return {**status, FIELD: made.to_json()}

    async def ends(self, signature: Signature) -> bool:
        """Whether a signature is by a key that has a successor, and not by the one that we sign with; raises ApiError."""
        if self._signer is None or await self.keys.is_newest(signature):
            return False
        return (await self._signer.current()).verifier.id != signature.key

    async def _looked(self, machine: JsonObject) -> _Memory:
        name = object_name(machine).name
        memory = self._memories.get(name)
        # One verification for each version: informers, controllers and doors of a process all read the same objects.
        if memory is not None and (memory.latest is machine or _same(memory.latest, machine)):
            return memory
        if memory is None or uid_of(memory.latest) != uid_of(machine):
            memory = _Memory(machine)
        doubt = await self._doubt(machine, memory.believed)
        before = self._memories.get(name)
        if before is None or uid_of(before.latest) != uid_of(machine):
            before = memory
        if _version(machine) < _version(before.latest):
            return _Memory(machine, before.believed, doubt)  # an answer that was on its way when a later one was read
        believed = machine if doubt is None and machine.get("status") else before.believed
        self._memories[name] = looked = _Memory(machine, believed, doubt)
        return looked

    async def _doubt(self, machine: JsonObject, believed: JsonObject | None) -> Doubt | None:
        later = believed is None or _version(machine) > _version(believed)
        # Emptied: whoever may write statuses and has no key would otherwise make a revoked machine a newcomer (decision 38).
        if not machine.get("status"):
            return Doubt.ROLLED_BACK if believed is not None and later else None
        signature = signature_of(machine)
        if signature is None:
            return Doubt.UNSIGNED
        # The same bytes that were believed, under a later version: somebody changed labels or the spec, which is not signed.
        if believed is not None and believed["status"] == machine["status"]:
            return None
        doubt = doubt_about(machine, signature, await self.keys.find(signature.by, signature.key))
        # Well signed, and older than what was there: somebody who may patch statuses put a copy of it back (decision 38).
        if doubt is None and believed is not None and later and signature.serial <= _serial(believed):
            return Doubt.ROLLED_BACK
        return doubt


class SignedStatuses:
    """A `Cluster` that gives Machines as they may be believed, and signs what is written on their statuses."""

    def __init__(self, cluster: Cluster, statuses: Statuses) -> None:
        self.statuses = statuses
        self._cluster = cluster

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; a Machine with its status judged. Raises ApiError."""
        stored = await self._cluster.get(resource, name, namespace)
        return await self.statuses.judged(stored) if _is_ours(resource, namespace) else stored

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects; Machines with their statuses judged. Raises ApiError."""
        page = await self._cluster.list(resource, scope, limit=limit, token=token, version=version)
        if not _is_ours(resource, scope.namespace):
            return page
        return replace(page, items=[await self.statuses.judged(machine) for machine in page.items])

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Changes; of Machines with their statuses judged. Raises ApiError."""
        async with self._cluster.watch(resource, scope, since=since, initial=initial) as events:
            yield self._judged(events) if _is_ours(resource, scope.namespace) else events

    async def _judged(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            if event.type is EventType.BOOKMARK or event.unreadable is not None:
                yield event
                continue
            judged = await self.statuses.judged(event.object)
            if event.type is EventType.DELETED:
                self.statuses.forget(object_name(event.object).name)
            yield event if judged is event.object else replace(event, object=judged)

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object; a status comes later."""
        return await self._cluster.create(resource, obj, options)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        kind: PatchType,
        namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Changed fields; those of a Machine's status are signed. Raises Forbidden on a status that is not believed."""
        if not _is_ours(resource, namespace):
            return await self._cluster.patch(resource, name, patch, kind, namespace, options)
        if options.subresource == "status" and kind is PatchType.MERGE and FIELD not in (patch.get("status") or {}):
            written = await self._signed(resource, name, patch, namespace, options)
        else:
            written = await self._cluster.patch(resource, name, patch, kind, namespace, options)
        return await self.statuses.judged(written)

    async def _signed(
        self, resource: Resource, name: str, patch: JsonObject, namespace: str, options: WriteOptions
    ) -> JsonObject:
        expected = (patch.get("metadata") or {}).get("resourceVersion")
        machine = self.statuses.latest(name)
        for _ in range(TRIES):
            if machine is None or expected not in (None, metadata(machine)["resourceVersion"]):
                machine = await self._cluster.get(resource, name, namespace)
            version = metadata(machine)["resourceVersion"]
            # Our own check, ahead of the server's: the signature is over what the status becomes, and that was worked out from
            # this version.
            if expected not in (None, version):
                raise Conflict(f"machine {name} changed since it was read", name=name, kind=resource.plural)
            before = (await self.statuses.base(machine)).get("status") or {}
            status = apply_merge_patch(before, patch.get("status") or {})
            body = {**patch, "metadata": {**(patch.get("metadata") or {}), "resourceVersion": version}}
            if status != before:  # else nothing is written, and a new signature would make it something
                status = {field: value for field, value in status.items() if field != FIELD}
                status = await self.statuses.signed(machine, status)
                body["status"] = {**patch["status"], FIELD: status[FIELD]}
            try:
                written = await self._cluster.patch(resource, name, body, PatchType.MERGE, namespace, options)
                self.statuses.wrote(written, status)
                return written
            except Conflict:
                if expected is not None:
                    raise
                machine = None
        raise Conflict(f"machine {name} changes too fast", name=name, kind=resource.plural)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Delete an object; raises ApiError."""
        return await self._cluster.delete(resource, name, namespace, options)

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """Reach a subresource of an object; raises ApiError."""
        return await self._cluster.connect(resource, name, namespace, subresource, body)


def signed_statuses(role: RecordRole | None, cluster: Cluster, clock: Clock, entropy: Entropy) -> SignedStatuses:
    """A cluster as one role sees it."""
    return SignedStatuses(cluster, Statuses(role, cluster, clock, entropy))


def _is_ours(resource: Resource, namespace: str) -> bool:
    return (resource.group, resource.plural) == (MACHINE.group, MACHINE.plural) and namespace == NAMESPACE


def _serial(machine: Object) -> int:
    signature = signature_of(machine)
    return signature.serial if signature is not None else 0


def _version(machine: Object) -> int:
    """The place of an object in the order of writes; versions are numbers on every API server that we know."""
    text = str(metadata(machine).get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0


def _same(left: Object, right: Object) -> bool:
    """Whether two readings are of one version of one object."""
    this, other = metadata(left), metadata(right)
    return bool(this.get("resourceVersion")) and (this.get("uid"), this.get("resourceVersion")) == (
        other.get("uid"), other.get("resourceVersion"),
    )  # fmt: skip
