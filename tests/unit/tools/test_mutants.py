"""What counts as a refusal, shape by shape, and the switch that takes it out."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest

from tools.mutants import PACKAGE, SWITCH, Mutant, mutants, switched

ROOT = Path(__file__).resolve().parents[3]


def mutants_in(root: Path, source: str) -> list[Mutant]:
    place = root / PACKAGE / "keys" / "it.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(source)
    return mutants(root)


def run(source: str, mutants: list[Mutant], removed: int) -> dict[str, Any]:
    """The names of a module with switches, one of them turned."""
    names: dict[str, Any] = {SWITCH: removed}
    exec(compile(switched(source, dict(enumerate(mutants, start=1))), "it.py", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("source", "shape", "without"),
    [
        ("def f(a):\n    if a:\n        raise ValueError\n", "if", "False"),
        ("def f(a) -> bool:\n    if not a:\n        return False\n    return True\n", "if", "False"),
        ("def revoked(a) -> bool:\n    if a:\n        return True\n    return False\n", "if", "False"),
        ("def f(a) -> str:\n    if a:\n        return 'wrong key'\n    return ''\n", "if", "False"),
        ("def f(a) -> int | None:\n    if a:\n        return None\n    return 1\n", "if", "False"),
        ("async def f(a):\n    if a:\n        return await self._refuse('x')\n    return a\n", "if", "False"),
        (
            "def f(a):\n    if (b := a) is None:\n        raise ValueError\n    return b\n",
            "if",
            "(((b := a) is None) and False)",
        ),
        ("def f(a) -> Doubt | None:\n    if a:\n        return Doubt.UNSIGNED\n    return None\n", "if", "False"),
        ("def f(findings, a):\n    findings.expect('nonce', a == 1, 'differs')\n", "expect", "True"),
        ("def f(findings):\n    findings.fail('key', 'é')\n", "call", "None"),
        ("async def f(a):\n    await check_pool(a)\n", "call", "None"),
    ],
)
def test_a_refusal_is_taken_out(tmp_path: Path, source: str, shape: str, without: str) -> None:
    (mutant,) = mutants_in(tmp_path, source)
    assert mutant.id.split("::")[2] == shape
    assert mutant.text == without
    ast.parse(switched(source, {1: mutant}))


def test_one_switch_at_a_time_takes_one_refusal_out(tmp_path: Path) -> None:
    source = "def f(é, b) -> bool:\n    if b > 2:\n        return False\n    return é == 'é' and b == 2\n"
    mutants = mutants_in(tmp_path, source)
    assert [mutant.id.rpartition("::")[2] for mutant in mutants] == ["b > 2", "é == 'é'", "b == 2"]
    cases = list(itertools.product(("é", "x"), (1, 2, 3)))
    passing = [[case for case in cases if run(source, mutants, removed)["f"](*case)] for removed in range(4)]
    assert passing == [[("é", 2)], [("é", 2)], [("é", 2), ("x", 2)], [("é", 1), ("é", 2)]]


def test_a_refusal_inside_another_has_a_switch_of_its_own(tmp_path: Path) -> None:
    source = (
        "def f(findings, a):\n    if findings.expect('a',\n            a == 1):\n        raise KeyError\n    return a\n"
    )
    mutants = mutants_in(tmp_path, source)
    written = switched(source, dict(enumerate(mutants, start=1)))
    assert [mutant.id.split("::")[2] for mutant in mutants] == ["if", "expect"]
    assert written.count("\n") == source.count("\n")  # coverage speaks of lines of the source as it is

    class Findings:
        def expect(self, _: str, good: bool) -> bool:
            return good

    assert run(source, mutants, 1)["f"](Findings(), 1) == 1
    with pytest.raises(KeyError):
        run(source, mutants, 2)["f"](Findings(), 5)


@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    if a:\n        return a\n    return 1\n",
        "def f(a) -> str:\n    if a:\n        return ''\n    return 'wrong'\n",
        "def f(a) -> bool:\n    if a:\n        return True\n    return False\n",
        "def f(log, a):\n    log.append(a)\n",
        "def f(self, a):\n    self._events.refused(a)\n",
        "def is_barred(a, b) -> bool:\n    return a and b\n",
    ],
)
def test_what_lets_somebody_pass_is_left_alone(tmp_path: Path, source: str) -> None:
    assert mutants_in(tmp_path, source) == []


def test_equal_refusals_in_one_function_have_names_of_their_own(tmp_path: Path) -> None:
    source = "def f(a):\n    if a:\n        raise ValueError\n    if a:\n        raise KeyError\n"
    assert [mutant.id for mutant in mutants_in(tmp_path, source)] == ["keys/it.py::f::if::a", "keys/it.py::f::if::a#2"]


def test_the_whole_product_can_be_switched_and_each_refusal_has_its_own_name() -> None:
    all_mutants = mutants(ROOT)
    assert len(all_mutants) > 400
    assert len({mutant.id for mutant in all_mutants}) == len(all_mutants)
    for path in {mutant.path for mutant in all_mutants}:
        source = (ROOT / path).read_text()
        of_module = {number: mutant for number, mutant in enumerate(all_mutants) if mutant.path == path}
        ast.parse(switched(source, of_module))
