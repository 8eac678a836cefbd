"""Carries out steps on a host, with the journal ahead of every one.

The order is always: what a step replaces is kept (`copies.py`), how to undo it goes to disk, then the step happens; paths that
do not touch each other are announced together, in one write. A failure on the way undoes what was done and is raised; a crash is
finished by `recover` at the next start, before the agent says anything to anybody.

An undo that cannot succeed (a user made a directory where a file was, a copy is damaged) stops nobody for good: everything else
is undone, the journal is set aside with the reason, and the disk is compared with the config. What may succeed later (a full
disk, a service manager that does not answer) is tried again first.

`Applier` has the journal and the order, `Carrier` the hands: it carries out one step and says what would undo it.

Everything here blocks (fsync, systemctl); the agent calls it in a thread and waits for the end, also when it is being stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from fastness.agent.apply.copies import KeptFiles, check_weight, copy_file, put_away
from fastness.agent.apply.journal import (
    MAX_LINE,
    PATH,
    Aside,
    Begin,
    Booting,
    Commit,
    Doing,
    Journal,
    Later,
    Phase,
    Record,
    Revert,
    decode,
    encode,
    replay,
)
from fastness.agent.apply.ports import Files, Host
from fastness.agent.apply.steps import Copy, Enable, Put, Stage, Step, Tree, Word
from fastness.agent.errors import DamagedJournal, IncompleteUndo
from fastness.agent.host.boot_loader import LEFT_ALONE, LoaderUpdate
from fastness.agent.host.errors import CopyDamaged, DriverError, ImageFailure, PathTaken, UnitFailure, UnsafePath
from fastness.agent.host.states import ABSENT, Absent, Deployment, Pull, Stored
from fastness.formats.image_reference import same_image

# One wait for the disk for so many paths: a config of hundreds of files costs few of them (decision 10).
MAX_BATCH = 64
MAX_TRIES = 5
# Trying these again cannot help, and a user can cause them: they must not keep a node from its next config for ever.
_HOPELESS = (CopyDamaged, PathTaken, UnsafePath)

_UNDO_WORDS = {"enabled": Word.ENABLED, "enabled-runtime": Word.ENABLED, "disabled": Word.DISABLED}


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
    """For hosts of which nobody wants to hear."""


class Applier:
    """The journal of one host and what it drives; `reached` is told every point where a crash would matter."""

    def __init__(self, host: Host, reached: Callable[[str], None] = _nothing) -> None:
        self._host = host
        self._reached = reached
        self._copies = KeptFiles(host.state)
        self._carrier = Carrier(host, self._copies, reached)
        self._tries = 0
        self.journal = Journal()

    @property
    def pull(self) -> Pull:
        """Whether the image of the update that was applied last came from its registry."""
        return self._carrier.pull

    @property
    def loader(self) -> LoaderUpdate:
        """What became of the boot loader in the update that was applied last."""
        return self._carrier.loader

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
            self._host.state.truncate(PATH, unfinished)
        return self.journal

    def check(self, steps: Sequence[Step]) -> None:
        """Raise TooMuchToKeep when these steps replace more than can be kept; nothing was touched."""
        check_weight(steps, self._host.state.free())

    def apply(self, begin: Begin, steps: Sequence[Step]) -> None:
        """Carry out all steps, or none: what raises has been undone."""
        self.check(steps)
        # Remains of an update before: nothing in an empty journal speaks of them.
        self._copies.clear()
        self._carrier.pull, self._carrier.loader = Pull.FAILED, LEFT_ALONE
        self.note(begin)
        try:
            for batch in _batches(steps):
                # The undo is durable before the step begins: whatever a crash leaves half done, there is a line that brings it
                # back.
                self.note(*(Doing(self._carrier.undo_of(step)) for step in batch))
                for step in batch:
                    self._carrier.carry_out(step)
                    self._reached("done")
            # From here a restart goes on instead of back, so every step has happened, durably, before.
            self.note(Commit())
        except (DriverError, OSError):
            self.revert()
            raise

    def revert(self) -> None:
        """Go back to where the update began, and end it; raises IncompleteUndo, DriverError."""
        if self.journal.phase in (Phase.COMMITTED, Phase.BOOTING):
            self.note(Revert())
        self._undo()

    def come_back(self) -> None:
        """Undo what a boot did not bring, and reboot once more, without it; raises IncompleteUndo, DriverError.

        Services read the files of the config that did not come up: they begin anew with those that are back.
        """
        before = self.journal
        if not before.undo:
            self.end()  # this was the way back: there is none behind it
            return
        self.revert()
        way_back = Begin(
            before.begin.target, before.begin.source, before.begin.actions, before.begin.drained, "",
            self._host.power.boot_id(),
        )  # fmt: skip
        self.note(way_back)
        self.note(Commit())

    def booting(self) -> None:
        """A reboot is about to be asked for."""
        self.note(Booting(self._host.power.boot_id()))

    def end(self) -> None:
        """The update is over."""
        # One unlink ends the update: there is no state between "being undone" and "over".
        self._host.state.put(PATH, ABSENT)
        self.journal = Journal()
        self._reached("ended")
        # After the journal, which speaks of them. What a crash leaves here goes at the next start.
        self._copies.clear()

    def note(self, *records: Record) -> None:
        """Write records, durably, and take them in."""
        following = self.journal
        for record in records:
            # Checked before it is written: a record that cannot follow would make the journal unreadable at the next start.
            following = following.after(record)
        self._host.state.append(PATH, b"".join(encode(record) for record in records))
        self.journal = following
        self._reached(type(records[-1]).__name__.lower())

    def _replay(self) -> tuple[Journal, int | None]:
        """What the journal on disk says, and where its unfinished last line begins, if it has one."""
        with self._host.state.reading(PATH) as opened:
            if opened is None:
                return Journal(), None
            with os.fdopen(os.dup(opened[0]), "rb") as file:
                journal, length = replay(iter(lambda: file.readline(MAX_LINE), b""))
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
        # Noted first: a crash while the files are moved must not make the next start undo everything once more.
        self.note(Aside(f"not all of the update to {self.journal.begin.target} could be undone: {reason}"))
        raise IncompleteUndo(f"{self.journal.reason}; {self._set_aside(self.journal.reason)}", failures[0].hint)

    def _read_again(self, step: Later) -> Step:
        with self._host.state.reading(PATH) as opened:
            # Read from its place and checked again: the journal is root's, but a disk that fails gives other bytes the second
            # time.
            record = decode(os.pread(opened[0], step.length, step.offset)) if opened is not None else None
        if not isinstance(record, Doing):
            raise CopyDamaged("the journal was changed while it was read")
        return record.undo

    def _set_aside(self, reason: str) -> str:
        """Put journal and copies away; a text that says where."""
        place = put_away(self._host.state, reason)
        self._tries, self.journal = 0, Journal()
        self._reached("aside-done")
        return f"what was kept is in {place[1:]} of the agent's state directory"


class Carrier:
    """Hands on one host; `reached` is told every point where a crash would matter."""

    def __init__(self, host: Host, copies: KeptFiles, reached: Callable[[str], None]) -> None:
        self._host = host
        self._copies = copies
        self._reached = reached
        self.pull, self.loader = Pull.FAILED, LEFT_ALONE

    def undo_of(self, step: Step) -> Step:
        """The step that brings back what is there now; raises DriverError."""
        match step:
            case Put() | Copy():
                tree = self._tree(step.tree)
                present = self._copies.take(tree, step.path)
                if isinstance(present, Stored):
                    self._reached("kept")
                made = tuple(tree.missing_directories(step.path)) if isinstance(present, Absent) else ()
                own = isinstance(step, Put) and step.own_directories
                return Put(step.path, present, step.tree, step.directory_mode, own, made)
            case Enable(unit, _):
                # Static, masked and not-found have no links: disabling brings back what there was, nothing.
                return Enable(unit, _UNDO_WORDS.get(self._host.units.is_enabled(unit), Word.DISABLED))
            case Stage(deployment, old):
                # What was staged before was no part of the config before either: an undo leaves the machine as it runs, or
                # leads back to what runs now, should it have come up with the new one by then.
                back = old._replace(image=old.image or self._host.system.booted().image)
                return Stage(None, deployment or old, back=back, back_packages=step.back_packages)

    def carry_out(self, step: Step) -> None:
        """Carry out a step; raises DriverError."""
        match step:
            case Put():
                self._put(step)
            case Copy():
                source, target = self._tree(step.source_tree), self._tree(step.tree)
                copy_file(source, step.source, target, step.path, step.directory_mode)
            case Enable():
                self._enable(step)
            case Stage(deployment, old, extensions_image, boot_loader) if deployment is not None:
                self._stage(deployment, old, extensions_image)
                # After the image, which may not be there, and before the boot that may need it.
                if boot_loader:
                    self.loader = self._host.boot_loader.update(deployment.image)
            case Stage():
                self._unstage(step)

    def carry_back(self, step: Step) -> None:
        """Do the undo of a step, which may have happened or not; raises DriverError."""
        try:
            self.carry_out(step)
        except UnitFailure:
            # A unit that did not exist before cannot be disabled; anything else is found by validation.
            if not isinstance(step, Enable) or step.word is not Word.DISABLED:
                raise

    def _stage(self, deployment: Deployment, old: Deployment, extensions_image: str) -> None:
        """Stage, and remember what became of the pull: what fails afterwards does not unmake it."""
        self.pull = Pull.UNKNOWN
        try:
            self._host.system.stage(deployment, old, extensions_image)
        except ImageFailure as error:
            self.pull = error.pull
            raise
        self.pull = Pull.DONE

    def _unstage(self, step: Stage) -> None:
        """The next boot runs what runs now; or what ran before a boot that brought another image, which an undo leads back to."""
        system, back = self._host.system, step.back
        if back is None or not back.image or same_image(system.booted().image, back.image):
            system.discard()
        else:
            system.stage(back, step.old, step.back_packages)

    def _put(self, step: Put) -> None:
        tree = self._tree(step.tree)
        if isinstance(step.state, Stored):
            self._copies.give_back(step.state, tree, step.path, step.directory_mode, step.own_directories)
        else:
            tree.put(step.path, step.state, directory_mode=step.directory_mode, own_directories=step.own_directories)
        for directory in reversed(step.prune):
            tree.remove_empty(directory)

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
