"""The house in figures: sizes, names, comments, walks, and lines that stand in two places.

    python tools/house.py             print the table
    python tools/house.py --check     say what is over its bound; exit code 1 if anything is

`make check` runs the second form. What it holds:

* No run of more than 12 equal lines stands in two places of the source. Blank lines, comments and imports do not count.
* Names that say only that somebody found, asked or told a value (`FILLERS`) are rare, in tests and tools as in the source: a name
  says what the value is.
* No file has over 500 lines, no function over 60.

The walks are those of docs/explanation/architecture.md; `tools/maps.py` compares them with the tree.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.maps import ROOT, SOURCE, walks

FILLERS: Final = frozenset({"found", "one", "wanted", "known", "told", "said", "kept", "shown", "asked", "seen"})
NAMED: Final = (SOURCE, Path("tests"), Path("tools"), Path("bench"))
"""Where names are held to the bound, each for itself: what is good in one does not make up for another."""
MAX_FILLERS: Final = 1.0
MAX_REPEATED: Final = 12
MAX_FILE: Final = 500
MAX_FUNCTION: Final = 60
SMALL: Final = 50

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Line(NamedTuple):
    """A line of code, and where it stands."""

    path: Path
    number: int
    text: str


class Repetition(NamedTuple):
    """Equal lines in two places."""

    lines: int
    first: Line
    second: Line

    def __str__(self) -> str:
        places = (f"{line.path}:{line.number}" for line in (self.first, self.second))
        return f"{self.lines} equal lines: {' and '.join(places)}"


@dataclass(frozen=True, slots=True)
class Module:
    """One source file as it is measured."""

    path: Path
    lines: tuple[str, ...]
    tree: ast.Module

    @property
    def comments(self) -> int:
        """Lines with a comment for readers."""
        tokens = tokenize.generate_tokens(iter([f"{line}\n" for line in self.lines]).__next__)
        return len({token.start[0] for token in tokens if token.type == tokenize.COMMENT and _is_prose(token.string)})

    @property
    def functions(self) -> list[tuple[str, int]]:
        """Every function with its number of lines."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, _Function)]
        return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]

    @property
    def late_imports(self) -> int:
        """Imports inside functions."""
        functions = [node for node in ast.walk(self.tree) if isinstance(node, _Function)]
        inner = {node for function in functions for node in ast.walk(function)}
        return sum(isinstance(node, ast.Import | ast.ImportFrom) for node in inner)


def read(root: Path, folder: Path) -> list[Module]:
    """Every module below a folder."""
    modules = []
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text()
        modules.append(Module(path.relative_to(root), tuple(text.splitlines()), ast.parse(text)))
    return modules


def _is_prose(comment: str) -> bool:
    """Whether a comment is for readers: those that switch a tool off say nothing to them."""
    return not comment.removeprefix("#").strip().startswith(("noqa", "type:", "fmt:", "pragma", "pylint"))


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Every name that is written: of values, parameters, attributes, functions, classes and keywords."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name


def fillers(modules: list[Module]) -> float:
    """Filler names per 1,000 identifiers."""
    names = [name for module in modules for name in identifiers(module.tree)]
    return 1000 * sum(name in FILLERS for name in names) / max(len(names), 1)


def repetitions(modules: list[Module], most: int = MAX_REPEATED) -> list[Repetition]:
    """Runs of more than `most` equal lines, the longest form of each once."""
    window = most + 1
    places: dict[tuple[str, ...], list[tuple[list[Line], int]]] = defaultdict(list)
    for module in modules:
        code = list(_code(module))
        for start in range(len(code) - window + 1):
            places[tuple(line.text for line in code[start : start + window])].append((code, start))
    pairs = [(first, other) for equal in places.values() for first in equal[:1] for other in equal[1:]]
    return [_whole(*first, *other) for first, other in pairs if not _goes_back(*first, *other)]


def _goes_back(first: list[Line], at: int, second: list[Line], other: int) -> bool:
    """Whether the lines before are equal too: then a longer run has been listed."""
    return at > 0 and other > 0 and first[at - 1].text == second[other - 1].text


def _whole(first: list[Line], at: int, second: list[Line], other: int) -> Repetition:
    length = 0
    while at + length < len(first) and other + length < len(second):
        if first[at + length].text != second[other + length].text:
            break
        length += 1
    return Repetition(length, first[at], second[other])


def _code(module: Module) -> Iterator[Line]:
    imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    skipped = {number for node in imports for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    for number, text in enumerate(module.lines, 1):
        if text.strip() and not text.strip().startswith("#") and number not in skipped:
            yield Line(module.path, number, text.rstrip())


def misnamed(folder: Path, modules: list[Module]) -> Iterator[str]:
    """That too many names in a folder say nothing."""
    rate = fillers(modules)
    if rate > MAX_FILLERS:
        yield f"{folder}: {rate:.1f} filler names per 1,000 identifiers, more than {MAX_FILLERS}: say what the value is"


def problems(modules: list[Module]) -> Iterator[str]:
    """What is over its bound."""
    yield from (f"{module.path}: {len(module.lines)} lines" for module in modules if len(module.lines) > MAX_FILE)
    for module in modules:
        yield from (f"{module.path}: {name} has {size} lines" for name, size in module.functions if size > MAX_FUNCTION)
    yield from map(str, repetitions(modules))


def table(root: Path, modules: list[Module]) -> Iterator[str]:
    """The figures, one line each."""
    sizes = [len(module.lines) for module in modules]
    functions = [size for module in modules for _, size in module.functions]
    small = sum(size < SMALL for module, size in zip(modules, sizes, strict=True) if module.path.name != "__init__.py")
    packages = [len(list(path.parent.glob("*.py"))) - 1 for path in (root / SOURCE).rglob("__init__.py")]
    yield f"lines / files                        {sum(sizes):,} / {len(modules):,}"
    yield f"file median / max                    {median(sizes):.0f} / {max(sizes)}"
    yield f"function median / max                {median(functions):.0f} / {max(functions)}"
    yield f"comment lines                        {100 * sum(m.comments for m in modules) / sum(sizes):.1f} %"
    yield f"filler names per 1,000 identifiers   {fillers(modules):.1f}"
    yield f"modules under {SMALL} lines              {small}"
    yield f"most modules in a package            {max(packages)}"
    yield f"imports inside functions             {sum(module.late_imports for module in modules)}"
    yield f"repetitions over {MAX_REPEATED} lines            {len(repetitions(modules))}"
    for walk in walks(root):
        yield f"walk {walk.name:<31} {len(set(walk.files))} files, {walk.changes} changes of room"


def main() -> int:
    """Print the table, or what is over its bound; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what is over its bound")
    modules = read(ROOT, SOURCE)
    if not parser.parse_args().check:
        print("\n".join(table(ROOT, modules)))
        print(f"filler names per 1,000 in tests      {fillers(read(ROOT, Path('tests'))):.1f}")
        return 0
    wrong = [*problems(modules), *(text for folder in NAMED for text in misnamed(folder, read(ROOT, folder)))]
    print("\n".join(wrong) if wrong else "sizes, names and repetitions are within their bounds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
