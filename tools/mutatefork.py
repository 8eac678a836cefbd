"""A pytest plugin that tries mutants: it collects the tests once, then forks a process for each mutant that runs a few of them.

`tools/mutate.py` starts it in a copy of the tree whose product has a switch for each refusal (`tools.mutants.switched`). A child
turns one switch and runs the tests of its mutant until one fails, so that a mutant costs its tests and nothing else; programs
that these tests start read the same switch from the environment.

A failure counts only if that test alone passes with the refusal in place and fails once more without it: on a loaded machine
tests fail for other reasons as well. Where the same trial is repeated soon anyway (`FASTNESS_ONCE`), one failure is enough. A
test that does not end within a minute has failed.
"""

from __future__ import annotations

import builtins
import json
import mmap
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.mutants import SWITCH

TRIALS, OUTCOMES, REMOVED = "FASTNESS_TRIALS", "FASTNESS_OUTCOMES", "FASTNESS_REMOVED"
ONCE = "FASTNESS_ONCE"
FOUND, SURVIVED, UNREACHED = "found", "survived", "unreached"
SECONDS = float(os.environ.get("FASTNESS_HANGS", "60"))  # a test that is silent for longer does not end
_INTACT = 0


class Trial(NamedTuple):
    """A mutant by the number of its switch and its id, and the tests that may notice."""

    number: int
    id: str
    tests: Sequence[str]


class Outcome(NamedTuple):
    """What became of a mutant, and the test that noticed."""

    id: str
    state: str
    by: str = ""


class Forks:
    """Tries mutants on the tests of a session, one after the other."""

    def __init__(self, session: pytest.Session, *, once: bool = False) -> None:
        self._session = session
        self._once = once
        self._items = {item.nodeid: item for item in session.items}
        self._good: set[str] = set()

    def outcome(self, trial: Trial) -> Outcome:
        """Whether a test notices that a refusal is gone."""
        left = [item for test in trial.tests for item in self._meant(test)]
        if not left:
            return Outcome(trial.id, UNREACHED)
        while left:
            place = self._failing(left, trial.number)
            if place is None:
                break
            if self._passes(left[place]) and (self._once or self._failing([left[place]], trial.number) is not None):
                return Outcome(trial.id, FOUND, left[place].nodeid)
            left = left[place + 1 :]
        return Outcome(trial.id, SURVIVED)

    def _meant(self, test: str) -> list[pytest.Item]:
        """The test of that name, else all its cases, or all of a file."""
        if test in self._items:
            return [self._items[test]]
        return [item for name, item in self._items.items() if name.startswith((f"{test}::", f"{test}["))]

    def _passes(self, item: pytest.Item) -> bool:
        if item.nodeid not in self._good and self._failing([item], _INTACT) is None:
            self._good.add(item.nodeid)
        return item.nodeid in self._good

    def _failing(self, items: Sequence[pytest.Item], number: int) -> int | None:
        """Which of the tests failed first in a process of their own, or None."""
        with mmap.mmap(-1, 4) as progress:
            child = os.fork()
            if child == 0:
                _be(self._session, items, number, progress)
            good = _ended_well(child, progress)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # servers that a failed test has left behind
            return None if good else _read(progress)


def _ended_well(child: int, progress: mmap.mmap) -> bool:
    """Wait for a child, as long as it gets on with its tests."""
    place, since = 0, time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        if _read(progress) != place:
            place, since = _read(progress), time.monotonic()
        elif time.monotonic() - since > SECONDS:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.02)


def _be(session: pytest.Session, items: Sequence[pytest.Item], number: int, progress: mmap.mmap) -> None:
    """The forked process: the tests in their order until one fails, and nothing after them."""
    code = 1
    try:
        os.setsid()
        _silence()
        setattr(builtins, SWITCH, number)
        os.environ[REMOVED] = str(number)
        failed = _Failed()
        session.config.pluginmanager.register(failed)
        for place, item in enumerate(items):
            progress[:] = place.to_bytes(4, "big")
            following = items[place + 1] if place + 1 < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failed.any:
                session._setupstate.teardown_exact(None)  # ends the servers that its fixtures have started
                break
        else:
            code = 0
    finally:  # whatever is raised in here has failed the test: it must not return to the loop of the parent
        os._exit(code)


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _read(progress: mmap.mmap) -> int:
    return int.from_bytes(progress[:4], "big")


class _Failed:
    """Whether a test of this process has failed, in any of its phases."""

    def __init__(self) -> None:
        self.any = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.any = self.any or report.failed


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the second chance away that conftest gives: a test that fails without a check has found it."""
    for item in items:
        item.own_markers = [marker for marker in item.own_markers if marker.name != "flaky"]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of the tests, the mutants; each outcome is one more line of the file of outcomes."""
    forks = Forks(session, once=bool(os.environ.get(ONCE)))
    outcomes = Path(os.environ[OUTCOMES])
    for words in json.loads(Path(os.environ[TRIALS]).read_text()):
        outcome = forks.outcome(Trial(*words))
        with outcomes.open("a") as file:
            file.write(json.dumps(outcome) + "\n")
        print(f"{outcome.state:<10}{outcome.id}", flush=True)
    return True
