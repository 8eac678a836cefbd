"""What counts as a refusal, shape by shape."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants import PACKAGE, Mutant, mutants

ROOT = Path(__file__).resolve().parents[3]


def found(root: Path, source: str) -> list[Mutant]:
    place = root / PACKAGE / "trust" / "it.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(source)
    return mutants(root)


@pytest.mark.parametrize(
    ("source", "shape", "without"),
    [
        ("def f(a):\n    if a:\n        raise ValueError\n", "if", "if False:"),
        ("def f(a) -> bool:\n    if not a:\n        return False\n    return True\n", "if", "if False:"),
        ("def revoked(a) -> bool:\n    if a:\n        return True\n    return False\n", "if", "if False:"),
        ("def f(a) -> str:\n    if a:\n        return 'wrong key'\n    return ''\n", "if", "if False:"),
        ("def f(a) -> int | None:\n    if a:\n        return None\n    return 1\n", "if", "if False:"),
        ("async def f(a):\n    if a:\n        return await self._refuse('x')\n    return a\n", "if", "if False:"),
        (
            "def f(findings, a):\n    findings.expect('nonce', a == 1, 'differs')\n",
            "expect",
            "'nonce', True, 'differs'",
        ),
        ("def f(findings):\n    findings.fail('key', 'é')\n", "call", "    pass"),
        ("def f(a):\n    check_pool(a)\n", "call", "    pass"),
    ],
)
def test_a_refusal_is_taken_out(tmp_path: Path, source: str, shape: str, without: str) -> None:
    (mutant,) = found(tmp_path, source)
    assert mutant.id.split("::")[2] == shape
    assert without in mutant.apply(source)


def test_each_of_several_conditions_is_taken_out_alone(tmp_path: Path) -> None:
    source = "def f(a, b) -> bool:\n    return a == 1 and b == 2\n"
    assert [one.apply(source).splitlines()[1].strip() for one in found(tmp_path, source)] == [
        "return True and b == 2",
        "return a == 1 and True",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    if a:\n        return a\n    return 1\n",
        "def f(a) -> str:\n    if a:\n        return ''\n    return 'wrong'\n",
        "def f(a) -> bool:\n    if a:\n        return True\n    return False\n",
        "def f(log, a):\n    log.append(a)\n",
    ],
)
def test_what_lets_somebody_pass_is_left_alone(tmp_path: Path, source: str) -> None:
    assert found(tmp_path, source) == []


def test_equal_refusals_in_one_function_have_names_of_their_own(tmp_path: Path) -> None:
    source = "def f(a):\n    if a:\n        raise ValueError\n    if a:\n        raise KeyError\n"
    assert [one.id for one in found(tmp_path, source)] == ["trust/it.py::f::if::a", "trust/it.py::f::if::a#2"]


def test_every_mutant_of_the_product_parses_and_has_its_own_name() -> None:
    known = mutants(ROOT)
    assert len(known) > 400
    assert len({one.id for one in known}) == len(known)
    for one in known:
        ast.parse(one.apply((ROOT / one.path).read_text()))
