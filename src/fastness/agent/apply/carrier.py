"""Carries out one step on a host, and says what would undo it.

What a step replaces is kept (`copies.py`) when its undo is asked for, before the journal speaks of it.
"""

from __future__ import annotations

from collections.abc import Callable

from fastness.agent.apply.copies import KeptFiles, copy_file
from fastness.agent.apply.ports import Files, Host
from fastness.agent.apply.steps import Copy, Enable, Put, Stage, Step, Tree, Word
from fastness.agent.host.errors import UnitFailure
from fastness.agent.host.states import Absent, Stored

_UNDO_WORDS = {"enabled": Word.ENABLED, "enabled-runtime": Word.ENABLED, "disabled": Word.DISABLED}


class Carrier:
    """Hands on one host; `reached` is told every point where a crash would matter."""

    def __init__(self, host: Host, kept: KeptFiles, reached: Callable[[str], None]) -> None:
        self._host = host
        self._kept = kept
        self._reached = reached

    def undo_of(self, step: Step) -> Step:
        """The step that brings back what is there now; raises DriverError."""
        match step:
            case Put() | Copy():
                tree = self._tree(step.tree)
                present = self._kept.take(tree, step.path)
                if isinstance(present, Stored):
                    self._reached("kept")
                made = tuple(tree.missing_directories(step.path)) if isinstance(present, Absent) else ()
                own = isinstance(step, Put) and step.own_directories
                return Put(step.path, present, step.tree, step.directory_mode, own, made)
            case Enable(unit, _):
                return Enable(unit, _UNDO_WORDS.get(self._host.units.is_enabled(unit), Word.DISABLED))
            case Stage():
                return Stage(self._host.system.staged())

    def carry_out(self, step: Step) -> None:
        """Do it; raises DriverError."""
        match step:
            case Put():
                self._put(step)
            case Copy():
                source, target = self._tree(step.source_tree), self._tree(step.tree)
                copy_file(source, step.source, target, step.path, step.directory_mode)
            case Enable():
                self._enable(step)
            case Stage(deployment) if deployment is not None:
                self._host.system.stage(deployment)
            case Stage():
                self._host.system.discard()

    def carry_back(self, step: Step) -> None:
        """Do the undo of a step, which may have happened or not; raises DriverError."""
        try:
            self.carry_out(step)
        except UnitFailure:
            # A unit that did not exist before cannot be disabled; anything else is found by validation.
            if not isinstance(step, Enable) or step.word is not Word.DISABLED:
                raise

    def _put(self, step: Put) -> None:
        tree = self._tree(step.tree)
        if isinstance(step.state, Stored):
            self._kept.give_back(step.state, tree, step.path, step.directory_mode, step.own_directories)
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
