"""What is wrong with an agent policy: every permissive request on its own, and everything that does not mean what it seems to.

`opened` are the requests that the engine allowed with an empty input (`decide.open_requests`), where there was an engine: they
find the permissive rules that no reading of the text would. Where none may run, `unconditionally_open` reads the text instead: a
rule whose body never leads to `input`, neither itself nor through other rules, gives the same answer to every request. That is
less than the engine finds (`input == input` looks at its input), and it costs no process.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final

from fastness.workloads.agent_policy.reading import (
    MAX_LINE,
    MAX_LINES,
    MAX_POLICY,
    PolicyText,
    Statement,
    blanked,
    read_policy,
)
from fastness.workloads.agent_policy.requests import HARMLESS, IGNORE_ALL, LEGACY, PACKAGE, PERMISSIVE, REQUESTS
from fastness.workloads.initdata.finding import Finding, Severity

WHERE: Final = "policy.rego"
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
INPUT: Final = "input"
_KNOWN: Final = frozenset((*REQUESTS, *LEGACY, IGNORE_ALL))


def lint_policy(text: str, opened: Collection[str] = (), unreadable: str | None = None) -> list[Finding]:
    """Everything that is wrong; `opened` are requests that the engine allowed for no reason, `unreadable` is its complaint."""
    if len(text.encode()) > MAX_POLICY or text.count("\n") > MAX_LINES or max(map(len, text.split("\n"))) > MAX_LINE:
        return [Finding("E13", Severity.ERROR, "the agent refuses a policy of this size", "Shorten it.", WHERE)]
    policy = read_policy(text)
    return [*_shape(policy, unreadable), *_permissive(policy, opened), *_names(policy)]


def _shape(policy: PolicyText, unreadable: str | None) -> Iterator[Finding]:
    if policy.package != PACKAGE:
        package = f"the package is {policy.package!r}" if policy.package else "there is no package"
        yield Finding("E11", Severity.ERROR, f"{package}: the agent asks {PACKAGE}", f"Write package {PACKAGE}.", WHERE)
    if unreadable is not None:
        yield Finding("E12", Severity.ERROR, f"the policy does not parse: {unreadable}", "Correct it.", WHERE)
    for first, again in policy.duplicates():
        same = first.value == again.value
        yield Finding(
            "E12" if same else "P4",
            Severity.WARNING if same else Severity.HIGH,
            f"line {again.line}: a second default of {again.name}" + ("" if same else f", {again.value}, never counts")
            + f"; the first is in line {first.line}, and other engines refuse the text",
            "Remove one of them.",
            WHERE,
        )  # fmt: skip


def _permissive(policy: PolicyText, opened: Collection[str]) -> Iterator[Finding]:
    yes = {name: statement for name in _KNOWN if (statement := open_by(policy, name)) is not None}
    for name in (*PERMISSIVE,):
        severity, reason = PERMISSIVE[name]
        if name in yes:
            word = "default" if yes[name].is_default else "rule"
            yield Finding("P1", severity, f"{name} ({word} in line {yes[name].line}): {reason}", _hint(name), WHERE)
        elif name in opened:
            yield Finding("P1", severity, f"{name} (a rule that anything satisfies): {reason}", _hint(name), WHERE)
    defaults = [statement for statement in policy.statements if statement.is_default and statement.name in _KNOWN]
    if defaults and all(statement.allows for statement in defaults) and len(defaults) > len(HARMLESS):
        yield Finding(
            "P2", Severity.CRITICAL, f"all {len(defaults)} defaults are true: the policy protects nothing",
            "Write a policy from the pod: `fastness policy agent write POD.yaml`.", WHERE,
        )  # fmt: skip


def open_by(policy: PolicyText, name: str) -> Statement | None:
    """The statement that allows a request whatever it is, or None."""
    default = policy.default(name)
    if default is not None and default.allows:
        return default
    return next(
        (
            statement
            for statement in policy.named(name)
            if not statement.is_default and statement.unconditional and statement.allows
        ),
        None,
    )


def _hint(name: str) -> str:
    if name == IGNORE_ALL:
        return "Remove it."
    conditional = ("CreateContainerRequest", "CopyFileRequest", "UpdateInterfaceRequest", "UpdateRoutesRequest",
                   "AddARPNeighborsRequest", "UpdateEphemeralMountsRequest")  # fmt: skip
    return (
        "Give it a condition; pods do not start without it."
        if name in conditional
        else f"Write default {name} := false."
    )


def _names(policy: PolicyText) -> Iterator[Finding]:
    named = {statement.name for statement in policy.statements}
    for name in sorted(named & set(LEGACY)):
        yield Finding("P5", Severity.INFO, f"{name} is no request any more", "Remove it.", WHERE)
    for name in sorted(
        statement.name for statement in policy.statements if statement.is_default and statement.name not in _KNOWN
    ):
        near = get_close_matches(name, REQUESTS, n=1)
        hint = f"Did you mean {near[0]}?" if near else "Remove it, or correct the name."
        yield Finding("P6", Severity.WARNING, f"there is no request {name}: its default protects nothing", hint, WHERE)
    missing = [name for name in REQUESTS if name not in named]
    if missing and policy.package == PACKAGE:
        yield Finding(
            "P7", Severity.INFO, f"nothing is said of {', '.join(missing)}: refused",
            "Say so with a default, so that readers see it.", WHERE,
        )  # fmt: skip


def unconditionally_open(text: str) -> list[str]:
    """The requests that matter and that some rule allows whatever they are."""
    policy = read_policy(text)
    words = _words(policy)
    looking = _rules_with_input(words)
    blind = {
        statement.name for statement in policy.statements if statement.allows and _is_blind(statement, words, looking)
    }
    return [name for name in PERMISSIVE if name != IGNORE_ALL and name in blind]


def _is_blind(statement: Statement, words: dict[int, tuple[str, frozenset[str]]], looking: set[str]) -> bool:
    """Whether a rule that is not a default leads to no input. Its own name does not count: it stands in its head."""
    name, used = words[id(statement)]
    return not statement.is_default and INPUT not in used and not (used - {name}) & looking


def _words(policy: PolicyText) -> dict[int, tuple[str, frozenset[str]]]:
    """For each statement its name and the words in it; texts and comments are no words."""
    hidden = blanked(policy.text)
    return {
        id(statement): (statement.name, frozenset(_WORD.findall(hidden[statement.start : statement.end])))
        for statement in policy.statements
    }


def _rules_with_input(words: dict[int, tuple[str, frozenset[str]]]) -> set[str]:
    """The names of rules that lead to the input, directly or through others."""
    leading: set[str] = set()
    while True:
        more = {name for name, used in words.values() if INPUT in used or used & leading} - leading
        if not more:
            return leading
        leading |= more
