"""Whether protection is lowered only by people who said so: every lowering completed on the record, unguarded ones shown.

The edge (embedded API, webhook) puts a lowering on the record with the person before it happens. Here it is completed when it has
happened, by comparing each state of the ConfidentialCluster with the one that was remembered (`attestation.live.guard_state`):
also what happened while nobody looked, also a deletion. Who did it is read back from the record, where nobody can make up a name.

A lowering that no edge let through (no webhook stands in front of this Kubernetes, or somebody took it away for a moment) is
recorded as such, and the condition `Guarded` stays False until the cluster is as strict as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fastness.attestation.admission.acts import DELETION, pieces
from fastness.attestation.admission.lowering import Weakening, weakenings
from fastness.attestation.live.guard_state import GuardState, read_guard, write_guard
from fastness.attestation.live.lowerings import ConfirmedLowerings, confirmed_lowerings
from fastness.attestation.status.cluster import ClusterCondition
from fastness.kinds.fastness_dev.cluster import NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.confirmation import confirmation
from fastness.kube.events import Recorder
from fastness.kube.port import Cluster
from fastness.record.entry import Record, RecordEntry
from fastness.record.live.tiles import TileStore

RESOURCE: Final = f"confidentialclusters/{NAME}"
NOBODY: Final = "unknown"
_DELETED: Final = (Weakening(DELETION, "the cluster loses its protection"),)


class Guard:
    """Completes lowerings on the record; `watched` says whether an edge stands in front of the API."""

    def __init__(
        self, cluster: Cluster, record: Record, tiles: TileStore, recorder: Recorder, watched: Callable[[], bool]
    ) -> None:
        self._cluster = cluster
        self._record = record
        self._tiles = tiles
        self._recorder = recorder
        self._watched = watched
        self._state: GuardState | None = None
        self._passed: list[JsonObject | None] = []

    def note(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """Remember a state that the object passes through: by the next look it may be another one."""
        if old is None or new is None or metadata(old).get("generation") != metadata(new).get("generation"):
            self._passed.append(new)

    async def settle(self, present: JsonObject | None) -> bool:
        """Compare, record and remember; whether that is done, or the record has yet to say who it was. Raises RecordError."""
        state = self._state or await read_guard(self._cluster)
        if state is None:
            # The very first look: there is nothing to compare with.
            state = GuardState().seeing(present)
            await write_guard(self._cluster, state)
        self._state = state
        while self._passed or _differs(state, present):
            step = self._passed[0] if self._passed else present
            if _differs(state, step):
                after = await self._step(state, step, present)
                if after is None:
                    return False
                await write_guard(self._cluster, after)
                self._state = state = after
            del self._passed[:1]
        return True

    def condition(self) -> ClusterCondition:
        """The condition `Guarded` of the ConfidentialCluster, as the last look found it."""
        state = self._state
        if state is not None and state.unguarded is not None:
            message = f"protection was lowered past admission, by nobody knows whom: {state.words}"
            return ClusterCondition("Guarded", False, "UnguardedLowering", message)
        if not self._watched():
            message = "no webhook stands in front of this API: protection can be lowered without a confirmation"
            return ClusterCondition("Guarded", False, "NoWebhook", message)
        return ClusterCondition(
            "Guarded", True, "Confirmed", "protection is lowered only with a confirmation, on the record"
        )

    async def _step(self, state: GuardState, new: JsonObject | None, present: JsonObject | None) -> GuardState | None:
        """The state after one change, which is on the record if it lowers anything; None while that has to wait."""
        after = state.seeing(new)
        replaced = new is not None and bool(state.uid) and after.uid != state.uid
        # An object of the same name with another uid: the old one was deleted, and that is what has to be told first.
        target = None if replaced else new
        lowered = _lowered(state, target)
        if lowered:
            confirmed = await confirmed_lowerings(self._cluster, self._tiles, state.uid)
            who = _confirmed_by(state, target, lowered, confirmed)
            # Entries that are not folded in yet may hold the name: calling it unguarded too early would be a false alarm.
            if who is None and confirmed.waiting:
                return None
            after = await self._tell(state, after, lowered, who, target, present)
        if after.unguarded is not None and not weakenings({"spec": after.unguarded}, after.cluster):
            after = replace(after, unguarded=None, words="") if after.uid else after
        return after

    async def _tell(
        self, state: GuardState, after: GuardState, lowered: tuple[Weakening, ...], who: str | None,
        target: JsonObject | None, present: JsonObject | None,
    ) -> GuardState:  # fmt: skip
        words = "; ".join(weakening.words for weakening in lowered)
        facts = {"guarded": "no" if who is None else "yes", "confirmation": confirmation(state.cluster, target)}
        entry = RecordEntry("protection-lowered", who or NOBODY, RESOURCE, detail={**pieces("lowered", words), **facts})
        await self._record.append(entry)
        if present is not None:
            by = who or "somebody, past admission,"
            await self._recorder.warning(present, "ProtectionLowered", f"{by} lowered protection: {words}")
        if who is not None:
            return after
        # The first strict state is kept: two lowerings one after the other must not make the one between the measure.
        return replace(after, unguarded=state.unguarded or state.spec, words=words[:512])


def _differs(state: GuardState, cluster: JsonObject | None) -> bool:
    after = state.seeing(cluster)
    return (after.uid, after.generation) != (state.uid, state.generation)


def _lowered(state: GuardState, new: JsonObject | None) -> tuple[Weakening, ...]:
    if not state.uid:
        return ()
    return _DELETED if new is None else weakenings(state.cluster, new)


def _confirmed_by(
    state: GuardState, new: JsonObject | None, lowered: tuple[Weakening, ...], confirmed: ConfirmedLowerings
) -> str | None:
    """Who lowered; None when the record does not have it.

    One change is known by its confirmation. Where several happened between two looks, every field must be one that somebody
    confirmed in between; a deletion always by its own.
    """
    word = confirmation(state.cluster, new)
    for entry in confirmed.entries:
        if entry.confirmation == word:
            return entry.who
    last = int(metadata(new or {}).get("generation") or 0)
    between = [entry for entry in confirmed.entries if entry.generation >= state.generation]
    if new is None:
        return next((entry.who for entry in between if DELETION in entry.fields), None)
    # A confirmation of a later change is no consent to this one.
    between = [entry for entry in between if entry.generation < last]
    if last <= state.generation + 1 or not {weakening.field for weakening in lowered} <= {
        field for confirmed in between for field in confirmed.fields
    }:
        return None
    return ", ".join(dict.fromkeys(entry.who for entry in between))
