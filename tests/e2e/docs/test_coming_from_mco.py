"""The page for those who come from the Machine Config Operator: no claim without a test, nothing named that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from fastness.cli.main import cli
from fastness.kinds.registry import all_kinds

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/how-to/coming-from-mco.md").read_text()
CLAIM = re.compile(r"^\| (?!You know|There|---)(.+) \| (.+) \| (.+) \|$", re.MULTILINE)
CLAIMS = CLAIM.findall(PAGE)
TEST_ID = re.compile(r"`(tests/[\w/.]+\.py)::(test_\w+)`")
ROW = re.compile(r"\b(\d{3}-\d{2})\b")
QUOTED = re.compile(r"`([^`]+)`")
# Fields of kinds that others defined, and names that the page has for what is elsewhere.
FIELDS = {
    "maxUnavailable", "paused", "nodeDisruptionPolicy", "kernelType", "fips", "status.osImageStream", "cgroupMode: v1",
    "nodes.config",
}  # fmt: skip
ELSEWHERE = {"oc get mcp", "machine-config-server", "kubectl", "NNN-NN", "rendered-<pool>-<digest>"}


def claimed_rows() -> set[str]:
    """The rows of acceptance that a test proves."""
    sources = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {
        row for source in sources for mark in re.findall(r"mark\.row\(([^)]*)\)", source) for row in ROW.findall(mark)
    }


def test_there_is_something_of_each_sort() -> None:
    assert len(CLAIMS) > 20
    assert [PAGE.count(f"\n## {title}\n") for title in ("The same", "Better", "Different")] == [1, 1, 1]


@pytest.mark.row("000-05")
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim[0][:40])
def test_every_claim_is_held_by_a_test(claim: tuple[str, str, str]) -> None:
    tests, rows = TEST_ID.findall(claim[2]), ROW.findall(claim[2])
    assert tests or rows, "nothing would notice when this is no longer so"
    for file, name in tests:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"
    assert set(rows) <= claimed_rows(), "a row that no test claims holds nothing"


def words() -> list[str]:
    """What the page has between backticks, without the tests."""
    return [word for word in QUOTED.findall(PAGE) if not word.startswith("tests/")]


def test_every_kind_that_is_named_exists() -> None:
    kinds = {word for word in words() if re.fullmatch(r"[A-Z][a-z]\w+", word)}
    assert len(kinds) > 7
    assert kinds <= {kind.kind for kind in all_kinds()}


def test_every_file_that_is_named_is_one_of_ours() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    files = {word for word in words() if word.startswith("/")}
    assert len(files) > 3
    assert {file for file in files if f'"{file}"' not in source} == set()
    assert (ROOT / "deploy/systemd/fastness-agent.service").exists()


def test_every_command_that_is_named_exists_with_its_options() -> None:
    commands = [word for word in words() if word.startswith("fastness ")]
    assert len(commands) > 5
    for text in commands:
        context, command = click.Context(cli), _command(cli)
        for word in text.split()[1:]:
            if isinstance(command, click.Group):
                command = _command(command.get_command(context, word))
            elif word.startswith("--"):
                assert word in {option for parameter in command.params for option in parameter.opts}, text


def _command(named: click.Command | None) -> click.Command:
    assert named is not None, "there is no such verb"
    return named


def test_nothing_else_is_named() -> None:
    others = [
        word for word in words()
        if not re.fullmatch(r"[A-Z][a-z]\w+", word) and not word.startswith(("/", "fastness ")) and word not in FIELDS | ELSEWHERE
        and not (ROOT / "deploy/systemd" / word).exists()
    ]  # fmt: skip
    assert others == []
