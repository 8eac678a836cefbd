"""Rules that allow a request without looking at it, found by reading alone.

A rule whose body never leads to `input`, neither itself nor through other rules of the text, gives the same answer to every
request: where it allows one, it allows all. That is less than the engine finds (`input == input` looks at its input), and it
costs no process, so it is what can be known where no engine may run.
"""

from __future__ import annotations

import re
from typing import Final

from fastness.workloads.agent_policy.reading import PolicyText, Statement, blanked, read_policy
from fastness.workloads.agent_policy.requests import IGNORE_ALL, PERMISSIVE

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
INPUT: Final = "input"


def unconcerned(text: str) -> list[str]:
    """The requests that matter and that some rule allows whatever they are."""
    policy = read_policy(text)
    words = _words(policy)
    looking = _looking(words)
    blind = {one.name for one in policy.statements if one.allows and _is_blind(one, words, looking)}
    return [name for name in PERMISSIVE if name != IGNORE_ALL and name in blind]


def _is_blind(one: Statement, words: dict[int, tuple[str, frozenset[str]]], looking: set[str]) -> bool:
    """Whether a rule that is not a default leads to no input. Its own name does not count: it stands in its head."""
    name, used = words[id(one)]
    return not one.is_default and INPUT not in used and not (used - {name}) & looking


def _words(policy: PolicyText) -> dict[int, tuple[str, frozenset[str]]]:
    """For each statement its name and the words in it; texts and comments are no words."""
    hidden = blanked(policy.text)
    return {id(one): (one.name, frozenset(_WORD.findall(hidden[one.start : one.end]))) for one in policy.statements}


def _looking(words: dict[int, tuple[str, frozenset[str]]]) -> set[str]:
    """The names of rules that lead to the input, directly or through others."""
    found: set[str] = set()
    while True:
        more = {name for name, used in words.values() if INPUT in used or used & found} - found
        if not more:
            return found
        found |= more
