"""The journal without a disk: what records amount to, and what a restart must do."""

from __future__ import annotations

from contextlib import suppress
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.agent.apply.journal import (
    Acted,
    Aside,
    Begin,
    Booting,
    Commit,
    Doing,
    Journal,
    Phase,
    Record,
    Revert,
    decode,
    encode,
    replay,
)
from fastness.agent.apply.steps import Enable, Put, Stage, Tree, Word
from fastness.agent.errors import DamagedJournal
from fastness.agent.host.states import ABSENT, Deployment, File, Link, Stored

BEGIN = Begin("old", "new", ({"type": "Reload", "reload": {"serviceName": "crio.service"}}, {"type": "DaemonReload"}))
FIRST = Doing(Put("/etc/a", File(b"\x00\xff", 0o600, 0, 7)))
SECOND = Doing(Enable("a.service", Word.DISABLED))
THIRD = Doing(Stage(Deployment("image", ("a", "b"), "realtime", ("kerberos",))))

states = st.one_of(
    st.just(ABSENT),
    st.builds(File, st.binary(max_size=20), st.integers(0, 0o777), st.none() | st.integers(0, 9), st.none()),
    st.builds(Link, st.text(max_size=10)),
    st.builds(Stored, st.text(max_size=3), st.text(max_size=9), st.integers(0, 0o777), st.none() | st.integers(0, 9)),
)
steps = st.one_of(
    st.builds(Put, st.text(max_size=10), states, st.sampled_from(Tree), st.integers(0, 0o777), st.booleans(),
              st.lists(st.text(max_size=5), max_size=2).map(tuple)),
    st.builds(Enable, st.text(max_size=8), st.sampled_from(Word)),
    st.builds(Stage, st.none() | st.builds(Deployment, st.text(max_size=5), st.lists(st.text(max_size=5)).map(tuple))),
)  # fmt: skip
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(Begin, st.text(max_size=8), st.text(max_size=8), st.just(({"type": "Reboot"},)), st.booleans()),
    st.builds(Doing, steps), st.just(Commit()), st.just(Acted()), st.builds(Booting, st.text(max_size=8)),
    st.just(Revert()), st.builds(Aside, st.text(max_size=8)),
)  # fmt: skip


def replayed(data: bytes) -> tuple[Journal, bytes]:
    """What a journal says, and its whole lines."""
    journal, length = replay(BytesIO(data))
    return journal, data[:length]


def written(*lines: Record) -> bytes:
    return b"".join(encode(line) for line in lines)


@given(records)
def test_a_record_reads_back_as_it_was_written(record: Record) -> None:
    assert decode(encode(record)) == record
    assert encode(record).count(b"\n") == 1


def test_an_empty_journal_is_idle() -> None:
    assert replayed(b"") == (Journal(), b"")


def test_an_update_that_only_began_goes_back_newest_first() -> None:
    journal, _ = replayed(written(BEGIN, FIRST, SECOND, THIRD))
    assert journal.must_revert
    assert journal.undo == (THIRD.undo, SECOND.undo, FIRST.undo)


def test_a_committed_update_goes_on_with_the_actions_that_remain() -> None:
    journal, _ = replayed(written(BEGIN, FIRST, Commit(), Acted()))
    assert (journal.phase, journal.must_revert) == (Phase.COMMITTED, False)
    assert journal.remaining == ({"type": "DaemonReload"},)


def test_a_failed_action_turns_a_committed_update_around() -> None:
    journal, _ = replayed(written(BEGIN, FIRST, Commit(), Acted(), Revert()))
    assert journal.must_revert
    assert journal.undo == (FIRST.undo,)


def test_a_reboot_remembers_the_boot_in_which_it_was_asked_for() -> None:
    journal, _ = replayed(written(BEGIN, Commit(), Booting("b1"), Booting("b2")))
    assert (journal.phase, journal.boot) == (Phase.BOOTING, "b2")


@pytest.mark.parametrize(
    "lines",
    [(FIRST,), (Commit(),), (BEGIN, BEGIN), (BEGIN, Acted()), (BEGIN, Commit(), FIRST), (BEGIN, Booting("x")),
     (BEGIN, Commit(), Booting("x"), Commit()), (BEGIN, Revert(), Commit())],
)  # fmt: skip
def test_records_in_an_impossible_order_are_damage(lines: tuple[Record, ...]) -> None:
    with pytest.raises(DamagedJournal):
        replayed(written(*lines))


@pytest.mark.parametrize("line", [b"{}\n", b"[]\n", b"nonsense\n", b'{"is": "other"}\n', b'{"is": "doing", "undo": {}}\n',
                                  b'{"is": "doing", "undo": {"put": "/a", "state": {"content": "?"}}}\n', b"\n"])  # fmt: skip
def test_a_line_that_cannot_be_read_is_damage_unless_it_is_the_unfinished_last(line: bytes) -> None:
    good = written(BEGIN)
    with pytest.raises(DamagedJournal):
        replayed(good + line + written(FIRST))
    with pytest.raises(DamagedJournal):
        replayed(good + line)
    journal, whole = replayed(good + line[:-1])
    assert (journal.phase, whole) == (Phase.BEGUN, good)


@pytest.mark.parametrize(
    "line",
    [
        "hunter2",
        '{"is": "hunter2"}',
        '{"is": "doing", "undo": {"enable": "a", "word": "hunter2"}}',
        '{"is": "doing", "undo": {"put": "/a", "tree": "hunter2", "state": null}}',
    ],
)
def test_what_a_damaged_line_holds_is_not_told(line: str) -> None:
    with pytest.raises(DamagedJournal) as raised:
        replayed(written(BEGIN) + f"{line}\n".encode())
    assert "hunter2" not in f"{raised.value!r} {raised.value.hint}"
    assert "line 2" in raised.value.message


@given(st.lists(steps, max_size=5), st.data())
def test_every_prefix_of_a_journal_says_what_its_whole_lines_say(
    undo: list[Put | Enable | Stage], data: st.DataObject
) -> None:
    lines: list[Record] = [BEGIN, *(Doing(step) for step in undo), Commit(), Acted()]
    everything = written(*lines)
    cut = data.draw(st.integers(0, len(everything)))
    journal, whole = replayed(everything[:cut])
    count = everything[:cut].count(b"\n")
    assert whole == written(*lines[:count])
    step_by_step = Journal()
    for line in lines[:count]:
        step_by_step = step_by_step.after(line)
    assert journal == step_by_step


@given(st.binary(max_size=200))
def test_any_bytes_are_a_journal_or_damage(data: bytes) -> None:
    with suppress(DamagedJournal):
        journal, whole = replayed(data)
        assert data.startswith(whole)
        assert journal.phase in Phase
