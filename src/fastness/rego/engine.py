"""The Rego engine, with its traps closed.

A `Program` is compiled once and asked many times:

* Built-in functions that fail are errors, never undefined: `not f(x)` must not become true because `f` does not exist here.
* The answer is read from a binding (`x := …`), because a query for a rule that is false counts as undefined otherwise.
* Whatever is not an answer (undefined, error, text that is no JSON) raises; callers refuse.
* An engine serves one caller at a time. Engines wait in a pool per set of data, so that threads never share one, and the data is
  compiled in: with a thousand values an evaluation costs a quarter of a millisecond, and handing them in would cost seven.

* What a program calls is read off the compiled plan and compared with a list (`builtins`) before anything of it runs.

Some texts make the engine end the whole process while they are compiled (`with input as` is one), others run for ever. Text that
a user wrote is therefore compiled and asked in a process of its own (`rego.sandbox`), never in one that judges.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Mapping
from typing import Any, Final

# The native libraries of CEL and Rego have C++ symbols in common, and a process keeps those that it loads first. Where Rego's
# come first, CEL aborts the process on ordinary rules; the other way round both work. A component test proves it.
importlib.import_module("cel_expr_python.cel")

from regopy import Bundle, Interpreter, LogLevel, RegoError  # type: ignore[import-untyped] # noqa: E402
from regopy import rego_shared as engine  # noqa: E402

from fastness.rego.builtins import ALLOWED, CLOCK, OPEN_CALL, refused_calls  # noqa: E402
from fastness.runtime.errors import CodedError  # noqa: E402

ANSWER: Final = "x"
MAX_POOLS: Final = 4
MAX_IDLE: Final = 16
_MESSAGE: Final = re.compile(r"\(errormsg \d+:([^\n]{1,300}?)\)(?:\n|$)")
_PLACE: Final = re.compile(r"\(error \d+:(?P<file>[^|\n]{1,64})\|(?P<offset>\d{1,9})\|")
_CALL, _DYNAMIC, _FUNCTION = "rego-callstmt", "dynamic", "rego-function"
_BUILT_IN, _STATEMENT = "rego-builtinfunction", "stmt"
Engine = tuple[Interpreter, Bundle]


class BadPolicy(CodedError):
    """A policy that can never judge: it cannot be compiled, or is not one. A sentence, a stable code, and what to do."""


class NoAnswer(Exception):
    """The program gave no answer; the text says why."""


class Program:
    """Modules and a query whose binding `x` is the answer; nothing runs that calls a function which is not `allowed`."""

    def __init__(self, modules: Mapping[str, str], query: str, allowed: frozenset[str] = ALLOWED) -> None:
        self._modules = dict(modules)
        self._query = query
        self._allowed = allowed
        self._calls: frozenset[str] | None = None
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
                "policy-unreadable", self._explain(str(error)), "Correct the text and try it again."
            ) from error
        if not bundle.ok():
            raise BadPolicy("policy-unreadable", "the policy cannot be compiled", "Correct the text and try it again.")
        # On the plan and not on the text: an alias, a `with` or a name that is put together would get past a search for words.
        self._refuse_calls(bundle)
        return interpreter, bundle

    @property
    def reads_clock(self) -> bool:
        """Whether an answer may change although nothing else does; known once the program was compiled."""
        return self._calls is None or CLOCK in self._calls

    def _refuse_calls(self, bundle: Bundle) -> None:
        if self._calls is None:
            self._calls = calls_of(bundle)
        refused = refused_calls(self._calls, self._allowed)
        if refused:
            raise BadPolicy(
                "policy-looks-outside",
                f"a policy may not call {', '.join(refused[:5])}: the same evidence must always get the same verdict",
                "Publish what the policy needs as reference values.",
            )

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
        # Undefined is not false: a policy with a typing error in its rule must refuse, and say that it said nothing.
        if ANSWER not in bindings:
            raise NoAnswer("the rule is undefined")
        return bindings[ANSWER]

    def _pool(self, key: str) -> list[Engine]:
        """The idle engines for some data; every step is atomic, so threads need no lock."""
        pool = self._pools.setdefault(key, [])
        for old in tuple(self._pools)[:-MAX_POOLS]:
            self._pools.pop(old, None)
        return pool

    def _explain(self, message: str) -> str:
        """The first complaint of the compiler, with the line in the user's text."""
        reason = _reason(message)
        place = _PLACE.search(message)
        if place is None or place["file"] not in self._modules:
            return reason
        text = self._modules[place["file"]].encode()
        return f"line {text[: int(place['offset'])].count(10) + 1}: {reason}"


def _reason(message: str) -> str:
    messages = list(dict.fromkeys(match[1] for match in _MESSAGE.finditer(message)))
    if messages:
        return "; ".join(messages[:3])
    return "a built-in function failed or does not exist" if "<error>" in message else "the engine gave no reason"


def is_built_in(name: str) -> bool:
    """Whether the engine has a function of this name."""
    return bool(Interpreter().is_builtin(name))


def calls_of(bundle: Any) -> frozenset[str]:
    """What a compiled program calls that is not a rule of its own."""
    calls: set[str] = set()
    own: set[str] = set()
    waiting = [
        engine.rego_bundle_node(bundle._impl)
    ]  # the wrapper's own nodes cannot be read: its buffers are too short
    while waiting:
        node = waiting.pop()
        kind = _text(node, engine.rego.regoNodeTypeNameSize, engine.rego.regoNodeTypeName)
        parts = [engine.rego_node_get(node, place) for place in range(engine.rego_node_size(node))]
        if kind.endswith(_STATEMENT) and _DYNAMIC in kind:
            calls.add(OPEN_CALL)
        elif kind in (_CALL, _BUILT_IN, _FUNCTION):
            (own if kind == _FUNCTION else calls).add(_name(parts))
        waiting += parts
    return frozenset(calls - own)


def _name(parts: list[int]) -> str:
    if not parts:
        return OPEN_CALL
    return _text(parts[0], engine.rego.regoNodeValueSize, engine.rego.regoNodeValue)


def _text(node: int, size: Any, read: Any) -> str:
    room = size(node) + 1
    buffer = ctypes.create_string_buffer(room)
    # What cannot be read is a call of nobody knows what, and that is on no list.
    if read(node, buffer, room) != 0:
        return OPEN_CALL
    return buffer.value.decode(errors="replace")
