"""The generated reference: in step, deterministic, and loud when it is not."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import docs

ROOT = Path(__file__).resolve().parents[3]
PAGES = docs.pages


@pytest.fixture(scope="module", autouse=True)
def pages_once() -> Iterator[None]:
    """The pages are written once for all tests: it takes a second, and a test below shows that they stay the same."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(docs, "pages", functools.cache(PAGES))
        yield


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The reference as the repository has it."""
    shutil.copytree(ROOT / docs.REFERENCE, tmp_path / docs.REFERENCE)
    return tmp_path


def test_the_reference_is_in_step_with_the_code() -> None:
    assert docs.stale(ROOT) == [], f"run `{docs.COMMAND}`"


def test_pages_are_the_same_every_time() -> None:
    assert PAGES() == docs.pages()


def test_a_changed_a_missing_and_a_forgotten_page_are_named(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs.write(copy)
    reference = copy / docs.REFERENCE
    with (reference / "cli.md").open("a") as page:
        page.write("by hand")
    (reference / "metrics.md").unlink()
    (reference / "kinds" / "old.example.md").write_text("# Gone")
    assert docs.main(["--check", "--root", str(copy)]) == 1
    captured = capsys.readouterr()
    assert captured.out.split() == [
        "stale:", "docs/reference/cli.md", "stale:", "docs/reference/kinds/old.example.md",
        "stale:", "docs/reference/metrics.md",
    ]  # fmt: skip
    assert f"run `{docs.COMMAND}`" in captured.err


def test_a_module_that_is_on_no_map_is_named(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs.write(copy)
    package = copy / "src" / "fastness"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A house."""\n')
    (package / "attic.py").write_text("")
    assert docs.main(["--check", "--root", str(copy)]) == 1
    assert capsys.readouterr().err == "src/fastness/__init__.py: no line about attic.py\n"


def test_writing_brings_everything_back_into_step(copy: Path) -> None:
    (copy / docs.REFERENCE / "cli.md").write_text("")
    (copy / docs.REFERENCE / "kinds" / "old.example.md").write_text("# Gone")
    assert docs.main(["--write", "--root", str(copy)]) == 0
    assert docs.main(["--check", "--root", str(copy)]) == 0
    assert not (copy / docs.REFERENCE / "kinds" / "old.example.md").exists()


def test_fields_of_a_kind_are_told_with_type_meaning_and_choice() -> None:
    page = docs.pages()[docs.REFERENCE / "kinds" / "fastness.dev.md"]
    assert "| `spec.cases[].expect` | string, required | The result that the policy must give;" in page
    assert "One of `Affirmed`, `Refused`, `NotAssessed`, `NotAffirmed`. |" in page
