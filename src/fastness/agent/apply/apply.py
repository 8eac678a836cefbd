"""Carries out steps on a host, with the journal ahead of every one.

The order is always: what a step replaces is kept, how to undo it goes to disk, then the step happens; paths that do not touch
each other are announced together, in one write. A failure on the way undoes what was done and is raised; a crash is finished by
`recover` at the next start, before the agent says anything to anybody.

An undo that cannot succeed (a user made a directory where a file was, a copy is damaged) stops nobody for good: everything else
is undone, the journal is set aside with the reason, and the disk is compared with the config. What may succeed later (a full
disk, a service manager that does not answer) is tried again first.

Everything here blocks (fsync, systemctl); the agent calls it in a thread and waits for the end, also when it is being stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from fastness.agent.apply import journal as j
from fastness.agent.apply.carrier import Carrier
from fastness.agent.apply.copies import KeptFiles, check_weight
from fastness.agent.apply.journal import Aside, Begin, Booting, Commit, Doing, Journal, Later, Phase, Record, Revert
from fastness.agent.apply.ports import Host
from fastness.agent.apply.set_aside import put_away
from fastness.agent.apply.steps import Copy, Put, Step, Tree
from fastness.agent.errors import DamagedJournal, IncompleteUndo
from fastness.agent.host.errors import CopyDamaged, DriverError, PathTaken, UnsafePath
from fastness.agent.host.states import ABSENT

MAX_BATCH = 64
MAX_TRIES = 5
_HOPELESS = (CopyDamaged, PathTaken, UnsafePath)


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Steps that may be announced together: paths that no other step of the batch touches. Everything else goes alone."""
    batch: list[Step] = []
    touched: set[tuple[Tree, str]] = set()
    for step in steps:
        place = (step.tree, step.path) if isinstance(step, Put | Copy) else None
        if batch and (place is None or place in touched or len(batch) >= MAX_BATCH):
            yield batch
            batch, touched = [], set()
        batch.append(step)
        if place is None:
            yield batch
            batch = []
        else:
            touched.add(place)
    if batch:
        yield batch


def _nothing(point: str) -> None:
    """Nobody watches."""


class Applier:
    """The journal of one host and what it drives; `reached` is told every point where a crash would matter."""

    def __init__(self, host: Host, reached: Callable[[str], None] = _nothing) -> None:
        self._host = host
        self._reached = reached
        self._kept = KeptFiles(host.state)
        self._carrier = Carrier(host, self._kept, reached)
        self._tries = 0
        self.journal = Journal()

    def recover(self) -> Journal:
        """Finish what a crash interrupted: go back, or say what remains.

        Raises DamagedJournal and IncompleteUndo when the journal was set aside; DriverError.
        """
        try:
            self.journal, unfinished = self._replay()
        except DamagedJournal as error:
            raise DamagedJournal(f"{error.message}; {self._set_aside(error.message)}") from error
        if self.journal.phase is Phase.ASIDE:
            raise IncompleteUndo(f"{self.journal.reason}; {self._set_aside(self.journal.reason)}")
        if self.journal.must_revert:
            # Before anything is written: the disk may be full, and that may be why we are here.
            self._undo()
        elif self.journal.phase is Phase.IDLE:
            self.end()
        elif unfinished is not None:
            self._host.state.truncate(j.PATH, unfinished)
        return self.journal

    def check(self, steps: Sequence[Step]) -> None:
        """Raise TooMuchToKeep when these steps replace more than can be kept; nothing was touched."""
        check_weight(steps, self._host.state.free())

    def apply(self, begin: Begin, steps: Sequence[Step]) -> None:
        """Carry out all steps, or none: what raises has been undone."""
        self.check(steps)
        self._kept.clear()
        self.note(begin)
        try:
            for batch in _batches(steps):
                self.note(*(Doing(self._carrier.undo_of(step)) for step in batch))
                for step in batch:
                    self._carrier.carry_out(step)
                    self._reached("done")
            self.note(Commit())
        except (DriverError, OSError):
            self.revert()
            raise

    def revert(self) -> None:
        """Go back to where the update began, and end it; raises IncompleteUndo, DriverError."""
        if self.journal.phase is Phase.COMMITTED:
            self.note(Revert())
        self._undo()

    def booting(self) -> None:
        """A reboot is about to be asked for."""
        self.note(Booting(self._host.power.boot_id()))

    def end(self) -> None:
        """The update is over."""
        self._host.state.put(j.PATH, ABSENT)
        self.journal = Journal()
        self._reached("ended")
        # After the journal, which speaks of them. What a crash leaves here goes at the next start.
        self._kept.clear()

    def note(self, *records: Record) -> None:
        """Write records, durably, and take them in."""
        following = self.journal
        for record in records:
            following = following.after(record)
        self._host.state.append(j.PATH, b"".join(j.encode(record) for record in records))
        self.journal = following
        self._reached(type(records[-1]).__name__.lower())

    def _replay(self) -> tuple[Journal, int | None]:
        """What the journal on disk says, and where its unfinished last line begins, if it has one."""
        with self._host.state.reading(j.PATH) as opened:
            if opened is None:
                return Journal(), None
            with os.fdopen(os.dup(opened[0]), "rb") as file:
                journal, length = j.replay(iter(lambda: file.readline(j.MAX_LINE), b""))
            return journal, length if length != opened[1].size else None

    def _undo(self) -> None:
        """Undo everything that can be undone, newest first, and end; what cannot be is set aside or tried again later."""
        failures: list[DriverError] = []
        for step in self.journal.undo:
            try:
                self._carrier.carry_back(self._read_again(step) if isinstance(step, Later) else step)
            except DriverError as error:
                failures.append(error)
            self._reached("undone")
        if not failures:
            self._tries = 0
            self.end()
            return
        self._tries += 1
        passing = [error for error in failures if not isinstance(error, _HOPELESS)]
        if passing and self._tries < MAX_TRIES:
            raise passing[0]
        reason = "; ".join(dict.fromkeys(error.message for error in failures))
        self.note(Aside(f"not all of the update to {self.journal.begin.target} could be undone: {reason}"))
        raise IncompleteUndo(f"{self.journal.reason}; {self._set_aside(self.journal.reason)}", failures[0].hint)

    def _read_again(self, step: Later) -> Step:
        with self._host.state.reading(j.PATH) as opened:
            record = j.decode(os.pread(opened[0], step.length, step.offset)) if opened is not None else None
        if not isinstance(record, Doing):
            raise CopyDamaged("the journal was changed while it was read")
        return record.undo

    def _set_aside(self, reason: str) -> str:
        """Put journal and copies away; a text that says where."""
        place = put_away(self._host.state, reason)
        self._tries, self.journal = 0, Journal()
        self._reached("aside-done")
        return f"what was kept is in {place[1:]} of the agent's state directory"
