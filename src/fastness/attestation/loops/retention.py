"""Verdicts and evidence that are no longer needed are deleted.

One key per machine for verdicts, and one key for all evidence, looked at once an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from fastness.attestation.verdict.retention import next_look, superfluous, unreferenced
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import Resource
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock

EVIDENCE: Final = ObjectName("", "evidence")
GRACE: Final = timedelta(minutes=10)
LOOK_SECONDS: Final = 3600.0
_BY_SUBJECT: Final = "subject"


def _subject(verdict: Any) -> Iterable[ObjectName]:
    return (ObjectName("subject", str(verdict["spec"]["subject"]["machine"])),)


def _machine(verdict: Any) -> Iterable[str]:
    return (str(verdict["spec"]["subject"]["machine"]),)


_INDEXES: Final = {_BY_SUBJECT: _machine}


class Retention:
    """Deletes verdicts and evidence that need not be kept."""

    name = "verdict-retention"
    always: Sequence[ObjectName] = (EVIDENCE,)
    sources: Sequence[Source] = (
        Source(
            VERDICT.resource,
            _subject,
            delay=1.0,
            indexes=_INDEXES,
        ),
    )
    writes: Sequence[Resource] = (VERDICT.resource, EVIDENCE_BLOB.resource)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._verdicts = informers.of(VERDICT.resource, indexers=_INDEXES)
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """The verdicts of one machine, or all evidence."""
        return await (self._evidence() if key == EVIDENCE else self._of_machine(key.name))

    async def _of_machine(self, machine: str) -> Done:
        verdicts, now = list(self._verdicts.by_index(_BY_SUBJECT, machine)), self._clock.now()
        for name in superfluous(verdicts, now):
            with suppress(NotFound):
                await self._cluster.delete(VERDICT.resource, name)
        return Done(again_after=next_look(verdicts, now))

    async def _evidence(self) -> Done:
        blobs = (await self._cluster.list(EVIDENCE_BLOB.resource)).items
        verdicts = (await self._cluster.list(VERDICT.resource)).items
        for name in unreferenced(blobs, verdicts, self._clock.now(), GRACE):
            with suppress(NotFound):
                await self._cluster.delete(EVIDENCE_BLOB.resource, name)
        return Done(again_after=LOOK_SECONDS)
