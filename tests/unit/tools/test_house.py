"""The figures of the house, and what goes over a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import house

ROOT = Path(__file__).resolve().parents[3]
RUN = [f"    step_{number} = {number}" for number in range(13)]


def modules(tmp_path: Path, **texts: str) -> list[house.Module]:
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return house.read(tmp_path, Path())


def test_a_run_over_the_bound_is_listed_once_and_whole(tmp_path: Path) -> None:
    longer = "\n".join(["def f():", *RUN, "    again = 1", "    return again"])
    runs = house.repetitions(modules(tmp_path, a=longer, b=longer.replace("return again", "return None")))
    assert [str(run) for run in runs] == ["15 equal lines: a.py:1 and b.py:1"]


def test_blank_lines_comments_and_imports_do_not_hide_a_run_and_do_not_make_one(tmp_path: Path) -> None:
    plain = "\n".join(["def f():", *RUN])
    spread = "\n\n# a reason\n".join(["def g():", *RUN])
    assert len(house.repetitions(modules(tmp_path, a=plain, b=spread))) == 1
    imports = "\n".join(f"import m{number}" for number in range(20))
    assert house.repetitions(modules(tmp_path, a=imports, b=imports)) == []


def test_twelve_lines_are_allowed(tmp_path: Path) -> None:
    assert house.repetitions(modules(tmp_path, a="\n".join(RUN[:12]).replace("    ", ""), b="")) == []
    twelve = "\n".join(line.strip() for line in RUN[:12])
    assert house.repetitions(modules(tmp_path, a=twelve, b=twelve)) == []


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("policy = 1", 0.0),
        ("found = 1", 1000.0),
        ("def told(reason): ...", 500.0),
        ("reply.asked(seen=reply)", 500.0),
        ("class Found: ...", 0.0),
    ],
)
def test_filler_names_are_counted_wherever_a_name_is_written(tmp_path: Path, text: str, rate: float) -> None:
    assert house.fillers(modules(tmp_path, a=text)) == pytest.approx(rate)


def test_a_folder_with_too_many_filler_names_is_named_with_its_rate(tmp_path: Path) -> None:
    good = modules(tmp_path, a="\n".join(f"a{number} = 1" for number in range(999)), b="found = 1")
    assert list(house.misnamed(Path("tests"), good)) == []
    assert list(house.misnamed(Path("tests"), modules(tmp_path, b="found = told = 1"))) == [
        "tests: 2.0 filler names per 1,000 identifiers, more than 1.0: say what the value is"
    ]


@pytest.mark.parametrize("folder", house.NAMED, ids=str)
def test_every_folder_with_names_is_read(folder: Path) -> None:
    assert house.read(ROOT, folder)


def test_long_files_and_functions_are_named(tmp_path: Path) -> None:
    function = "\n".join(["def f():", *(f"    a{number} = 1" for number in range(60))])
    text = "\n".join([function, *(f"b{number} = 1" for number in range(440))])
    assert list(house.problems(modules(tmp_path, a=text))) == ["a.py: 501 lines", "a.py: f has 61 lines"]


def test_comments_that_switch_a_tool_off_are_no_comments(tmp_path: Path) -> None:
    [module] = modules(tmp_path, a="a = 1  # noqa: E501\nb = 2  # type: ignore[x]\nc = 3  # RFC 9110 §15.5.6\n")
    assert module.comments == 1


def test_the_table_has_the_walks(tmp_path: Path) -> None:
    lines = list(house.table(ROOT, modules(tmp_path, a="def f():\n    import m\n")))
    assert "imports inside functions             1" in lines
    assert sum(line.startswith("walk ") for line in lines) == 3
