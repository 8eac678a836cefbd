"""The names that the room gives to others."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fastness.apiserver
from fastness.apiserver import EXPORTS


def test_the_type_checker_and_the_program_know_the_same_names() -> None:
    source = ast.parse(Path(fastness.apiserver.__file__).read_text())
    [block] = [node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    checked = {
        (str(line.module).removeprefix("fastness.apiserver."), alias.name)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    assert checked == {(home, name) for home, names in EXPORTS.items() for name in names}


def test_every_name_is_that_of_its_module() -> None:
    for home, names in EXPORTS.items():
        for name in names:
            assert getattr(fastness.apiserver, name) is getattr(import_module(f"fastness.apiserver.{home}"), name)


def test_a_name_that_is_not_exported_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        fastness.apiserver.no_such_name  # type: ignore[attr-defined]  # noqa: B018  # asking is the test


def test_an_error_of_the_store_does_not_load_the_server() -> None:
    """Every verb of the command line can meet one, and most never open a server."""
    program = (
        "import sys; from fastness.apiserver import StoreError; print(*(m for m in sys.modules if 'apiserver' in m))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "fastness.apiserver.store.errors" in loaded
    assert "fastness.apiserver.server" not in loaded
    assert "fastness.apiserver.engine" not in loaded
