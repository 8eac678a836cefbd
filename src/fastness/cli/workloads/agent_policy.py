"""`fastness policy agent`: what the agent inside a confidential pod obeys.

    fastness policy agent write pod.yaml > policy.rego        a restrictive policy for that pod
    fastness policy agent ask policy.rego exec -- sh          would `kubectl exec` be allowed, and by which rule?

POLICY is Rego, or init data in any form. Exit code 1 means: the request would be refused.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from fastness.cli import manifests
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import output_option, show_json, tell
from fastness.cli.workloads.initdata_file import load, read_bytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.words import counted
from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.agent_policy.requests import VERBS, request_named
from fastness.workloads.initdata.lint import lint_text
from fastness.workloads.initdata.workload import TEMPLATES, NotAWorkload
from fastness.workloads.live.agent_policies import ask_policy


@click.group("agent")
def agent() -> None:
    """Policies of the agent inside confidential pods."""


@agent.command("write")
@click.argument("file")
@click.option("--logs", is_flag=True, help="Let the host read what the workload prints, for `kubectl logs`.")
def write(file: str, logs: bool) -> None:
    """Print a restrictive policy for the workload in FILE."""
    read = manifests.read_all([file])
    workloads = read.of(*TEMPLATES)
    if len(workloads) != 1:
        raise CliError(
            f"{file}: {counted(len(workloads), 'workload')} in it",
            f"A policy is for one. {NotAWorkload.hint}",
            Exit.USAGE,
        )
    try:
        click.echo(policy_of(workloads[0], logs=logs), nl=False)
    except NotAWorkload as error:
        raise CliError(f"{file}: {error}", error.hint, Exit.USAGE) from error


@agent.command("ask", context_settings={"ignore_unknown_options": True})
@click.argument("policy")
@click.argument("request")
@click.argument("command", nargs=-1)
@click.option("--input", "document", help="The input of the request, as JSON.")
@output_option
def ask(policy: str, request: str, command: tuple[str, ...], document: str | None, output: str) -> None:
    """Say whether the agent would obey REQUEST under POLICY, and because of which statement.

    REQUEST is kubectl's verb (exec, logs, attach, cp) or the name of a request; COMMAND is what exec runs.
    """
    name = request_named(request)
    if name is None:
        raise CliError(
            f"there is no request {request!r}", f"Use {', '.join(VERBS)}, or a name like CopyFileRequest.", Exit.USAGE
        )
    text = _policy(policy)
    given = _input(document) if document else {"process": {"Args": list(command)}, "container_id": "", "exec_id": ""}
    answer = asyncio.run(ask_policy(text, [(name, given)]))
    if answer.error is not None:
        raise CliError(f"{policy}: the policy does not parse: {answer.error}", "The agent refuses everything then.")
    decision = answer.decisions[0]
    if output == "json":
        show_json(decision.as_json())
    else:
        click.echo(f"{name}: {'allowed' if decision.allowed else 'refused'}: {decision.reason}")
    if not decision.allowed:
        sys.exit(Exit.NO)


def _policy(file: str) -> str:
    """The Rego in a file, alone or inside of init data; raises CliError."""
    if file.endswith(".rego"):
        try:
            return read_bytes(file).decode()
        except UnicodeDecodeError as error:
            raise CliError(f"{file}: not UTF-8", code=Exit.USAGE) from error
    findings, entries = lint_text(load(file).text)
    if "policy.rego" not in entries:
        reason = findings[0].message if findings else "no policy"
        raise CliError(f"{file}: there is no policy in it ({reason})", "That of the guest image decides.", Exit.USAGE)
    if findings:
        tell(f"{file}: `fastness initdata lint` has {counted(len(findings), 'finding')}")
    return entries["policy.rego"]


def _input(text: str) -> dict[str, Any]:
    try:
        value = json.decode(text.encode())
    except JsonError as error:
        raise CliError(f"--input: {error}", error.hint, Exit.USAGE) from error
    if not isinstance(value, dict):
        raise CliError("--input: not an object", code=Exit.USAGE)
    return value
