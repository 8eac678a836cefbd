"""Finding the engines of sealed hosts: where they are looked for, and what is said when they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import engines


def put(directory: Path, *programs: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for program in programs:
        (directory / program).write_text("#!/bin/sh\n")
        (directory / program).chmod(0o755)
    return directory


BOTH = tuple(engine.program for engine in engines.ENGINES)


def test_a_named_directory_goes_before_path_and_path_before_the_cache(tmp_path: Path) -> None:
    named, path = put(tmp_path / "named", *BOTH), put(tmp_path / "path", *BOTH)
    env = {"HOME": str(tmp_path), "PATH": str(path)}
    cached = put(engines.cache_root(env) / engines.VERSION, *BOTH)
    assert engines.locate({**env, "FASTNESS_ENGINES": str(named)}) == named
    assert engines.locate(env) == path
    assert engines.locate({**env, "PATH": ""}) == cached


def test_a_directory_with_one_of_them_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "half", BOTH[0])
    assert engines.locate({"HOME": str(tmp_path), "PATH": str(tmp_path / "half")}) is None


def test_without_cargo_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(engines.NoEngines, match="no cargo") as raised:
        engines.ensure({"HOME": str(tmp_path), "PATH": ""})
    assert "FASTNESS_ENGINES" in raised.value.hint


def test_a_build_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    cargo = put(tmp_path / "bin", "cargo") / "cargo"
    # `cargo install CRATE --version V … --root DIR`: the second one fails.
    cargo.write_text(
        '#!/bin/sh\n[ "$2" = composefs-ctl ] || exit 1\nfor word; do :; done\n'
        'mkdir -p "$word/bin"; cp "$0" "$word/bin/cfsctl"\n'
    )
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    with pytest.raises(engines.NoEngines, match="composefs-setup-root failed"):
        engines.ensure(env)
    assert engines.locate(env) is None
    cargo.write_text(
        '#!/bin/sh\nname=$2; [ "$name" = composefs-ctl ] && name=cfsctl\nfor word; do :; done\n'
        'mkdir -p "$word/bin"; cp "$0" "$word/bin/$name"\n'
    )
    assert engines.ensure(env) == engines.cache_root(env) / engines.VERSION


def test_where_names_what_is_missing_and_ends_with_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("FASTNESS_ENGINES", raising=False)
    assert engines.main(["where"]) == 3
    assert "tools/engines.py ensure" in capsys.readouterr().err


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_what_cannot_be_built_is_a_failure_in_ci_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, status: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("FASTNESS_ENGINES", raising=False)
    monkeypatch.setenv("CI", ci)
    assert engines.main(["ensure"]) == status
    assert "no cargo on PATH" in capsys.readouterr().err
