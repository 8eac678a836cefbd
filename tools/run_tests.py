"""Run all tests: a few pytest processes side by side, because most tests wait for real programs and not for the processor.

    python tools/run_tests.py                  # everything
    python tools/run_tests.py -x -k name       # what this does not know itself goes to every lane
    python tools/run_tests.py --record         # … and write tests/durations.json, from which `tools.lanes` makes the lanes

Each lane is one pytest process with its own servers and its own temporary directory. The output of a lane is printed when it
has ended, so that it reads as one; the last lines say how each lane went, which tests took long, which files cost most, and
which tests needed their second chance (tests.processes) and why. The result is that of the worst lane, and a run that needed
more than `CHANCES` has failed: one test can meet a bad moment of the machine, six have met a defect.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, its neighbours are not on the path

from tools.lanes import Lane, balance, bundles, keys_of  # noqa: E402

TESTS = Path("tests")
DURATIONS = TESTS / "durations.json"
LANES = 5  # two cores are busy with four; the fifth fills the waits
COSTLY = 15  # how many files the summary names by what they took of the processor
CHANCES = 5  # second chances that a good run may need
NO_TESTS = 5  # pytest's exit code for an empty selection, which is fine for one lane of several


@dataclass(frozen=True)
class EndedLane:
    """What became of a lane; without a ledger its pytest did not come to its end."""

    lane: Lane
    code: int
    seconds: float
    output: str
    ledger: Mapping[str, Any] | None = None

    @property
    def good(self) -> bool:
        """Whether nothing failed."""
        return self.code in (0, NO_TESTS)

    def entries(self, book: str) -> list[dict[str, Any]]:
        """The entries of one book of the ledger."""
        return list(self.ledger[book]) if self.ledger is not None else []


def run(lane: Lane, words: Sequence[str]) -> EndedLane:
    """One lane to its end."""
    begun = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="fastness-tests-"))
    ledger = place / "ledger.json"
    try:
        options = ["-q", "-p", "tests.ledger", f"--ledger={ledger}", f"--basetemp={place}/run"]
        command = [sys.executable, "-m", "pytest", *options, *words, *lane.files]
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=environment(os.environ),
        )
        books = json.loads(ledger.read_text()) if ledger.exists() else None
    finally:
        # ostree marks deployments immutable; where that cannot be undone they stay, as they do in pytest's own directory.
        if shutil.which("chattr"):
            subprocess.run(["chattr", "-R", "-f", "-i", str(place)], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)
    return EndedLane(lane, done.returncode, time.monotonic() - begun, done.stdout, books)


def environment(around: Mapping[str, str]) -> dict[str, str]:
    """What a lane finds around itself: compiled tests are kept, also where compiled programs are not wanted.

    pytest rewrites every assertion of a thousand files, which takes 40 seconds of a processor; it is done once.
    """
    return {name: value for name, value in around.items() if name != "PYTHONDONTWRITEBYTECODE"}


def summary(ended: Iterable[EndedLane]) -> list[str]:
    """The last lines: each lane, the tests that took long, the second chances."""
    ended = list(ended)
    lines = [
        f"{'ok' if lane.good else 'FAILED':<7}{lane.lane.name:<8}{lane.seconds:5.0f} s, {lane.lane.seconds:.0f} expected  "
        f"{lane.output.rstrip().rpartition(chr(10))[2]}"
        for lane in ended
    ]
    slow = sorted(
        (entry for lane in ended for entry in lane.entries("long")), key=lambda entry: -float(entry["seconds"])
    )
    lines += [f"{entry['seconds']:6.0f} s  {entry['test']}: {entry['reason'] or 'does not say why'}" for entry in slow]
    lines += costliest(ended)
    chances = [entry for lane in ended for entry in lane.entries("second_chances")]
    if chances:
        lines.append(f"{len(chances)} needed a second chance:")
        lines += [f"  {entry['test']}\n    {entry['failure']}" for entry in chances]
    if len(chances) > CHANCES:
        lines.append(f"FAILED: more than {CHANCES} second chances; a test that needs one twice in a week is a defect")
    return lines


def costliest(ended: Iterable[EndedLane]) -> list[str]:
    """The files, and the fixtures of whole lanes, that took most of the processor: where a shorter run has to begin."""
    took: dict[str, float] = defaultdict(float)
    for lane in ended:
        for file, seconds in (lane.ledger["processor"] if lane.ledger else {}).items():
            took[file] += seconds
    most = sorted(took, key=lambda file: -took[file])[:COSTLY]
    return [f"{took[file]:6.0f} s of a processor  {file}" for file in most]


def good(ended: Iterable[EndedLane]) -> bool:
    """Whether the run is good: every lane is, and few second chances were needed."""
    ended = list(ended)
    return all(lane.good for lane in ended) and sum(len(lane.entries("second_chances")) for lane in ended) <= CHANCES


def recorded(ended: Iterable[EndedLane], before: Mapping[str, float], files: Iterable[str]) -> dict[str, float]:
    """The seconds of each file that exists: of this run where it ran, as before where it did not."""
    now = {file: seconds for lane in ended if lane.ledger for file, seconds in lane.ledger["seconds"].items()}
    return {file: round({**before, **now}[file], 1) for file in sorted(files) if file in now or file in before}


def main(arguments: list[str]) -> int:
    """All lanes; 0 when the run is good."""
    parser = argparse.ArgumentParser(description="Run all tests; unknown options go to pytest.", allow_abbrev=False)
    parser.add_argument("--record", action="store_true", help=f"write {DURATIONS} from this run")
    parser.add_argument("--lanes", type=int, default=LANES, metavar="N", help="pytest processes side by side")
    options, words = parser.parse_known_args(arguments)
    before: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    keys = keys_of(TESTS)
    ended = _all(balance(bundles(keys, before, options.lanes), options.lanes), words)
    if options.record:
        DURATIONS.write_text(json.dumps(recorded(ended, before, keys), indent=0) + "\n")
    print("=== all lanes ===", *summary(ended), sep="\n")
    used = os.times()
    print(f"{(used.children_user + used.children_system) / 60:.0f} minutes of processor time")
    return 0 if good(ended) else 1


def _all(lanes: Sequence[Lane], words: Sequence[str]) -> list[EndedLane]:
    """Every lane beside the others; each is printed when it ends."""
    print(f"{len(lanes)} lanes side by side: {', '.join(f'{len(lane.files)} files' for lane in lanes)}", flush=True)
    ended = []
    with ThreadPoolExecutor(len(lanes)) as pool:
        for done in as_completed([pool.submit(run, lane, words) for lane in lanes]):
            lane = done.result()
            print(f"\n=== {lane.lane.name} ===\n{lane.output}", flush=True)
            ended.append(lane)
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
