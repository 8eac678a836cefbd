"""`python -m fastness.kinds.crd` keeps a directory in step with the kinds, and importing the model is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fastness.kinds import registry
from fastness.kinds.crd import files, manifests
from fastness.kinds.crd.__main__ import main

CHECKED_IN = Path(__file__).resolve().parents[3] / "deploy" / "crds"


def test_files_in_the_repository_are_in_step() -> None:
    assert files.stale(CHECKED_IN) == []


def test_write_then_check_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--write", str(tmp_path / "crds")]) == 0
    assert main(["--check", str(tmp_path / "crds")]) == 0
    assert capsys.readouterr().err == ""


def test_there_is_one_file_per_resource_and_it_reads_back(tmp_path: Path) -> None:
    files.write(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {kind.crd_name for kind in registry.custom_kinds()}
    assert files.load(tmp_path) == sorted(manifests(), key=lambda manifest: f"{manifest['metadata']['name']}.yaml")


def test_check_names_every_stale_file_and_the_command_that_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write(tmp_path)
    (tmp_path / "verdicts.fastness.dev.yaml").unlink()
    (tmp_path / "machines.trusted-execution-clusters.io.yaml").write_text("edited by hand\n")
    (tmp_path / "gone.example.com.yaml").write_text("left over\n")
    assert main(["--check", str(tmp_path)]) == 1
    warning = capsys.readouterr().err
    for name in ("verdicts.fastness.dev", "machines.trusted-execution-clusters.io", "gone.example.com"):
        assert f"{name}.yaml is stale" in warning
    assert f"run: python -m fastness.kinds.crd --write {tmp_path}" in warning


def test_write_repairs_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.write(tmp_path)
    (tmp_path / "gone.example.com.yaml").write_text("left over\n")
    (tmp_path / "verdicts.fastness.dev.yaml").write_text("")
    assert main(["--write", str(tmp_path)]) == 0
    assert files.stale(tmp_path) == []
    assert "verdicts.fastness.dev.yaml" in capsys.readouterr().out


def test_text_has_no_anchors_and_says_where_it_comes_from() -> None:
    for name, text in files.rendered().items():
        assert text.startswith("# Generated from fastness.kinds"), name
        assert "&id0" not in text, name


def test_asking_for_the_registry_loads_no_kinds() -> None:
    program = "import sys, fastness.kinds.registry; print([m for m in sys.modules if m.startswith('fastness.kinds.')])"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert "machineconfiguration" not in loaded
    assert "kubernetes" not in loaded
