"""The CEL library behind one narrow door.

Everything else here speaks of programs and plain Python values; only this module imports `cel_expr_python`, and only when a rule
is compiled: loading it takes 70 ms, which a server whose kinds have no rules never needs. Its errors become `RuleError`. Types
are named by signature (`string`, `list(int)`, `dyn`), and environments are kept per pair of signatures, because making one costs
a millisecond and a schema has few distinct ones.

RE2 comes with the library; `regex_matcher` and `regex_problem` lend it to `patterns.py`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from fastness.apiserver.schema.cel.library import LIST, entries
from fastness.runtime.errors import FastnessError

SELF: Final = "self"
OLD: Final = "oldSelf"
_GIVEN, _HAS_OLD = "oldSelfGiven", "oldSelfKnown"

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCATION: Final = re.compile(r"ERROR: <input>:\d+:\d+: |\s*\[[A-Z_]+\]$|^[A-Z_]+: ", re.MULTILINE)


_MIXED_NUMBERS: Final = re.compile(
    r"no matching overload for '_(?:<|>|<=|>=)_' applied to '\((?:int|uint|double), (?:int|uint|double)\)'"
)
_HAS: Final = re.compile(r"(?<![\w.])has\(\s*(?:self|oldSelf)(?:\s*\.\s*\w+)+\s*\)")


class RuleError(FastnessError):
    """A rule that does not compile, or that fails while it runs."""

    code = "RuleError"
    hint = "Correct the rule in the CustomResourceDefinition that the message quotes."


class Program:
    """A compiled expression."""

    __slots__ = ("_env", "_expression", "returns")

    def __init__(self, env: Any, expression: Any) -> None:
        self._env = env
        self._expression = expression
        self.returns: str = expression.return_type().name().lower()

    def variables(self, data: Mapping[str, Any]) -> Any:
        """Variables in the library's own form, to be used by several programs of one environment."""
        return self._env.Activation(dict(data))

    def run(self, variables: Any) -> Any:
        """The value of the expression; raises RuleError when it has none."""
        try:
            result = self._expression.eval(variables)
            value = result.value()
            # The library returns errors as values; taken for a result, one would be an answer that is not true, without a
            # reason.
            if value is not True and result.type().name() == "ERROR":
                raise RuleError(_readable(str(value)))
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            raise RuleError(_readable(str(error))) from error
        return value


def compile_rule(expression: str, type_name: str, *, optional_old: bool = False) -> Program:
    """Compile an expression over `self` and `oldSelf`, both of the named type; `oldSelf` may be an optional of it."""
    env = _environment(type_name, optional_old)
    if optional_old:
        expression = _bound(expression)
    return Program(env, _compile(env, expression))


def _compile(env: Any, expression: str) -> Any:
    """Compile with types checked; Kubernetes also compares numbers of different types, which this checker does not know."""
    try:
        return env.compile(expression)
    except (RuntimeError, ValueError) as error:
        problems = [line for line in str(error).splitlines() if "ERROR:" in line]
        # Kubernetes turns cross-type numeric comparisons on (cel-go's option); every other complaint of the checker stands.
        if problems and all(_MIXED_NUMBERS.search(line) for line in problems):
            return env.compile(expression, disable_check=True)
        raise RuleError(_readable(str(error))) from error


def check_types(expression: str, type_name: str, fields: Mapping[str, str], *, optional_old: bool) -> str:
    """The type of an expression, given those of the fields below `self`; raises RuleError where they do not fit."""
    from cel_expr_python import cel  # type: ignore[import-untyped]

    kinds = {f"{SELF}.{path}": _cel_type(cel, name) for path, name in fields.items()}
    if not optional_old:
        kinds |= {f"{OLD}.{path}": _cel_type(cel, name) for path, name in fields.items()}
    # a declared path is a variable of its own, and `has` takes none: whether a field is there says nothing about types
    plain = _HAS.sub("true", expression)
    checked = _compile(_declare(type_name, optional_old, kinds), _bound(plain) if optional_old else plain)
    return str(checked.return_type().name()).lower()


def _bound(expression: str) -> str:
    return f"cel.bind({OLD}, {_HAS_OLD} ? optional.of({_GIVEN}) : optional.none(), {expression}\n)"


def bindings(self_value: Any, old_value: Any, *, has_old: bool, optional_old: bool) -> dict[str, Any]:
    """The variables of a program: what `self` and `oldSelf` are."""
    if optional_old:
        return {SELF: self_value, _GIVEN: old_value if has_old else self_value, _HAS_OLD: has_old}
    return {SELF: self_value, OLD: old_value} if has_old else {SELF: self_value}


def timestamp(seconds: int, nanoseconds: int) -> Any:
    """A point in time as the library takes it inside of objects."""
    from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]

    return Timestamp(seconds=seconds, nanos=nanoseconds)


def duration(nanoseconds: int) -> Any:
    """A length of time as the library takes it inside of objects."""
    from google.protobuf.duration_pb2 import Duration  # type: ignore[import-untyped]

    made = Duration()
    made.FromNanoseconds(nanoseconds)
    return made


def _given_back(value: Any) -> Any:
    """A result of a function whose type is open, with times in the form that the library takes there."""
    if isinstance(value, dt.datetime):
        since = value - _EPOCH
        return timestamp(since.days * 86400 + since.seconds, since.microseconds * 1000)
    if isinstance(value, dt.timedelta):
        return duration((value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000)
    return [_given_back(entry) for entry in value] if isinstance(value, list) else value


@lru_cache(maxsize=512)
def _environment(type_name: str, optional_old: bool) -> Any:
    return _declare(type_name, optional_old, {})


def _declare(type_name: str, optional_old: bool, fields: Mapping[str, Any]) -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional  # type: ignore[import-untyped]

    kind = _cel_type(cel, type_name)
    variables = {SELF: kind, _GIVEN: kind, _HAS_OLD: cel.Type.BOOL} if optional_old else {SELF: kind, OLD: kind}
    extensions = [ext_optional.ExtOptional(), *([ext_bindings.ExtBindings()] if optional_old else [])]
    variables |= fields
    return cel.NewEnv(variables=variables, functions=_declarations(cel), extensions=extensions)


def _declarations(cel: Any) -> list[Any]:
    """The functions as declarations of the CEL library."""
    by_name: dict[str, list[Any]] = {}
    for name, member, result, parameters, run in entries():
        overload = cel.Overload(
            f"fastness_{name}_{'_'.join(parameters)}_{member}",
            _cel_type(cel, result),
            [_cel_type(cel, parameter) for parameter in parameters],
            member,
            (lambda *given, run=run: _given_back(run(*given))) if result in ("dyn", LIST) else run,
        )
        by_name.setdefault(name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in by_name.items()]


def _cel_type(cel: Any, name: str) -> Any:
    """The library's type of a signature."""
    if name.startswith("list("):
        return cel.Type.List(_cel_type(cel, name[5:-1]))
    if name.startswith("map("):
        return cel.Type.Map(cel.Type.STRING, _cel_type(cel, name[4:-1]))
    return getattr(cel.Type, name.upper())


def _readable(text: str) -> str:
    """The library's message without positions drawn in ASCII and without status words."""
    lines = (_LOCATION.sub("", line).strip() for line in text.splitlines() if not line.startswith(" |"))
    return "; ".join(line for line in lines if line) or "the expression failed"


@lru_cache(maxsize=1024)
def regex_problem(pattern: str) -> str | None:
    """Why RE2 refuses a pattern, or None."""
    try:
        program = _regex(pattern)
        program.run(program.variables({SELF: ""}))
    except RuleError as error:
        return str(error)
    return None


def regex_matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether RE2 finds the pattern; one that RE2 refuses is found nowhere."""
    if regex_problem(pattern) is not None:
        return lambda _: False
    program = _regex(pattern)
    return lambda text: bool(program.run(program.variables({SELF: text})))


def _regex(pattern: str) -> Program:
    # Escaped as a CEL literal: a quote in a pattern would end it, and its author could go on in CEL.
    quoted = "".join(f"\\U{ord(c):08x}" if c in "\\'\"" or not 32 <= ord(c) < 127 else c for c in pattern)
    return compile_rule(f"self.matches('{quoted}')", "string")
