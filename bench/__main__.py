"""`python -m bench`: measure, print, write the result file; `--render` makes the page from the last one.

    python -m bench                          everything, curves up to 10,000 objects
    python -m bench --full                   curves up to 100,000, a boot storm of 5,000, memory over 100,000 handshakes
    python -m bench create list              some families: create get apply delete list watch inprocess start cli curves wait
                                             serve render rollout agent machines images evidence policy broker delivery
                                             features workloads record page disks chart
    python -m bench curves --sizes 100,1000
    python -m bench --render docs/performance.md

Ends with 1 when a gate is missed and with 2 when something is not there that it needs.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    agents,
    attestation,
    broker,
    cases,
    charted,
    curves,
    delivery,
    enforcing,
    features,
    images,
    kata,
    openings,
    page,
    policy,
    record,
    rendering,
    rollouts,
    serving,
    solo,
    unlocks,
    virtual,
    waiting,
    workloads,
)
from bench.loadgen import LoadgenError, build
from bench.report import Results, as_markdown, as_text, machine
from bench.targets import Target, TargetError, environment, ours, peer
from tools.realkube import locate

ALONE = ("inprocess", "start", "cli", "curves", "wait")
MACHINES = ("serve", "render", "rollout", "agent", "machines", "images")
ATTESTATION = ("evidence", "policy", "broker", "delivery", "features", "workloads", "record", "page", "disks", "chart")
FAMILIES = (*cases.FAMILIES, *ALONE, *MACHINES, *ATTESTATION)
LATEST = Path(__file__).resolve().parent / "results" / "latest.json"
SIZES = (100, 1000, 10_000)
FULL = 100_000


def arguments(given: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure beside a real kube-apiserver.")
    parser.add_argument("family", nargs="*", help=f"what to measure: {' '.join(FAMILIES)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each row (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of requests (default 1)")
    parser.add_argument("--sizes", help="sizes of the curves, for instance 100,1000")
    parser.add_argument(
        "--full", action="store_true", help=f"curves up to {FULL:,} objects, a storm of 5,000, 100,000 handshakes"
    )
    parser.add_argument("--alone", action="store_true", help="without the peer: no ratios, no gates")
    parser.add_argument("--add", action="store_true", help="keep what the result file has of other families")
    parser.add_argument("--output", type=Path, default=LATEST, help="result file (default bench/results/latest.json)")
    parser.add_argument(
        "--render", type=Path, metavar="PAGE", help="make the page from the result file and measure nothing"
    )
    options = parser.parse_args(given)
    unknown = sorted(set(options.family) - set(FAMILIES))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(FAMILIES)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def sizes_of(options: argparse.Namespace) -> list[int]:
    """The sizes of the curves."""
    if options.sizes:
        return sorted({int(text) for text in options.sizes.split(",")})
    return [*SIZES, FULL] if options.full else list(SIZES)


def command_line(given: list[str]) -> str:
    """The command as the page shows it: where its output went is nobody's business."""
    public = [
        word for at, word in enumerate(given) if "--output" not in (word.partition("=")[0], given[at - 1] if at else "")
    ]
    return " ".join(["python -m bench", *public])


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(f"  … {text}", file=sys.stderr, flush=True)


def measure(options: argparse.Namespace, results: Results) -> None:
    """Run what was asked for; what is measured stands in the results, also when a later part fails."""
    chosen = set(options.family or FAMILIES)
    bench = cases.Bench(build(environment()), options.scale)
    beside = bool(chosen - {*MACHINES, *ATTESTATION, "cli"}) and not options.alone
    binaries = locate(environment()) if beside else None
    if binaries is None and beside:
        raise TargetError("kube-apiserver and etcd are missing")
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as text:
        directory = Path(text)
        with ExitStack() as stack:
            targets, other = _start(
                stack, directory / "rows", binaries, bool(chosen - {"curves", "cli", *MACHINES, *ATTESTATION})
            )
            if chosen & {"start"}:
                results.singles += solo.starting(directory / "starts", say, other)
            if chosen & set(cases.FAMILIES):
                families = chosen & set(cases.FAMILIES)
                results.rows = asyncio.run(cases.side_by_side(bench, targets, families, options.rounds, say))
            if "wait" in chosen:
                results.singles += waiting.figures(targets, say, options.rounds)
        if "inprocess" in chosen:
            created = next((row for row in results.rows if row.name == "create-64" and row.peer), None)
            rate = created.spread(created.peer, "rate").median if created else None
            results.singles += solo.in_process(say, bench.count(2000), rate)
        if "cli" in chosen:
            results.singles += solo.command_line(say)
        if "curves" in chosen:
            with ExitStack() as stack:
                targets, _ = _start(stack, directory / "curves", binaries, True)
                results.points = asyncio.run(curves.grow(bench, targets, sizes_of(options), say))
        _machines(bench, results, chosen, directory, many=options.full)
        if "evidence" in chosen:
            results.singles += attestation.figures(say, results.rounds)
        if "policy" in chosen:
            results.singles += policy.figures(say, results.rounds)
        if "features" in chosen:
            results.singles += features.figures(say, results.rounds)
        if "workloads" in chosen:
            results.singles += workloads.figures(say, results.rounds)
            results.singles += kata.figures(say)
        if "broker" in chosen:
            results.singles += broker.figures(say, results.rounds, full=options.full)
        if "delivery" in chosen:
            results.singles += delivery.figures(bench, say, results.rounds, full=options.full)
        if "disks" in chosen:
            results.singles += openings.figures(say, results.rounds)
            results.singles += unlocks.figures(say, results.rounds)
        if "record" in chosen:
            results.singles += record.figures(say)
        if "page" in chosen:
            results.singles += page.figures(say, results.rounds)
        if "chart" in chosen:
            results.singles += charted.figures(say)


def _machines(bench: cases.Bench, results: Results, chosen: set[str], directory: Path, *, many: bool) -> None:
    """What belongs to machine configuration; its peer is nginx, and the rest stands for itself."""
    if "serve" in chosen:
        row, singles = asyncio.run(serving.beside_nginx(bench, directory / "serve", results.rounds, say))
        results.rows.append(row)
        results.singles += singles
    if "render" in chosen:
        results.singles += rendering.figures(say, results.rounds)
    if "rollout" in chosen:
        results.singles += [*rollouts.figures(say), *enforcing.figures(say)]
    if "images" in chosen:
        results.singles += images.figures(say, results.rounds)
    if "agent" in chosen:
        results.singles += agents.memory(directory / "agent", say, results.rounds)
    if "machines" in chosen:
        results.singles += virtual.figures(directory / "machines", say, results.rounds, many=many)


def _start(
    stack: ExitStack, directory: Path, binaries: Path | None, needed: bool
) -> tuple[list[Target], Target | None]:
    """Ours and, if there are programs for it, the peer."""
    if not needed:
        return [], None
    say("starting the servers")
    other = stack.enter_context(peer(directory / "peer", binaries)) if binaries is not None else None
    own = stack.enter_context(ours(directory / "ours"))
    return ([own, other] if other is not None else [own]), other


def main(given: list[str]) -> int:
    """The command."""
    options = arguments(given)
    if options.render is not None:
        options.render.write_text(as_markdown(Results.from_bytes(options.output.read_bytes())))
        return 0
    results = Results(command_line(given), datetime.now(UTC).strftime("%Y-%m-%d"), machine(), options.rounds)
    failed = 0
    try:
        measure(options, results)
    except (TargetError, LoadgenError) as error:
        print(f"{error}\n{error.hint}", file=sys.stderr)
        failed = 2
    if not (results.rows or results.singles or results.points):
        return failed
    if options.add and options.output.exists():
        results = results.onto(Results.from_bytes(options.output.read_bytes()))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(results.to_bytes())
    print(as_text(results))
    return failed or (1 if any(gate.verdict == "fail" for gate in results.gates) else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
