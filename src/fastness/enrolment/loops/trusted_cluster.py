"""TrustedExecutionCluster and AttestationKey: the kinds of another operator, driven by what is built in.

`TrustedClusters` honours one TrustedExecutionCluster: it makes sure that there is a ConfidentialCluster, enforcing from the
start, and tells each object how it stands. `told_doors` puts its addresses where machines are told to go. What the fields mean
here is a table in `enrolment.trusted_cluster`.

`AttestationKeys` says of each key whether it belongs to a Machine that proved it.

* A ConfidentialCluster that exists is never changed from here, and not deleted with the object: lowering it is a decision that
  has to be confirmed.
* Nothing trusts these statuses: the verifier looks at the Machine.
* An address counts as installed while somebody answers there, seen from here, and is looked at again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from fastness.attestation.machine.machine import key_conditions
from fastness.crypto.errors import BadKey
from fastness.crypto.silicon.verify import attestation_key
from fastness.enrolment.trusted_cluster import (
    Doors,
    InstallCondition,
    broker_url,
    conditions_of,
    enrolment_url,
    honoured,
)
from fastness.keys.authorities import SECRETS, named
from fastness.keys.doors import NAME as DOORS_CA
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, metadata, object_name, with_condition
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import AlreadyExists, Forbidden, Invalid, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock

CLUSTERS: Final = TRUSTED_EXECUTION_CLUSTER.resource
KEYS: Final = ATTESTATION_KEY.resource
CONFIDENTIAL: Final = CONFIDENTIAL_CLUSTER.resource
FOR: Final = "fastness.dev/made-for"
LOOK_SECONDS: Final = 30.0
REACH_SECONDS: Final = 3.0
Reach = Callable[[str], Awaitable[str | None]]
"""Why nobody answers at a URL; None when somebody does."""
SETTLE_SECONDS: Final = 1.0  # enrolment writes a key and its condition one after the other
BY_ID: Final = "attestationkeys/id"
_AS: Final = WriteOptions(manager="trusted-clusters")
_STATUS: Final = WriteOptions(manager="trusted-clusters", subresource="status")


async def answers(url: str) -> str | None:
    """Why nobody answers at a URL, as seen from here; None when somebody takes the connection."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(REACH_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except TimeoutError:
        return f"no answer within {REACH_SECONDS:g} seconds"
    except OSError as error:
        return error.strerror or str(error)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return None


def told_doors(doors: Callable[[], Doors | None], clusters: Informer) -> Callable[[], Doors | None]:
    """Where machines knock, with the address of enrolment that the honoured cluster names, if it names one."""

    def named_doors() -> Doors | None:
        addresses = doors()
        named = enrolment_url(honoured(clusters.list()))
        return replace(addresses, gate=named) if addresses is not None and named else addresses

    return named_doors


class TrustedClusters:
    """Honours one TrustedExecutionCluster."""

    name = "trusted-clusters"
    writes: Sequence[Resource] = (CLUSTERS, CONFIDENTIAL, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, reach: Reach | None = None) -> None:
        self._reach = reach or answers
        self.sources: Sequence[Source] = (
            Source(CLUSTERS, keys=self._every),
            Source(CONFIDENTIAL, keys=self._every),
            Source(SECRETS, keys=self._every_of_doors, scope=named(DOORS_CA)),
        )
        self._cluster = cluster
        self._clock = clock
        self._clusters = informers.of(CLUSTERS)
        self._confidential = informers.of(CONFIDENTIAL)
        self._secrets = informers.of(SECRETS, named(DOORS_CA))
        self._recorder = Recorder(cluster, self.name, clock)

    def _every(self, obj: Object) -> Iterable[ObjectName]:
        """All of them: when one goes, another may count. One that is gone is no longer in the list."""
        own = (object_name(obj),) if object_name(obj).namespace else ()
        return {*own, *(object_name(cluster) for cluster in self._clusters.list())}

    def _every_of_doors(self, _: Object) -> Iterable[ObjectName]:
        return [object_name(cluster) for cluster in self._clusters.list()]

    async def reconcile(self, key: ObjectName) -> Done:
        """Tell one how it stands, and do what it asks if it counts."""
        try:
            trusted = await self._cluster.get(CLUSTERS, key.name, key.namespace)
        except NotFound:
            return GONE
        counts = honoured(self._clusters.list())
        if counts is not None and object_name(counts) == key and not is_being_deleted(trusted):
            await self._make_confidential(trusted)
        confidential = self._confidential.get("", NAME) is not None
        doors = bool((self._secrets.get(NAMESPACE, DOORS_CA) or {}).get("data"))
        mine = counts is not None and object_name(counts) == key and not is_being_deleted(trusted)
        unreachable = await self._unreachable(trusted) if mine else None
        conditions = conditions_of(trusted, counts, doors=doors, confidential=confidential, unreachable=unreachable)
        await self._tell(trusted, conditions)
        return Done(again_after=LOOK_SECONDS) if mine else Done()

    async def _unreachable(self, trusted: JsonObject) -> str | None:
        """Which of the addresses that machines are sent to does not answer from here; None when all do."""
        for url in dict.fromkeys((broker_url(trusted), enrolment_url(trusted))):
            if url and (problem := await self._reach(url)) is not None:
                return f"{url}: {problem}"
        return None

    async def _make_confidential(self, trusted: JsonObject) -> None:
        if self._confidential.get("", NAME) is not None:
            return
        meta = {"name": NAME, "annotations": {FOR: str(object_name(trusted))}}
        made = {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": meta,
            "spec": {"mode": "Enforce"},
        }  # fmt: skip
        try:
            await self._cluster.create(CONFIDENTIAL, made, _AS)
        except AlreadyExists:
            return
        except (Invalid, Forbidden) as error:
            await self._recorder.warning(trusted, "ClusterNotMade", error.message)
            return
        await self._recorder.normal(trusted, "ClusterMade", "the ConfidentialCluster was made, enforcing attestation")

    async def _tell(self, trusted: JsonObject, said: Sequence[InstallCondition]) -> None:
        before: Sequence[JsonObject] = (trusted.get("status") or {}).get("conditions") or []
        conditions = list(before)
        for entry in said:
            conditions = with_condition(
                conditions, kind=entry.kind, status=str(entry.status), reason=entry.reason, message=entry.message,
                now=self._clock.now(), generation=metadata(trusted).get("generation"),
            )  # fmt: skip
        if conditions == before:
            return
        place = object_name(trusted)
        patch = {"status": {"conditions": conditions}}
        await self._cluster.patch(CLUSTERS, place.name, patch, PatchType.MERGE, place.namespace, _STATUS)
        installed = said[0]
        if installed.status or installed.reason == "NonUnique":
            tell = self._recorder.normal if installed.status else self._recorder.warning
            await tell(trusted, installed.reason, installed.message)


def _id(machine: Object) -> Iterable[str]:
    identity = (machine.get("spec") or {}).get("id")
    return (identity,) if identity else ()


def _uuid(key: Object) -> Iterable[str]:
    identity = (key.get("spec") or {}).get("uuid")
    return (identity,) if identity else ()


_MACHINES: Final = {BY_ID: _id}
_OWNED: Final = {BY_ID: _uuid}
_PROVED: Final = fields("spec.id", "status.keyThumbprint", "status.tee")


class AttestationKeys:
    """Says which keys belong to machines."""

    name = "attestation-keys"
    writes: Sequence[Resource] = (KEYS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(KEYS, delay=SETTLE_SECONDS, indexes=_OWNED),
            Source(MACHINE.resource, keys=self._of_machine, delay=SETTLE_SECONDS, indexes=_MACHINES, reads=_PROVED),
        )
        self._cluster = cluster
        self._clock = clock
        self._keys = informers.of(KEYS, indexers=_OWNED)
        self._machines = informers.of(MACHINE.resource, indexers=_MACHINES)

    def _of_machine(self, machine: Object) -> Iterable[ObjectName]:
        return [object_name(key) for uuid in _id(machine) for key in self._keys.by_index(BY_ID, uuid)]

    async def reconcile(self, key: ObjectName) -> Done:
        """Approve one key, or say what is missing."""
        stored = self._keys.get(*key)
        if stored is None:
            return GONE
        if is_being_deleted(stored):
            return Done()
        proved, why = self._proved(stored)
        before = (stored.get("status") or {}).get("conditions") or []
        approved = condition(stored, "Approved")
        if (
            approved is not None
            and (approved["status"] == "True") is proved
            and (proved or approved.get("message") == why)
        ):
            return Done()
        conditions = key_conditions(stored, self._clock.now()) if proved else with_condition(
            before, kind="Approved", status="False", reason="Registration", message=why, now=self._clock.now()
        )  # fmt: skip
        patch = {"status": {"conditions": conditions}}
        try:
            await self._cluster.patch(KEYS, key.name, patch, PatchType.MERGE, key.namespace, _STATUS)
        except NotFound:
            return GONE
        return Done()

    def _proved(self, key: JsonObject) -> tuple[bool, str]:
        machines = [machine for uuid in _uuid(key) for machine in self._machines.by_index(BY_ID, uuid)]
        if not machines:
            return False, "no Machine has this uuid: a key counts when its machine enrols with it"
        try:
            thumbprint = str(attestation_key(key["spec"]["publicKey"].encode()).thumbprint)
        except BadKey as error:
            return False, error.message
        # A guest key proves nothing about a TPM: it is no attestation key, whoever writes it down as one.
        states = [machine.get("status") or {} for machine in machines]
        if any(machine.get("keyThumbprint") == thumbprint and machine.get("tee") == "tpm" for machine in states):
            return True, ""
        return False, "the Machine of this uuid proved another key"
