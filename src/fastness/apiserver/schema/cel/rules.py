"""Rules on the values they belong to: compiled once per node, judged value by value.

* A rule that mentions `oldSelf` is a transition rule: without `optionalOldSelf` it runs only where there is an old value.
* A rule that fails while it runs counts as broken: what cannot be judged is refused.
* On update, a rule without `oldSelf` that is broken by a value which did not change is forgiven.
* A rule with loops inside of loops may take at most `STEPS` steps on the longest list it could meet; over that it is not run and
  counts as broken, because one object must not hold up the server.
* Rules see nothing but the value and the one before, so a short value that obeyed all of a node's rules need not be asked about
  again: status writes repeat names, images and generations many times a second.
* A broken rule reports `message`, else what `messageExpression` says, else the rule itself, under `fieldPath` with `reason`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fastness.apiserver.schema import causes
from fastness.apiserver.schema.cel.engine import Program, RuleError, bindings, check_types, compile_rule, regex_problem
from fastness.apiserver.schema.cel.presentation import presenter, type_name, typed_paths, visible
from fastness.apiserver.schema.correlation import OldEntries, same
from fastness.apiserver.schema.node import MISSING, Node
from fastness.kube.errors import Cause

_LITERAL: Final = re.compile(
    r"""[rR]?[bB]?(?:'{3}.*?'{3}|"{3}.*?"{3}|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|//[^\n]*""", re.DOTALL
)
_CHAIN: Final = re.compile(r"(?<![\w.])(self|oldSelf)\b((?:\s*\.\s*[A-Za-z_]\w*(?!\w|\s*\())*)")
_FIRST: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)\b(?:\s*\.\s*\??\s*([A-Za-z_]\w*)(?!\w|\s*\())?")
_STEP: Final = re.compile(r"'((?:\\.|[^'\\])*)'|([^.\[\]']+)")
_LOOP: Final = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(|[()]")
_SPELLED: Final = re.compile(r"""\.\s*(?:matches|find|findAll)\(\s*([rR]?)'([^'\n]*)'""")
MAX_MESSAGE: Final = 5120
MOST_OBEYED: Final = 128
LONGEST_OBEYED: Final = 512
_REPEATED: Final = frozenset({"string", "integer", "boolean"})
STEPS: Final = 1_000_000  # what Kubernetes allows one rule, there in units of its own cost model


def bare(expression: str) -> str:
    """The expression without texts and comments, for looking at names."""
    return _LITERAL.sub("''", expression)


def uses_old(expression: str) -> bool:
    """Whether the expression compares with the old value."""
    return re.search(r"(?<![\w.])oldSelf\b", bare(expression)) is not None


def loop_depth(expression: str) -> int:
    """How many loops stand inside of each other at most."""
    depth, deepest, open_calls = 0, 0, list[bool]()
    for match in _LOOP.finditer(bare(expression)):
        if match[0] == ")":
            depth -= open_calls.pop() if open_calls else False
        else:
            open_calls.append(match[0] != "(")
            depth += open_calls[-1]
            deepest = max(deepest, depth)
    return deepest


def _longest(value: Any) -> int:
    """The length of the longest list or map in a value."""
    if isinstance(value, dict):
        return max([len(value), *(_longest(below) for below in value.values())])
    if isinstance(value, list):
        return max([len(value), *(_longest(below) for below in value)])
    return 0


def _is_short(value: Any) -> bool:
    # By type and not by schema: what was stored under an older schema may be a list here.
    return type(value) is int or type(value) is bool or (type(value) is str and len(value) <= LONGEST_OBEYED)


def unknown_field(node: Node, expression: str, *, root: bool) -> str | None:
    """The first field of `self` that the expression names and the schema does not have."""
    for match in _CHAIN.finditer(bare(expression)):
        at: Node | None = node
        top = root
        for name in re.findall(r"[A-Za-z_]\w*", match[2]):
            if at is None or at.type != "object" or at.extra is not None or at.int_or_string:
                break
            fields = visible(at, root=top)
            if name not in fields:
                return str(name)
            at, top = fields[name][1], False
    return None


def check_rule(node: Node, spec: Mapping[str, Any], *, root: bool) -> None:
    """Judge a rule as it is written, beyond compiling it: types of the fields it names, patterns it spells out.

    Raises RuleError. Objects meet only rules that passed here, so this is not repeated for them.
    """
    kind = type_name(node)
    if kind is None:
        raise RuleError("rules cannot see a value without a type")
    fields = typed_paths(node, root=root) if node.type == "object" and node.extra is None else {}
    for word, result_type in (("rule", "bool"), ("messageExpression", "string")):
        if spec.get(word):
            given = check_types(str(spec[word]), kind, fields, optional_old=bool(spec.get("optionalOldSelf")))
            if given not in (result_type, "dyn"):
                raise RuleError(f"the expression must evaluate to a {result_type}, not to a {given}")
    for raw, text in _SPELLED.findall(str(spec.get("rule") or "")):
        wrong = regex_problem(text) if raw or "\\" not in text else None
        if wrong is not None:
            raise RuleError(f"{text!r} is no regular expression: {wrong}")


class Rule:
    """One entry of `x-kubernetes-validations`, compiled; raises RuleError when it does not compile."""

    __slots__ = ("depth", "fields", "message_program", "old", "optional", "path", "program", "spec")

    def __init__(self, node: Node, spec: Mapping[str, Any], *, root: bool) -> None:
        source = str(spec.get("rule") or "")
        kind = type_name(node)
        if kind is None:
            raise RuleError("rules cannot see a value without a type")
        self.spec = spec
        self.optional = bool(spec.get("optionalOldSelf"))
        self.old = uses_old(source)
        self.depth = loop_depth(source)
        self.program = self._compile(node, source, kind, "bool", root)
        message = str(spec.get("messageExpression") or "")
        self.message_program = self._compile(node, message, kind, "string", root) if message else None
        self.fields = _fields_asked(source, message)
        self.path = field_path(node, str(spec.get("fieldPath") or ""))

    def _compile(self, node: Node, source: str, kind: str, result_type: str, root: bool) -> Program:
        missing = unknown_field(node, source, root=root)
        if missing is not None:
            raise RuleError(f"undefined field '{missing}'")
        program = compile_rule(source, kind, optional_old=self.optional)
        if program.returns not in (result_type, "dyn"):
            raise RuleError(f"the expression must evaluate to a {result_type}, not to a {program.returns}")
        return program

    def broken(self, data: Any, path: str, type_of_self: str) -> Cause | None:
        """The cause that the rule reports on these variables, if any."""
        source = str(self.spec.get("message") or self.spec["rule"]).strip()
        try:
            if self.program.run(data) is True:
                return None
        except RuleError as error:
            # Fails closed: what cannot be judged is refused, as in Kubernetes.
            return causes.invalid(path, type_of_self, f"{error} evaluating rule: {source}")
        where = _joined(path, self.path)
        detail = self._message(data)
        match self.spec.get("reason"):
            case "FieldValueForbidden":
                return causes.forbidden(where, detail)
            case "FieldValueRequired":
                return causes.required(where, detail)
            case "FieldValueDuplicate":
                return causes.duplicate(where, type_of_self)
        return causes.invalid(where, type_of_self, detail)

    def _message(self, data: Any) -> str:
        if self.message_program is not None:
            try:
                text = self.message_program.run(data)
            except RuleError:
                text = None
            if isinstance(text, str) and text.strip() and "\n" not in text.strip() and len(text) <= MAX_MESSAGE:
                return text.strip()
        message = str(self.spec.get("message") or "").strip()
        return message or f"failed rule: {str(self.spec['rule']).strip()}"


def _joined(path: str, below: str) -> str:
    return path + below if below.startswith("[") or not below else causes.child(path, below)


def _fields_asked(*sources: str) -> frozenset[str] | None:
    """The fields of `self` that expressions ask for; None when they use `self` as a whole."""
    fields: set[str] = set()
    for source in sources:
        for match in _FIRST.finditer(bare(source)):
            if match[1] is None:
                return None
            fields.add(match[1])
    return frozenset(fields)


def field_path(node: Node, path: str) -> str:
    """A rule's `fieldPath` as causes write it; raises RuleError when the schema has no such field."""
    out, at = "", node
    for quoted, plain in _STEP.findall(path):
        name = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        below = at.child(name)
        if below is None:
            raise RuleError(f"fieldPath {path!r} does not refer to a field of the schema")
        out = causes.child(out, name) if name in at.properties else causes.key(out, name)
        at = below
    return out


class Rules:
    """All rules of a schema, by node."""

    def __init__(self, root: Node, *, is_object: bool = True) -> None:
        """Rules of a whole object, or of a part that is none (`is_object` false: no apiVersion, kind and metadata)."""
        self._root = root
        self._is_object = is_object
        self._by_node: dict[int, _NodeRules] = {}

    def broken(self, obj: Any, old: Any = MISSING) -> list[Cause]:
        """Every rule that the object breaks."""
        problems: list[Cause] = []
        self._judge(self._root, obj, old, "", False, problems)
        return problems

    def _judge(self, node: Node, value: Any, old: Any, path: str, unchanged: bool, problems: list[Cause]) -> None:
        if value is None:
            return
        if old is not MISSING and not unchanged:
            unchanged = old is value
        if node.rules:
            rules = self._by_node.get(id(node))
            if rules is None:
                rules = self._by_node[id(node)] = _NodeRules(node, root=self._is_object and node is self._root)
            rules.judge(value, old, path, unchanged, problems)
        if type(value) is dict:
            self._judge_fields(node, value, old, path, unchanged, problems)
        elif type(value) is list and node.items is not None and node.items.has_rules:
            entries = OldEntries(node, old)
            alike = unchanged or (old is not MISSING and same(value, old))
            for i, entry in enumerate(value):
                self._judge(node.items, entry, entries.of(entry), f"{path}[{i}]", alike, problems)

    def _judge_fields(
        self, node: Node, value: dict[str, Any], old: Any, path: str, unchanged: bool, problems: list[Cause]
    ) -> None:
        before = old if type(old) is dict else {}
        if node.map_type == "atomic" and old is not MISSING:
            unchanged, before = unchanged or same(value, old), {}
        for name, entry in value.items():
            below = node.properties.get(name)
            if below is not None:
                if below.has_rules:
                    self._judge(below, entry, before.get(name, MISSING), causes.child(path, name), unchanged, problems)
            elif node.extra is not None and node.extra.has_rules:
                self._judge(node.extra, entry, before.get(name, MISSING), causes.key(path, name), unchanged, problems)


class _NodeRules:
    """The rules of one node, with the presentation of the fields they ask for."""

    def __init__(self, node: Node, *, root: bool) -> None:
        self._type = node.type
        self._rules: list[Rule] = []
        self._failures: list[str] = []
        for spec in node.rules:
            try:
                self._rules.append(Rule(node, spec, root=root))
            except RuleError as error:
                self._failures.append(f"rule compile error: {error}")
        self._nests = any(rule.depth > 1 for rule in self._rules)
        self._looks_back = any(rule.old for rule in self._rules)
        field_sets = [rule.fields for rule in self._rules]
        only = (
            None
            if None in field_sets
            else frozenset[str]().union(*(fields for fields in field_sets if fields is not None))
        )
        self._present = presenter(node, root=root, only=only)
        self._repeats = node.type in _REPEATED and not self._failures
        self._obeyed: set[tuple[Any, ...]] = set()

    def judge(self, value: Any, old: Any, path: str, unchanged: bool, problems: list[Cause]) -> None:
        """Add what the value breaks to the problems."""
        problems.extend(causes.invalid(path, self._type, failure) for failure in self._failures)
        has_old = old is not MISSING and old is not None
        # Ratcheting (KEP-4008): a rule that was added later must not make every stored object that breaks it unwritable.
        if not self._looks_back and not self._nests and (unchanged or (has_old and same(value, old))):
            return  # What was stored stays valid; only rules about the change would have to be asked.
        identity = self._identity(value, old if has_old else None)
        if identity is not None and identity in self._obeyed:
            return
        if self._all_obeyed(value, old, path, unchanged, problems) and identity is not None:
            if len(self._obeyed) >= MOST_OBEYED:
                self._obeyed.clear()
            self._obeyed.add(identity)

    def _identity(self, value: Any, old: Any) -> tuple[Any, ...] | None:
        """What tells a short value and the one before from all others; None where it is not worth keeping."""
        if not self._repeats or not (_is_short(value) and (old is None or _is_short(old))):
            return None
        # With their types, because 1, 1.0 and true are the same to Python and not to a rule.
        return type(value), value, type(old), old

    def _all_obeyed(self, value: Any, old: Any, path: str, unchanged: bool, problems: list[Cause]) -> bool:
        """Ask every rule; whether none was broken, not even one that is forgiven."""
        has_old = old is not MISSING and old is not None
        obeyed = True
        presented = self._present(value)
        was = self._present(old) if has_old and self._looks_back else None
        longest = _longest(presented) if self._nests else 0
        made: dict[bool, Any] = {}
        for rule in self._rules:
            if rule.old and not has_old and not rule.optional:
                continue
            # The library has no cost limit of its own: two nested loops over a list of 10,000 are a hundred million steps.
            if rule.depth > 1 and longest**rule.depth > STEPS:
                obeyed = False
                problems.append(
                    causes.invalid(path, self._type, f"the rule would exceed its cost budget: {rule.spec['rule']}")
                )
                continue
            data = made.get(rule.optional)
            if data is None:
                data = rule.program.variables(bindings(presented, was, has_old=has_old, optional_old=rule.optional))
                made[rule.optional] = data
            cause = rule.broken(data, path, self._type)
            obeyed = obeyed and cause is None
            if cause is not None and (rule.old or not (unchanged or (has_old and same(value, old)))):
                problems.append(cause)
        return obeyed
