"""What a process for policies does with the policy of an agent: decide requests, and find those that are open to everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.rego.engine import BadPolicy
from fastness.workloads.agent_policy.decide import decide, open_requests

# Policies of agents are long, and each of a few dozen questions compiles one anew.
SECONDS: Final = 20.0


def about_requests(question: Mapping[str, Any], bound: Callable[[float], None]) -> JsonObject:
    """The decisions in the order of the `questions` to a `policy`, and the requests that it opens."""
    bound(SECONDS)
    text = question["policy"]
    try:
        decisions = [decide(text, asked["request"], asked["input"]).as_json() for asked in question["questions"]]
        return {"decisions": decisions, "opened": open_requests(text), "error": ""}
    except BadPolicy as error:
        return {"decisions": [], "opened": [], "error": error.message}
