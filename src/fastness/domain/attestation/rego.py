"""The Rego engine, with its traps closed.

A `Program` is compiled once and asked many times:

* Built-in functions that fail are errors, never undefined: `not f(x)` must not become true because `f` does not exist here.
* The answer is read from a binding (`x := …`), because a query for a rule that is false counts as undefined otherwise.
* Whatever is not an answer (undefined, error, text that is no JSON) raises; callers refuse.
* An engine serves one caller at a time. Engines wait in a pool per set of data, so that threads never share one, and the data is
  compiled in: with a thousand values an evaluation costs a quarter of a millisecond, and handing them in would cost seven.

Some texts make the engine end the whole process while they are compiled (`with input as` is one). Text that a user wrote is
therefore tried in a process of its own first (`trust.trial`), and only what survived is compiled here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any, Final

# The native libraries of CEL and Rego have C++ symbols in common, and a process keeps those that it loads first. Where Rego's
# come first, CEL aborts the process on ordinary rules; the other way round both work. A component test proves it.
importlib.import_module("cel_expr_python.cel")

from regopy import Bundle, Interpreter, LogLevel, RegoError  # type: ignore[import-untyped] # noqa: E402

from fastness.domain.attestation.errors import BadPolicy  # noqa: E402

ANSWER: Final = "x"
MAX_POOLS: Final = 4
MAX_IDLE: Final = 16
_MESSAGE: Final = re.compile(r"\(errormsg \d+:([^\n]{1,300}?)\)(?:\n|$)")
_PLACE: Final = re.compile(r"\(error \d+:(?P<file>[^|\n]{1,64})\|(?P<offset>\d{1,9})\|")
Engine = tuple[Interpreter, Bundle]


class NoAnswer(Exception):
    """The program gave no answer; the text says why."""


class Program:
    """Modules and a query whose binding `x` is the answer."""

    def __init__(self, modules: Mapping[str, str], query: str) -> None:
        self._modules = dict(modules)
        self._query = query
        self._pools: dict[str, list[Engine]] = {}

    def compile(self, data: Mapping[str, Any]) -> Engine:
        """An engine with this data; raises BadPolicy."""
        interpreter = Interpreter()
        interpreter.log_level = LogLevel.NONE
        interpreter.strict_built_in_errors = True
        try:
            for name, text in self._modules.items():
                interpreter.add_module(name, text)
            interpreter.add_data(dict(data))
            bundle = interpreter.build(self._query)
        except (RegoError, ValueError) as error:
            raise BadPolicy(
                "policy-unreadable", self._told(str(error)), "Correct the text and try it again."
            ) from error
        if not bundle.ok():
            raise BadPolicy("policy-unreadable", "the policy cannot be compiled", "Correct the text and try it again.")
        return interpreter, bundle

    def ask(self, document: Mapping[str, Any], data: Mapping[str, Any], key: str) -> Any:
        """The answer for an input; `key` is the same for the same data. Raises NoAnswer, BadPolicy."""
        pool = self._pool(key)
        engine = pool.pop() if pool else self.compile(data)
        interpreter, bundle = engine
        try:
            interpreter.set_input(dict(document))
            output = interpreter.query_bundle(bundle)
        except RegoError as error:
            raise NoAnswer(_reason(str(error))) from error
        except ValueError as error:
            # The binding reads the engine's text as JSON, and this text was an error.
            raise NoAnswer(_reason(str(getattr(error, "doc", error)))) from error
        if not output.ok():
            raise NoAnswer(_reason(str(output)))
        bindings = output.results[0].bindings if output.results else {}
        if len(pool) < MAX_IDLE:
            pool.append(engine)
        if ANSWER not in bindings:
            raise NoAnswer("the rule is undefined")
        return bindings[ANSWER]

    def _pool(self, key: str) -> list[Engine]:
        """The idle engines for some data; every step is atomic, so threads need no lock."""
        pool = self._pools.setdefault(key, [])
        for old in tuple(self._pools)[:-MAX_POOLS]:
            self._pools.pop(old, None)
        return pool

    def _told(self, said: str) -> str:
        """The first complaint of the compiler, with the line in the user's text."""
        reason = _reason(said)
        place = _PLACE.search(said)
        if place is None or place["file"] not in self._modules:
            return reason
        text = self._modules[place["file"]].encode()
        return f"line {text[: int(place['offset'])].count(10) + 1}: {reason}"


def _reason(said: str) -> str:
    messages = list(dict.fromkeys(match[1] for match in _MESSAGE.finditer(said)))
    if messages:
        return "; ".join(messages[:3])
    return "a built-in function failed or does not exist" if "<error>" in said else "the engine gave no reason"
