"""What `doctor` looks for, what it says, and when its answer is no."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli import doctor
from fastness.cli.exits import Exit


def nowhere(_: str) -> str | None:
    return None


def test_programs_that_are_not_there_are_optional_and_named_with_their_package(tmp_path: Path) -> None:
    found = {one.name: one for one in doctor.examine(tmp_path, nowhere)}
    assert found["kubectl"].state == "optional"
    assert found["swtpm"].fix == "apt-get install swtpm swtpm-tools"


def test_programs_that_are_there_are_shown_with_their_place(tmp_path: Path) -> None:
    found = {one.name: one for one in doctor.examine(tmp_path, lambda name: f"/bin/{name}")}
    assert (found["kubectl"].state, found["kubectl"].found) == ("ok", "/bin/kubectl")


def test_every_declared_dependency_is_looked_for(tmp_path: Path) -> None:
    found = {one.name: one for one in doctor.examine(tmp_path, nowhere)}
    assert {"click", "cryptography", "orjson"} <= set(found)
    assert {one.state for one in found.values() if one.purpose == "a dependency"} == {"ok"}


def test_a_dependency_that_is_missing_makes_the_answer_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["no-such-package>=1; python_version > '3'"])
    said = CliRunner().invoke(doctor.doctor, ["--state", str(tmp_path)])
    assert said.exit_code == Exit.NO
    assert "pip install no-such-package" in said.output
    assert "1 required things are missing." in said.output


def test_a_place_that_cannot_be_written_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [state] = [one for one in doctor.examine(tmp_path / "file" / "state", nowhere) if one.name == "state"]
    assert state.state == "missing"
    assert "--state" in state.fix


def test_json_says_the_same(tmp_path: Path) -> None:
    said = CliRunner().invoke(doctor.doctor, ["--state", str(tmp_path), "-o", "json"])
    report = json.loads(said.output)
    assert report["ok"] is True
    assert {"name", "state", "found", "purpose", "fix"} == set(report["findings"][0])
