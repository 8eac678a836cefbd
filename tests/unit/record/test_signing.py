"""Which batches count by their times: those of their door, and the time at which the API server took them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.kinds.objects import rfc3339
from fastness.record.order import Head
from fastness.record.signing import LATEST, BatchProblem, admitted, batch_name, is_genuine, signed

KEY = Ed25519Signer(SecretBytes(b"k" * 32))
REGISTERED = {"gate": {KEY.verifier.id: KEY.verifier}}
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def batch(*times: datetime, number: int = 1, taken: str = rfc3339(NOW)) -> dict[str, Any]:
    entries = [{"time": rfc3339(time), "what": "release", "who": "nobody"} for time in times]
    spec = signed({"door": "gate-1", "sequence": number, "entries": entries}, KEY)
    return {"metadata": {"name": batch_name("gate-1", number), "creationTimestamp": taken}, "spec": spec}


def problems(*batches: dict[str, Any], last: datetime | None = None) -> list[BatchProblem]:
    heads = {"gate-1": Head(0, "", 0, rfc3339(last))} if last is not None else {}
    return [refused.problem for refused in admitted(heads, batches, REGISTERED)[1]]


def test_a_new_door_begins_within_the_hour_before_the_server_took_its_batch() -> None:
    assert problems(batch(NOW - LATEST)) == []
    assert problems(batch(NOW + 10 * MINUTE)) == []  # a clock that is ahead puts nothing into the past
    assert problems(batch(NOW - LATEST - MINUTE)) == [BatchProblem.BACKDATED]
    assert problems(batch(NOW - LATEST - MINUTE, NOW)) == [BatchProblem.BACKDATED]


def test_a_door_that_ended_days_ago_is_no_way_into_the_days_since() -> None:
    ended = NOW - timedelta(days=3)
    assert problems(batch(ended + timedelta(hours=1)), last=ended) == [BatchProblem.BACKDATED]
    assert problems(batch(NOW - MINUTE), last=ended) == []


def test_a_sequencer_that_was_away_for_days_takes_what_doors_wrote_meanwhile() -> None:
    """What counts is when the API server took a batch, not when it is looked at."""
    then = NOW - timedelta(days=5)
    assert problems(batch(then, taken=rfc3339(then + MINUTE)), batch(NOW, number=2)) == []


@pytest.mark.parametrize("taken", ["", "yesterday", "2026-06-01T12:00:00"])
def test_a_batch_that_nobody_knows_the_time_of_does_not_count(taken: str) -> None:
    assert problems(batch(NOW, taken=taken)) == [BatchProblem.BACKDATED]


def test_a_batch_under_another_name_or_of_another_hand_does_not_count() -> None:
    good, stranger = batch(NOW), Ed25519Signer(SecretBytes(b"s" * 32))
    assert is_genuine(good, REGISTERED)
    unsigned = {name: value for name, value in good["spec"].items() if name not in ("key", "signature")}
    other_key = {**good, "spec": signed(unsigned, stranger)}
    borrowed_id = {**good, "spec": {**other_key["spec"], "key": KEY.verifier.id}}
    changed = {**good, "spec": {**good["spec"], "entries": [*good["spec"]["entries"], *good["spec"]["entries"]]}}
    renamed = {**good, "metadata": {**good["metadata"], "name": batch_name("gate-1", 2)}}
    cases = {
        BatchProblem.UNKNOWN_KEY: [other_key], BatchProblem.WRONG_NAME: [renamed],
        BatchProblem.BAD_SIGNATURE: [borrowed_id, changed],
    }  # fmt: skip
    for problem, batches in cases.items():
        for forged in batches:
            assert problems(forged) == [problem]
            assert not is_genuine(forged, REGISTERED)
    (refused,) = admitted({}, [good], {"broker": {KEY.verifier.id: KEY.verifier}})[1]
    assert refused.problem is BatchProblem.UNKNOWN_DOOR


def test_a_door_does_not_go_back_in_time() -> None:
    assert problems(batch(NOW, NOW - MINUTE)) == [BatchProblem.BACKDATED]
    assert problems(batch(NOW - MINUTE), last=NOW) == [BatchProblem.BACKDATED]
