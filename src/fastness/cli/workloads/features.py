"""`fastness features`: what a machine can do, and what rules make of it, without a cluster.

    fastness features test rule.yaml --node tdx-host     explain rules on a recorded machine
    fastness features test rule.yaml --node /            on this machine
    fastness features show --node found.yaml             what was found

A node is the name of a recorded machine, a directory that is the root of one, a recording, or a NodeFeature as YAML or JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from fastness.agent.host.errors import DriverError
from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import Directory, read_recording, recorded, recorded_names
from fastness.cli import manifests
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json
from fastness.formats import json
from fastness.formats.errors import YamlError
from fastness.formats.yaml import load_documents
from fastness.kinds.kind import JsonObject
from fastness.workloads.features.builtin import builtin_labels
from fastness.workloads.features.discovered import Features, read_features
from fastness.workloads.features.errors import FeatureError
from fastness.workloads.features.evaluate import Outcome, evaluate
from fastness.workloads.features.match import TermTrace
from fastness.workloads.features.outputs import Settings
from fastness.workloads.features.rules import Rule, in_order

KIND: Final = "NodeFeatureRule"


@click.group()
def features() -> None:
    """What machines can do, and what rules make of it."""


@features.command("test")
@click.argument("files", nargs=-1, required=True)
@click.option("--node", required=True, help="A recorded machine, a root directory, a recording or a NodeFeature.")
@click.option("--taints", is_flag=True, help="As in a cluster that allows rules to set taints.")
@output_option
def test(files: tuple[str, ...], node: str, taints: bool, output: str) -> None:
    """Explain every NodeFeatureRule in FILES on one node: what matched, what did not, and what was seen.

    Exit code 1 when a rule is wrong, 2 when a file is unreadable; a rule that does not match is no error.
    """
    features_of_node = load_node(node)
    rules, wrong = _rules(files)
    outcomes, left = list[tuple["Rule", "Outcome"]](), dict[str, str]()
    for rule in rules:
        current = features_of_node.with_matched(left) if left else features_of_node
        outcome = evaluate(rule, current, Settings(enable_taints=taints))
        left.update(outcome.leaves)
        outcomes.append((rule, outcome))
    problems = {rule.name: rule.problems() for rule, _ in outcomes}
    if output == "json":
        show_json({
            "node": node, "unreadable": [str(problem) for problem in wrong],
            "rules": [_as_json(outcome, problems[rule.name]) for rule, outcome in outcomes],
        })  # fmt: skip
    else:
        for problem in wrong:
            click.echo(f"ERROR {problem}\n      {problem.hint}")
        for rule, outcome in outcomes:
            click.echo("\n".join(_lines(outcome, problems[rule.name])))
    if wrong or any(problems.values()) or any(outcome.error for _, outcome in outcomes):
        sys.exit(Exit.NO)


@features.command("show")
@click.option("--node", required=True, help="A recorded machine, a root directory, a recording or a NodeFeature.")
@output_option
def show(node: str, output: str) -> None:
    """Print what is found on a node, and the labels that it gets without any rule."""
    discovered = load_node(node)
    if output == "json":
        show_json({"features": discovered.to_json(), "labels": dict(sorted(builtin_labels(discovered).items()))})
        return
    for name in sorted({*discovered.flags, *discovered.attributes, *discovered.instances}):
        flags, texts = sorted(discovered.flags.get(name, ())), discovered.attributes.get(name, {})
        click.echo(
            f"{name}: {' '.join([*flags, *(f'{key}={value}' for key, value in sorted(texts.items()))])}".rstrip()
        )
        for instance in discovered.instances.get(name, ()):
            click.echo("  - " + " ".join(f"{key}={value}" for key, value in sorted(instance.items())))


def load_node(node: str) -> Features:
    """What was found on a node that was named on the command line; raises CliError."""
    path = Path(node)
    try:
        if node in recorded_names():
            return discover(recorded(node))
        if path.is_dir():
            return discover(Directory(path))
        return _from_file(path)
    except FeatureError as error:
        raise CliError(f"{node}: {error}", error.hint, Exit.USAGE) from error
    except DriverError as error:
        raise CliError(f"{node}: {error.message}", error.hint, Exit.USAGE) from error


def _from_file(path: Path) -> Features:
    try:
        documents = load_documents(path.read_bytes())
    except OSError as error:
        hint = f"Recorded machines are {', '.join(recorded_names())}."
        raise CliError(f"{path}: {error.strerror or error}", hint, Exit.USAGE) from error
    except YamlError as error:
        raise CliError(f"{path}: {error}", error.hint, Exit.USAGE) from error
    value: Any = documents[0].value if documents else None
    if isinstance(value, dict) and "files" in value:
        return discover(read_recording(json.encode(value)))
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, dict):
        raise CliError(f"{path}: neither a NodeFeature nor a recording", "It has spec.features, or files.", Exit.USAGE)
    return read_features(spec.get("features"))


def _rules(files: tuple[str, ...]) -> tuple[list[Rule], list[FeatureError]]:
    read = manifests.read_all(files)
    objects = read.of(KIND)
    if not objects:
        raise CliError(f"no {KIND} in {', '.join(files)}", "Give a manifest of that kind.", Exit.USAGE)
    parsed = in_order(objects)
    return [entry for entry in parsed if isinstance(entry, Rule)], [
        entry for entry in parsed if not isinstance(entry, Rule)
    ]


def _lines(outcome: Outcome, problems: list[FeatureError]) -> list[str]:
    word = "ERROR" if outcome.error else "match" if outcome.matched else "no match"
    lines = [f"{outcome.rule}: {word}" + (f": {outcome.error}" if outcome.error else "")]
    lines += [f"  wrong on every node: {problem} ({problem.hint})" for problem in problems]
    for term in outcome.trace:
        lines += _term_lines(term)
    lines += [f"  label       {name}={value}" for name, value in outcome.labels.items()]
    lines += [f"  annotation  {name}={value}" for name, value in outcome.annotations.items()]
    lines += [f"  resource    {name}={value}" for name, value in outcome.resources.items()]
    lines += [f"  taint       {taint.key}={taint.value}:{taint.effect}" for taint in outcome.taints]
    lines += [f"  variable    {name}={value}" for name, value in outcome.vars.items()]
    return lines + [f"  dropped     {output.kind} {output.name}: {output.reason}" for output in outcome.dropped]


def _term_lines(term: TermTrace) -> list[str]:
    place = "all" if term.branch is None else f"any[{term.branch}]"
    lines = [f"  {'yes' if term.held else 'no ':3} {place:7} {term.feature}" + (f": {term.note}" if term.note else "")]
    for check in term.checks:
        sign = "yes" if check.held else "no "
        lines.append(f"        {sign} {check.element} {check.expression}: {check.error or f'saw {check.observed}'}")
    return lines


def _as_json(outcome: Outcome, problems: list[FeatureError]) -> JsonObject:
    return {
        "name": outcome.rule,
        "matched": outcome.matched,
        "error": str(outcome.error) if outcome.error else "",
        "problems": [{"code": problem.code, "message": str(problem), "hint": problem.hint} for problem in problems],
        "labels": dict(outcome.labels),
        "annotations": dict(outcome.annotations),
        "extendedResources": dict(outcome.resources),
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in outcome.taints],
        "vars": dict(outcome.vars),
        "dropped": [output._asdict() for output in outcome.dropped],
        "trace": [_trace_json(term) for term in outcome.trace],
    }


def _trace_json(term: TermTrace) -> JsonObject:
    checks = [
        {
            "element": check.element,
            "expression": str(check.expression),
            "seen": check.observed,
            "held": check.held,
            "error": check.error,
        }
        for check in term.checks
    ]
    return {"branch": term.branch, "feature": term.feature, "held": term.held, "note": term.note, "checks": checks}
