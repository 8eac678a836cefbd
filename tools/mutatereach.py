"""Which tests reach which line: coverage with the running test as its context, and how long each test takes.

Tests run directory by directory, as many at once as there are processors. Each leaves files of its own in the build directory,
so that a directory or a file of tests can be covered anew when it, or what it reaches, has changed. Coverage follows one process;
programs that tests start are not followed, so what only they reach counts as unreached.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.mutants import PACKAGE, PLACES, Mutant

COVERED = (
    "tests/component/admission", "tests/component/apiserver/access", "tests/component/apiserver/door/test_health.py",
    "tests/component/apiserver/door/test_quarantined_node.py", "tests/component/apiserver/test_kube_loops.py",
    "tests/component/attacks", "tests/component/attestation",
    "tests/component/agent/disks", "tests/component/disks",
    "tests/component/cli", "tests/component/enrolment", "tests/component/http", "tests/component/insiders",
    "tests/component/kube/test_leadership.py", "tests/component/machineconfig/test_overlays.py",
    "tests/component/machineconfig/test_product_loops.py",
    "tests/component/record", "tests/component/release", "tests/component/vectors",
    "tests/component/workloads/kata", "tests/component/workloads/test_node_features.py",
    "tests/component/workloads/test_operators.py", "tests/component/workloads/test_workload_neighbours.py",
    "tests/contract/delivery", "tests/unit/admission/door", "tests/unit/agent/apply", "tests/unit/agent/boot",
    "tests/unit/agent/disks", "tests/unit/disks",
    "tests/unit/app", "tests/unit/attestation/evidence", "tests/unit/attestation/live",
    "tests/unit/attestation/machine", "tests/unit/attestation/policy", "tests/unit/attestation/status",
    "tests/unit/attestation/values", "tests/unit/attestation/verdict", "tests/unit/cli/config",
    "tests/unit/cli/machine", "tests/unit/cli/support/test_doctor.py", "tests/unit/cli/test_command.py",
    "tests/unit/cli/test_output.py", "tests/unit/cli/test_ports.py", "tests/unit/cli/test_told.py",
    "tests/unit/cli/trust", "tests/unit/crypto", "tests/unit/enrolment", "tests/unit/formats", "tests/unit/http",
    "tests/unit/images/test_measure.py", "tests/unit/images/test_measurement.py",
    "tests/unit/images/test_real_boot.py", "tests/unit/images/test_stub.py", "tests/unit/keys",
    "tests/unit/machineconfig/ignition", "tests/unit/page", "tests/unit/protocol", "tests/unit/record",
    "tests/unit/rego", "tests/unit/release", "tests/unit/sim",
)  # fmt: skip
BUDGET = 60.0  # seconds of tests that a mutant is worth


class Reach(NamedTuple):
    """Which tests reach a line, and how long each test takes."""

    lines: Mapping[str, Mapping[str, Sequence[str]]]
    seconds: Mapping[str, float]

    def of(self, mutant: Mutant, budget: float = BUDGET) -> list[str]:
        """The tests to try: those that take the branch, then those that only come by; quick ones first."""
        lines = self.lines.get(str(mutant.path), {})
        taking = set(lines.get(str(mutant.branch), ())) if mutant.branch != mutant.line else set()
        passing = {test for line in range(mutant.line, mutant.last + 1) for test in lines.get(str(line), ())} - taking
        ordered = [*sorted(taking, key=self.seconds.__getitem__), *sorted(passing, key=self.seconds.__getitem__)]
        return list(self._affordable(ordered, budget))

    def _affordable(self, ordered: Sequence[str], budget: float) -> Iterator[str]:
        spent = 0.0
        for place, test in enumerate(ordered):
            spent += self.seconds[test]
            if place == 0 or spent <= budget:
                yield test


def cover(root: Path, build: Path, places: Sequence[str], workers: int) -> None:
    """Run the tests of these directories or files with coverage and keep which test reached which line."""
    build.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda place: _cover(root, build, place), places))
    fold(root, build)


def _cover(root: Path, build: Path, place: str) -> None:
    data, durations = _files(build, place)
    # Only what has mutants is traced: nobody asks for the lines of the rest.
    traced = ",".join(f"{PACKAGE}/{room if room.endswith('.py') else f'{room}/*'}" for room in PLACES)
    command = [
        sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--include={traced}", "-m", "pytest", "-q",
        "-p", "tools.mutatecontext", place,
    ]  # fmt: skip
    subprocess.run(command, cwd=root, check=False, env={**os.environ, "FASTNESS_DURATIONS": str(durations)})


def fold(root: Path, build: Path) -> None:
    """Make one table of what was measured of all directories and files."""
    from coverage import CoverageData

    lines: dict[str, dict[str, list[str]]] = {}
    seconds: dict[str, float] = {}
    for durations in sorted(build.glob("durations-*.json")):
        data = build / durations.stem.replace("durations-", "coverage-", 1)
        if not data.exists():
            continue
        passed: dict[str, float] = json.loads(durations.read_text())
        seconds |= passed
        read = CoverageData(str(data))
        read.read()
        for name in read.measured_files():
            of_file = lines.setdefault(str(Path(name).relative_to(root)), {})
            for line, contexts in read.contexts_by_lineno(name).items():
                of_file.setdefault(str(line), []).extend(test for test in contexts if test in passed)
    (build / "reach.json").write_text(json.dumps({"lines": lines, "seconds": seconds}))


def _files(build: Path, place: str) -> tuple[Path, Path]:
    name = place.removeprefix("tests/").removesuffix(".py").replace("/", "-")
    return build / f"coverage-{name}", build / f"durations-{name}.json"
