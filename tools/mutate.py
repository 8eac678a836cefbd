"""Take out every refusal, one by one, and see whether a test notices (`make mutate`).

    python tools/mutate.py cover [tests/…]       # which tests reach which line; anew for what has changed
    python tools/mutate.py run [--part 2/8]      # try the mutants of a part; outcomes are kept in .build/mutate
    python tools/mutate.py run --left            # those that no test has noticed and nobody has explained so far
    python tools/mutate.py page                  # write docs/mutation.md, and what was noticed so far, into the tree
    python tools/mutate.py checks                # the refusals of tests/mutation/checks.yaml with the tests named there
    python tools/mutate.py short                 # those of them that unit tests notice

`tools.mutants` finds the refusals and puts a switch around each, `tools.mutatereach` knows which tests come by, and
`tools.mutatefork` runs these against a copy of the tree with one switch turned: tests that take the branch first, quick ones
before slow ones, until one fails. What no test notices is a survivor, and each survivor needs an entry in
tests/mutation/harmless.yaml that says why the product refuses all the same.

What was tried once is in the tree (tests/mutation/noticed.yaml), so that `--left` tries what was written since, in any checkout.
A refusal counts as tried for as long as its id stays; a run without `--left` tries all of them again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, its neighbours are not on the path

from tools.mutants import PACKAGE, SWITCH, Mutant, mutants, switched  # noqa: E402
from tools.mutatefork import FOUND, ONCE, OUTCOMES, REMOVED, SURVIVED, TRIALS, UNREACHED, Outcome, Trial  # noqa: E402
from tools.mutatereach import BUDGET, COVERED, Reach, cover  # noqa: E402

BUILD = ROOT / ".build" / "mutate"
RESULTS = BUILD / "outcomes.jsonl"
CHECKS, HARMLESS, NOTICED = (
    ROOT / "tests/mutation" / name for name in ("checks.yaml", "harmless.yaml", "noticed.yaml")
)
PAGE = ROOT / "docs/mutation.md"
COPIED = ("src", "tests", "tools", "deploy", "docs", "bench", "requirements", "pyproject.toml", "README.md")


def run(part: int, parts: int, only: str, budget: float, *, left: bool, workers: int) -> int:
    """Try the mutants of one part; 1 when one survived that nobody has explained."""
    reach = Reach(**json.loads((BUILD / "reach.json").read_text()))
    explained = harmless()
    settled = (
        {outcome.id for outcome in results().values() if outcome.state == FOUND or outcome.id in explained}
        if left
        else set()
    )
    chosen = [
        Trial(number, mutant.id, reach.of(mutant, budget))
        for number, mutant in numbered().items()
        if number % parts == part - 1 and only in mutant.id and mutant.id not in settled
    ]
    outcomes = _tried(chosen, workers)
    with RESULTS.open("a") as file:
        file.writelines(json.dumps(outcome) + "\n" for outcome in outcomes)
    return _tell(outcomes, len(chosen))


def tried_again(*, short: bool) -> int:
    """Try the refusals that the tests are held to; 1 when one is gone, or when its tests do not notice.

    The short form tries those that unit tests notice, in a third of the time; it misses a refusal that is gone all the same.

    One worker, because other tests run beside this; and a failure is believed at once, because the next run of the tests
    tries the same again: what failed by chance today does not fail by chance tomorrow.
    """
    checks: dict[str, list[str]] = _loaded(CHECKS)
    numbers = {mutant.id: number for number, mutant in numbered().items()}
    gone = [name for name in checks if name not in numbers]
    chosen = {name: tests for name, tests in checks.items() if not short or all(map(_is_unit, tests))}
    trials = [Trial(numbers[name], name, tests) for name, tests in chosen.items() if name in numbers]
    outcomes = _tried(trials, workers=1, once=True)
    wrong = [f"no such refusal: {name}" for name in gone]
    wrong += [f"{outcome.state}: {outcome.id}" for outcome in outcomes if outcome.state != FOUND]
    print("\n".join([*wrong, f"{len(outcomes)} of {len(chosen)} tried, {len(wrong)} wrong"]))
    return 1 if wrong or len(outcomes) != len(chosen) else 0


def _is_unit(test: str) -> bool:
    return test.startswith("tests/unit/")


def numbered() -> dict[int, Mutant]:
    """Every refusal with the number of its switch."""
    return dict(enumerate(mutants(ROOT), start=1))


def _tried(trials: Sequence[Trial], workers: int, *, once: bool = False) -> list[Outcome]:
    """What becomes of mutants under the tests beside them, in so many processes; `once` believes the first failure."""
    unreached = [Outcome(trial.id, UNREACHED) for trial in trials if not trial.tests]
    reached = [trial for trial in trials if trial.tests]
    workers = min(workers, len(reached))
    with tempfile.TemporaryDirectory(prefix="fastness-mutate-", ignore_cleanup_errors=True) as place:
        tree = Path(place) / "tree"
        _copy(tree, {trial.number for trial in reached})
        outcomes = [Path(place) / f"{worker}.jsonl" for worker in range(workers)]
        children = [_worker(tree, reached[worker::workers], outcomes[worker], once) for worker in range(workers)]
        for child in children:
            child.wait()
        return unreached + [outcome for path in outcomes for outcome in _read(path)]


def _copy(tree: Path, numbers: Set[int]) -> None:
    """The repository with a switch for each of these refusals, which stands on 0 unless the environment says otherwise.

    What is compiled comes along: it is good for every file whose time and size stay, so only switched modules are compiled anew.
    """
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # Other tests compile beside this: what they have half written goes away again.
            shutil.copytree(source, tree / name, symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy2(source, tree / name)
    by_path: dict[Path, dict[int, Mutant]] = {}
    for number, mutant in numbered().items():
        if number in numbers:
            by_path.setdefault(mutant.path, {})[number] = mutant
    for path, of_module in by_path.items():
        (tree / path).write_text(switched((ROOT / path).read_text(), of_module))
    with (tree / PACKAGE / "__init__.py").open("a") as file:
        file.write(
            f'\nimport builtins, os\nbuiltins.{SWITCH} = int(os.environ.get("{REMOVED}", "0"))\n'
        )  # also for programs that tests start


def _worker(tree: Path, trials: Sequence[Trial], outcomes: Path, once: bool) -> subprocess.Popen[bytes]:
    plan = outcomes.with_suffix(".plan")
    plan.write_text(json.dumps(trials))
    files = sorted({test.partition("::")[0] for trial in trials for test in trial.tests})
    words = [
        "-q",
        "-s",
        "--no-header",
        "-p",
        "tools.mutatefork",
        "-p",
        "no:cacheprovider",
        f"--basetemp={outcomes.stem}",
    ]
    environment = {
        # Real evidence lies beside the tree, not beside its copy.
        "FASTNESS_VECTORS": str(ROOT.parent / "shared" / "vectors"),
        **os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", TRIALS: str(plan), OUTCOMES: str(outcomes),
        ONCE: "1" if once else "",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *words, "--rootdir", str(tree), *files], cwd=tree, env=environment
    )


def _read(path: Path) -> list[Outcome]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [Outcome(*json.loads(line)) for line in lines]


def results() -> dict[str, Outcome]:
    """The last outcome of each refusal that the tree still has: of a run in this checkout, or as the tree says."""
    there = {mutant.id for mutant in mutants(ROOT)}
    before = [Outcome(name, SURVIVED) for name in harmless()]
    before += [Outcome(name, FOUND) for name in _loaded(NOTICED)["noticed"]]
    return {outcome.id: outcome for outcome in [*before, *_read(RESULTS)] if outcome.id in there}


def _tell(outcomes: Sequence[Outcome], chosen: int) -> int:
    explained = harmless()
    left = [outcome for outcome in outcomes if outcome.state != FOUND and outcome.id not in explained]
    noticed = sum(outcome.state == FOUND for outcome in outcomes)
    print(
        f"{len(outcomes)} of {chosen} tried, {noticed} found, {len(outcomes) - noticed} not, of these {len(left)} unexplained"
    )
    for outcome in left:
        print(f"  {outcome.state}: {outcome.id}")
    return 1 if left or len(outcomes) != chosen else 0


def harmless() -> dict[str, str]:
    """Survivors that were looked at: the id, and why the product refuses all the same."""
    return _loaded(HARMLESS)


def _loaded(path: Path) -> dict[str, Any]:
    import yaml

    return yaml.safe_load(path.read_text()) or {}


def write_page() -> int:
    """Write docs/mutation.md; 1 when a refusal survived and nobody has explained it."""
    outcomes, explained = results(), harmless()
    untried = [mutant.id for mutant in mutants(ROOT) if mutant.id not in outcomes]
    unexplained = [
        outcome.id for outcome in outcomes.values() if outcome.state != FOUND and outcome.id not in explained
    ]
    noticed = [name for name in explained if name in outcomes and outcomes[name].state == FOUND]
    problems = [f"unexplained: {name}" for name in unexplained]
    problems += [f"explained, but a test notices: {name}" for name in noticed]
    if problems:
        print("\n".join(problems))
        return 1
    names = [f"- {json.dumps(outcome.id)}\n" for outcome in outcomes.values() if outcome.state == FOUND]
    NOTICED.write_text("".join([NOTICED_INTRO, f"untried: {len(untried)}\n", "noticed:\n", *sorted(names)]))
    PAGE.write_text(page())
    return 0


def page() -> str:
    """docs/mutation.md, from what is kept in the tree: which refusals were noticed, and why the others are harmless."""
    tried, explained = _loaded(NOTICED), harmless()
    noticed = Counter(_room(name) for name in tried["noticed"])
    left = Counter(_room(name) for name in explained)
    rows = [
        f"| `{room}` | {noticed[room] + left[room]} | {noticed[room]} | {left[room]} |"
        for room in sorted(noticed.keys() | left.keys())
    ]
    total = f"| | {noticed.total() + len(explained)} | {noticed.total()} | {len(explained)} |"
    untried = f"\nRefusals that were not tried yet, and are not among these: {tried['untried']}."
    survivors = [f"| `{_cell(name)}` | {_cell(why)} |" for name, why in sorted(explained.items())]
    return "\n".join([INTRO, *rows, total, untried, SURVIVORS, *survivors]) + "\n"


NOTICED_INTRO = "# The refusals that a test missed when they were taken out; `tools/mutate.py page` writes it.\n"
INTRO = """# What the tests would miss

<!-- Written by `make mutate` from tests/mutation; changes by hand are lost. -->

`make mutate` takes out, one by one, every refusal in the places where trust is decided, and runs the tests that reach it. Where a
test fails, it was the refusal that it missed: the same test alone passes with the refusal in place and fails again without it. A
refusal that no test misses is a survivor; each is listed below with the reason why it is harmless. `tools/mutants.py` says what
counts as a refusal, and `make mutate PART=2/8` runs one part of eight. A refusal keeps its outcome
([tests/mutation/noticed.yaml](../tests/mutation/noticed.yaml)) until it is tried again or its text changes. The refusals that let
somebody in when they were missing ([tests/mutation/checks.yaml](../tests/mutation/checks.yaml)) are tried by every `make soak`,
and those of them that unit tests miss by every `make test`.

| Place | Refusals | Missed by a test when taken out | Survivors |
| --- | --- | --- | --- |"""
SURVIVORS = """
## Survivors

A refusal is named by its file, its function, its shape and its own text.

| Refusal | Why it is harmless |
| --- | --- |"""


def _room(name: str) -> str:
    inside = name.partition("::")[0].split("/")
    return "/".join(inside[:2]) if len(inside) > 2 else inside[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    """One of the verbs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["cover", "run", "page", "checks", "short"])
    parser.add_argument(
        "places", nargs="*", help="directories or files of tests to cover (default: all that may notice)"
    )
    parser.add_argument("--part", default="1/1", help="which part of how many, as 2/8")
    parser.add_argument("--only", default="", help="mutants whose id holds this text")
    parser.add_argument("--left", action="store_true", help="mutants that no test has noticed and nobody has explained")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of tests that a mutant is worth")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many processes at once")
    options = parser.parse_intermixed_args(arguments)
    part, _, parts = options.part.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        parser.error(f"--part {options.part!r} must be like 2/8")
    if options.verb == "cover":
        cover(ROOT, BUILD, options.places or COVERED, options.workers)
        return 0
    if options.verb == "run":
        return run(int(part), int(parts), options.only, options.budget, left=options.left, workers=options.workers)
    return write_page() if options.verb == "page" else tried_again(short=options.verb == "short")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
