"""Machines in the cluster: found by the key that is their identity, written once by enrolment.

    machine = await find_machine(cluster, KeyKind.AK, thumbprint)

The name of a Machine follows from its key and the kind of that key, so finding one is a read by name; the full thumbprint in its
status must agree, and its evidence type must be one whose machines have such keys.

* Writing is repeatable at every step: a door that dies leaves nothing that the machine's next try does not complete.
* What exists is never changed to fit: another key under the same name, another pool, evidence type or endorsement is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from fastness.attestation.machine.chip import kept_against, standing_against
from fastness.attestation.machine.machine import (
    ENDORSEMENT_LABEL,
    Newcomer,
    attestation_key_object,
    key_conditions,
    machine_object,
    machine_status,
    of_same_tpm,
    predecessor_of,
)
from fastness.attestation.machine.signed_status import is_disbelieved
from fastness.attestation.verdict.distrust import Distrusted
from fastness.crypto.errors import BadDigest
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, is_being_deleted, object_name, view
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.subject import KeyKind, Subject, key_kind
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.protocol.machine_names import endorsement_label, machine_name
from fastness.runtime.clock import Clock, Entropy

_AS: Final = WriteOptions(manager="enrolment")
_STATUS: Final = WriteOptions(manager="enrolment", subresource="status")
OTHER_TYPE: Final = "this key enrolled for evidence of {}: every kind of evidence needs a key of its own"


class IdentityConflict(Exception):
    """The name of the Machine is taken by something that this key did not enrol."""


@dataclass(frozen=True, slots=True)
class Written:
    """A Machine as it stands now, and whether this enrolment made it."""

    machine: JsonObject
    created: bool


async def find_machine(cluster: Cluster, kind: KeyKind, thumbprint: str) -> Machine | None:
    """The Machine that enrolled with a key, fresh from the API; raises ApiError."""
    try:
        stored = await cluster.get(MACHINE.resource, machine_name(kind, thumbprint), NAMESPACE)
    except (NotFound, BadDigest):
        return None
    return _of(stored, kind, thumbprint)


def known_machine(machines: Informer, kind: KeyKind, thumbprint: str) -> Machine | None:
    """The Machine that enrolled with a key, as the cache knows it."""
    try:
        stored = machines.get(NAMESPACE, machine_name(kind, thumbprint))
    except BadDigest:
        return None
    return _of(stored, kind, thumbprint) if stored else None


async def find_subject(cluster: Cluster, subject: Subject) -> Machine | None:
    """The Machine of a subject, fresh from the API; raises ApiError. `is_subject` says whether it still is that one."""
    if not subject.is_unlock:
        return await find_machine(cluster, key_kind(subject.tee), subject.thumbprint)
    try:
        return _of_uid(await cluster.get(MACHINE.resource, subject.name, NAMESPACE), subject.machine)
    except NotFound:
        return None


def known_subject(machines: Informer, subject: Subject) -> Machine | None:
    """The same, as the cache knows it."""
    if not subject.is_unlock:
        return known_machine(machines, key_kind(subject.tee), subject.thumbprint)
    stored = machines.get(NAMESPACE, subject.name)
    return _of_uid(stored, subject.machine) if stored else None


def _of_uid(machine: JsonObject, uid: str) -> Machine | None:
    machine_view = view(machine, Machine)
    return machine_view if machine_view.metadata.uid == uid and not is_being_deleted(machine) else None


def _of(machine: JsonObject, kind: KeyKind, thumbprint: str) -> Machine | None:
    machine_view = view(machine, Machine)
    # The name holds 80 bits of the thumbprint; the whole of it decides.
    same = machine_view.status.key_thumbprint == thumbprint and key_kind(machine_view.status.tee) is kind
    return machine_view if same and not is_being_deleted(machine) else None


class MachineWriter:
    """Writes the Machine of a newcomer, and the AttestationKey of an AK."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy

    async def existing(self, newcomer: Newcomer) -> JsonObject | None:
        """The Machine that this key has, complete or not; raises IdentityConflict, Conflict, ApiError."""
        try:
            stored = await self._cluster.get(MACHINE.resource, newcomer.machine_name, NAMESPACE)
        except NotFound:
            return None
        if is_being_deleted(stored):
            raise Conflict("the Machine of this key is being deleted")
        if is_disbelieved(stored):
            # A status that a stranger wrote: completing it would sign what the stranger made up.
            raise Conflict("nobody of the control plane wrote the status of this key's Machine: a person has to look")
        status = view(stored, Machine).status
        if status.key_thumbprint not in ("", newcomer.thumbprint):
            raise IdentityConflict("another key enrolled under this name")
        # A machine that was moved still boots with the ticket of the pool that it came from.
        if newcomer.pool not in (status.pool or newcomer.pool, status.moved_from):
            raise IdentityConflict("this key enrolled for another pool")
        if status.tee not in ("", newcomer.tee):
            raise IdentityConflict(OTHER_TYPE.format(status.tee))
        if status.endorsed_by not in ("", newcomer.endorsed_by):
            raise IdentityConflict(f"this key enrolled with another endorsement ({status.endorsed_by}): make a new key")
        # A key that the agent activated must not become one on its own word, nor the reverse: they open disks by other rules.
        if status.key_thumbprint and status.pin != newcomer.pin:
            raise IdentityConflict("this key enrolled another way: delete its Machine first")
        if newcomer.identity and stored["spec"]["id"] != newcomer.identity:
            raise IdentityConflict(
                "this key belongs to a Machine, whose disk has another key: delete that Machine first"
            )
        return stored

    async def placed(self, newcomer: Newcomer, distrusts: Iterable[Distrusted] = ()) -> Newcomer:
        """The newcomer with the live Machine that it replaces, or with what makes it wait for approval; raises ApiError."""
        if not newcomer.endorsement:
            return newcomer
        # Fresh from the API and not from the cache: a door must see the Machine that another one wrote for this TPM a moment ago.
        scope = Scope(NAMESPACE, labels=f"{ENDORSEMENT_LABEL}={endorsement_label(newcomer.endorsement)}")
        peers = of_same_tpm(newcomer, (await self._cluster.list(MACHINE.resource, scope)).items)
        live = tuple(distrusts)
        against = standing_against(peers, live) or kept_against(newcomer.endorsement, live)
        if against is None:
            return replace(newcomer, supersedes=predecessor_of(peers))
        return replace(newcomer, approved=False, waits=f"its TPM is known: {against}")

    async def write(self, newcomer: Newcomer) -> Written:
        """Make what is missing of the newcomer's objects; raises IdentityConflict, Conflict, ApiError."""
        created = False
        machine = await self.existing(newcomer)
        if machine is None:
            try:
                machine = await self._cluster.create(
                    MACHINE.resource, machine_object(newcomer, self._entropy.uid()), _AS
                )
                created = True
            # Another replica was faster with the same key: its object is the one, and this request counts for it.
            except AlreadyExists:
                machine = await self.existing(newcomer)
            if machine is None:
                raise Conflict("the Machine of this key was deleted at this moment")
        if not view(machine, Machine).status.key_thumbprint:
            machine = await self._complete(machine, newcomer)
        if newcomer.kind is KeyKind.AK:
            await self._key(newcomer, machine)
        return Written(machine, created)

    async def take_ticket(self, machine: Machine, newcomer: Newcomer) -> None:
        """Let a Machine that never attested count on the ticket that it shows now; raises Conflict, ApiError."""
        meta = machine.metadata
        patch = {
            "metadata": {"resourceVersion": meta.resource_version},
            "status": {"ticket": newcomer.ticket, "ticketUid": newcomer.ticket_uid},
        }
        await self._cluster.patch(MACHINE.resource, meta.name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def give_way(self, machine: JsonObject) -> bool:
        """Delete a Machine as it was seen; False when it changed since. Raises ApiError."""
        meta = machine["metadata"]
        # As it was looked at: one that attested in this moment must not be deleted as one that never did.
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        with suppress(NotFound):
            try:
                await self._cluster.delete(MACHINE.resource, meta["name"], NAMESPACE, options)
            except Conflict:
                return False
        return True

    async def _complete(self, machine: JsonObject, newcomer: Newcomer) -> JsonObject:
        name = object_name(machine).name
        # What the Machine says of its approval counts: somebody may have decided since it was made.
        approved = newcomer.approved and machine["spec"].get("approval") == "Approved"
        patch = {
            "metadata": {"resourceVersion": machine["metadata"]["resourceVersion"]},
            "status": machine_status(replace(newcomer, approved=approved), name, self._clock.now()),
        }
        try:
            return await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
        except Conflict:
            again = await self.existing(newcomer)
            if again is not None and view(again, Machine).status.key_thumbprint:
                return again
            raise

    async def _key(self, newcomer: Newcomer, machine: JsonObject) -> None:
        key = attestation_key_object(newcomer, machine)
        name = key["metadata"]["name"]
        try:
            stored = await self._cluster.create(ATTESTATION_KEY.resource, key, _AS)
        except AlreadyExists:
            stored = await self._cluster.get(ATTESTATION_KEY.resource, name, NAMESPACE)
            # The name holds a part of the thumbprint only: the whole key decides.
            if stored["spec"]["publicKey"] != key["spec"]["publicKey"]:
                raise IdentityConflict("another AttestationKey has the name of this key") from None
            if stored["spec"] != key["spec"]:
                stored = await self._renewed(stored, key)
        if condition(stored, "Approved") is None:
            patch = {"status": {"conditions": key_conditions(stored, self._clock.now(), pin=bool(newcomer.pin))}}
            await self._cluster.patch(ATTESTATION_KEY.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)

    async def _renewed(self, former: JsonObject, key: JsonObject) -> JsonObject:
        """The key in place of the one that a deleted Machine of the same key left; raises Conflict, ApiError.

        It goes after its owner by itself, which takes a garbage collector that has just learned of the kind half a minute.
        """
        name = object_name(former).name
        with suppress(NotFound):
            # That very object: a key that another door made in between stays.
            options = DeleteOptions(uid=former["metadata"]["uid"])
            await self._cluster.delete(ATTESTATION_KEY.resource, name, NAMESPACE, options)
        try:
            return await self._cluster.create(ATTESTATION_KEY.resource, key, _AS)
        except AlreadyExists as error:
            raise Conflict("the AttestationKey of a former Machine is still there") from error
