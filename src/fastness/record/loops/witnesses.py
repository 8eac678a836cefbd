"""Witnesses of the record: the newest checkpoint is shown to each, and their lines are kept beside it.

Each round shows the newest AuditCheckpoint to the witnesses that the ConfidentialCluster names, all at once, with a proof that it
continues what each saw last. Their cosignatures go to the checkpoint's status; condition `Witnessed` says how many of how many
cosigned, and names the first that did not with its reason.

* A witness that has seen more of the record than there is, or another one, tells the guard of the record, and the sequencer signs
  nothing more (`record.live.guard`).
* A witness that cannot be reached holds nothing up: it is asked again, and the condition says so.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from fastness.crypto.cosignatures import cosigned
from fastness.formats.tlog import TlogError
from fastness.formats.words import counted
from fastness.keys.errors import WitnessFailed
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, rfc3339
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs, metrics
from fastness.record.live.guard import RecordGuard
from fastness.record.live.log import LogView
from fastness.record.live.reader import grown
from fastness.record.live.tiles import TileStore
from fastness.record.live.witnesses import Witness, Witnesses
from fastness.record.loops.cluster_condition import set_condition
from fastness.runtime.clock import Clock

KEY: Final = ObjectName("", "record")
PACE_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 15.0
_AS: Final = WriteOptions(manager="record-witnesses", subresource="status")
_log = logs.logger("witnesses")


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one witness: its line, or why there is none."""

    name: str
    line: str = ""
    time: int = 0
    failed: WitnessFailed | None = None


def _record(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


class RecordWitnesses:
    """Keeps the newest checkpoint cosigned."""

    name = "record-witnesses"
    sources: Sequence[Source] = (
        Source(AUDIT_CHECKPOINT.resource, _record, delay=PACE_SECONDS),
        Source(CONFIDENTIAL_CLUSTER.resource, _record, delay=PACE_SECONDS),
    )
    writes: Sequence[Resource] = (AUDIT_CHECKPOINT.resource, CONFIDENTIAL_CLUSTER.resource, EVENTS)

    def __init__(self, cluster: Cluster, tiles: TileStore, guard: RecordGuard, clock: Clock) -> None:
        self._cluster = cluster
        self._tiles = tiles
        self._guard = guard
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._witnesses = Witnesses()
        self._lines: dict[str, str] = {}
        self._tls: ssl.SSLContext | None = None

    async def reconcile(self, _: ObjectName) -> Done:
        """One round; comes back while a witness has not cosigned the newest checkpoint."""
        return Done(again_after=None if await self.round() else AGAIN_SECONDS)

    async def ask_first(self) -> None:
        """A round before the first signature of this process; a cluster that cannot be asked is asked again later."""
        try:
            await self.round()
        except ApiError as error:
            _log.warning("witness.interrupted", error=error)

    async def round(self) -> bool:
        """Show the newest checkpoint to all witnesses that have not cosigned it; whether all have now."""
        entries = await self._named()
        newest = await self._newest()
        if not entries:
            metrics.RECORD_WITNESSES.set(0)
            return True
        if newest is None:
            return True
        answers = await self._ask(entries, newest)
        await self._keep(newest, answers)
        await self._say(newest, answers)
        return all(answer.failed is None for answer in answers)

    async def _named(self) -> Sequence[Mapping[str, Any]]:
        try:
            cluster = await self._cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        except NotFound:
            return ()
        return cluster["spec"].get("witnesses") or ()

    async def _newest(self) -> JsonObject | None:
        items = (await self._cluster.list(AUDIT_CHECKPOINT.resource)).items
        return max(items, key=lambda item: (str(item["spec"]["time"]), int(item["spec"]["size"])), default=None)

    async def _ask(self, entries: Sequence[Mapping[str, Any]], newest: JsonObject) -> list[Answer]:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        view = LogView(self._tiles, int(newest["spec"]["size"]), grown(self._cluster))
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, follow_redirects=False) as client:
            return await asyncio.gather(*(self._one(client, entry, newest, view) for entry in entries))

    async def _one(
        self, client: httpx.AsyncClient, entry: Mapping[str, Any], newest: JsonObject, view: LogView
    ) -> Answer:
        name, spec = str(entry["name"]), newest["spec"]
        try:
            witness = Witness.parse(entry)
            # What this process was told, not what the object says: a restored backup brings old cosignatures along.
            line = self._lines.get(name, "")
            times = cosigned(f"{spec['note']}{line}", [witness.key])
            if not times:
                line = await self._witnesses.cosign(client, witness, str(spec["note"]), view)
                times = cosigned(f"{spec['note']}{line}", [witness.key])
            self._lines[name] = line
            self._guard.witnessed(name, str(spec["origin"]), view.size)
            return Answer(name, line, times[witness.key.name])
        except WitnessFailed as failed:
            if failed.seen is not None:
                # Another history of the same length is as bad as a longer one: nothing continues it.
                beyond = max(failed.seen, view.size + 1)
                self._guard.witnessed(name, str(spec["origin"]), beyond)
            _log.warning("witness.failed", witness=name, error=failed)
            return Answer(name, failed=failed)
        except TlogError as error:
            broken = WitnessFailed(f"the record cannot be proved to witness {name}: {error}", "Restore its tiles.")
            return Answer(name, failed=broken)

    async def _keep(self, newest: JsonObject, answers: Sequence[Answer]) -> None:
        lines = [
            {"witness": answer.name, "time": rfc3339(datetime.fromtimestamp(answer.time, UTC)), "line": answer.line}
            for answer in answers
            if answer.line
        ]
        status = {"cosignatures": lines, "witnesses": f"{len(lines)}/{len(answers)}"}
        metrics.RECORD_WITNESSES.set(len(lines))
        if newest.get("status") != status:
            name = str(newest["metadata"]["name"])
            await self._cluster.patch(AUDIT_CHECKPOINT.resource, name, {"status": status}, PatchType.MERGE, "", _AS)

    async def _say(self, newest: JsonObject, answers: Sequence[Answer]) -> None:
        failed = [answer.failed for answer in answers if answer.failed is not None]
        count = f"{len(answers) - len(failed)} of {counted(len(answers), 'witness', 'witnesses')}"
        if not failed:
            message = f"{count} cosigned the record"
            await set_condition(self._cluster, self._clock.now(), "Witnessed", "True", "Cosigned", message)
            return
        first = next((failure for failure in failed if failure.seen is not None), failed[0])
        reason = "RolledBack" if first.seen is not None else "NotCosigned"
        message = f"{count} cosigned the record: {first.message}. {first.hint}"
        await set_condition(self._cluster, self._clock.now(), "Witnessed", "False", reason, message)
        if first.seen is not None:
            about = {
                "apiVersion": CONFIDENTIAL_CLUSTER.api_version,
                "kind": CONFIDENTIAL_CLUSTER.kind,
                "metadata": {"name": NAME},
            }
            await self._recorder.warning(about, "RecordRolledBack", first.message)
