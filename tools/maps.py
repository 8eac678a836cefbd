"""Maps of the house, compared with the house: what a package, a walk or a page says of modules is so.

    python tools/maps.py     say what is wrong; exit code 1 if anything is

* Every package has a map: the docstring of its `__init__` names each module and each package inside, one line each.
* The walks of docs/explanation/architecture.md name files, and their headings say how many and how often the room changes.
* Pages that name a module (`record/live/tiles`, `fastness.kinds.crd`) name one that exists.
* So do docstrings and comments that name a file (`tiles.py` of the own package, or a path from the root of the tree).

`tools/docs.py --check` runs it, so `make check` does.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = Path("src/fastness")
WALKS: Final = Path("docs/explanation/architecture.md")
GENERATED: Final = frozenset({"reference", "acceptance"})
FORMER: Final = frozenset({"cluster", "controllers", "domain", "drivers", "model", "services", "trust"})
"""Packages of the tree before the rooms: a page that still names one of them is stale."""

_LINE: Final = re.compile(r"^(?:    )?(\w+(?:\.py|/)) {2,}\S", re.MULTILINE)
_PATH: Final = re.compile(r"`(?:src/fastness/)?([a-z_]+(?:/[a-z_0-9]+)+)(?:\.py|/)?`")
_FORMER: Final = re.compile(rf"`(?:src/fastness/)?(?:{'|'.join(sorted(FORMER))})/[^`]*`")
_DOTTED: Final = re.compile(r"`fastness((?:\.[a-z_][a-z_0-9]*)+)`")
_FILE: Final = re.compile(r"`([\w/]+\.py)`")
_WALK: Final = re.compile(r"^### (.+): (\d+) files, (\d+) changes? of room$", re.MULTILINE)


class Walk(NamedTuple):
    """The files that a reader opens, in order, and what the heading says about them."""

    name: str
    files: tuple[str, ...]
    said_files: int
    said_changes: int

    @property
    def changes(self) -> int:
        """How often the next file is in another room."""
        return sum(before.partition("/")[0] != other.partition("/")[0] for before, other in pairwise(self.files))


def problems(root: Path) -> list[str]:
    """Everything that is said of modules and is not so."""
    return [*_maps(root), *_walks(root), *_pages(root), *_sources(root)]


def _maps(root: Path) -> Iterator[str]:
    for init in sorted((root / SOURCE).rglob("__init__.py")):
        place = init.relative_to(root)
        listed = _LINE.findall(ast.get_docstring(ast.parse(init.read_text())) or "")
        there = _inside(init.parent)
        yield from (f"{place}: no line about {name}" for name in sorted(there - set(listed)))
        yield from (f"{place}: a line about {name}, which is not there" for name in sorted(set(listed) - there))
        yield from (f"{place}: {name} has two lines" for name in sorted({n for n in listed if listed.count(n) > 1}))


def _inside(package: Path) -> set[str]:
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    return modules | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


def walks(root: Path) -> list[Walk]:
    """The walks of the architecture page."""
    page = root / WALKS
    parts = _WALK.split(page.read_text()) if page.exists() else [""]
    sections = zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True)
    return [
        Walk(
            name,
            tuple(_PATH.findall(re.split(r"^#", text, maxsplit=1, flags=re.MULTILINE)[0])),
            int(files),
            int(changes),
        )
        for name, files, changes, text in sections
    ]


def _walks(root: Path) -> Iterator[str]:
    for walk in walks(root):
        count = len(set(walk.files))
        yield from (
            f"{WALKS}: {walk.name}: {name}.py is no file"
            for name in sorted(set(walk.files))
            if not (root / SOURCE / f"{name}.py").is_file()
        )
        if (count, walk.changes) != (walk.said_files, walk.said_changes):
            yield f"{WALKS}: {walk.name} has {count} files and {walk.changes} changes of room, and says otherwise"


def _pages(root: Path) -> Iterator[str]:
    rooms = {path.parent.name for path in (root / SOURCE).glob("*/__init__.py")}
    if not rooms:
        return
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    for page in sorted(path for path in pages if not GENERATED & set(path.relative_to(root).parts)):
        text, place = page.read_text(), page.relative_to(root)
        paths = {name for name in _PATH.findall(text) if name.partition("/")[0] in rooms}
        files = {
            name for name in _FILE.findall(text) if not ((root / name).exists() or (root / SOURCE / name).exists())
        }
        dotted = {name[1:].replace(".", "/") for name in _DOTTED.findall(text)} - {"dev"}
        yield from (f"{place}: {name} is no module" for name in sorted(paths | dotted) if not _exists(root, name))
        yield from (f"{place}: {name} is no file" for name in sorted(files))
        yield from (f"{place}: {name} is of the tree before the rooms" for name in sorted(set(_FORMER.findall(text))))


def _sources(root: Path) -> Iterator[str]:
    """A file is named from the module's own package, from one around it, or from the root of the repository."""
    source = root / SOURCE
    for module in sorted(source.rglob("*.py")):
        around = [place for place in module.parents if place.is_relative_to(source)]
        for name in sorted(set(_FILE.findall(module.read_text()))):
            if not any((place / name).exists() for place in (*around, root)):
                yield f"{module.relative_to(root)}: {name} is no file"


def _exists(root: Path, name: str) -> bool:
    place = root / SOURCE / name
    return place.is_dir() or place.with_suffix(".py").is_file()


def main() -> int:
    """Say what is wrong; returns the exit code."""
    wrong = problems(ROOT)
    print("\n".join(wrong) if wrong else "every map agrees with the tree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
