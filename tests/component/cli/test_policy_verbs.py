"""`fastness policy test`: every case is printed, and the exit code says whether a pipeline may go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.kind import JsonObject

REGO = """package policy
import rego.v1
default executables := 33
default configuration := 2
default instance_identity := 2
executables := 3 if input.tpm.pcr04 in query_reference_value("tpm_pcr4")
"""
GOOD: JsonObject = {
    "name": "good",
    "input": {"tpm": {"pcr04": "aa"}},
    "data": {"tpm_pcr4": ["aa"]},
    "expect": "Affirmed",
}
BAD: JsonObject = {"name": "bad", "input": {"tpm": {"pcr04": "bb"}}, "data": {"tpm_pcr4": ["aa"]}, "expect": "Refused"}


def run(directory: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["policy", "test", str(directory), *words])


def manifest(*cases: JsonObject, **spec: object) -> str:
    body = {"for": "tpm", "rego": REGO, "cases": list(cases), **spec}
    kind = {"apiVersion": "fastness.dev/v1alpha1", "kind": "AppraisalPolicy", "metadata": {"name": "mine"}}
    return yaml.safe_dump({**kind, "spec": body})


def test_policies_whose_cases_pass_end_with_0(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest(GOOD, BAD))
    (tmp_path / "tpm.rego").write_text(REGO)
    (tmp_path / "tpm.cases.yaml").write_text(yaml.safe_dump([GOOD, BAD]))
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert "a.yaml:1 mine: for tpm" in result.stdout
    assert result.stdout.count("pass  good") == 2
    assert "pass  bad" in result.stdout


def test_cases_that_are_all_affirmed_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest(GOOD))
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "FAIL  no case shows what the policy refuses" in result.stdout


def test_a_case_that_fails_ends_with_1_and_says_what_came_out(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest({**BAD, "expect": "Affirmed"}))
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "FAIL  bad: the result is Refused, expected Affirmed" in result.stdout


def test_a_text_that_is_no_rego_ends_with_1_and_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "tpm.rego").write_text("package policy\n\nexecutables := {\n")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "FAIL  line 3: this is unclosed" in result.stdout


def test_json_holds_every_case(tmp_path: Path) -> None:
    (tmp_path / "snp.rego").write_text(REGO)
    (tmp_path / "snp.cases.yaml").write_text(
        yaml.safe_dump({"for": "tpm", "cases": [GOOD, {**BAD, "expect": "Affirmed"}]})
    )
    result = run(tmp_path, "-o", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["passed"] is False
    [policy] = report["policies"]
    assert policy["for"] == "tpm", "the cases name what the policy is for"
    assert [(case["name"], case["passed"]) for case in policy["results"][1:]] == [("good", True), ("bad", False)]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.yaml", b"\xff", "a.yaml"),
        ("a.yaml", b"{", "a.yaml"),
        ("a.yaml", manifest({"name": "c"}).encode(), "spec.cases.0"),
        ("a.yaml", manifest(GOOD, rego="").encode(), "spec.rego"),
        ("tpm.rego", b"\xff\xfe", "not UTF-8"),
        ("colour.rego", REGO.encode(), "spec.for"),
        ("readme.txt", b"hello", "no policy in it"),
    ],
)
def test_what_cannot_be_read_ends_with_2(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    result = run(tmp_path)
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert result.stdout == ""


def test_a_directory_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere").exit_code == 2
