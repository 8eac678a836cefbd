"""Whether the agent would obey a request, and because of which statement.

The engine answers for the whole text. The statement behind a yes is found by asking again for each rule of that name alone, with
the others blanked out; behind a no it is the default, or its absence. `about_requests` is the task of a process for policies
(`rego.tasks`): text that a user wrote meets the engine there first, because some texts end the process that compiles them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.rego.builtins import ALLOWED_TO_AGENTS
from fastness.rego.engine import BadPolicy, NoAnswer, Program
from fastness.workloads.agent_policy.reading import PolicyText, read_policy
from fastness.workloads.agent_policy.requests import IGNORE_ALL, PACKAGE, PERMISSIVE, QUIET, QUIET_REMARK, REQUESTS

_FILE = "policy.rego"
EXEC: Final = "ExecProcessRequest"
# Whoever lets this run lets everything run: it compares the request with itself, or looks only whether there is one.
_STRANGER: Final = {
    "container_id": "fastness-stranger", "exec_id": "fastness-stranger", "string_user": None,
    "process": {
        "Args": ["/fastness/stranger", "--with", "fastness-stranger"], "Cwd": "/fastness", "Env": ["FASTNESS=stranger"],
        "Terminal": False, "User": {"UID": 65521, "GID": 65521, "AdditionalGids": [], "Username": ""},
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one request; `line` is that of the statement behind it, 0 where there is none."""

    request: str
    allowed: bool
    reason: str
    line: int = 0

    def as_json(self) -> JsonObject:
        """The decision as JSON, for programs."""
        return {"request": self.request, "allowed": self.allowed, "reason": self.reason, "line": self.line}

    @staticmethod
    def from_json(raw: Mapping[str, Any]) -> Decision:
        """Read what `as_json` wrote; raises KeyError, TypeError."""
        return Decision(str(raw["request"]), bool(raw["allowed"]), str(raw["reason"]), int(raw["line"]))


def decide(text: str, request: str, document: Mapping[str, Any]) -> Decision:
    """The answer to one request; raises BadPolicy for a text that cannot be compiled."""
    policy = read_policy(text)
    if _yes(policy.loadable(), request, document):
        return _allowed(policy, request, document)
    if _yes(policy.loadable(), IGNORE_ALL, document):
        statement = next(iter(policy.named(IGNORE_ALL)), None)
        return Decision(
            request, True, f"refused, but {IGNORE_ALL} makes the agent obey", statement.line if statement else 0
        )
    default = policy.default(request)
    remark = f"; {QUIET_REMARK}" if request == QUIET else ""
    rules = [rule for rule in policy.named(request) if not rule.is_default]
    no_rule = f"none of the rules in line {', '.join(str(rule.line) for rule in rules)} holds, and " if rules else ""
    if default is not None:
        return Decision(
            request, False, f"{no_rule}the default in line {default.line} is {default.value}{remark}", default.line
        )
    return Decision(request, False, f"{no_rule}there is no default: undefined is refused{remark}")


def _allowed(policy: PolicyText, request: str, document: Mapping[str, Any]) -> Decision:
    duplicates = [again for _, again in policy.duplicates()]
    own = policy.named(request)
    for statement in (other for other in own if not other.is_default):
        others = [other for other in own if other is not statement]
        if _yes(policy.without(*others, *duplicates), request, document):
            return Decision(request, True, f"the rule in line {statement.line} holds", statement.line)
    default = policy.default(request)
    if default is not None and default.allows:
        return Decision(request, True, f"the default in line {default.line} is {default.value}", default.line)
    return Decision(request, True, "several statements together")


def _yes(text: str, request: str, document: Mapping[str, Any]) -> bool:
    """Whether the text says true, or an object that is allowed; undefined and errors are no."""
    try:
        answer = Program({_FILE: text}, f"x := data.{PACKAGE}.{request}", ALLOWED_TO_AGENTS).ask(document, {}, "")
    except NoAnswer:
        return False
    return _is_yes(answer)


def _is_yes(answer: Any) -> bool:
    # The agent takes an object too: {allowed: true, ops: ...}.
    return answer is True or (isinstance(answer, dict) and answer.get("allowed") is True)


def open_requests(text: str) -> list[str]:
    """The requests that are allowed although they say nothing, and a program that nobody can have meant. Raises BadPolicy."""
    # The whole package in one question: each engine reserves much address space, and a child has little.
    program = Program({_FILE: read_policy(text).loadable()}, f"x := data.{PACKAGE}", ALLOWED_TO_AGENTS)
    nothing, stranger = _answers(program, {}), _answers(program, _STRANGER)
    opened = {name for name, answer in nothing.items() if _is_yes(answer)}
    opened |= {EXEC} if _is_yes(stranger.get(EXEC)) else set()
    return [name for name in dict.fromkeys((*REQUESTS, *PERMISSIVE)) if name in opened]


def _answers(program: Program, document: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        answers = program.ask(document, {}, "")
    except NoAnswer:
        return {}
    return answers if isinstance(answers, dict) else {}


# Policies of agents are long, and each of a few dozen questions compiles one anew.
SECONDS: Final = 20.0


def about_requests(question: Mapping[str, Any], bound: Callable[[float], None]) -> JsonObject:
    """The decisions in the order of the `questions` to a `policy`, and the requests that it opens."""
    bound(SECONDS)
    text = question["policy"]
    try:
        decisions = [decide(text, entry["request"], entry["input"]).as_json() for entry in question["questions"]]
        return {"decisions": decisions, "opened": open_requests(text), "error": None}
    except BadPolicy as error:
        return {"decisions": [], "opened": [], "error": error.message}
