"""`fastness policy test`: what a policy does, before a cluster is asked to believe it.

A directory holds AppraisalPolicies as YAML, or Rego files each with its cases beside it:

    strict.yaml             an AppraisalPolicy
    tpm.rego                a policy; `for` is the file's name unless the cases name another
    tpm.cases.yaml          {for: tpm, cases: [{name, input, data, expect, expectVector}]}, or the list alone

Each policy runs in a process of its own, as the cluster would run it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import jsonschema_rs

from fastness.attestation.live.policy_workers import run_trial
from fastness.attestation.policy.cases import REFUSES_NONE, Trial
from fastness.cli import manifests
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json
from fastness.cli.workloads.agent_policy import agent
from fastness.formats.errors import YamlError
from fastness.formats.yaml import load_documents
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.kind import JsonObject

KIND: Final = "AppraisalPolicy"
CASES: Final = (".cases.yaml", ".cases.yml", ".cases.json")
MAX_TEXT: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy in the directory."""

    place: str
    spec: JsonObject


@click.group()
def policy() -> None:
    """Policies that judge evidence and resources."""


policy.add_command(agent)


@policy.command("test")
@click.argument("directory", type=click.Path(path_type=Path))
@output_option
def test(directory: Path, output: str) -> None:
    """Run the cases of every policy in DIRECTORY.

    Exit code 1 when a policy cannot be read as Rego or a case fails, 2 when a file is unreadable.
    """
    policies = _policies(directory)
    trials = asyncio.run(_try_all(policies))
    if output == "json":
        show_json(
            {
                "passed": all(trial.good for trial in trials),
                "policies": [_as_json(entry, trial) for entry, trial in zip(policies, trials, strict=True)],
            }
        )
    else:
        for entry, trial in zip(policies, trials, strict=True):
            click.echo(_trial_text(entry, trial))
    if not all(trial.good for trial in trials):
        sys.exit(Exit.NO)


async def _try_all(policies: list[PolicyFile]) -> list[Trial]:
    return [await run_trial(entry.spec) for entry in policies]


def _as_json(entry: PolicyFile, trial: Trial) -> JsonObject:
    return {
        "place": entry.place,
        "for": entry.spec["for"],
        "passed": trial.good,
        **trial.as_json(),
        "error": trial.error or "",
    }


def _trial_text(entry: PolicyFile, trial: Trial) -> str:
    lines = [f"{entry.place}: for {entry.spec['for']}"]
    if not trial.parsed:
        return f"{lines[0]}\n  FAIL  {trial.error}"
    lines += [
        f"  {'pass' if result.passed else 'FAIL'}  {result.name}" + (f": {result.detail}" if result.detail else "")
        for result in trial.results
    ]
    if not trial.refuses:
        lines.append(f"  FAIL  {REFUSES_NONE}")
    return "\n".join(lines)


def _policies(directory: Path) -> list[PolicyFile]:
    """Everything that can be run_trial, in the order of the names; raises CliError."""
    if not directory.is_dir():
        raise CliError(f"{directory}: not a directory", "Give a directory with policies.", Exit.USAGE)
    policies = [*_manifests(directory), *_texts(directory)]
    if not policies:
        raise CliError(
            f"{directory}: no policy in it",
            "It holds AppraisalPolicies as .yaml, or .rego with .cases.yaml.",
            Exit.USAGE,
        )
    return sorted(policies, key=lambda entry: entry.place)


def _manifests(directory: Path) -> Iterator[PolicyFile]:
    files = [path for path in _files(directory) if path.suffix in manifests.SUFFIXES and not _is_cases(path)]
    read = manifests.read_all(files)
    for manifest in read.manifests:
        if manifest.kind != KIND:
            continue
        _validate(manifest.place, manifest.object, APPRAISAL_POLICY.schema)
        yield PolicyFile(
            f"{manifest.place} {manifest.object['metadata'].get('name', '')}".rstrip(), manifest.object["spec"]
        )


def _texts(directory: Path) -> Iterator[PolicyFile]:
    for path in _files(directory):
        if path.suffix != ".rego":
            continue
        beside = next((path.with_suffix(suffix) for suffix in CASES if path.with_suffix(suffix).exists()), None)
        listed = _document(beside) if beside is not None else []
        spec: JsonObject = dict(listed) if isinstance(listed, dict) else {"cases": listed}
        spec = {"for": path.name.split(".")[0], **spec, "rego": _text(path)}
        _validate(str(path), {"spec": spec}, APPRAISAL_POLICY.schema)
        yield PolicyFile(str(path), spec)


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _is_cases(path: Path) -> bool:
    return path.name.endswith(CASES)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_TEXT:
            raise CliError(f"{path}: larger than {MAX_TEXT} bytes", code=Exit.USAGE)
        return path.read_text("utf-8")
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}", code=Exit.USAGE) from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path}: not UTF-8", code=Exit.USAGE) from error


def _document(path: Path) -> Any:
    try:
        documents = load_documents(_text(path).encode())
    except YamlError as error:
        raise CliError(f"{path}: {error}", error.hint, Exit.USAGE) from error
    return documents[0].value if documents else []


def _validate(place: str, obj: JsonObject, schema: Any) -> None:
    """The schema that an API server would check; raises CliError."""
    spec = obj.get("spec")
    for error in jsonschema_rs.iter_errors(dict(schema["properties"]["spec"]), spec):
        where = ".".join(str(part) for part in ("spec", *error.instance_path))
        raise CliError(f"{place}: {where}: {error.message[:300]}", "Compare with an AppraisalPolicy.", Exit.USAGE)
