"""What the pages claim about the code is so: tests that are named exist, abbreviations are explained, verbs are documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fastness.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[3]
THREATS = (ROOT / "docs" / "threat-model.md").read_text()
TEST_ID = re.compile(r"`(tests/[\w/.]+\.py)::(test_\w+)`")
ROW = re.compile(r"^\| (?!Surface|---)(.+) \|$", re.MULTILINE)


@pytest.mark.row("000-97")
@pytest.mark.parametrize(("file", "name"), sorted(set(TEST_ID.findall(THREATS))))
def test_the_threat_model_names_tests_that_exist(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.row("000-97")
def test_every_row_of_the_threat_model_has_an_answer_and_a_test_or_a_decision() -> None:
    rows = ROW.findall(THREATS.partition("## Surfaces")[2].partition("\n## ")[0])
    assert len(rows) > 20
    assert [row for row in rows if len(row.split(" | ")) != 4 or not row.split(" | ")[2].strip()] == []
    assert [row for row in rows if not TEST_ID.search(row) and "](adr/" not in row] == []


@pytest.mark.row("000-82")
def test_the_broker_repeats_no_logic_of_machine_configs_as_the_page_about_delivery_says() -> None:
    page = (ROOT / "docs" / "explanation" / "delivery.md").read_text()
    assert "Logic of machine configuration is repeated on the side of attestation | It is not" in page
    assert "It knows no rendering" in page
    release = ROOT / "src" / "fastness" / "release"
    broker = [*sorted((release / "door" / "broker").glob("*.py")), release / "live" / "copies.py"]
    used = {
        name for file in broker for name in re.findall(r"^from fastness\.machineconfig\.(\S+)", file.read_text(), re.M)
    }
    # Who is to have overlays, and which rendered config a pool hands out; the second the config server asks as well.
    assert used == {"overlay.overlay", "serving"}
    assert "configuration_of(" in (release / "live" / "copies.py").read_text()
    assert "configuration_of(" in (release / "live" / "replies.py").read_text()


def test_each_of_the_thirty_mistakes_has_its_tests_or_is_said_to_be_open() -> None:
    table = THREATS.partition("## Mistakes that others made")[2].partition("\n## ")[0]
    rows = {int(number): rest for number, rest in re.findall(r"^\| (\d+) \| (.+) \|$", table, re.MULTILINE)}
    assert sorted(rows) == list(range(1, 31))
    assert [
        number for number, row in rows.items() if not TEST_ID.search(row) and "what-is-known-to-be-open" not in row
    ] == []


def test_the_page_of_pitfalls_explains_each_of_the_thirty() -> None:
    page = (ROOT / "docs" / "explanation" / "pitfalls.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .{20,} \| .{20,} \|$", page, re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, 31))


def test_every_fault_has_a_test() -> None:
    rows = re.findall(
        r"^\| (?!Fault|---)(.+) \|$", THREATS.partition("## Faults")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert len(rows) > 10
    assert [row for row in rows if not TEST_ID.search(row)] == []


def test_every_test_that_was_written_for_a_mistake_names_one_of_the_table() -> None:
    named = {
        int(number)
        for path in (ROOT / "tests").rglob("test_*.py")
        for number in re.findall(r"^(?:async )?def test_pitfall_(\d+)_", path.read_text(), re.MULTILINE)
    }
    assert named
    assert named <= set(range(1, 31))


def test_every_decision_is_in_the_index() -> None:
    directory = ROOT / "docs" / "adr"
    index = (directory / "index.md").read_text()
    assert [path.name for path in sorted(directory.glob("0*.md")) if f"({path.name})" not in index] == []


QUOTED = {"reference", "acceptance"}  # generated pages, and tables in the words of the source documents
PROSE = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if not QUOTED & set(path.parts))])
ABBREVIATION = re.compile(r"(?<![\w`/.$-])[A-Z][A-Z0-9]{2,}s?(?![\w-])")
NOT_ABBREVIATIONS = {"NAME", "README", "CONTRIBUTING", "CHANGELOG", "LICENSE", "PUT", "HMAC", "POST"}


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_abbreviations_are_in_the_glossary(page: Path) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", page.read_text(), flags=re.DOTALL)
    used = {word.rstrip("s") for word in ABBREVIATION.findall(prose)} - NOT_ABBREVIATIONS
    assert sorted(word for word in used if not re.search(rf"\b{word}\b", glossary)) == []


# Words that carry the product and mean something of their own here. A reader who knows Kubernetes, TLS and TPMs needs the rest
# of the source explained by nobody.
COINED = frozenset(
    {
        "agent", "appraisal", "bed", "blast radius", "break-glass", "broker", "collateral", "config server", "distrust", "door",
        "drift", "embedded", "enforcing", "enrolment", "evidence", "fault", "gate", "Grant", "join ticket", "lowering",
        "machine config", "overlay", "page", "pool", "quarantine", "record", "release", "room", "seal", "simulated", "standing",
        "ticket", "user-data", "variant", "vault key", "Verdict", "wave", "webhook", "witness", "workload",
    }
)  # fmt: skip
ROWS = re.findall(r"^\| (?!Word|---)([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)


def test_coined_words_are_in_the_glossary_once() -> None:
    words = [word.strip() for row in ROWS for word in row.split(",")]
    assert sorted(COINED - set(words)) == []
    assert sorted(word for word in set(words) if words.count(word) > 1) == []


def test_the_glossary_is_in_order() -> None:
    assert sorted(ROWS, key=str.casefold) == ROWS


@pytest.mark.parametrize("word", sorted(COINED))
def test_a_coined_word_is_one_that_the_product_uses(word: str) -> None:
    """A row about a word that nobody uses any more would send readers looking for it."""
    pattern = re.compile(rf"\b{re.escape(word).replace('-', '.?').replace(chr(92) + ' ', '.?')}", re.IGNORECASE)
    assert any(pattern.search(page.read_text()) for page in PROSE if page.name != "glossary.md")


def test_every_verb_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert [verb for verb in VERBS if f"\n## {verb}\n" not in reference] == []
