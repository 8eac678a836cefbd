"""What must hold whatever happens, and who watches it: every exchange on the wire, every write of the store, every step.

no byte of a configuration leaves but for a machine whose image counts and whose trust has not ended
whatever leaves is on the record before it leaves; the record only grows, and its heads fit each other
a simulated machine is called simulated everywhere, and gets nothing where machines must be real
no secret is in an answer to somebody else, in an object (statuses and events are such) or in a line of the log
no more nodes of a pool are out of service because of us than it allows (`budget.py`)
one identity is one Machine and one node; doors meet no defect
a machine that nobody copied is never disputed, and never taken for an earlier boot of itself
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fastness.apiserver.store.records import LogEntry
from fastness.attestation.verdict.dispute import BOOT_CODE as EARLIER_BOOT
from fastness.crypto.merkle import verify_consistency
from fastness.crypto.notes import open_note
from fastness.formats import json
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import Cluster, EventType
from fastness.record.live.log import LogView
from fastness.record.live.log_key import known_keys
from fastness.record.live.reader import grown
from fastness.record.live.tiles import TileStore
from tests.simulation.budget import Budget
from tests.simulation.network import Exchange

CANARY = "canary-5f0c1d"
"""A text that is in every configuration and in nothing else."""


PATIENCE, PATIENCE_SECONDS = 10, 3.0


class Broken(AssertionError):
    """An invariant does not hold."""


def is_release(exchange: Exchange) -> bool:
    """Whether an answer hands out a configuration."""
    config = exchange.path.startswith("/config/") or "/resource/pool/" in exchange.path
    return exchange.status == 200 and config


class Pieces(TileStore, Protocol):
    """Tiles of which some may be lost."""

    @property
    def whole(self) -> bool:
        """Whether none is."""


@dataclass
class Watch:
    """Watches one cluster. `may_have` says why a caller must not have a configuration now, or nothing."""

    cluster: Cluster
    tiles: Pieces
    may_have: Callable[[Exchange], str]
    identity: Callable[[str], str]
    simulated: bool
    released: Counter[str] = field(default_factory=Counter)
    recorded: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    secrets: set[bytes] = field(default_factory=lambda: {CANARY.encode()})
    budget: Budget = field(default_factory=Budget)
    copied: set[str] = field(default_factory=set)
    """Identities that more than one machine has."""
    _batches: set[str] = field(default_factory=set)
    size: int = 0
    _root: bytes = b""

    def exchange(self, exchange: Exchange) -> None:
        """An answer went over the wire."""
        if exchange.status == 500:
            self.broken.append(f"{exchange.door} met a defect: {exchange.body!r}")
        if (
            exchange.status == 403
            and EARLIER_BOOT.encode() in exchange.body
            and self.identity(exchange.caller) not in self.copied
        ):
            self.broken.append(f"{exchange.door} takes machine {exchange.caller} for an earlier boot of itself")
        if is_release(exchange):
            who = self.identity(exchange.caller)
            self.released[who] += 1
            if why := self.may_have(exchange):
                self.broken.append(f"{exchange.door} gave machine {exchange.caller} its configuration: {why}")
            if self.released[who] > self.recorded[who]:
                self.broken.append(
                    f"{exchange.door} gave machine {exchange.caller} something that is not on the record"
                )
        sealed = not exchange.path.startswith("/config/")
        if (sealed or not is_release(exchange)) and any(secret in exchange.body for secret in self.secrets):
            self.broken.append(f"{exchange.door} told a secret in answer to {exchange.path}")

    def writes(self, entries: list[LogEntry]) -> None:
        """Something became durable."""
        for entry in entries:
            body = entry.record.body
            if exceeded := self.budget.wrote(entry):
                self.broken.append(exceeded)
            if entry.type is EventType.DELETED:
                continue
            if b'"AuditBatch"' in body and entry.previous is None and body_key(body) not in self._batches:
                # A door that does not know whether a batch arrived writes it once more; it counts once.
                self._batches.add(body_key(body))
                self.recorded.update(
                    line["who"] for line in json.decode(body)["spec"]["entries"] if line["what"] == "release"
                )
            # What a configuration says stands in the configuration, and nowhere else.
            if entry.record.key.plural != "machineconfigs" and any(secret in body for secret in self.secrets):
                self.broken.append(f"a secret was written to {entry.record.key}")

    def line(self, text: str) -> None:
        """Something was logged."""
        if any(secret.decode() in text for secret in self.secrets):
            self.broken.append(f"a secret is in the log: {text}")
        if "request.failed" in text or ("record.alarm" in text and self.tiles.whole):
            self.broken.append(text)

    async def step(self) -> None:
        """After every step; raises Broken."""
        await self._record()
        await self._objects()
        if self.broken:
            raise Broken("; ".join(self.broken))

    async def _record(self) -> None:
        if not self.tiles.whole:
            return  # what was lost comes back, and must fit then
        points = (await self.cluster.list(AUDIT_CHECKPOINT.resource)).items
        if not points:
            return
        newest = max(points, key=lambda point: int(point["spec"]["size"]))
        size, root = int(newest["spec"]["size"]), base64.b64decode(newest["spec"]["rootHash"])
        open_note(newest["spec"]["note"], await known_keys(self.cluster))
        view = LogView(self.tiles, size, grown(self.cluster))
        if size < self.size or await view.root() != root:
            self.broken.append(f"the record of {self.size} became another one of {size}")
        proof = await view.consistency(self.size)
        if self.size and not verify_consistency(self.size, size, proof, self._root, root):
            self.broken.append(f"the record of {size} does not continue that of {self.size}")
        self.size, self._root = size, root

    async def _objects(self) -> None:
        machines = (await self.cluster.list(MACHINE.resource)).items
        statuses = [status.get("status") or {} for status in machines]
        for name in ("keyThumbprint", "nodeName"):
            values = [status[name] for status in statuses if status.get(name)]
            if len(set(values)) != len(values):
                self.broken.append(f"two Machines have one {name}")
        self.broken += [
            f"a machine that nobody copied is disputed: {status['disputes']}"
            for status in statuses
            if status.get("disputes") and status["keyThumbprint"] not in self.copied
        ]
        judged = [status for status in statuses if status.get("lastVerdict")]
        verdicts = [verdict["spec"] for verdict in (await self.cluster.list(VERDICT.resource)).items]
        if any(judgement.get("simulated") is not True for judgement in [*judged, *verdicts]):
            self.broken.append("a simulated machine is shown as real")
        if not self.simulated and any(verdict["result"] == "Affirmed" for verdict in verdicts):
            self.broken.append("a simulated machine was affirmed where machines must be real")

    async def complete(self) -> None:
        """At the end, when the sequencer had time: everything that was released is in the record; raises Broken."""
        for left in reversed(range(PATIENCE)):
            try:
                await self._is_complete()
                return
            except Broken:
                if not left:
                    raise
            # A machine that proves itself at this very moment has a batch that no sequencer has seen yet.
            await asyncio.sleep(PATIENCE_SECONDS)

    async def _is_complete(self) -> None:
        await self.step()
        waiting = (await self.cluster.list(AUDIT_BATCH.resource)).items
        view = LogView(self.tiles, self.size, grown(self.cluster))
        entries = [json.decode(entry) async for _, entry in view.entries()] if self.size else []
        sequenced = Counter(str(entry["who"]) for entry in map(_entry, entries) if entry.get("what") == "release")
        if waiting or sequenced != self.recorded or any(sequenced[who] < count for who, count in self.released.items()):
            raise Broken(f"the record is not complete: {sequenced}, written {self.recorded}, released {self.released}")


def body_key(body: bytes) -> str:
    """Which batch of which door an object is, with what it says."""
    spec = json.decode(body)["spec"]
    return json.canonical(spec).decode()


def _entry(line: Any) -> dict[str, Any]:
    """The door's entry in a line of the record."""
    inner = line.get("entry", line)
    return inner if isinstance(inner, dict) else {}


class Log(logging.Handler):
    """Hands every line of ours to the watch."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(logging.INFO)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self._watch.line(f"{record.getMessage()} {getattr(record, 'values', '')}")
