"""Regular expressions with the meaning Kubernetes gives them: RE2 syntax, found anywhere in the text, in linear time.

Two engines share the work, neither of which backtracks, so a pattern cannot be made to burn the server:

* a *plain* pattern (the bulk: classes, groups, anchors, counts) means the same in RE2 and in the engine of jsonschema-rs, which
  answers within a microsecond and runs inside the fast accept path;
* everything else (`(?i)`, `\\pL`, `[[:alpha:]]`, `\\z`, `\\s`, …) goes to RE2 itself, which the CEL library brings along.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import jsonschema_rs

from fastness.apiserver.schema.cel.engine import regex_matcher, regex_problem

OPTIONS: Final = jsonschema_rs.RegexOptions()
MAX_REPEAT: Final = 1000  # RE2 refuses larger counts

_PLAIN: Final = re.compile(
    r"""(?: [^\\\[\]{}()?*+]                               # a character, a dot, an anchor, a bar
        | \\[dDwW] | \\[nrtfv] | \\[^a-zA-Z0-9\s]          # classes that are ASCII in both, escaped punctuation
        | \[\^?\]?(?: [^\\\[\]&~-] | \\[dw] | \\[nrtfv] | \\[^a-zA-Z0-9\s] | -(?!-) )*\]
        | \((?!\?) | \(\?: | \)
        | (?:[*+?]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})\??(?![*+?{])
        )*""",
    re.VERBOSE,
)


def is_plain(pattern: str) -> bool:
    """Whether both engines read the pattern alike."""
    # Whatever the two engines could read differently goes to RE2: an object must not be valid here and invalid on Kubernetes.
    if not pattern.isascii() or _PLAIN.fullmatch(pattern) is None or pattern.startswith("]"):
        return False
    counts = re.findall(r"\{([0-9]+)(?:,([0-9]*))?\}", pattern)
    return all(int(n or 0) <= MAX_REPEAT for pair in counts for n in pair) and _compiles(pattern)


def problem(pattern: str) -> str | None:
    """Why the pattern is no regular expression, or None."""
    if is_plain(pattern):
        return None
    return regex_problem(pattern)


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether the pattern is found in a text; a broken pattern is found nowhere."""
    if is_plain(pattern):
        return jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=OPTIONS).is_valid
    return regex_matcher(pattern)


@lru_cache(maxsize=4096)
def _compiles(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=OPTIONS)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True
