"""Regular expressions of rules: RE2, found anywhere in the text, in linear time.

RE2 comes with the CEL library. It knows neither look-around nor back-references, so no pattern can be made to burn the control
plane, and a pattern means what it means to whoever wrote it for the upstream project.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from fastness.workloads.features.errors import BadExpression

MAX_PATTERN: Final = 1024


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether the pattern is found in a text; raises BadExpression."""
    if len(pattern) > MAX_PATTERN:
        raise BadExpression("pattern-too-long", f"the pattern has more than {MAX_PATTERN} characters", "Shorten it.")
    environment = _environment()
    # The pattern becomes a literal of CEL: nothing in it may end that literal.
    quoted = "".join(f"\\U{ord(c):08x}" if c in "\\'\"" or not 32 <= ord(c) < 127 else c for c in pattern)
    try:
        program = environment.compile(f"text.matches('{quoted}')")
    except (RuntimeError, ValueError) as error:
        raise _refused(pattern) from error

    def matches(text: str) -> bool:
        answer = program.eval(environment.Activation({"text": text})).value()
        if not isinstance(answer, bool):
            raise _refused(pattern)
        return answer

    try:
        matches("")
    except (RuntimeError, ValueError, TypeError) as error:
        raise _refused(pattern) from error
    return matches


def _refused(pattern: str) -> BadExpression:
    return BadExpression(
        "bad-pattern", f"{pattern!r} is not a regular expression",
        "Use RE2 syntax; look-around and back-references do not exist there.",
    )  # fmt: skip


@lru_cache(maxsize=1)
def _environment() -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]

    return cel.NewEnv(variables={"text": cel.Type.STRING})
