"""Acts of people on the record: written where their writes pass, and named in the entries about what came of them.

    decisions = NamedRecord(ClusterRecord(…), cluster, tiles)
    await decisions.append(Entry("machine-quarantine", thumbprint, "machine/m"))
    # … detail: person ada, reason stolen, act act-quarantine-machine 2026-11-17T12:00:00Z

The edge that let the write through wrote down who it was (`attestation.admission.acts`); a controller that acts on it
afterwards sees an object, which says nothing that its writer did not choose. So the person is looked up in the record itself:

* Entries that are folded in were checked by the sequencer. They are read once, as they come, back to a bound at the start.
* A batch that still waits counts when the key signed it that its edge has published: anybody else's is passed over. So nothing
  waits for the sequencer, least of all a quarantine.
* What passed no edge has no person, and the entry says that. Nor does a look that fails hold an entry up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.attestation.admission.acts import Act
from fastness.attestation.live.lowerings import EDGES
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.formats.tlog import TlogError
from fastness.keys.errors import RecordError, TrustError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kube.errors import ApiError, Unavailable
from fastness.kube.port import Cluster
from fastness.observe import logs
from fastness.record.entry import Record, RecordEntry
from fastness.record.live.door_keys import published_keys
from fastness.record.live.reader import open_record
from fastness.record.live.tiles import TileStore
from fastness.record.signing import is_genuine, role_of
from fastness.runtime.cache import BoundedCache

# A process that starts reads so much of the record and no more: whoever acted longer ago is not behind a change of now.
LOOK_BACK: Final = 2_000
MOST_ACTS: Final = 10_000
WAITING: Final = 2**62  # what still waits is later than whatever is folded in
UNKNOWN: Final = "not known: it passed no edge that keeps the record"
_DISTRUSTED: Final = frozenset({"act-distrust", "act-change-distrust"})
_ACTS: Final[Mapping[str, frozenset[str]]] = {
    "machine-approve": frozenset({"act-approve-machine", "act-release-machine"}),
    "machine-quarantine": frozenset({"act-quarantine-machine"}),
    "machine-suspend": frozenset({"act-suspend-machine"}),
    "machine-moved": frozenset({"act-move-machine"}),
    "machine-deleted": frozenset({"act-delete-machine"}),
    "machine-distrusted": _DISTRUSTED,
    "machine-trusted-again": frozenset({"act-take-distrust-back", "act-change-distrust"}),
    "distrust-begins": _DISTRUSTED,
    "distrust-ends": _DISTRUSTED,
    "distrust-deleted": frozenset({"act-take-distrust-back"}),
    "break-glass-begins": frozenset({"act-override"}),
    "break-glass-ends": frozenset({"act-end-override"}),
}
_log = logs.logger("record")


@dataclass(frozen=True, slots=True)
class PersonAct:
    """An entry of an edge: what somebody did to an object, when, and why; `order` tells those of one second apart."""

    what: str
    who: str
    resource: str
    time: str
    reason: str
    order: int


def act_resource(entry: RecordEntry) -> str:
    """The object that a person wrote, as acts name it, for an entry about what came of it."""
    kind, _, name = entry.resource.partition("/")
    if entry.what.startswith("break-glass"):
        return f"confidentialclusters/{CLUSTER}"
    if entry.what in ("machine-distrusted", "machine-trusted-again"):
        return f"distrusts/{entry.detail.get('by', '').partition(',')[0]}"
    return f"distrusts/{name}" if kind == "distrust" else f"machines/{NAMESPACE}/{name}"


class NamedRecord:
    """Appends to a record, with the person behind each entry that is about somebody's act."""

    def __init__(self, record: Record, cluster: Cluster, tiles: TileStore) -> None:
        self._record = record
        self._cluster = cluster
        self._tiles = tiles
        self._folded = BoundedCache[tuple[str, str], PersonAct](MOST_ACTS)
        self._read: int | None = None

    async def append(self, entry: RecordEntry) -> None:
        """Write an entry; returns when it is durable; raises RecordError."""
        whats = _ACTS.get(entry.what)
        if whats is not None:
            entry = _named(entry, await self._behind(act_resource(entry), whats))
        await self._record.append(entry)

    async def person(self, resource: str, whats: Iterable[str]) -> str:
        """Who did one of these acts to an object last, as an edge wrote it down."""
        act = await self._behind(resource, tuple(whats))
        return act.who if act is not None else UNKNOWN

    async def _behind(self, resource: str, whats: Iterable[str]) -> PersonAct | None:
        try:
            # In this order: a batch that is not there any more is in the record by then.
            waiting = await self._waiting(resource)
            await self._follow()
        except (ApiError, TrustError, FormatError, TlogError) as error:
            _log.warning("record.person-unknown", resource=resource, error=error)
            return None
        folded = (self._folded.get((resource, what)) for what in whats)
        acts = [act for act in (*folded, *(act for act in waiting if act.what in whats)) if act is not None]
        return max(acts, key=lambda act: (act.time, act.order), default=None)

    async def _waiting(self, resource: str) -> list[PersonAct]:
        batches = [
            batch
            for batch in (await self._cluster.list(AUDIT_BATCH.resource)).items
            # Edges alone see a request with its author. Any other part that wrote an act would be making up a person.
            if role_of(str(batch["spec"]["door"])) in EDGES
            and any(entry.get("resource") == resource for entry in batch["spec"]["entries"])
        ]
        keys = {role: await published_keys(self._cluster, role) for role in EDGES} if batches else {}
        batches.sort(key=lambda batch: int(batch["spec"]["sequence"]))
        entries = (entry for batch in batches if is_genuine(batch, keys) for entry in batch["spec"]["entries"])
        acts = (_act(entry, WAITING + number) for number, entry in enumerate(entries))
        return [act for act in acts if act is not None and act.resource == resource]

    async def _follow(self) -> None:
        """Read what was folded in since the last look."""
        record = await open_record(self._cluster, self._tiles)
        if record is None:
            return
        start = self._read if self._read is not None else max(0, record.size - LOOK_BACK)
        if start >= record.size:
            return
        async for index, content in record.view.entries(start, record.size):
            # A look at the bytes first: most of the record is attestations, and decoding all of them would make a start slow.
            entry = json.decode(content) if b'"act-' in content else {}
            act = _act(entry, index) if role_of(str(entry.get("door") or "")) in EDGES else None
            if act is not None:
                self._folded.put((act.resource, act.what), act)
        self._read = record.size


def _act(entry: Mapping[str, Any], order: int) -> PersonAct | None:
    what = str(entry.get("what") or "")
    if not what.startswith("act-"):
        return None
    reason = str((entry.get("detail") or {}).get("reason") or "")
    resource, time = str(entry.get("resource") or ""), str(entry.get("time"))
    return PersonAct(what, str(entry.get("who")), resource, time, reason, order)


def _named(entry: RecordEntry, act: PersonAct | None) -> RecordEntry:
    if act is None:
        return replace(entry, detail={"person": UNKNOWN, **entry.detail})
    reason = {"reason": act.reason} if act.reason else {}
    named = {"person": act.who, **reason, "act": f"{act.what} {act.time}"}
    # What the edge wrote goes before what the object says: a reason in an annotation is whatever its writer chose.
    return replace(entry, detail={**named, **{name: text for name, text in entry.detail.items() if name not in named}})


class RecordedActs:
    """Writes acts to a record, at the edge: the embedded API, or the webhook in front of another.

    The record and the API that it guards are one cluster, so an act that cannot be recorded cannot happen: the write is
    refused with 503 and can be tried again.
    """

    def __init__(self, record: Record) -> None:
        self._record = record

    async def append(self, act: Act) -> None:
        """Write an act down; raises Unavailable when it is not on the record and so must not happen."""
        try:
            await self._record.append(RecordEntry(act.what, act.who, act.resource, detail=act.detail))
        except RecordError as error:
            raise Unavailable(f"{act.what} by {act.who} could not be recorded: {error}", retry_after=1) from error
