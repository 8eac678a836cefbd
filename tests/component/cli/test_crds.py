"""`fastness crds --roles`: the roles for people, in a form that kubectl takes."""

from __future__ import annotations

import json

import yaml
from click.testing import CliRunner

from fastness.cli.crds import crds
from fastness.model.crd.roles import roles


def test_roles_are_printed_as_yaml_and_as_json() -> None:
    plain = CliRunner().invoke(crds, ["--roles"])
    assert list(yaml.safe_load_all(plain.stdout)) == list(roles())
    structured = CliRunner().invoke(crds, ["--roles", "-o", "json"])
    assert json.loads(structured.stdout)["items"] == list(roles())


def test_roles_are_not_written_among_the_definitions() -> None:
    for option in ("--write", "--check"):
        said = CliRunner().invoke(crds, ["--roles", option, "somewhere"])
        assert said.exit_code == 2
        assert "goes with neither" in said.stderr
