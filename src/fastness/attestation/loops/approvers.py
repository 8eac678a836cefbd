"""Who counts as an approver of overrides: appointments are remembered, announced, and take effect when their time has come.

The decision is `attestation.verdict.approvers`. What changes is on the record and an Event before the ConfigMap that verifiers
believe is written, so nobody begins to count unannounced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import CONTENT, Announcement, Appointments, read_appointments, settle
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import Record, RecordEntry
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", NAME)
_AS: Final = WriteOptions(manager="break-glass-approvers")


def _one(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


class Approvers:
    """Keeps the ConfigMap of those who count."""

    name = "break-glass-approvers"
    writes: Sequence[Resource] = (CONFIG_MAP.resource, AUDIT_BATCH.resource, EVENTS)
    sources: Sequence[Source] = (Source(CONFIDENTIAL_CLUSTER.resource, _one),)

    def __init__(self, cluster: Cluster, informers: Informers, record: Record, clock: Clock) -> None:
        self._cluster = cluster
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._record = record
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, _: ObjectName) -> Done:
        """Look who is asked for; come back when an appointment takes effect. Raises RecordError."""
        cluster = self._clusters.get("", NAME) or {"metadata": {"name": NAME}, "spec": {}}
        stored = await self._stored()
        appointments, now = read_appointments(stored), self._clock.now()
        after, announcements = settle(appointments, cluster, now)
        for announcement in announcements:
            await self._announce(cluster, announcement)
        if after != appointments or (stored is None and after.counting):
            await self._write(after, stored)
        times = [time for time in (after.pending_from, after.next_delay_from) if time is not None]
        return Done(again_after=max(0.1, (min(times) - now).total_seconds())) if times else Done()

    async def _stored(self) -> JsonObject | None:
        try:
            return await self._cluster.get(CONFIG_MAP.resource, APPOINTMENTS, NAMESPACE)
        except NotFound:
            return None

    async def _announce(self, cluster: JsonObject, announcement: Announcement) -> None:
        detail = {"approvers": announcement.text}
        await self._record.append(RecordEntry(announcement.what, NAME, f"confidentialclusters/{NAME}", detail=detail))
        if cluster["metadata"].get("uid"):
            await self._recorder.warning(cluster, announcement.reason, announcement.text)

    async def _write(self, appointments: Appointments, stored: JsonObject | None) -> None:
        data = {CONTENT: json.encode(appointments.to_json()).decode()}
        meta: JsonObject = {"name": APPOINTMENTS, "namespace": NAMESPACE}
        if stored is not None:
            version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "data": data}
            await self._cluster.patch(CONFIG_MAP.resource, APPOINTMENTS, patch, PatchType.MERGE, NAMESPACE, _AS)
            return
        with suppress(AlreadyExists):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            await self._cluster.create(CONFIG_MAP.resource, body, _AS)
