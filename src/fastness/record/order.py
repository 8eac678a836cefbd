"""Putting the batches of all doors into one order.

    sequenced = sequence(heads, batches, now)

Each door numbers its batches and puts the hash of the last one into the next, so the batches of one door have one order. Between
doors the time of the first entry decides, then the door's name. The result is a function of what is there: whoever computes it
from the same heads and the same batches gets the same bytes, which is what makes a sequencer safe that was stopped half way.

* A batch that is missing, or whose predecessor is not the one it names, is not passed over in silence: an entry `record-gap` or
  `record-fork` takes its place in the record, and the rest follows.
* A batch that was folded in before (its number is not above the door's head) is done: it only has to be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject

Object = Mapping[str, Any]
SEQUENCER: Final = "sequencer"
# Doors that were not heard of for long make room for new ones.
MOST_DOORS: Final = 4096
# What one step takes in; the rest follows in the next.
MOST_BATCHES: Final = 1000


@dataclass(frozen=True, slots=True)
class Head:
    """The last batch of a door that is in the record, and the time of its last entry."""

    sequence: int
    hash: str
    size: int
    time: str = ""

    def to_json(self) -> JsonObject:
        """As the state of the record keeps it."""
        return {"sequence": self.sequence, "hash": self.hash, "size": self.size, "time": self.time}


@dataclass(frozen=True, slots=True)
class Sequenced:
    """The entries to append, the heads afterwards, the batches that are in, and what went wrong."""

    entries: tuple[bytes, ...]
    heads: Mapping[str, Head]
    names: tuple[str, ...]
    alarms: tuple[str, ...]


def batch_hash(spec: Object) -> str:
    """The hash by which the next batch of a door names this one."""
    return str(sha256(json.canonical(spec)))


def pending(heads: Mapping[str, Head], batches: Iterable[Object]) -> tuple[list[Object], list[str]]:
    """The batches that are not in the record yet, in their order; and the names of those that are."""
    fresh, done = [], []
    for batch in batches:
        head = heads.get(batch["spec"]["door"])
        if head is not None and batch["spec"]["sequence"] <= head.sequence:
            done.append(str(batch["metadata"]["name"]))
        else:
            fresh.append(batch)
    return _merged(fresh)[:MOST_BATCHES], done


def sequence(
    heads: Mapping[str, Head],
    batches: Iterable[Object],
    time: str,
    size: int,
    vanished: Sequence[str] = (),
    refused: Sequence[tuple[str, str, str]] = (),
) -> Sequenced:
    """Fold batches, in the given order, into a record of `size` entries.

    `time` stands in the entries about what is missing; `vanished` names batches that were seen and are gone, `refused` those
    that do not count, with the door that they claim and the reason.
    """
    after = dict(heads)
    entries = [_alarm("record-gap", time, "nobody", name) for name in vanished]
    entries += [_alarm("record-refused", time, door, name, reason) for name, door, reason in refused]
    names: list[str] = []
    alarms = [f"record-gap: {name} has vanished" for name in vanished]
    alarms += [f"record-refused: {name}, {reason}" for name, _, reason in refused]
    for batch in batches:
        spec = batch["spec"]
        door, number = spec["door"], spec["sequence"]
        problem = _problem(after.get(door), spec)
        if problem is not None:
            alarms.append(f"{problem}: door {door}, batch {number}")
            entries.append(_alarm(problem, time, door, str(number)))
        # Folded in also after a gap or a fork: what a door wrote is evidence, and the alarm beside it says how far to believe it.
        entries += [_leaf(door, number, entry) for entry in spec["entries"]]
        # Also after a gap or a fork, or each later batch of the door would be one more alarm.
        after[door] = Head(number, batch_hash(spec), size + len(entries), str(spec["entries"][-1]["time"]))
        names.append(str(batch["metadata"]["name"]))
    return Sequenced(tuple(entries), _kept_heads(after), tuple(names), tuple(alarms))


def restarted(time: str, epoch: int, reason: str) -> bytes:
    """The first entry of a record that goes on under a new name."""
    detail = {"epoch": str(epoch), "reason": reason}
    return _leaf(SEQUENCER, 0, {"time": time, "what": "record-restarted", "who": SEQUENCER, "detail": detail})


def _problem(head: Head | None, spec: Object) -> str | None:
    """What is wrong with a batch as the next one of its door; None when it continues what came before."""
    expected = head.sequence + 1 if head else 1
    # A gap is written down and the rest goes on: stopping here would let whoever deletes one batch silence the whole record.
    if spec["sequence"] != expected:
        return "record-gap"
    # Each batch names the hash of the one before: a door whose key was copied cannot go on beside its copy unnoticed.
    if spec.get("previous", "") != (head.hash if head else ""):
        return "record-fork"
    return None


def _merged(batches: list[Object]) -> list[Object]:
    """Batches of all doors by time, those of one door by number: a clock that jumped back does not turn a door's order around."""
    latest: dict[str, str] = {}
    keyed = []
    for batch in sorted(batches, key=lambda entry: (entry["spec"]["door"], entry["spec"]["sequence"])):
        door = batch["spec"]["door"]
        # Times are RFC 3339 in UTC, all of one form, so they compare as text.
        latest[door] = max(latest.get(door, ""), str(batch["spec"]["entries"][0]["time"]))
        keyed.append(((latest[door], door, batch["spec"]["sequence"]), batch))
    return [batch for _, batch in sorted(keyed, key=lambda pair: pair[0])]


def _leaf(door: str, number: int, entry: Object) -> bytes:
    return json.canonical({"door": door, "batch": number, **entry})


def _alarm(what: str, time: str, door: str, batch: str, reason: str = "") -> bytes:
    detail = {"batch": batch, **({"reason": reason} if reason else {})}
    return _leaf(SEQUENCER, 0, {"time": time, "what": what, "who": door, "detail": detail})


def _kept_heads(heads: dict[str, Head]) -> dict[str, Head]:
    if len(heads) <= MOST_DOORS:
        return heads
    # By size, the place in the record, and not by time: a door writes its own times.
    newest = sorted(heads.items(), key=lambda item: item[1].size, reverse=True)[:MOST_DOORS]
    return dict(newest)
