"""Where the code says no: every branch that refuses, and the source with a switch that takes it out.

    known = mutants(root)
    known[0].id                           # attestation/live/verifier.py::ClusterVerifier.appraise::if::machine is None
    switched(source, {1: known[0], …})    # the module; while `removed_refusal` is 1, as if that check had been forgotten

A mutant is one refusal that was taken out. Five shapes of code refuse here:

* `if`: a branch that ends in `raise`, or in a `return` of a refusal, of a reason, of False or of None; it is never taken. In a
  function whose name says that it looks for distrust, True is the refusal. A condition that names a value is still worked out.
* `and`: one condition of several in what a function returns or a branch lets pass; it always holds. Where True is the refusal,
  this would refuse more, and is left alone.
* `expect`: a check of an appraisal (`findings.expect`, `.answer`, `.production`); its condition always holds.
* `call`: a call that exists to raise (`verify_…`, `check_…`, `require_…`, `findings.fail`, …); it is not made. Telling somebody
  of a refusal (`events.refused`) refuses nothing.
* `else`: an expression that chooses between a refusal and its absence; it chooses the absence.

An id holds no line number, so that an explanation of a survivor stays true while the file around it changes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path("src/fastness")
PLACES = (
    "agent/boot/unlock.py", "agent/disks",
    "app/backups.py", "app/node_lookups.py", "app/product.py", "attestation/*.py",
    "attestation/evidence", "attestation/live", "attestation/machine", "attestation/policy", "attestation/status",
    "attestation/values", "attestation/verdict", "builds/credentials.py", "builds/live/layout.py", "builds/live/transfers.py",
    "builds/sealing.py", "crypto", "disks", "enrolment/*.py", "enrolment/door", "enrolment/live", "http",
    "formats/oci*.py", "formats/tar_stream.py", "images/*.py", "keys", "kube/access/kubelet_requests.py",
    "machineconfig/live/image_tree.py", "machineconfig/live/registry_session.py",
    "protocol", "record/*.py", "record/live", "rego", "release/*.py",
    "release/door", "release/live", "workloads/live",
)  # fmt: skip
_REFUSALS = re.compile(r"(^|[._])(refus|den[iy]|fail|problem|wrong|invalid|bad|nothing|unauthori)", re.IGNORECASE)
_REASONS = re.compile(r"(Problem|Doubt|Denial|Refusal)$")
_CHECKS = re.compile(r"_*(check|verify|require|refuse|ensure|demand|compare|must|forbid|authori[sz]e|doubt|admit)")
_DISTRUST = re.compile(r"revoked|examined|distrust|expired|barred|used_up|spent|refuse")
_FINDINGS = {"expect": 1, "answer": 1, "production": 0}
_LONGEST = 120
SWITCH = "removed_refusal"


class Mutant(NamedTuple):
    """One refusal, and the expression that stands for it when it is gone.

    It stands on `line` to `last`; what it guards begins at `branch`. `start` and `end` count characters of the module.
    """

    id: str
    path: Path
    line: int
    last: int
    branch: int
    start: int
    end: int
    text: str


def switched(source: str, numbered: Mapping[int, Mutant]) -> str:
    """A module in which each of these refusals is gone while the built-in `removed_refusal` is its number.

    One copy of the product serves all mutants, so that a test process imports it once; lines stay where they are.
    """
    pieces: list[tuple[int, int, int, int, str]] = []
    for number, mutant in numbered.items():
        # Refusals stand in each other: what begins first ends last, and what ends here ends before the next begins.
        opening = f"({mutant.text} if {SWITCH} == {number} else ("
        pieces.append((mutant.start, 1, -mutant.end, number, opening))
        pieces.append((mutant.end, 0, -mutant.start, -number, "))"))
    written, after = "", 0
    for position, *_, text in sorted(pieces):
        written += source[after:position] + text
        after = position
    return written + source[after:]


def mutants(root: Path) -> list[Mutant]:
    """Every mutant of the places where trust is decided, in the order of files and lines."""
    places = [path for place in PLACES for path in (root / PACKAGE).glob(place)]
    files = sorted({path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))})
    return [mutant for path in files for mutant in _Finder(path.relative_to(root), path.read_text()).mutants]


class _Finder(ast.NodeVisitor):
    """Walks one module and keeps what refuses."""

    def __init__(self, path: Path, source: str) -> None:
        self.mutants: list[Mutant] = []
        self._path = path
        self._source = source
        self._starts = _line_starts(source)
        self._names: list[str] = []
        self._returns: list[str] = []
        self._seen: Counter[str] = Counter()
        self.visit(ast.parse(source))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_If(self, node: ast.If) -> None:
        if self._refuses(node.body[-1]):
            self._keep("if", node.test, _never(node.test), branch=node.body[0].lineno)
        elif isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) and _lets_pass(node):
            self._conjuncts(node.test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        lets_pass = self._returns[-1:] == ["bool"] and not _DISTRUST.search(self._names[-1])
        if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And) and lets_pass:
            self._conjuncts(value)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        for refusal, absence in ((node.body, node.orelse), (node.orelse, node.body)):
            if _names_refusal(refusal) and not _names_refusal(absence):
                self._keep("else", node, f"({ast.unparse(absence)})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call):
            of, _, verb = ast.unparse(call.func).rpartition(".")
            if (_CHECKS.match(verb) and not of.endswith("events")) or (verb in ("fail", "skip") and "findings" in of):
                self._keep("call", node, "None")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and "findings" in ast.unparse(node.func.value):
            place = _FINDINGS.get(node.func.attr)
            if place is not None and len(node.args) > place and not isinstance(node.args[place], ast.Constant):
                self._keep("expect", node.args[place], "True")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """What stands inside a formatted text has no place of its own before Python 3.12."""

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._returns.append(ast.unparse(node.returns) if node.returns else "")
        self._within(node)
        self._returns.pop()

    def _within(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()

    def _refuses(self, last: ast.stmt) -> bool:
        """Whether a branch that ends so says no."""
        if isinstance(last, ast.Raise):
            return True
        if not isinstance(last, ast.Return):
            return False
        value = last.value.value if isinstance(last.value, ast.Await) else last.value
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return self._returns[-1].endswith("| None")
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            return value.value is bool(_DISTRUST.search(self._names[-1]))
        return _names_refusal(value) or (_says_something(value) and self._returns[-1] in ("str", "str | None"))

    def _conjuncts(self, test: ast.BoolOp) -> None:
        for value in test.values:
            self._keep("and", value, "True")

    def _keep(self, shape: str, node: ast.expr | ast.stmt, text: str, branch: int = 0) -> None:
        what = " ".join(ast.unparse(node).split())[:_LONGEST]
        inside = str(self._path.relative_to(PACKAGE))
        name = f"{inside}::{'.'.join(self._names) or 'module'}::{shape}::{what}"
        self._seen[name] += 1
        number = f"#{self._seen[name]}" if self._seen[name] > 1 else ""
        start, end = self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)
        last = node.end_lineno or node.lineno
        self.mutants.append(
            Mutant(name + number, self._path, node.lineno, last, branch or node.lineno, start, end, text)
        )

    def _offset(self, line: int | None, column: int | None) -> int:
        """A place of the syntax tree, whose columns count bytes, as a number of characters."""
        assert line is not None
        assert column is not None
        start = self._starts[line - 1]
        row = self._source[start:].partition("\n")[0]
        return start + len(row.encode()[:column].decode())


def _never(test: ast.expr) -> str:
    """A condition that does not hold; what it names on the way is there all the same."""
    names = any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))
    return f"(({ast.unparse(test)}) and False)" if names else "False"


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _names_refusal(value: ast.expr) -> bool:
    """Whether an expression makes a refusal: a call, a member or the member of an enumeration whose name says so."""
    if isinstance(value, ast.Call):
        return bool(_REFUSALS.search(ast.unparse(value.func)))
    if not isinstance(value, ast.Attribute):
        return False
    return value.attr in ("FAIL", "DENIED", "REFUSED") or bool(_REASONS.search(ast.unparse(value.value)))


def _says_something(value: ast.expr) -> bool:
    """Whether an expression is text: the reason of a refusal, where a function answers with that or with nothing."""
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and bool(value.value))


def _lets_pass(node: ast.If) -> bool:
    """Whether a branch is what is left when nothing was wrong: it returns True or something that is no refusal."""
    last = node.body[-1]
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) and last.value.value is True
