"""Rows: a round trip for any change, and no wrong row gets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.store.errors import SealBroken, StoreDamaged
from fastness.apiserver.store.journal import DELETED, SEALED, Row, checksum, encode, link, replay, superseded
from fastness.apiserver.store.records import Key, LogEntry, Record
from fastness.apiserver.store.seal import context_of
from fastness.kube.port import EventType

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KEYS = st.builds(Key, TEXT, TEXT, TEXT, TEXT)
KEY = Key("g", "p", "n", "a")


class Reverse:
    """A cipher that hides nothing but notices another context."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        return context + b"|" + plaintext[::-1]

    def open(self, sealed: bytes, context: bytes) -> bytes:
        if not sealed.startswith(context + b"|"):
            raise ValueError("another context")
        return sealed[len(context) + 1 :][::-1]


def added(revision: int = 2, key: Key = KEY, body: bytes = b"{}") -> LogEntry:
    return LogEntry(EventType.ADDED, Record(key, revision, revision, body), None)


def following(before: LogEntry, revision: int, *, deleted: bool = False) -> LogEntry:
    record = Record(before.record.key, revision, before.record.created, b"%d" % revision)
    return LogEntry(EventType.DELETED if deleted else EventType.MODIFIED, record, before.record)


@given(key=KEYS, body=st.binary(max_size=100), at=st.integers(0, 2**41), sealed=st.booleans())
def test_any_change_comes_back_as_it_was(key: Key, body: bytes, at: int, sealed: bool) -> None:
    cipher = Reverse() if sealed else None
    first = added(2, key, body)
    second = following(first, 3)
    third = following(second, 4, deleted=True)
    state = replay([encode(entry, at, cipher) for entry in (first, second, third)], 1, cipher)
    assert [entry for entry, _ in state.log] == [first, second, third]
    assert {time for _, time in state.log} == {at / 1000}
    assert (state.records, state.revision) == ({}, 4)


@given(data=st.data(), key=KEYS, body=st.binary(min_size=1, max_size=50))
def test_no_changed_byte_of_a_body_gets_through(data: st.DataObject, key: Key, body: bytes) -> None:
    row = encode(added(2, key, body), 5, None)
    index = data.draw(st.integers(0, len(body) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = bytearray(body)
    changed[index] ^= flip
    with pytest.raises(StoreDamaged):
        replay([row._replace(body=bytes(changed))], 1, None)


@pytest.mark.parametrize("field", [name for name in Row._fields if name not in ("body", "mac", "head")])
def test_no_changed_column_gets_through(field: str) -> None:
    row = encode(added(), 5, None)
    old = getattr(row, field)
    change: dict[str, Any] = {field: old + 1 if isinstance(old, int) else old + "x"}
    with pytest.raises(StoreDamaged):
        replay([row._replace(**change)], 1, None)


def test_rows_below_the_log_are_state_and_not_log() -> None:
    first, other = added(2), added(3, KEY._replace(name="b"))
    state = replay([encode(first, 0, None), encode(other, 0, None)], 2, None)
    assert set(state.records.values()) == {first.record, other.record}
    assert [entry for entry, _ in state.log] == [other]


def test_a_delete_below_the_log_is_damage() -> None:
    first = added(2)
    gone = following(first, 3, deleted=True)
    rows = [encode(first, 0, None), encode(gone, 0, None)]
    with pytest.raises(StoreDamaged, match="compacted"):
        link(rows, 3)
    assert link(rows, 2).present == {}


@pytest.mark.parametrize("missing", [0, 1])
def test_a_gap_in_the_chain_is_damage(missing: int) -> None:
    first = added(2)
    second = following(first, 3)
    rows = [encode(entry, 0, None) for entry in (first, second, following(second, 4))]
    del rows[missing]
    with pytest.raises(StoreDamaged, match="missing"):
        link(rows, 1)


def test_a_second_creation_of_a_live_key_is_damage() -> None:
    with pytest.raises(StoreDamaged):
        link([encode(added(2), 0, None), encode(added(3), 0, None)], 1)


def test_superseded_rows_are_the_replaced_and_the_deleted() -> None:
    assert superseded([(2, 0, 0), (3, 2, SEALED), (4, 0, 0), (5, 4, DELETED)]) == [2, 4, 5]


def test_a_sealed_body_does_not_open_under_another_name() -> None:
    row = encode(added(), 0, Reverse())
    assert row.flags == SEALED
    moved = row._replace(name="b")
    forged = moved._replace(crc=checksum(moved[:9], moved.body))
    with pytest.raises(SealBroken):
        replay([forged], 1, Reverse())


def test_contexts_are_unambiguous() -> None:
    assert context_of(Key("a", "b", "c", "d")) != context_of(Key("a", "b,c", "", "d"))
    assert context_of(Key("", "x", '","', "")) != context_of(Key("", "x", "", '","'))
