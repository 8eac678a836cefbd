"""Keys of disks, as the broker hands them out: `machine/<uid>/disk-<volume>`, to an unlock session of that machine.

The answer has the keys of the volume, newest first, what its header said when the disk was made, and how to make one
(`disks.keyring.answer`). It is made when it is asked for, so a key that was destroyed is gone at once.

A root that the Clevis pin opens has one key, `default/<id>/root`, as the pin reads it, for an ordinary session of a Machine that
the pin enrolled, and under no other name. Machines that the agent enrolled get nothing by that name, whatever their pool says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from fastness.crypto.secret import SecretBytes
from fastness.disks.keyring import answer, next_opening, pin_answer
from fastness.disks.live.key_store import DiskKeys
from fastness.disks.live.unlocked import note_unlocked
from fastness.disks.volumes import ROOT, Settings, is_pin_served, is_pinned, lacks_key, pool_disk, volume_of
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CLEVIS_PIN, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster
from fastness.protocol.enrolment import TPM
from fastness.protocol.kbs_path import ResourcePath, disk_of, is_pin_key
from fastness.release.source import Content, Query
from fastness.runtime.clock import Clock, Entropy

WHAT: Final = "disk-unlocked"


class DiskKeySource:
    """Keys of disks."""

    def __init__(
        self, cluster: Cluster, keys: DiskKeys, confidential: Informer, clock: Clock, entropy: Entropy
    ) -> None:
        self._cluster = cluster
        self._keys = keys
        self._confidential = confidential
        self._clock = clock
        self._entropy = entropy

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is the key of a disk. Nothing else is asked for those: an administrator writes none."""
        return disk_of(path) is not None

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content:
        """The keys of a volume; raises Refusal, ApiError, BrokenSeal, UnknownSealKey."""
        if is_pin_key(path):
            return await self._for_pin(grant, path)
        disk, subject = disk_of(path), grant.subject
        # `authorise` lets nobody else come here; asked once more because these keys open everything that the machine ever wrote.
        if disk is None or grant.basis is not Basis.VERDICT or not subject.is_unlock or disk[0] != subject.machine:
            raise Refusal(403, "unlock-required", "keys of disks are given to machines that boot", grant.verdict)
        volume, stored = disk[1], await self._machine(grant)
        machine = view(stored, Machine)
        if is_pinned(machine):
            raise Refusal(404, "no-such-disk", "the root of this machine is opened by the Clevis pin", grant.verdict)
        settings = self._settings(machine)
        recorded, keys = volume_of(machine, volume), await self._keys.read(subject.machine, volume)
        if recorded is None:
            # Not recorded yet: the loops make it as soon as they have heard of the machine.
            if lacks_key(machine, settings) and settings is not None and settings.volume == volume:
                raise _pending(grant)
            raise Refusal(404, "no-such-disk", "the machine has no such volume", grant.verdict)
        if not keys:
            raise _destroyed(grant)
        opening = self._next_opening(stored, volume)
        return self._content(grant, stored, volume, keys, answer(recorded, keys, settings, opening), opening)

    async def _for_pin(self, grant: Grant, path: ResourcePath) -> Content:
        """The key of a root that the Clevis pin opens; raises Refusal, ApiError, BrokenSeal, UnknownSealKey."""
        subject = grant.subject
        own = path.type in (subject.id, subject.machine)
        if grant.basis is not Basis.VERDICT or subject.is_unlock or subject.tee != TPM or not own:
            raise Refusal(403, "unlock-required", "keys of disks are given to machines that boot", grant.verdict)
        stored = await self._machine(grant)
        machine = view(stored, Machine)
        settings = self._settings(machine)
        # A machine of our agent has a stronger way to the key of its root: its ordinary session, which root has, opens none.
        if not is_pin_served(machine, settings):
            raise Refusal(403, "unlock-required", "this machine's disk is not opened by the Clevis pin", grant.verdict)
        if volume_of(machine, ROOT) is None:
            raise _pending(grant)
        keys = await self._keys.read(subject.machine, ROOT)
        if not keys:
            raise _destroyed(grant)
        opening = self._next_opening(stored, ROOT)
        return self._content(grant, stored, ROOT, keys, pin_answer(keys[0][1]), opening, pin=CLEVIS_PIN)

    def _settings(self, machine: Machine) -> Settings | None:
        return pool_disk(self._confidential.get("", NAME), machine.status.pool)

    def _next_opening(self, stored: JsonObject, volume: str) -> int:
        recorded = volume_of(view(stored, Machine), volume) or VolumeStatus()
        return next_opening(recorded, self._clock.now(), self._entropy)

    def _content(
        self, grant: Grant, stored: JsonObject, volume: str, keys: Sequence[tuple[str, SecretBytes]], value: SecretBytes,
        opening: int, **more: str,
    ) -> Content:  # fmt: skip
        facts = {"volume": volume, "keys": ",".join(key_id for key_id, _ in keys), "opening": str(opening), **more}
        # With the machine as it was read: of two releases with one number only one leaves.
        note = partial(note_unlocked, self._cluster, stored, volume, opening, grant.verdict, self._clock.now())
        return Content(value, facts, what=WHAT, note=note)

    async def _machine(self, grant: Grant) -> JsonObject:
        """As the API has it: what was recorded of the disk a moment ago decides how it is opened."""
        try:
            machine = await self._cluster.get(MACHINE.resource, grant.subject.name, NAMESPACE)
        except NotFound:
            machine = {}
        if not machine or machine["metadata"]["uid"] != grant.subject.machine:
            raise Refusal(403, "revoked", "this machine is no longer trusted", grant.verdict)
        return machine


def _pending(grant: Grant) -> Refusal:
    return Refusal(503, "disk-key-pending", "the key of this disk is being made", grant.verdict)


def _destroyed(grant: Grant) -> Refusal:
    return Refusal(404, "disk-key-destroyed", "the key of this volume was destroyed", grant.verdict)
