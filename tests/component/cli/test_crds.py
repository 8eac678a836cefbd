"""`fastness crds --roles`: the roles for people, in a form that kubectl takes."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from fastness.app import accounts
from fastness.cli.run.crds import crds
from fastness.kinds.crd.roles import roles

ROOT = Path(__file__).parents[3]


def test_roles_are_printed_as_yaml_and_as_json() -> None:
    plain = CliRunner().invoke(crds, ["--roles"])
    assert list(yaml.safe_load_all(plain.stdout)) == list(roles())
    structured = CliRunner().invoke(crds, ["--roles", "-o", "json"])
    assert json.loads(structured.stdout)["items"] == list(roles())


def test_roles_are_not_written_among_the_definitions() -> None:
    for printed in ("--roles", "--accounts"):
        for option in ("--write", "--check"):
            result = CliRunner().invoke(crds, [printed, option, "somewhere"])
            assert result.exit_code == 2
            assert "go with neither" in result.stderr


def test_accounts_are_those_of_the_repository_and_bring_empty_secrets() -> None:
    printed = list(yaml.safe_load_all(CliRunner().invoke(crds, ["--accounts"]).stdout))
    files = sorted((ROOT / "deploy" / "accounts").glob("*.yaml"))
    documents = [document for path in files for document in yaml.safe_load_all(path.read_text())]
    assert sorted(map(str, printed)) == sorted(map(str, documents))
    secrets = [document for document in printed if document["kind"] == "Secret"]
    assert secrets
    assert all("data" not in document and "stringData" not in document for document in secrets)


def test_an_account_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    assert accounts.main(["--write", str(tmp_path)]) == 0
    assert accounts.main(["--check", str(tmp_path)]) == 0
    gate = tmp_path / "gate.yaml"
    gate.write_text(gate.read_text().replace("gate-mac-keys", "token-keys"))
    (tmp_path / "old.yaml").write_text("left over")
    assert accounts.main(["--check", str(tmp_path)]) == 1
    assert accounts.main(["--write", str(tmp_path)]) == 0
    assert accounts.stale(tmp_path) == []
