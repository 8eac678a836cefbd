"""What packages, walks and pages say of modules is compared with the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import maps

ROOT = Path(__file__).resolve().parents[3]
MAP = '"""What happens.\n\n    dance.py  Two people\n    hall/     Where they dance\n"""\n'
WALK = (
    "### The way in: 2 files, 1 change of room\n\n1. `rooms/dance`, then `floor/boards`.\n\n## Rest\n\n`rooms/hall`\n"
)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small tree in which every map agrees."""
    files = {
        "__init__.py": '"""All.\n\nrooms/  Where things happen\nfloor/  What they stand on\n"""\n',
        "rooms/__init__.py": MAP,
        "rooms/dance.py": "",
        "rooms/hall/__init__.py": '"""Where they dance."""\n',
        "floor/__init__.py": '"""What they stand on.\n\nboards.py  Wood\n"""\n',
        "floor/boards.py": "",
    }
    for name, text in files.items():
        path = tmp_path / maps.SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    page = tmp_path / maps.WALKS
    page.parent.mkdir(parents=True)
    page.write_text(WALK)
    return tmp_path


def test_every_map_agrees_with_the_tree() -> None:
    assert maps.problems(ROOT) == []


def test_the_architecture_has_its_three_walks() -> None:
    assert [walk.name for walk in maps.walks(ROOT)] == ["First boot", "MachineConfig", "KataConfig"]


def test_a_house_whose_maps_agree_has_no_problems(house: Path) -> None:
    assert maps.problems(house) == []


def test_a_module_without_a_line_is_named(house: Path) -> None:
    (house / maps.SOURCE / "rooms" / "song.py").write_text("")
    assert maps.problems(house) == ["src/fastness/rooms/__init__.py: no line about song.py"]


def test_a_line_about_a_module_that_has_gone_is_named(house: Path) -> None:
    (house / maps.SOURCE / "rooms" / "hall" / "__init__.py").unlink()
    assert "src/fastness/rooms/__init__.py: a line about hall/, which is not there" in maps.problems(house)


def test_two_lines_about_one_module_are_named(house: Path) -> None:
    (house / maps.SOURCE / "rooms" / "__init__.py").write_text(
        MAP.replace("    hall/", "    dance.py  Again\n    hall/")
    )
    assert maps.problems(house) == ["src/fastness/rooms/__init__.py: dance.py has two lines"]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("`floor/boards`", "`floor/planks`", "The way in: floor/planks.py is no file"),
        ("`floor/boards`", "`rooms/hall`", "The way in: rooms/hall.py is no file"),
        ("2 files", "3 files", "The way in has 2 files and 1 changes of room, and says otherwise"),
        ("1 change ", "0 changes ", "The way in has 2 files and 1 changes of room, and says otherwise"),
        ("`rooms/hall`", "`rooms/cellar`", "rooms/cellar is no module"),
        ("`rooms/hall`", "`fastness.rooms.cellar`", "rooms/cellar is no module"),
        ("`rooms/hall`", "`dance.py`", "dance.py is no file"),
        ("`rooms/hall`", "`domain/hall.py`", "`domain/hall.py` is of the tree before the rooms"),
    ],
)
def test_a_page_that_disagrees_with_the_tree_is_named(house: Path, before: str, after: str, problem: str) -> None:
    (house / maps.WALKS).write_text(WALK.replace(before, after))
    assert f"{maps.WALKS}: {problem}" in maps.problems(house)


def test_a_docstring_names_files_of_its_own_package_or_from_the_root(house: Path) -> None:
    song = house / maps.SOURCE / "rooms" / "dance.py"
    song.write_text('"""See `dance.py`, `floor/boards.py` and `src/fastness/rooms/dance.py`."""')
    assert maps.problems(house) == []
    song.write_text('"""See `boards.py`."""')
    assert maps.problems(house) == ["src/fastness/rooms/dance.py: boards.py is no file"]


def test_pages_may_name_what_is_elsewhere(house: Path) -> None:
    (house / "docs" / "page.md").write_text(
        "`pods/status`, `fastness.dev`, `src/fastness/rooms/dance.py`, `fastness.rooms.hall`"
    )
    assert maps.problems(house) == []
