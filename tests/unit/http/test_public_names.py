"""A library is used by what it promises: a name with an underscore may change in any release, also in one that mends a hole."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastness

SOURCE = Path(fastness.__file__).parent
LIBRARY = "granian"
OWN = ("self", "cls")


def hidden(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def private(path: str) -> bool:
    parts = path.split(".")
    return parts[0] == LIBRARY and any(map(hidden, parts))


def private_uses(tree: ast.AST) -> Iterator[str]:
    """Private names of the library that a module imports, loads by a text, or takes from an object where it uses the library."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and private(node.value):
            yield node.value
    yield from filter(private, modules)
    if any(module.split(".")[0] == LIBRARY for module in modules):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and hidden(node.attr) and ast.unparse(node.value) not in OWN:
                yield ast.unparse(node)


def test_no_module_uses_a_private_name_of_granian() -> None:
    modules = {path: text for path in SOURCE.rglob("*.py") if LIBRARY.encode() in (text := path.read_bytes())}
    assert SOURCE / "http" / "rustls.py" in modules
    uses = {f"{path.name}: {name}" for path, text in modules.items() for name in private_uses(ast.parse(text))}
    assert uses == set()


@pytest.mark.parametrize(
    "text",
    [
        "from granian import _granian",
        "from granian._granian import ASGIWorker",
        "import granian._futures as public",
        "from granian.asgi import _callback_wrapper",
        "import importlib\nimportlib.import_module('granian._granian')",
        "from granian.server.embed import Server\nServer(None)._init_shared_socket()",
    ],
)
def test_each_way_to_a_private_name_is_noticed(text: str) -> None:
    assert list(private_uses(ast.parse(text)))


def test_public_names_and_own_private_ones_are_free_to_use() -> None:
    text = "from granian.server.embed import Server\nclass A:\n    def f(self):\n        self._server = Server(None)"
    assert not list(private_uses(ast.parse(text)))
