"""What a witness cosigns, and what it never does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.merkle import consistency_ranges, leaf_hash, tree_root
from fastness.crypto.notes import NoteSigner
from fastness.crypto.secret import SecretBytes
from fastness.formats.tlog import Checkpoint
from fastness.protocol.witness import AddCheckpoint
from fastness.record.witnessing import NEVER, Declined, Latest, Submission, submitted, weigh

ORIGIN = "example.com/record"
LOG = NoteSigner(ORIGIN, SecretBytes(bytes(32)))
LOGS = {ORIGIN: [LOG.verifier]}


def leaves(count: int, turn: int = -1) -> list[bytes]:
    """The leaves of a log; from `turn` on it is another one."""
    return [leaf_hash(b"%d" % (index if turn < 0 or index < turn else index + 1_000_000)) for index in range(count)]


def request(log: Sequence[bytes], old: int, size: int, signer: NoteSigner = LOG, origin: str = ORIGIN) -> bytes:
    """What an honest log of these leaves sends."""
    ranges = consistency_ranges(old, size) if 0 < old <= size else []
    proof = tuple(tree_root(log[start:end]) for start, end in ranges)
    note = signer.sign(Checkpoint(origin, size, tree_root(log[:size])).text())
    return AddCheckpoint(old, proof, note).encode()


def read(body: bytes) -> Submission:
    submission = submitted(body, LOGS)
    assert isinstance(submission, Submission)
    return submission


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8))
def test_a_log_that_only_grows_is_cosigned_at_every_step(sizes: list[int]) -> None:
    log, latest = leaves(60), NEVER
    for size in sorted(sizes):
        weighed = weigh(read(request(log, latest.size, size)), latest)
        assert weighed == Latest(size, tree_root(log[:size]))
        latest = weighed


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 59), st.integers(0, 60))
def test_a_second_history_is_never_cosigned(entry_count: int, size: int, turn: int, claimed: int) -> None:
    """Whatever old size and proof a log sends: after `entry_count` entries nothing is cosigned that differs before that."""
    turn = min(turn, entry_count - 1)
    latest = Latest(entry_count, tree_root(leaves(entry_count)))
    body = request(leaves(60, turn), min(claimed, size), size)
    assert isinstance(weigh(read(body), latest), Declined)


@pytest.mark.parametrize("old", [0, 3, 7])
def test_a_log_that_went_back_is_told_what_was_seen(old: int) -> None:
    declined = weigh(read(request(leaves(10), old, 7)), Latest(10, tree_root(leaves(10))))
    assert isinstance(declined, Declined)
    assert (declined.status, declined.size) == (409, 10)


def test_another_tree_of_the_same_size_is_a_conflict() -> None:
    declined = weigh(read(request(leaves(10, 4), 10, 10)), Latest(10, tree_root(leaves(10))))
    assert isinstance(declined, Declined)
    assert (declined.status, declined.size) == (409, 10)


def test_a_proof_that_does_not_hold_is_refused() -> None:
    declined = weigh(read(request(leaves(12, 4), 10, 12)), Latest(10, tree_root(leaves(10))))
    assert isinstance(declined, Declined)
    assert declined.status == 422


def test_a_proof_for_a_log_that_was_never_seen_must_be_empty() -> None:
    note = LOG.sign(Checkpoint(ORIGIN, 2, tree_root(leaves(2))).text())
    declined = weigh(read(AddCheckpoint(0, (bytes(32),), note).encode()), NEVER)
    assert isinstance(declined, Declined)
    assert declined.status == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (request(leaves(3), 0, 3, NoteSigner("other.example", SecretBytes(bytes(32))), "other.example"), 404),
        (request(leaves(3), 0, 3, NoteSigner(ORIGIN, SecretBytes(b"\1" * 32))), 403),
        (request(leaves(3), 0, 3).replace(b"old 0", b"old 4"), 400),
        (request(leaves(3), 0, 3).replace(b"old 0", b"old 00"), 400),
        (request(leaves(3), 0, 3).replace(b"old 0", b"new 0"), 400),
        (b"old 0\n" + b"AAAA\n" + request(leaves(3), 0, 3)[6:], 400),
        (b"old 0\n" + b"A" * 43 + b"=\n" * 70 + request(leaves(3), 0, 3)[6:], 400),
        (b"old 0\n\nno checkpoint", 400),
        (b"old 0\n\n\xff\xfe", 400),
        (b"", 400),
    ],
    ids=[
        "unknown log", "a key that is not the log's", "a smaller tree than the old one", "leading zero", "no old size",
        "a short hash", "a long proof", "no note", "no text", "nothing",
    ],
)  # fmt: skip
def test_a_request_that_does_not_count_has_the_status_of_the_protocol(body: bytes, status: int) -> None:
    declined = submitted(body, LOGS)
    assert isinstance(declined, Declined)
    assert declined.status == status
