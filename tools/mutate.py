"""Take out every refusal, one by one, and see whether a test notices (`make mutate`).

    python tools/mutate.py cover                 # which tests reach which line; once per state of the tree
    python tools/mutate.py run [--part 2/8]      # try the mutants of a part; results are kept in .build/mutate
    python tools/mutate.py page                  # write docs/mutation.md from the results of all parts
    python tools/mutate.py short                 # the refusals of tests/mutation/checks.yaml with the tests named there

`tools.mutants` finds the refusals. For each, the tests that reach its line run against a copy of the tree without it: those that
take the branch first, quick ones before slow ones, until one fails. What no test notices is a survivor, and each survivor needs
an entry in tests/mutation/harmless.yaml that says why the product refuses all the same.

* Tests are chosen by coverage with the running test as its context, in one process; programs that tests start are not followed.
* Each mutant runs in a process forked from one that has imported what is not ours, so that it starts in half a second.
* A mutant whose tests do not end in time is found: the product hangs without the check.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, its neighbours are not on the path

from tools.mutants import PACKAGE, Mutant, mutants  # noqa: E402

BUILD = ROOT / ".build" / "mutate"
COPIED = ("src", "tests", "tools", "deploy", "docs", "bench", "requirements", "pyproject.toml", "README.md")
COVERED = (
    "tests/unit/crypto", "tests/unit/domain/attestation", "tests/unit/services", "tests/unit/trust",
    "tests/component/attestation", "tests/component/broker", "tests/component/configserver", "tests/component/delivery",
    "tests/component/enrol", "tests/component/gate", "tests/component/http", "tests/component/record",
    "tests/component/vectors",
    "tests/contract/delivery",
)  # fmt: skip
FOREIGN = (
    "cryptography.x509", "hypothesis", "httpx", "joserfc", "msgspec", "orjson", "pytest_asyncio", "uvicorn", "yaml",
)  # fmt: skip
MOST_TESTS = 80
SECONDS = 120.0
FOUND, SURVIVED, UNREACHED, UNTRIED = "found", "survived", "unreached", "untried"
STATES = {
    0: SURVIVED,
    1: FOUND,
    2: FOUND,
}  # what pytest's exit codes mean: all passed, one failed, a module could not be read


class Reach(NamedTuple):
    """Which tests reach a line, and how long each test takes."""

    lines: Mapping[str, Mapping[str, Sequence[int]]]
    tests: Sequence[str]
    seconds: Sequence[float]

    def of(self, mutant: Mutant) -> list[str]:
        """The tests to try: those that take the branch, then those that only come by; quick ones first."""
        lines = self.lines.get(str(mutant.path), {})
        taking = set(lines.get(str(mutant.branch), ())) if mutant.branch != mutant.line else set()
        passing = {
            number for line in range(mutant.line, mutant.last + 1) for number in lines.get(str(line), ())
        } - taking
        ordered = [*sorted(taking, key=self.seconds.__getitem__), *sorted(passing, key=self.seconds.__getitem__)]
        return [self.tests[number] for number in ordered[:MOST_TESTS]]


class Outcome(NamedTuple):
    """What became of a mutant; `by` is the last line that pytest printed."""

    id: str
    state: str
    by: str = ""


class _Once:
    """Takes the second chance away: a test that fails without a check has found it."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Remove the marker that conftest has set."""
        for item in items:
            item.own_markers = [marker for marker in item.own_markers if marker.name != "flaky"]


class Tree:
    """A copy of the repository that one mutant at a time is written into."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, place / name)

    def survives(self, mutant: Mutant, tests: Sequence[str], seconds: float = SECONDS) -> Outcome:
        """Run tests without this refusal."""
        path = self.place / mutant.path
        original = path.read_text()
        path.write_text(mutant.apply(original))
        try:
            code, last = self._run(tests, seconds)
        finally:
            path.write_text(original)
        return Outcome(mutant.id, STATES.get(code, UNTRIED), last)

    def _run(self, tests: Sequence[str], seconds: float) -> tuple[int, str]:
        output = self.place / "output"
        child = os.fork()
        if child == 0:
            _be_pytest(self.place, tests, output)
        for _ in range(int(seconds * 20)):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status), _last_line(output)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 1, "the tests did not end"


def _be_pytest(place: Path, tests: Sequence[str], output: Path) -> None:
    """The forked process: pytest in the copied tree, and nothing after it."""
    code = 1
    try:
        os.setsid()
        os.chdir(place)
        with output.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ["PYTHONPATH"] = str(place / "src")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ.setdefault(
            "FASTNESS_VECTORS", str(ROOT.parent / "shared" / "vectors")
        )  # real evidence lies beside us
        sys.dont_write_bytecode = True
        sys.path[:] = [str(place / "src"), str(place), *(entry for entry in sys.path if entry != str(ROOT))]
        import pytest

        # Plain asserts: what was imported before the fork cannot be rewritten, and nobody reads the messages.
        words = [
            "-x", "-q", "--assert=plain", "--no-header", "-p", "no:cacheprovider", f"--basetemp={place}/run", "--rootdir",
            str(place),
        ]  # fmt: skip
        code = int(pytest.main([*words, *tests], plugins=[_Once()]))
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _last_line(output: Path) -> str:
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED tests", "ERROR tests"))]
    return (failed or lines[-1:] or [""])[0][:300]


def prepare() -> None:
    """Import what is not ours before forking, so that no mutant pays for it."""
    for name in FOREIGN:
        import_module(name)


def cover() -> None:
    """Run the tests with coverage and keep which test reached which line."""
    BUILD.mkdir(parents=True, exist_ok=True)
    data = BUILD / "coverage"
    for old in BUILD.glob("coverage*"):
        old.unlink()
    command = [
        sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--include={PACKAGE}/*", "-m", "pytest", "-q",
        "-p", "tools.mutatecontext", *COVERED,
    ]  # fmt: skip
    subprocess.run(
        command, cwd=ROOT, check=False, env={**os.environ, "FASTNESS_DURATIONS": str(BUILD / "durations.json")}
    )
    _fold(data)


def _fold(data: Path) -> None:
    from coverage import CoverageData

    seconds: dict[str, float] = json.loads((BUILD / "durations.json").read_text())
    tests = sorted(seconds)
    number = {test: index for index, test in enumerate(tests)}
    read = CoverageData(str(data))
    read.read()
    lines: dict[str, dict[str, list[int]]] = {}
    for name in read.measured_files():
        reached = {
            str(line): sorted(number[one] for one in contexts if one in number)
            for line, contexts in read.contexts_by_lineno(name).items()
        }
        lines[str(Path(name).relative_to(ROOT))] = reached
    reach = {"lines": lines, "tests": tests, "seconds": [seconds[test] for test in tests]}
    (BUILD / "reach.json").write_text(json.dumps(reach))


def run(part: int, parts: int, only: str) -> int:
    """Try the mutants of one part; 1 when one survived that nobody has explained."""
    reach = Reach(**json.loads((BUILD / "reach.json").read_text()))
    chosen = [one for number, one in enumerate(mutants(ROOT)) if number % parts == part - 1 and only in one.id]
    outcomes = _outcomes([(one, reach.of(one)) for one in chosen])
    name = "all" if parts == 1 else f"{part}-of-{parts}"
    (BUILD / f"results-{name}{'-only' if only else ''}.json").write_text(json.dumps(outcomes, indent=0))
    return _tell(outcomes, len(chosen))


def short() -> int:
    """Try the refusals that every run of the tests holds to; 1 when one is gone, or when its tests do not notice."""
    import yaml

    checks: dict[str, list[str]] = yaml.safe_load((ROOT / "tests/mutation/checks.yaml").read_text())
    known = {one.id: one for one in mutants(ROOT)}
    gone = [name for name in checks if name not in known]
    outcomes = _outcomes([(known[name], tests) for name, tests in checks.items() if name in known])
    wrong = [f"no such refusal: {name}" for name in gone]
    wrong += [f"{one.state}: {one.id}: {one.by}" for one in outcomes if not one.by.startswith("FAILED")]
    print("\n".join([*wrong, f"{len(outcomes)} of {len(checks)} tried, {len(wrong)} wrong"]))
    return 1 if wrong or len(outcomes) != len(checks) - len(gone) else 0


def _outcomes(chosen: Sequence[tuple[Mutant, Sequence[str]]]) -> list[Outcome]:
    """What becomes of mutants under the tests beside them, on all processors."""
    prepare()
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="fastness-mutate-") as place:
        shares = [chosen[worker::workers] for worker in range(workers)]
        files = [Path(place) / f"{worker}.json" for worker in range(workers)]
        # Forking from threads is what makes programs hang, so each share has a process of its own.
        children = [_share(Path(place) / str(worker), shares[worker], files[worker]) for worker in range(workers)]
        for child in children:
            os.waitpid(child, 0)
        return [Outcome(*one) for file in files if file.exists() for one in json.loads(file.read_text())]


def _share(place: Path, chosen: Sequence[tuple[Mutant, Sequence[str]]], results: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        tree, outcomes = Tree(place), []
        for mutant, tests in chosen:
            outcome = tree.survives(mutant, tests) if tests else Outcome(mutant.id, UNREACHED)
            outcomes.append(outcome)
            print(f"{outcome.state:<10}{outcome.id}", flush=True)
            results.write_text(json.dumps(outcomes))
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def _tell(outcomes: Sequence[Outcome], wanted: int) -> int:
    explained = harmless()
    left = [one for one in outcomes if one.state != FOUND and one.id not in explained]
    found = sum(one.state == FOUND for one in outcomes)
    print(
        f"{len(outcomes)} of {wanted} tried, {found} found, {len(outcomes) - found} not, of these {len(left)} unexplained"
    )
    for one in left:
        print(f"  {one.state}: {one.id}")
    return 1 if left or len(outcomes) != wanted else 0


def harmless() -> dict[str, str]:
    """Survivors that were looked at: the id, and why the product refuses all the same."""
    import yaml

    loaded = yaml.safe_load((ROOT / "tests/mutation/harmless.yaml").read_text()) or {}
    return {str(name): str(why) for name, why in loaded.items()}


def page() -> str:
    """docs/mutation.md from the results of all parts."""
    outcomes = {one.id: one for one in _results()}
    known = mutants(ROOT)
    reasons = harmless()
    groups: dict[str, list[Mutant]] = {}
    for mutant in known:
        groups.setdefault(_group(mutant), []).append(mutant)

    def count(of: Iterable[Mutant], state: str) -> int:
        return sum(outcomes[one.id].state == state for one in of if one.id in outcomes)

    rows = [
        f"| `{name}` | {len(of)} | {count(of, FOUND)} | {count(of, SURVIVED) + count(of, UNREACHED)} |"
        for name, of in sorted(groups.items())
    ]
    survivors = [one for one in known if one.id in outcomes and outcomes[one.id].state != FOUND]
    explained = [f"| `{_cell(one.id)}` | {_cell(reasons.get(one.id, '**unexplained**'))} |" for one in survivors]
    return "\n".join([INTRO, *rows, SURVIVORS, *explained]) + "\n"


INTRO = """# What the tests would miss

<!-- Written by `make mutate`; changes by hand are lost. -->

`make mutate` takes out, one by one, every refusal in the places where trust is decided, and runs the tests that reach it. A
refusal that no test misses is a survivor; each is listed below with the reason why it is harmless. `tools/mutants.py` says what
counts as a refusal, and `make mutate PART=2/8` runs one part of eight.

| Place | Refusals | Missed by a test when taken out | Survivors |
| --- | --- | --- | --- |"""
SURVIVORS = """
## Survivors

| Refusal | Why it is harmless |
| --- | --- |"""


def _results() -> list[Outcome]:
    return [Outcome(*one) for file in sorted(BUILD.glob("results-*.json")) for one in json.loads(file.read_text())]


def _group(mutant: Mutant) -> str:
    inside = mutant.path.relative_to(PACKAGE).parts
    return "/".join(inside[:2]) if inside[0] in ("domain", "services") else inside[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    """One of the verbs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["cover", "run", "page", "short"])
    parser.add_argument("--part", default="1/1", help="which part of how many, as 2/8")
    parser.add_argument("--only", default="", help="mutants whose id holds this text")
    options = parser.parse_args(arguments)
    part, _, parts = options.part.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        parser.error(f"--part {options.part!r} must be like 2/8")
    if options.verb == "cover":
        cover()
        return 0
    if options.verb == "run":
        return run(int(part), int(parts), options.only)
    if options.verb == "short":
        return short()
    (ROOT / "docs/mutation.md").write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
