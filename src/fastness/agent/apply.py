"""Carries out steps on a host, with the journal ahead of every one.

The order is always: how to undo it goes to disk, then the step happens; paths that do not touch each other are announced
together, in one write. A failure on the way undoes what was done and is raised; a crash is finished by `recover` at the next
start, before the agent says anything to anybody.

Everything here blocks (fsync, systemctl); the agent calls it in a thread and waits for the end, also when it is being stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fastness.agent import journal as j
from fastness.agent.journal import Begin, Booting, Commit, Doing, Journal, Phase, Record, Revert
from fastness.agent.ports import Files, Host
from fastness.agent.steps import Enable, Put, Stage, Step, Tree, Word
from fastness.drivers.errors import DriverError, UnitFailure
from fastness.drivers.states import ABSENT, Absent, File

MAX_BATCH = 64
_UNDO_WORDS = {"enabled": Word.ENABLED, "enabled-runtime": Word.ENABLED, "disabled": Word.DISABLED}


def _batches(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Steps that may be announced together: paths that no other step of the batch touches. Everything else goes alone."""
    batch: list[Step] = []
    touched: set[tuple[Tree, str]] = set()
    for step in steps:
        place = (step.tree, step.path) if isinstance(step, Put) else None
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
        self.journal = Journal()

    def recover(self) -> Journal:
        """Finish what a crash interrupted: go back, or say what remains; raises DamagedJournal, DriverError."""
        present = self._host.state.look(j.PATH)
        if not isinstance(present, File):
            self.journal = Journal()
            return self.journal
        self.journal, whole = j.replay(present.content)
        if self.journal.must_revert:
            # Before anything is written: the disk may be full, and that may be why we are here.
            self._undo()
        elif self.journal.phase is Phase.IDLE:
            self.end()
        elif whole != present.content:
            self._host.state.put(j.PATH, File(whole, 0o600))
        return self.journal

    def apply(self, begin: Begin, steps: Sequence[Step]) -> None:
        """Carry out all steps, or none: what raises has been undone."""
        self.note(begin)
        try:
            for batch in _batches(steps):
                self.note(*(Doing(self._undo_of(step)) for step in batch))
                for step in batch:
                    self._carry_out(step)
                    self._reached("done")
            self.note(Commit())
        except (DriverError, OSError):
            self.revert()
            raise

    def revert(self) -> None:
        """Go back to where the update began, and end it."""
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

    def note(self, *records: Record) -> None:
        """Write records, durably, and take them in."""
        following = self.journal
        for record in records:
            following = following.after(record)
        self._host.state.append(j.PATH, b"".join(j.encode(record) for record in records))
        self.journal = following
        self._reached(type(records[-1]).__name__.lower())

    def _undo(self) -> None:
        for step in self.journal.undo:
            self._carry_back(step)
            self._reached("undone")
        self.end()

    def _undo_of(self, step: Step) -> Step:
        """The step that brings back what is there now."""
        match step:
            case Put():
                tree = self._tree(step.tree)
                present = tree.look(step.path)
                made = tuple(tree.missing_directories(step.path)) if isinstance(present, Absent) else ()
                return Put(step.path, present, step.tree, step.directory_mode, step.own_directories, made)
            case Enable(unit, _):
                return Enable(unit, _UNDO_WORDS.get(self._host.units.is_enabled(unit), Word.DISABLED))
            case Stage():
                return Stage(self._host.system.staged())

    def _carry_out(self, step: Step) -> None:
        match step:
            case Put():
                tree = self._tree(step.tree)
                tree.put(
                    step.path, step.state, directory_mode=step.directory_mode, own_directories=step.own_directories
                )
                for directory in reversed(step.prune):
                    tree.remove_empty(directory)
            case Enable():
                self._enable(step)
            case Stage(deployment) if deployment is not None:
                self._host.system.stage(deployment)
            case Stage():
                self._host.system.discard()

    def _carry_back(self, step: Step) -> None:
        try:
            self._carry_out(step)
        except UnitFailure:
            # A unit that did not exist before cannot be disabled; anything else is found by validation.
            if not isinstance(step, Enable) or step.word is not Word.DISABLED:
                raise

    def _enable(self, step: Enable) -> None:
        units = self._host.units
        match step.word:
            case Word.ENABLED:
                units.enable([step.unit])
            case Word.DISABLED:
                units.disable([step.unit])
            case Word.PRESET:
                try:
                    units.preset(step.unit)
                except UnitFailure:
                    # A unit that cannot be preset (static, generated) is as it should be.
                    self._reached("preset-refused")

    def _tree(self, tree: Tree) -> Files:
        return self._host.root if tree is Tree.ROOT else self._host.originals
