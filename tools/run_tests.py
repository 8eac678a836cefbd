"""Run all tests: a few pytest processes side by side, because most tests wait for real programs and not for the processor.

Each lane is one pytest process with its own servers and its own temporary directory. The output of a lane is printed when it
has ended, so that it reads as one; the last lines say how each lane went. The result is that of the worst lane. Arguments are
passed on to every lane: `python tools/run_tests.py -x -k name`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

TESTS = Path("tests")
NO_TESTS = 5  # pytest's exit code for an empty selection, which is fine for one lane of several
MACHINES = frozenset({"attestation", "delivery", "measured", "web"})
STORIES = frozenset({"kata", "manual", "sim"})
APART = frozenset({"component", "e2e", "simulation"})
LATE_COMPONENTS = frozenset(
    {
        "delivery", "drivers", "embedded", "enrol", "fields", "gate", "http", "ignition", "kube", "machineconfig", "model",
        "realkube", "record", "schema", "sim", "store", "tools", "vectors", "web",
    }
)  # fmt: skip


class Lane(NamedTuple):
    """A part of the tests that runs in one process."""

    name: str
    paths: list[str]


class Ended(NamedTuple):
    """What became of a lane."""

    lane: Lane
    code: int
    seconds: float
    output: str

    @property
    def good(self) -> bool:
        """Whether nothing failed."""
        return self.code in (0, NO_TESTS)


def lanes() -> list[Lane]:
    """The lanes; whatever is added to the tree falls into one of them."""
    component, ends = _parts(TESTS / "component"), _parts(TESTS / "e2e")
    rest = [path for path in _parts(TESTS) if path.name not in APART]
    return [
        Lane("whole machines", [str(path) for path in ends if path.name in MACHINES]),
        Lane("whole stories", [*(str(path) for path in ends if path.name in STORIES), str(TESTS / "simulation")]),
        Lane("whole programs", [str(path) for path in ends if path.name not in MACHINES | STORIES]),
        Lane("components, first half", [str(path) for path in component if path.name not in LATE_COMPONENTS]),
        Lane("components, second half", [str(path) for path in component if path.name in LATE_COMPONENTS]),
        Lane("the rest", [str(path) for path in rest]),
    ]


def _parts(directory: Path) -> list[Path]:
    """The directories with tests directly below one."""
    return sorted(path for path in directory.iterdir() if path.is_dir() and any(path.rglob("test_*.py")))


def run(lane: Lane, words: list[str]) -> Ended:
    """One lane to its end."""
    begun = time.monotonic()
    place = tempfile.mkdtemp(prefix="fastness-tests-")
    try:
        command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={place}/run", *words, *lane.paths]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    finally:
        # ostree marks deployments immutable; where that cannot be undone they stay, as they do in pytest's own directory.
        if shutil.which("chattr"):
            subprocess.run(["chattr", "-R", "-f", "-i", place], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)
    return Ended(lane, done.returncode, time.monotonic() - begun, done.stdout)


def main(words: list[str]) -> int:
    """All lanes; 0 when every one is good."""
    chosen = lanes()
    print(f"{len(chosen)} lanes side by side: {', '.join(lane.name for lane in chosen)}", flush=True)
    ended = []
    with ThreadPoolExecutor(len(chosen)) as pool:
        for done in as_completed([pool.submit(run, lane, words) for lane in chosen]):
            one = done.result()
            print(f"\n=== {one.lane.name} ===\n{one.output}", flush=True)
            ended.append(one)
    print("=== all lanes ===")
    for one in ended:
        last = one.output.rstrip().rpartition("\n")[2]
        print(f"{'ok' if one.good else 'FAILED':<7}{one.lane.name:<24} {one.seconds:5.0f} s  {last}")
    return 0 if all(one.good for one in ended) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
