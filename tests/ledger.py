"""What one lane tells `tools/run_tests.py`, which loads this plugin (`-p tests.ledger --ledger=FILE`).

The seconds of each file, from which the lanes of the next run are made, and the processor's share of them, which is what two
cores cannot do faster. A program that outlives its test is counted where it ends: one of a fixture for the whole lane, such as a
real Kubernetes, ends with the lane's last test and goes to that fixture by name, for the file that happens to be last has no
part in it. Further every second chance that was used, with the failure that made it necessary; and every test that took longer
than `LONG` with the reason that its `long` marker gives, if any. The file is written when the lane ends, also when tests have
failed.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

LONG = 60.0  # seconds; a test that needs more says why


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the ledger goes."""
    parser.addoption("--ledger", type=Path, required=True, help="write what this lane did to a file")


def pytest_configure(config: pytest.Config) -> None:
    """Keep a ledger for this run."""
    config.pluginmanager.register(Ledger(config.getoption("ledger")), "ledger of this lane")


class Ledger:
    """The books of a lane while it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = defaultdict(float)
        self.processor: dict[str, float] = defaultdict(float)
        self.second_chances: list[dict[str, str]] = []
        self.long: list[dict[str, str | float]] = []
        self._counted, self._file = 0.0, ""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """The clock of a test, with its fixtures and, where it has one, its second chance."""
        begun = time.monotonic()
        self._counted = _used()
        yield
        seconds = time.monotonic() - begun
        file = item.nodeid.partition("::")[0]
        self.seconds[file] += seconds
        self._count(file)
        if seconds > LONG:
            marker = item.get_closest_marker("long")
            self.long.append({"test": item.nodeid, "seconds": seconds, "reason": marker.args[0] if marker else ""})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """What the test itself took is its file's, before fixtures end."""
        self._file = item.nodeid.partition("::")[0]
        self._count(self._file)
        yield

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """The end of a fixture: one for the whole lane stands for itself."""
        self._count(f"the fixture {fixturedef.argname}" if fixturedef.scope == "session" else self._file)

    def _count(self, whose: str) -> None:
        """Whatever was used since the last look is somebody's."""
        used = _used()
        self.processor[whose] += used - self._counted
        self._counted = used

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A failure that is not the last word: pytest-rerunfailures gives it an outcome of its own."""
        if str(report.outcome) == "rerun":
            self.second_chances.append({"test": report.nodeid, "failure": first_failure(report)})

    def pytest_sessionfinish(self) -> None:
        """Write the ledger."""
        books = {
            "seconds": self.seconds,
            "processor": self.processor,
            "second_chances": self.second_chances,
            "long": self.long,
        }
        self.path.write_text(json.dumps(books))


def _used() -> float:
    """Seconds of a processor that this process and the programs that it has ended took."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def first_failure(report: pytest.TestReport) -> str:
    """Where a test failed and the first line of what it said, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return (report.longreprtext.strip() or "no text").splitlines()[-1]
    message = (str(crash.message).strip() or "no text").splitlines()[0]
    return f"{Path(crash.path).name}:{crash.lineno}: {message}"
