"""Running the tree of a template, as Go's text/template does with `missingkey=error`.

Everything that happens is counted (`Meter`): steps, the size of each value, the output. Errors carry line and column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastness.formats.gotemplate.tree import (
    Branch,
    Chain,
    Command,
    Dot,
    Field,
    Include,
    Leave,
    Literal,
    Nil,
    Node,
    Nodes,
    Operand,
    Pipe,
    Show,
    Template,
    Text,
    Variable,
    Word,
)
from fastness.workloads.features.errors import BadTemplate
from fastness.workloads.features.templates.calls import MISSING, Function, converted, literal
from fastness.workloads.features.templates.show import NO_VALUE, shown
from fastness.workloads.features.templates.values import Meter, Version, failed, size_of, truth, type_of

MAX_NESTED: Final = 80


class _Left(Exception):  # not an error: how `break` and `continue` leave a body
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


def run_template(template: Template, functions: Mapping[str, Function], data: Any) -> str:
    """What a template makes of some data; raises BadTemplate."""
    run = _Run(template, functions)
    run.names = [("$", data)]
    run.walk(data, template.nodes)
    return "".join(run.meter.parts)


class _Run:
    """One run: the variables in scope, innermost last."""

    def __init__(self, template: Template, functions: Mapping[str, Function]) -> None:
        self._template = template
        self._functions = functions
        self._depth = 0
        self.meter = Meter()
        self.names: list[tuple[str, Any]] = []

    # Nodes.

    def walk(self, dot: Any, nodes: Nodes) -> None:
        """Run nodes one after the other."""
        self._deeper(1)
        for node in nodes:
            self.meter.step()
            try:
                self._node(dot, node)
            except BadTemplate as error:
                error.path = error.path or self._template.place(node.at)
                raise
        self._deeper(-1)

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > MAX_NESTED:
            raise failed("too-deep", f"the template goes more than {MAX_NESTED} deep")

    def _node(self, dot: Any, node: Node) -> None:
        if isinstance(node, Text):
            self.meter.write(node.text)
        elif isinstance(node, Show):
            value = self._pipe(dot, node.pipe)
            if not node.pipe.names:
                self.meter.write(NO_VALUE if value is None else shown(value, self.meter))
        elif isinstance(node, Branch):
            self._branch(dot, node)
        elif isinstance(node, Leave):
            raise _Left(node.word)
        else:
            self._include(dot, node)

    def _branch(self, dot: Any, node: Branch) -> None:
        scope, depth = len(self.names), self._depth
        value = self._pipe(dot, node.pipe)
        if node.word == "range":
            try:
                self._range(dot, value, node)
            except _Left:
                self._depth = depth
        elif truth(value):
            self.walk(value if node.word == "with" else dot, node.body)
        else:
            self.walk(dot, node.otherwise)
        del self.names[scope:]

    def _range(self, dot: Any, value: Any, node: Branch) -> None:
        pairs = self._pairs(value, len(node.pipe.names))
        scope, depth = len(self.names), self._depth
        for key, element in pairs:
            self.meter.step()
            given = (key, element) if len(node.pipe.names) == 2 else (element,)
            for place, (name, part) in enumerate(zip(node.pipe.names, given, strict=False)):
                if node.pipe.assigns:
                    self._assign(name, part)
                else:
                    self.names[scope - len(given) + place] = (name, part)
            try:
                self.walk(element, node.body)
            except _Left as left:
                self._depth = depth
                if left.word == "break":
                    raise
            del self.names[scope:]
        if not pairs:
            self.walk(dot, node.otherwise)

    def _pairs(self, value: Any, names: int) -> Sequence[tuple[Any, Any]]:
        if isinstance(value, list):
            return list(enumerate(value))
        if isinstance(value, dict):
            return sorted(value.items())
        if isinstance(value, int) and not isinstance(value, bool):
            if names > 1:
                raise failed("not-a-list", "a number gives a range one variable alone")
            self.meter.room(max(value, 0))
            return [(None, type(value)(number)) for number in range(value)]
        if value is None:
            return ()
        raise failed("not-a-list", f"range needs a list, a map or a number, not {type_of(value)}")

    def _include(self, dot: Any, node: Include) -> None:
        nodes = self._template.defined.get(node.name)
        if nodes is None:
            raise failed("unknown-template", f"no template is defined as {node.name!r}")
        value = self._pipe(dot, node.pipe) if node.pipe is not None else None
        names, self.names = self.names, [("$", value)]
        self.walk(value, nodes)
        self.names = names

    # Pipelines.

    def _pipe(self, dot: Any, pipe: Pipe) -> Any:
        self._deeper(1)
        value: Any = MISSING
        for command in pipe.commands:
            value = self._command(dot, command, value)
        self._deeper(-1)
        for name in pipe.names:
            if pipe.assigns:
                self._assign(name, value)
            else:
                self.names.append((name, value))
        return value

    def _assign(self, name: str, value: Any) -> None:
        for place in range(len(self.names) - 1, -1, -1):
            if self.names[place][0] == name:
                self.names[place] = (name, value)
                return
        raise failed("unknown-variable", f"there is no variable {name}")

    def _command(self, dot: Any, command: Command, final: Any) -> Any:
        self.meter.step()
        first, rest = command.operands[0], command.operands[1:]
        if isinstance(first, Word):
            return self._call(dot, first, rest, final)
        if isinstance(first, Field | Variable | Chain):
            return self._value(dot, first, given=bool(rest) or final is not MISSING)
        if rest or final is not MISSING:
            raise failed("not-a-function", "this is no function and takes no arguments")
        if isinstance(first, Nil):
            raise failed("not-a-command", "nil is not a command")
        return self._value(dot, first)

    def _value(self, dot: Any, operand: Operand, *, given: bool = False) -> Any:
        """What an operand stands for; `given` says that arguments follow, which fields do not take."""
        if isinstance(operand, Dot):
            return dot
        if isinstance(operand, Literal):
            return operand.value
        if isinstance(operand, Pipe):
            return self._pipe(dot, operand)
        if isinstance(operand, Word):
            return self._call(dot, operand, (), MISSING)
        if isinstance(operand, Nil):
            return None
        if given:
            raise failed("not-a-function", "a field takes no arguments")
        if isinstance(operand, Field):
            value = dot
        elif isinstance(operand, Variable):
            value = self._variable(operand.name)
        else:
            if isinstance(operand.inner, Nil):
                raise failed("not-a-command", "nil has no fields")
            value = self._value(dot, operand.inner)
        for name in operand.names:
            value = self._field(value, name)
        return value

    def _variable(self, name: str) -> Any:
        for known, value in reversed(self.names):
            if known == name:
                return value
        raise failed("unknown-variable", f"there is no variable {name}")

    def _field(self, value: Any, name: str) -> Any:
        if isinstance(value, Version):
            value = value.fields
        if not isinstance(value, dict):
            raise failed("no-field", f"there is no field {name} in {type_of(value)}")
        if name not in value:
            raise failed("missing-key", f"there is no {name!r} here: match it in the rule, or use index")
        return value[name]

    # Functions.

    def _call(self, dot: Any, word: Word, operands: Sequence[Operand], final: Any) -> Any:
        function = self._functions[word.name]
        count = len(operands) + (final is not MISSING)
        function.demand(word.name, count)
        if word.name in ("and", "or"):
            return self._short(dot, operands, final, stop=word.name == "or")
        arguments = [self._argument(dot, operand, function.type_at(place)) for place, operand in enumerate(operands)]
        if final is not MISSING:
            arguments.append(converted(final, function.type_at(count - 1), word.name))
        value = function.call(self.meter, *arguments)
        self.meter.room(size_of(value))
        return value

    def _argument(self, dot: Any, operand: Operand, kind: str) -> Any:
        if isinstance(operand, Literal):
            return literal(operand.value, kind)
        if isinstance(operand, Nil) and kind not in "vm":
            raise failed("bad-argument", "nil does not fit here")
        return converted(self._value(dot, operand), kind, "")

    def _short(self, dot: Any, operands: Sequence[Operand], final: Any, *, stop: bool) -> Any:
        """`and` and `or` look at no more than they need."""
        value: Any = None
        for operand in operands:
            value = self._argument(dot, operand, "v")
            if truth(value) is stop:
                return value
        return value if final is MISSING else final
